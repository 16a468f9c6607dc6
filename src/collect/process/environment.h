/* SPDX-License-Identifier: MIT */
/*
 * The variable CPPROF, which profiles a program without a line of code:
 *
 *     CPPROF=cpu=HZ,heap=BYTES,out=PATH   write profiles when the program ends
 *     CPPROF=cpu,heap,record=DIR          keep them in files for a recorder
 *     CPPROF=http=ADDRESS                 serve them, whenever they are asked
 *     CPPROF=push=URL                     send them, every ten seconds
 *
 * The kinds are cpu=HZ, heap=BYTES, block=NS, mutex=N, wall=HZ or offcpu=HZ,
 * goroutine (or threads), threadcreate, threadleak and heapleak=BYTES, which is
 * found among what the heap profile samples, at the rate of heap=; without any
 * of these words it is cpu. In all of them engine=auto|perf|timer, depth=N,
 * symbolize=full|functions|none, labels=on|off, debug=0|1|2 (not of cpu and
 * wall), legacy=on|off (not of wall); of block inprogress=on|off; of the heap
 * also peak=on|off, and mmap=on|off, which is a profile of its own (both
 * inprogress and mmap not with record=). In PATH %k is the kind, %p the pid,
 * %t the time in seconds since 1970, %e the name of the executable, %% a
 * percent sign.
 *
 * With record= and thread-names a CPU sample has the label thread, the name of
 * its thread.
 *
 * With http= and neither out= nor record= nothing is written at the end: heap,
 * block and mutex say what is recorded from the start (without any kind it is
 * heap, as in Go), and the others are captured when they are asked for. Beside
 * it http-token=TOKEN or http-token-file=PATH, and insecure; %p, %t and %e
 * stand in unix:PATH, too.
 *
 * deadlock=report|abort tells of deadlocks on standard error while the process
 * runs (<cpprof/deadlock.h>); abort ends it by SIGABRT then.
 *
 * probes has the heap sampled for who listens to its probes
 * (signal/heap/probes.h), and context has others read what the process is
 * (push/context.h). By themselves they turn no profile on.
 *
 * vm=tick|span|cpu, or vm=HZ, is a profile of interpreted code (<cpprof/vm.h>),
 * which starts when there is an interpreter that can be profiled. It is written
 * to PATH, also beside record=, as heapleak is.
 *
 * The same holds for push=, where without any kind it is cpu, heap, block,
 * mutex and goroutine. Beside it push-name=, push-label=NAME=VALUE (as many as
 * there are), push-interval=SECONDS, push-every=SECONDS,
 * budget=PERCENT%, push-protocol=WORD, push-user=, push-token-file=,
 * push-tenant=, and push-keep=N of files. docs/push.md
 */
#ifndef COLLECT_ENVIRONMENT_H
#define COLLECT_ENVIRONMENT_H

#include <cpprof/cpprof.h>
#include <cpprof/heap.h>
#include <cpprof/profiles.h>
#include <cpprof/vm.h>
#include <cpprof/wall.h>

#include <limits.h>

/* ORDER: as kinds[] in environment_parse.c */
#define CPPROF__KIND_CPU          1u
#define CPPROF__KIND_HEAP         2u
#define CPPROF__KIND_BLOCK        4u
#define CPPROF__KIND_MUTEX        8u
#define CPPROF__KIND_WALL         16u
#define CPPROF__KIND_OFF_CPU      32u
#define CPPROF__KIND_THREADS      64u
#define CPPROF__KIND_THREADCREATE 128u
#define CPPROF__KIND_HEAPLEAK     256u
#define CPPROF__KIND_THREADLEAK   512u
/* Beside the heap, when asked for. */
#define CPPROF__KIND_MMAP 1024u

/* The kinds whose tables a recorder can read. */
#define CPPROF__KINDS_OF_TABLES                                                \
    (CPPROF__KIND_HEAP | CPPROF__KIND_BLOCK | CPPROF__KIND_MUTEX)

/* Those of every wall-clock profile. */
#define CPPROF__KINDS_OF_WALL (CPPROF__KIND_WALL | CPPROF__KIND_OFF_CPU)

/* Tunable: what a profiled process has made writes files of its own once it has
 * lived so long. Most of them end sooner; finding names and writing costs tens
 * of milliseconds. */
#define CPPROF__WRITES_AFTER_NS 1000000000u

/* Tunable: bytes of a token in the variable. */
#define CPPROF__TOKEN_MAX 255

/* What push=... says; "" and 0: nothing. */
struct cpprof__push_settings {
    const char *url;
    const char *name;
    const char *user;
    const char *token_file;
    const char *tenant;
    char labels[1024]; /* with commas in between */
    uint32_t interval_s;
    uint32_t every_s;
    uint32_t keep;
    uint32_t budget_ppm;
    uint32_t protocol; /* enum cpprof_push_protocol */
};

/* Texts are in `words`, or are constants. What every process reads stands
 * first, so that a short variable touches one page of it. */
struct cpprof__environment {
    struct cpprof_cpu_options cpu;
    struct cpprof_heap_options heap;
    struct cpprof_profile_options others; /* block, mutex, threads */
    struct cpprof_wall_options wall;
    struct cpprof_vm_options vm;
    bool has_vm;
    bool looks_for_deadlocks;
    bool aborts_at_deadlocks;
    bool has_probes;         /* those of the heap may fire */
    bool has_context;        /* others may read what this process is */
    bool has_scripts;        /* interpreters are to load our modules */
    bool names_threads;      /* in CPU samples, for a recorder */
    int64_t heap_rate;       /* 0: off */
    int64_t block_rate;      /* nanoseconds; 0: off */
    uint32_t mutex_fraction; /* 0: off */
    uint32_t kinds;          /* CPPROF__KIND_* that are on */
    bool http_insecure;
    bool serves_only;       /* nothing is written or recorded */
    bool is_push_named;     /* a word about push was there */
    const char *out;        /* pattern, of less than PATH_MAX bytes */
    const char *directory;  /* "": not recording; the same */
    uint32_t command;       /* pid of what the recorder runs; 0: it runs none */
    const char *http;       /* address, "": not serving; the same */
    const char *http_token; /* "": none; CPPROF__TOKEN_MAX bytes at most */
    const char *http_token_file;
    struct cpprof__push_settings push;
    char words[2 * PATH_MAX]; /* the variable, cut at its commas */
};

/* env is all zero, and stays where it is: its texts are in it. Errors:
 * CPPROF_INVALID with a line that names the word. */
enum cpprof_status
cpprof__environment_parse(const char *text, struct cpprof__environment *env,
                          struct cpprof_error *error);

/* ---------------------------------------------- environment_out.c -------- */

/* Expand pattern; false when the result does not fit. */
bool
cpprof__environment_path(const char *pattern, char *path, size_t n);

/* The same, with a name for %e that is not that of the executable as it is. */
bool
cpprof__environment_expand(const char *pattern, const char *name, char *path,
                           size_t n);

/* The pattern of one kind: its name for %k, or in front of the suffix when
 * there are several kinds and no %k. It may be too long. */
enum cpprof_status
cpprof__environment_pattern(const struct cpprof__environment *env,
                            const char *kind, char *pattern, size_t n,
                            struct cpprof_error *error);

/* Where this process writes: as asked, and kept apart from the ancestor that
 * writes there too when the pattern does not say the pid. A relative path is
 * one in folder, or NULL: in the current one. */
enum cpprof_status
cpprof__environment_open(const struct cpprof__environment *env,
                         const char *kind, const char *folder,
                         bool is_descendant, struct cpprof_writer *writer,
                         struct cpprof_error *error);

/* ---------------------------------------------- environment_end.c -------- */

/* Start the kinds that are written when the process ends, but those of wall
 * time, at its start or at the fork that made it. Of several failures the first
 * is reported. */
enum cpprof_status
cpprof__environment_end_start(const struct cpprof__environment *env,
                              bool is_descendant, struct cpprof_error *error);
void
cpprof__environment_end_start_child(void);
/* In every child, before that. */
void
cpprof__environment_end_in_child(void);
/* Write them, or leave them to a recorder. To be called on a thread of ours. */
enum cpprof_status
cpprof__environment_end(struct cpprof_error *error);
/* The same while the process goes on: the rates are 0 after it, and what was
 * begun for it has ended. */
enum cpprof_status
cpprof__environment_end_stop(struct cpprof_error *error);
/* May there be something to write of them when this process ends? */
bool
cpprof__environment_end_may_come(void);

/* Nothing is written at the end of this process. */
void
cpprof__environment_end_forgo(void);

/* Is there anything to write of them, or to leave to a recorder? Safety: AS. */
bool
cpprof__environment_end_is_due(void);
/* Leave them to a recorder. */
void
cpprof__environment_end_recorded(bool with_timeout);

/* ------------------------------------------------- environment.c --------- */

/* Read CPPROF and set the heap's rate as it says; allocates nothing. An error
 * is one line on standard error, and the program goes on. */
void
cpprof__environment_read(void);
/* What CPPROF asks for if it asks for a server, or NULL. *is_descendant: an
 * ancestor of this process was profiled by the same variable. */
const struct cpprof__environment *
cpprof__environment_http(bool *is_descendant);
/* The same if it asks for a profile of interpreted code. */
const struct cpprof__environment *
cpprof__environment_vm(bool *is_descendant);
/* Shall interpreters that know nothing of us load our modules? */
bool
cpprof__environment_asks_for_scripts(void);
/* The same if it is to push. */
const struct cpprof__environment *
cpprof__environment_push(bool *is_descendant);
/* The same if others may read what this process is. */
const struct cpprof__environment *
cpprof__environment_context(bool *is_descendant);
/* One line on standard error. */
void
cpprof__environment_complain(const struct cpprof_error *error);
/* Start what it asks for. The tables must have been made. */
void
cpprof__environment_start(void);
/* The same in a child made by fork, if this process was started so. */
void
cpprof__environment_start_child(void);

/* Of a process that runs already (src/attach): understand a text, of kinds and
 * of a recorder's directory, or NULL; start what it asks for; and stop it, with
 * its profiles written. On a thread of ours, one after the other. After a
 * failed start it is to be stopped. */
bool
cpprof__environment_is_on(void);
enum cpprof_status
cpprof__environment_attach_read(const char *text, uint32_t *kinds,
                                const char **directory,
                                struct cpprof_error *error);
enum cpprof_status
cpprof__environment_attach(struct cpprof_error *error);
enum cpprof_status
cpprof__environment_detach(struct cpprof_error *error);

/* f: called in each child that is forked from now on, on a thread of ours, once
 * that has lived for a moment; NULL: no more. */
void
cpprof__environment_on_child(void (*f)(void));

/* Is there anything to write at the end of the process: what CPPROF asks for,
 * or a profile that the program started and did not stop? in_haste: it ends by
 * _exit(), and a recorder is told; Safety: AS. And will names be asked for? */
bool
cpprof__environment_has_to_write(bool in_haste);
bool
cpprof__environment_has_names_to_find(void);
/* Write it before that moment of CLOCK_MONOTONIC. What cannot be written is one
 * line on standard error. To be called on a thread of ours. */
void
cpprof__environment_write(uint64_t until_ns);

/* A filter of system calls comes, maybe one that kills: a thread of ours that
 * is there before does not have it, and writes at the end. Where none can be
 * made, as by RLIMIT_NPROC, nothing is written then; a recorder has what came
 * until then. Safety: MT. */
void
cpprof__environment_before_filter(void);

/* The process is about to have other rights. One of root's that does so mostly
 * leaves for another root as well, from which the recorder's folder is not
 * seen: it makes its file now. */
void
cpprof__environment_before_credentials(void);

#endif
