/* SPDX-License-Identifier: MIT */
/*
 * Into a process that runs: look at it, then call a function of libcpprof.so in
 * it. look.c reads what /proc says and refuses; images.c knows the code that is
 * mapped, threads.c chooses threads, stack.c walks a thread's stack, musl.c
 * knows that libc, hold.c has ptrace(2), turn.c has one command wait for the
 * other, inject.c puts them together and guest.h is what runs inside. Where
 * that may not be, events.h has its CPU time from outside.
 */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include "base/buffer.h"
#include "cli/attach/events.h"
#include "cli/attach/guest.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* ------------------------------------------------------- images.c ----- */

/* A file of the process, read where it lies. An address of the process plus
 * delta is the byte of the file here that says how to unwind it. */
struct cpprof__image {
    uint64_t lo, hi; /* addresses in the process */
    uint64_t bias;   /* address - address in the file */
    char *path;      /* as in /proc/PID/maps */
    const uint8_t *data;
    size_t n;
    size_t n_mapped;       /* with what was put behind the file */
    const uint8_t *frames; /* .eh_frame_hdr in data, or NULL */
    uint64_t delta;
    bool is_copy;               /* data is malloc'ed: the vdso */
    uint64_t code, code_offset; /* the first piece that can be executed */
    bool has_code; /* it was loaded; else the process only reads the file */
    bool is_libc, is_loader;
    bool is_allocator; /* it defines the program's malloc, and is not libc or
                        * the program */
};

struct cpprof__range {
    uint64_t lo, hi;
};

struct cpprof__images {
    struct cpprof__image *at;
    size_t n;
    const struct cpprof__image *libc; /* NULL: there is none */
    /* Code in which a thread may hold what pthread_create() needs. */
    struct cpprof__range *unsafe;
    size_t n_unsafe;
    /* Likewise, and nobody is called when they return: there they return in a
     * child, too, or never, or throw. */
    struct cpprof__range *never;
    size_t n_never;
    /* Functions of libc that have a name, in order. */
    struct cpprof__range *named;
    size_t n_named;
    /* Code in libc: `syscall; ret`, and the return from signal handlers. */
    uint64_t syscall_ret, sigreturn;
    /* libc is musl: all of it is unsafe. Of its functions these wait for others
     * and hold nothing meanwhile. And the code that makes system calls in which
     * a thread can be cancelled. */
    bool is_musl;
    struct cpprof__range *waits;
    size_t n_waits;
    struct cpprof__range cancelled;
};

/* What a borrowed thread blocks: all signals, but for those of libc that others
 * wait for. */
uint64_t
cpprof__images_blocked(const struct cpprof__images *images);

/* From the text of /proc/PID/maps. False without memory. */
bool
cpprof__images_read(struct cpprof__images *images, pid_t pid, const char *maps,
                    size_t n_maps);
/* The file of an image could not be opened; this one is taken if it begins with
 * the bytes that are mapped. */
bool
cpprof__image_stand_in(struct cpprof__image *image, pid_t pid,
                       const char *path);
void
cpprof__images_free(struct cpprof__images *images);

/* A thread may be cancelled where it goes on by this system call: the kernel is
 * to find it there when the signal comes, or the call has given EINTR. */
static inline bool
cpprof__is_cancelled_at(const struct cpprof__images *images, uint64_t pc)
{
    return pc - images->cancelled.lo <
           images->cancelled.hi - images->cancelled.lo;
}

/* The file's bytes at an address, or NULL: there are not so many. */
const uint8_t *
cpprof__image_code(const struct cpprof__image *image, uint64_t pc, size_t n);

/* frames.c: make image->frames, where its file has none. */
void
cpprof__image_index_frames(struct cpprof__image *image);

/* The image that has code at an address, or NULL. */
const struct cpprof__image *
cpprof__image_find(const struct cpprof__images *images, uint64_t address);

/* The address of what an image defines; 0: nothing of this name. */
uint64_t
cpprof__image_symbol(const struct cpprof__image *image, const char *name);

/* The first place of these bytes in an image's code, or 0. */
uint64_t
cpprof__image_find_code(const struct cpprof__image *image, const void *code,
                        size_t n);

/* Add one, unless it is empty; add an image's functions of these names. False
 * without memory. */
bool
cpprof__range_add(struct cpprof__range **ranges, size_t *n,
                  struct cpprof__range range);
bool
cpprof__image_add_named(const struct cpprof__image *image,
                        const char *const *names, size_t n,
                        struct cpprof__range **ranges, size_t *n_ranges);

bool
cpprof__range_has(const struct cpprof__range *ranges, size_t n,
                  uint64_t address);

/* --------------------------------------------------------- musl.c ----- */

/* A frame of musl, which has no call-frame information. */
struct cpprof__musl_frame {
    uint64_t function; /* where it begins; 0: there is no way on */
    bool is_named;     /* others may call it */
    bool is_root; /* it has called the program's main(), or a start routine:
                   * there is no caller, and function is 0 */
    uint64_t return_at, return_to, fp; /* of the caller */
};

/* Of a frame with these registers, pc within the instruction that runs. */
struct cpprof__musl_frame
cpprof__musl_frame(const struct cpprof__images *images, uint64_t pc,
                   uint64_t sp, uint64_t fp, bool is_leaf,
                   bool (*read)(void *ctx, uint64_t at, uint64_t *value),
                   void *ctx);

/* Fill in what attach.h tells of it. False without memory. */
bool
cpprof__musl_find(struct cpprof__images *images);

/* --------------------------------------------------------- look.c ----- */

#define CPPROF__REASON_BYTES 512

struct cpprof__target {
    pid_t pid;
    char name[32];
    char library[PATH_MAX]; /* of libcpprof.so as the process sees it */
    bool force;             /* threads with a seccomp filter, too */
    bool is_visible;        /* its memory may be read, and its code is of this
                             * processor: whoever refuses it, perf events may do */
    bool is_loaded;         /* it is there already */
    uint64_t file_limit;    /* its files may have so many bytes (ulimit -f) */
    void (*is_slow)(const struct cpprof__target *); /* once, when a call takes
                                                     * long; or NULL */
    const struct cpprof__image *loaded;             /* then its image */
    struct cpprof__buffer auxv; /* of the program that it runs, where it lies */
    struct cpprof__buffer maps;
    struct cpprof__images images;
};

/*
 * Look at a process; library is the file to be loaded, which is at seen_library
 * for it. NULL: it is not looked for; "": there is none for its libc. Nothing
 * in the process is touched. False: reason is one line that says why it cannot
 * be attached to; what does not speak of force is not helped by it.
 */
bool
cpprof__attach_look(struct cpprof__target *target, pid_t pid,
                    const char *library, const char *seen_library, bool force,
                    char reason[CPPROF__REASON_BYTES]);
void
cpprof__attach_free(struct cpprof__target *target);

/* May it make files as long as a recorder needs them, for CPU time alone or for
 * any profile? False: reason says why not. */
bool
cpprof__attach_has_file_room(const struct cpprof__target *target,
                             bool is_cpu_alone,
                             char reason[CPPROF__REASON_BYTES]);

/* Of one that was refused: read what is needed to walk its stacks, again when
 * it has changed. False without memory. */
bool
cpprof__attach_read(struct cpprof__target *target);

/* Is it a program for musl, which needs another library? */
bool
cpprof__attach_is_musl(pid_t pid);

/*
 * Could what has this /proc/PID/status, a process or a thread of one, with a
 * seccomp filter be killed for what profiling calls? Not where process 1 and
 * this program have as many, in the same container: they are the container's,
 * and let this program run.
 */
bool
cpprof__attach_filter_may_kill(pid_t pid, const struct cpprof__buffer *status);

/* mild.c: the filter of this program kills for no call that the library makes
 * in a process. */
bool
cpprof__attach_filter_is_mild(void);

/* Is it still the program that was looked at? exec() keeps pid and tid. */
bool
cpprof__attach_is_same(const struct cpprof__target *target);

/* The reason for a process that is stopped by a signal begins so. */
#define CPPROF__STOPPED       "is stopped; continue it first"
#define CPPROF__STOPPED_WORDS CPPROF__STOPPED ": kill -CONT %d"

/* By a signal, or by a tracer that is not this program. */
bool
cpprof__attach_is_stopped(pid_t pid);

/* It is gone, or has ended and waits for its parent. */
bool
cpprof__attach_is_over(pid_t pid);

/* A field of /proc/PID/status or of a thread's; false and "": it has none. */
bool
cpprof__status_field(const struct cpprof__buffer *status, const char *name,
                     char *value, size_t size);

/* Of a thread's: signals that have come and wait, and those that it blocks.
 * hold.c has them. */
uint64_t
cpprof__status_pending(const struct cpprof__buffer *status);
uint64_t
cpprof__status_blocked(const struct cpprof__buffer *status);

/* The text of a file of /proc, terminated. Empty if it cannot be read. */
void
cpprof__read_proc(struct cpprof__buffer *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* -------------------------------------------------------- stack.c ----- */

/* What a walk found. */
struct cpprof__safety {
    bool is_safe;
    /* Not safe: where the outermost unsafe frame's return address stands, and
     * what it is; 0: not known. */
    uint64_t return_at, return_to;
    /* Its stack may lie within another: the frames do not lie one above the
     * other (a handler of signals), or the outermost is no begin of a thread (a
     * coroutine). */
    bool may_be_nested;
};

/* May the thread with these registers be borrowed? is_running: it was in no
 * system call. */
struct cpprof__safety
cpprof__stack_is_safe(const struct cpprof__target *target,
                      const struct user_regs_struct *regs, bool is_running);

enum cpprof__stack_end {
    CPPROF__STACK_WHOLE,
    CPPROF__STACK_CUT,   /* no more of it was copied, or max frames found */
    CPPROF__STACK_BROKEN /* no way on */
};

/* The frames of a copied stack, leaf first, max > 0: each an address within the
 * instruction that it stands for. */
size_t
cpprof__stack_walk(const struct cpprof__target *target,
                   const struct cpprof__event *event, uint64_t *pcs, size_t max,
                   enum cpprof__stack_end *end);

/* --------------------------------------------------------- hold.c ----- */

/* A thread that is stopped. */
struct cpprof__held {
    pid_t pid, tid;
    bool is_late;                 /* it did not stop in time */
    bool is_running;              /* it was not in a system call */
    struct user_regs_struct regs; /* as it will go on: a system call that was
                                   * interrupted begins again */
    enum cpprof__guest_call call; /* is it one that a handler would end? */
    bool kernel_restarts;         /* it, if the thread is left as it was */
    bool has_time;                /* the kernel knows how much it has left */
    bool has_signal;    /* one has come that the call does not block */
    uint64_t held_back; /* signals that the call blocks, and the thread does not
                         * any more when it goes on */
    uint64_t anew; /* rax to begin the call from its start; else that of regs */
    uint64_t mask; /* signals that it blocks */
    uint64_t since_ns; /* CLOCK_MONOTONIC */
    uint64_t frame;    /* see cpprof__hold_prepare() */
};

/* Stop a thread; false: it is let go, or is_late: it stops when it can, until
 * this process ends. */
bool
cpprof__hold_take(struct cpprof__held *held, pid_t pid, pid_t tid);

/* Let it go on, with held->regs and the mask that it had. */
bool
cpprof__hold_release(struct cpprof__held *held);

/* Has it the descriptor that libc gave it, and is its thread pointer that of
 * libc? What runs on it asks libc for both. */
bool
cpprof__hold_has_descriptor(const struct cpprof__held *held,
                            const struct cpprof__target *target);

/* Has the program asked to answer the thread's system calls itself
 * (PR_SET_SYSCALL_USER_DISPATCH)? Told by Linux 6.4 and later. */
bool
cpprof__hold_is_dispatched(const struct cpprof__held *held);

/* What a frame says of the registers of vectors, here and in the process. */
void
cpprof__hold_describe_xstate(struct cpprof__guest *guest);

/* Make calls possible: put what brings all registers back, if this program
 * should die meanwhile, below the thread's stack. NULL or why not. */
const char *
cpprof__hold_prepare(struct cpprof__held *held,
                     const struct cpprof__target *target);

/* A system call on it; -errno. -ENOTRECOVERABLE: the thread is not held any
 * more. */
long
cpprof__hold_syscall(struct cpprof__held *held,
                     const struct cpprof__target *target, long number,
                     const uint64_t args[6]);

/* The same memory of the process; false: not all of it. */
bool
cpprof__target_read(pid_t pid, uint64_t from, void *to, size_t n);
bool
cpprof__target_write(pid_t pid, uint64_t to, const void *from, size_t n);

/* ------------------------------------------------------ threads.c ----- */

struct cpprof__candidate {
    pid_t tid;
    int rank; /* the least is tried first */
};

/* The threads that may be tried, best first. The caller frees them. */
struct cpprof__candidate *
cpprof__threads_to_try(const struct cpprof__target *t, size_t *n);

/* Why a thread must not be stopped where it is, or NULL: its call would end
 * with a part of its work, or holds back a signal that has come, which comes
 * when the call begins again. */
const char *
cpprof__thread_must_not_stop(pid_t pid, pid_t tid);

/* --------------------------------------------------------- turn.c ----- */

#define CPPROF__NO_TURN "another cpprof is attaching to it or detaching from it"

/* Wait until no other command is at work in a process; *turn is -1 where that
 * cannot be known. False: one is for long, or a signal has come. */
bool
cpprof__turn_take(pid_t pid, int *turn);
void
cpprof__turn_release(int turn);

/* Has somebody asked us to end? These signals may be blocked. */
bool
cpprof__is_interrupted(void);

/*
 * So much time, as it passes on a machine that has a processor for each who
 * wants one: where a hundred share one, it lasts longer in proportion.
 */
struct cpprof__patience {
    uint64_t left_ns;
    uint64_t at_ns; /* CLOCK_MONOTONIC, when it was last counted */
};

void
cpprof__patience_begin(struct cpprof__patience *p, uint64_t ns);

/* To be asked again and again; false: it is over. */
bool
cpprof__patience_has(struct cpprof__patience *p);

/* ------------------------------------------------------- inject.c ----- */

/* How long the thread was held, for those who measure. */
struct cpprof__injected {
    uint64_t held_ns;
    uint64_t total_ns;
    unsigned n_tries; /* threads that were stopped */
    bool was_unsafe;  /* it was left to come by itself */
};

/*
 * Call function(argument, message, size) of the library in the process, or
 * function(message, size) if argument is NULL, on a thread of its own there.
 *
 * False: message is one line that says why not, or what the function said.
 */
bool
cpprof__inject(const struct cpprof__target *target, const char *function,
               const char *argument, char message[CPPROF__REASON_BYTES],
               struct cpprof__injected *how);

#endif
