/* SPDX-License-Identifier: MIT */
/* The parts of `cpprof record`: options, the child and its folder, files. */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include "base/array.h"
#include "base/buffer.h"
#include <cpprof/pprof/change.h>
#include <cpprof/recording.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Kinds of profiles. ORDER: names of names.c. */
#define CPPROF__RECORD_CPU     1u
#define CPPROF__RECORD_HEAP    2u
#define CPPROF__RECORD_BLOCK   4u
#define CPPROF__RECORD_MUTEX   8u
#define CPPROF__RECORD_WALL    16u
#define CPPROF__RECORD_OFF_CPU 32u
#define CPPROF__RECORD_END     64u
#define CPPROF__RECORD_KINDS   6

struct cpprof__record_options {
    unsigned kinds;             /* CPPROF__RECORD_* */
    unsigned rate_hz;           /* 0: the library's default */
    unsigned max_depth;         /* 0: the library's default */
    const char *engine;         /* as in CPPROF= */
    const char *heap_rate;      /* as in CPPROF=heap=; NULL: its default */
    const char *block_rate;     /* as in CPPROF=block=, likewise */
    const char *mutex_fraction; /* as in CPPROF=mutex=, likewise */
    const char *wall_rate;      /* as in CPPROF=wall= and offcpu=, likewise */
    bool labels;                /* put the threads' labels on heap samples */
    bool peak;                  /* heap in use when it was most */
    bool legacy;                /* in the forms of gperftools and Go of 2016 */
    bool scripts;               /* frames of scripts in all of them */
    bool vm;                    /* and a profile of scripts alone */
    bool one;                   /* one profile of all processes */
    enum cpprof_symbolize symbolize;
    const char *debuginfod; /* as cli/fetch/debuginfod.h takes it */
    const char *out;        /* NULL: cpu.pb.gz, heap.pb.gz, ... */
    double duration_s;      /* 0: until the command ends */
    char **command;         /* NULL-terminated */
    const char *pids;       /* processes that run already; NULL: the command */
    const char *process_name; /* all of this name, likewise */
    bool is_attached;         /* either of the two */
    bool force;               /* also those with a seccomp filter */
    const char *shown;   /* in the place of FILE, which is removed; or NULL */
    bool prints_threads; /* of the processes: where their threads are, and
                          * nothing is recorded */
    bool prints_stuck;   /* of these, those that can never go on */

    /* These are for the list of what is still in use at the end. */
    bool is_verdict;    /* leaks: of the command alone, without libc's own */
    const char *ignore; /* regular expression of frames, or NULL */
    int64_t min_bytes;  /* less of one stack is not told */
    int max_lines;
    bool is_reachable_too; /* leaks: and what is still reachable */
    int64_t leaked_bytes;  /* result: of the stacks that are told */
    int64_t leaked_objects;
    size_t n_allocated; /* result: samples of the command's heap profile */
    bool is_growth;     /* leaks: of a series of profiles */
    int n_times;        /* of one URL: so often, */
    double every_s;     /* so far apart */
    bool is_searched;   /* result: memory was, so what is told is lost */
    uint64_t n_lost;    /* result: samples that are missing */
    /* CPU time of the command and of all that it waited for, after its end;
     * else 0. */
    int64_t used_ns;
    uint64_t n_ticks; /* result: of CPU time, of all processes, lost ones too */
};

/* ------------------------------------------------------ names.c ------- */

const char *
cpprof__record_kind_name(unsigned kind);

/* The kind of a word of n bytes; 0: none. */
unsigned
cpprof__record_kind(const char *word, size_t n);

/* FILE of a kind; NULL without memory. The caller frees it. */
char *
cpprof__record_name(const struct cpprof__record_options *options,
                    unsigned kind);

/* FILE of the profile of interpreted code; likewise. */
char *
cpprof__record_name_vm(const struct cpprof__record_options *options);

/* The position at which the ending of a file name begins: ".pb.gz". */
size_t
cpprof__record_suffix_at(const char *file);

/* FILE with name, pid and, unless it is NULL, image in it; likewise. */
char *
cpprof__record_name_beside(const char *file, const char *name, int32_t pid,
                           const uint32_t *image);

/* Files beside /dev/null would be files in /dev. */
bool
cpprof__record_has_room_beside(const char *path);

/* ----------------------------------------------------- folder.c ------- */

#define CPPROF__RECORD_NAME 40

/* The folder that the samples are in while the command runs, and the library
 * that it preloads. */
struct cpprof__record_folder {
    char path[PATH_MAX];
    char library[PATH_MAX];
    /* Both as the processes see them. */
    char seen[PATH_MAX];
    char seen_library[PATH_MAX];
    /* Descriptors: path is inner, which is in outer, which is in parent. The
     * first two are this recorder's. */
    int parent, outer, inner;
    char name[16], inner_name[CPPROF__RECORD_NAME]; /* of the last two */
    bool is_shared;
};

/* The library that is loaded; false after printing that there is none. */
bool
cpprof__record_library(char library[PATH_MAX]);

/*
 * The path of that library and of the one for musl beside it, as each loader
 * reads it: musl's takes $LIB for the name of a folder, and glibc's puts its
 * own for it (meson.build makes both). False: there is none for musl.
 */
bool
cpprof__record_musl_library(const char *library, char path[PATH_MAX]);

/* The one that a process can load, "" if there is none for its libc; false
 * after printing that there is none at all. */
bool
cpprof__record_library_for(pid_t pid, char library[PATH_MAX]);

/* False after printing why. */
bool
cpprof__record_folder_make(struct cpprof__record_folder *folder);

/* The folders alone, in `parent`, which the processes know as `parent_seen`. If
 * that is another path, the samples are read by a descriptor, so nobody can
 * lead this process elsewhere. What killed recorders left beside it is removed.
 * False: errno says why. */
bool
cpprof__record_folder_make_in(struct cpprof__record_folder *folder,
                              const char *parent, const char *parent_seen);

/* Make it ready for processes: those of all users, if this one is root. */
enum cpprof_status
cpprof__record_folder_prepare(struct cpprof__record_folder *folder,
                              struct cpprof_error *error);

/* Processes of other users may record there. False: errno says why. */
bool
cpprof__record_folder_share(struct cpprof__record_folder *folder);

/* Safety: AS. */
void
cpprof__record_folder_remove(const struct cpprof__record_folder *folder);

/* ----------------------------------------------------- inside.c ------- */

/* Is the file at path what the process sees at seen? */
bool
cpprof__record_sees(pid_t pid, const char *path, const char *seen);

/* A folder that the process sees, in its root, and a copy of the library in
 * it. False after printing why. */
bool
cpprof__record_folder_make_inside(struct cpprof__record_folder *folder,
                                  pid_t pid);

/* Where that would be made, NULL: nowhere. */
const char *
cpprof__record_inside(pid_t pid);

/* The number of a process's pid namespace; 0: it is gone, or not ours. */
ino_t
cpprof__record_pid_namespace(pid_t pid);

/* The /proc that has the pids of the process's namespace; NULL: that of ours.
 * inside is its pid there. */
const char *
cpprof__record_proc(pid_t pid, pid_t inside);

/* ------------------------------------------------------ child.c ------- */

struct cpprof__record_child {
    pid_t pid;
    int status;       /* of waitpid, once it ended */
    int64_t start_ns; /* CLOCK_MONOTONIC */
};

/* From here on SIGINT and SIGQUIT are the command's alone, SIGTERM and SIGHUP
 * wait for it, and no write ends this program. */
void
cpprof__record_take_signals(void);

/* The text of the variable CPPROF, with its end. False without memory. */
bool
cpprof__record_config(const struct cpprof__record_options *options,
                      const struct cpprof__record_folder *folder,
                      struct cpprof__buffer *text);

/*
 * Start the command under the library. SIGTERM and SIGHUP are passed on to it.
 *
 * Returns 0, or the exit status after printing why it could not be run.
 */
int
cpprof__record_child_start(const struct cpprof__record_options *options,
                           const struct cpprof__record_folder *folder,
                           struct cpprof__record_child *child);

/* What is done each second while the command runs; do_it NULL: nothing. */
struct cpprof__record_chore {
    void (*do_it)(void *ctx);
    void *ctx;
};

/* Wait until the command has ended, or for that many seconds after its start
 * (0: for ever). True: it has ended. */
bool
cpprof__record_child_wait(struct cpprof__record_child *child, double seconds,
                          struct cpprof__record_chore chore);

/*
 * The command has ended: from here on signals are ours again. One that comes
 * while the profile is written removes the folder and ends this program.
 */
void
cpprof__record_child_ended(const struct cpprof__record_folder *folder);

/* Its exit status, or 128 + the signal as in a shell. */
int
cpprof__record_child_status(const struct cpprof__record_child *child);

/* End as the command did: its exit status is returned, a signal is raised. */
int
cpprof__record_child_pass_on(const struct cpprof__record_child *child);

/* --------------------------------------------------------- vm.c ------- */

/* Warn if frames of scripts are wanted of an interpreter that there is no
 * module for. */
void
cpprof__record_vm_check(const struct cpprof__record_options *options);
/* Append the part of CPPROF about interpreted code, which begins with a comma.
 */
void
cpprof__record_vm_flags(const struct cpprof__record_options *options,
                        struct cpprof__buffer *text);
/* Print the file's name if it was written. */
void
cpprof__record_vm_print(const struct cpprof__record_options *options,
                        time_t since);

/* -------------------------------------------------- preflight.c ------- */

/* Exit statuses of shells and of env(1). */
#define CPPROF__EXIT_CANNOT_RUN 126
#define CPPROF__EXIT_NOT_FOUND  127

/* The file that execvp runs for a name; 0 or an errno. */
int
cpprof__find_command(const char *name, char path[PATH_MAX]);

/*
 * Will the loader put libcpprof.so into this command, which is searched for as
 * execvp(3) does? It is checked before anything runs, so that for a program
 * that cannot be profiled there is a clear message and not an empty profile.
 *
 * Returns 0, or the exit status after printing why not.
 */
int
cpprof__preflight(const char *command);

/* Does LD_PRELOAD name the library of AddressSanitizer? */
bool
cpprof__preloads_asan(void);

/* Is it the name of a file, and of no command? */
bool
cpprof__is_data_file(const char *command);

/* -------------------------------------------------------- one.c ------- */

/* Two of one pid may be in different namespaces. */
struct cpprof__record_process {
    int32_t pid;
    uint64_t pid_namespace; /* 0: unknown */
};

/* What was added up. Zero bytes is a valid sum of nothing. */
struct cpprof__record_sum {
    struct pprof_merger *merger;                            /* NULL: nothing */
    int64_t start_ns, end_ns;                               /* CLOCK_REALTIME */
    CPPROF__ARRAY(struct cpprof__record_process) processes; /* of each image */
    uint64_t n_samples;
    uint64_t n_lost;
    int64_t
        used_ns; /* CPU time of all processes as the kernel knows it, or 0 */
};

/* A writer that appends to the buffer, which stays the caller's. */
struct cpprof_writer
cpprof__record_writer(struct cpprof__buffer *bytes);

/* Add a profile that was written to bytes, with labels that tell the process:
 * its name, its pid, and of what pid namespace that is, if not of ours.
 * Errors: CPPROF_NOMEM, CPPROF_BAD_DATA. */
enum cpprof_status
cpprof__record_sum_add(struct cpprof__record_sum *sum, const char *name,
                       struct cpprof__record_process process,
                       const struct cpprof__buffer *bytes,
                       struct cpprof_error *error);

/* Add what another sum has, which is empty then. Errors: CPPROF_NOMEM. */
enum cpprof_status
cpprof__record_sum_join(struct cpprof__record_sum *sum,
                        struct cpprof__record_sum *other,
                        struct cpprof_error *error);

/* How many processes are in it: one that executed itself anew has several
 * images. */
size_t
cpprof__record_sum_processes(struct cpprof__record_sum *sum);

/* Write a sum of something, once, with the names that servers of debuginfod
 * have. Errors: CPPROF_NOMEM, CPPROF_SYSTEM. */
enum cpprof_status
cpprof__record_sum_write(struct cpprof__record_sum *sum,
                         const struct cpprof__record_options *options,
                         const char *comment, const char *path,
                         struct cpprof_error *error);
void
cpprof__record_sum_free(struct cpprof__record_sum *sum);

/* ----------------------------------------------------- output.c ------- */

/* What -one has added up while the command runs, of processes that ended: their
 * files would be too many in the end. Begins with zeroes and the first two. */
struct cpprof__record_ended {
    struct cpprof__record_options *options;
    const struct cpprof__record_folder *folder;
    struct cpprof__record_sum sums[CPPROF__RECORD_KINDS];
    struct cpprof_error error; /* of the first failure: nothing is taken then */
};

/* Take those in, if there are many. */
void
cpprof__record_take_ended(struct cpprof__record_ended *ended);
void
cpprof__record_ended_free(struct cpprof__record_ended *ended);

/*
 * Write what was recorded of the command and of every process that it started,
 * and print so; of the command's heap also what is in use at the end. False
 * after printing what went wrong.
 */
bool
cpprof__record_write(struct cpprof__record_options *options,
                     const struct cpprof__record_folder *folder, pid_t command,
                     struct cpprof__record_ended *ended);

/* --------------------------------------------------- attached.c ------- */

/* Record processes that run already, and write. False after printing what went
 * wrong. */
bool
cpprof__record_attached(struct cpprof__record_options *options);

/* ------------------------------------------------- of_process.c ------- */

/* Print where the threads of processes are, or those that can never go on.
 * Returns an exit status. */
int
cpprof__record_print_threads(const char *pids, bool is_stuck);

/* ---------------------------------------------------- threads.c ------- */

/* What a process is told that is to dump its threads to the folder when it is
 * detached. False after printing that there is no memory. */
bool
cpprof__record_threads_config(bool is_stuck,
                              const struct cpprof__record_folder *folder,
                              struct cpprof__buffer *text);

/* Print that dump, with names; inside is the process's own number. False after
 * printing what went wrong. */
bool
cpprof__record_threads_print(const struct cpprof__record_folder *folder,
                             pid_t pid, pid_t inside);

/* ------------------------------------------------------- live.c ------- */

/* What is said of a process that used no CPU time. */
#define CPPROF__RECORD_IDLE " used no CPU time meanwhile"

/* From now on the page makes that file anew. False after printing what is wrong
 * with pids. */
bool
cpprof__live_begin(const char *pids, const char *path, double seconds);

/* End a recording that is under way, and begin no other. */
void
cpprof__live_end(void);

/* ---------------------------------------------------- hottest.c ------- */

/* On a terminal print the functions that the profile at path has most of, and
 * the command that shows more; nothing where the profile has no names or cannot
 * be read back. */
void
cpprof__record_hottest(const struct cpprof__record_options *options,
                       const char *path);

/* ----------------------------------------------------- in_use.c ------- */

/* Read the command's heap profile back and print a line for each stack that
 * holds most; options->leaked_bytes is what they hold. False after printing
 * what went wrong. */
bool
cpprof__record_in_use(struct cpprof__record_options *options, const char *path,
                      bool is_estimate);

/* "make_node (tree.c:51)", of a stack of locations, or as much of it as is
 * known; and "10.5 KB". */
void
cpprof__record_describe(const struct pprof_profile *profile,
                        const uint32_t *locations, size_t n, char *text,
                        size_t n_text);
void
cpprof__record_size(int64_t bytes, char *text, size_t n);

/* The same of a verdict, which looks at what the command itself has found that
 * no pointer leads to; its profile is written beside the one at path. */
bool
cpprof__record_lost(struct cpprof__record_options *options,
                    const struct cpprof__record_folder *folder, pid_t command,
                    const char *path, bool is_estimate);

/* Append the part of CPPROF that has it look, which begins with a comma. */
void
cpprof__record_lost_flags(const struct cpprof__record_options *options,
                          const struct cpprof__record_folder *folder,
                          struct cpprof__buffer *text);

/* ----------------------------------------------------- growth.c ------- */

/* Print which stacks hold more and more in the profiles of n sources, or of one
 * that is asked again. Returns the exit status: 1 if one grows steadily. */
int
cpprof__record_growth(const struct cpprof__record_options *options,
                      char **sources, size_t n);

#endif
