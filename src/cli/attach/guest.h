/* SPDX-License-Identifier: MIT */
/*
 * What runs inside the process: a page of code and seats beside it, one for
 * each call.
 *
 * A thread of the process is sent to the entry of a seat with all its registers
 * as they were. The code keeps them, makes a thread, puts them back and jumps
 * to where the first thread was. From the entry on nobody outside is needed.
 * The made thread has the library loaded, and calls one function of it. Who
 * loads is another thread: the file is open in its own table of descriptors,
 * and never in the program's.
 *
 * The area stays in the process and serves for the next call. A seat counts as
 * free two instructions before its thread has left it. Seats take turns, so
 * that three other calls come before the next in that seat.
 */
#ifndef CLI_ATTACH_GUEST_H
#define CLI_ATTACH_GUEST_H

/* Also for assembler. Offsets in struct cpprof__guest, and in the seat. */
#define GUEST_CODE_BYTES 4096
#define GUEST_SEATS      4
#define GUEST_SEAT_BYTES 131072
#define GUEST_RIP        0
#define GUEST_RSP        8
#define GUEST_LEFT       16
#define GUEST_BLOCKED    64
#define GUEST_BEFORE     72
#define GUEST_CALL_BYTES 2     /* of the instruction of a system call */
#define GUEST_FORKS      24512 /* in the first seat */
#define GUEST_XSTATE     24576 /* in the seat, of at most 16 KiB */
#define GUEST_FRAME                                                            \
    65536                    /* in the seat: a ucontext_t, and below it room   \
                              * for a signal's frame; */
#define GUEST_REGS     65576 /* in it: registers of numbers, */
#define GUEST_REGS_END 65720 /* up to the flags */
#define GUEST_BYTES    (GUEST_CODE_BYTES + GUEST_SEATS * (long)GUEST_SEAT_BYTES)

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code begins with this, which names the version of it. */
#define GUEST_MAGIC       "cpprof guest A\n"
#define GUEST_MAGIC_BYTES 16

/* Of the made thread: libc keeps it for the next thread of the program, and all
 * of it counts under a limit on data. */
#define GUEST_STACK_BYTES (1024 * 1024)

enum cpprof__guest_state {
    CPPROF__GUEST_FREE,
    CPPROF__GUEST_PREPARED, /* the thread is on its way to the entry */
    CPPROF__GUEST_RUNS,     /* the made thread is at work */
    CPPROF__GUEST_DONE,     /* result and message are there */
    CPPROF__GUEST_NO_THREAD /* result is what pthread_create() returned */
};

/* Is a system call at rip that begins again? */
enum cpprof__guest_call {
    CPPROF__GUEST_NO_CALL,
    CPPROF__GUEST_CALL_ENDS,     /* by any handler of the program */
    CPPROF__GUEST_CALL_RESTARTS, /* but after handlers with SA_RESTART */
    CPPROF__GUEST_CALL_GOES_ON   /* by none */
};

/* The library knows by it that a thread is not one of the program's.
 * ORDER: src/attach/attach.c. */
#define GUEST_THREAD "cpprof-call"

/* The beginning of a seat; its stack is at the end. */
struct cpprof__guest {
    uint64_t rip;  /* where the borrowed thread goes on */
    uint64_t rsp;  /* the thread's, kept by the entry; 0: it has not come */
    uint32_t left; /* the borrowed thread goes on */
    uint32_t state;
    uint32_t has_argument; /* function(argument, message, size) */
    int32_t result;        /* of the function; 0 is good */
    uint64_t mask;         /* signals that the borrowed thread blocks, */
    uint64_t has_mask;     /* if it blocks more now */
    uint64_t turn;         /* the seat with the least is next */
    uint64_t return_at;    /* where the entry was put as an address to return
                            * to; 0: the thread was sent to it */
    uint64_t blocked;      /* signals that the borrowed thread blocks here */
    uint64_t before;       /* signals that it blocks afterwards */
    uint64_t held_back; /* signals that only the call blocks, as ppoll() does */
    uint32_t call;      /* enum cpprof__guest_call */
    uint32_t has_time;  /* the kernel knows how much time the call has left */
    int32_t tid;        /* of the borrowed thread */
    uint32_t loaded;    /* futex: the library is there, or cannot be */

    /* Registers of vectors as a signal frame has them. */
    uint32_t n_xstate;       /* bytes without AMX data, */
    uint32_t n_xstate_tiles; /* with them */
    uint64_t features;       /* all that the kernel keeps */

    /* In libc. */
    int (*pthread_create)(unsigned long *, void *, void *(*)(void *), void *);
    int (*attr_init)(void *);
    int (*attr_setstacksize)(void *, size_t);
    int (*pthread_detach)(unsigned long);
    int (*register_atfork)(void (*)(void), void (*)(void), void (*)(void),
                           void *); /* NULL: not needed */
    unsigned long (*pthread_self)(void);
    void *(*dlopen)(const char *, int);
    void *(*dlsym)(void *, const char *);
    char *(*dlerror)(void);
    int *(*errno_location)(void);

    void *known; /* the function, of a library that is there; or NULL */

    char thread[16]; /* the made thread's name */
    char function[64];
    char message[960];
    char library[4096];
    char argument[16384];
};

/* In the first seat, for all calls: forks and the one load of the library. */
struct cpprof__guest_forks {
    uint32_t is_registered; /* the handlers are */
    uint32_t n_under_way;   /* that are known of */
    uint32_t is_loading;
    uint64_t until_ns; /* CLOCK_MONOTONIC: so long forks wait at most */
};

/* The code, position-independent. */
extern const char __start_cpprof_guest[] __attribute__((visibility("hidden")));
extern const char __stop_cpprof_guest[] __attribute__((visibility("hidden")));

/* Where the entry of a seat is in it: for a thread that was sent there with all
 * signals blocked, or for one that comes by itself when it returns. */
size_t
cpprof__guest_entry(unsigned seat, bool by_return);

/* Is there such code for this processor? */
bool
cpprof__guest_is_known(void);

static inline uint64_t
cpprof__guest_seat(uint64_t area, unsigned seat)
{
    return area + GUEST_CODE_BYTES + seat * (uint64_t)GUEST_SEAT_BYTES;
}

static inline struct cpprof__guest_forks *
cpprof__guest_forks(uint64_t area)
{
    return (void *)(uintptr_t)(cpprof__guest_seat(area, 0) + GUEST_FORKS);
}
#endif

#endif
