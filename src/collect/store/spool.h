/* SPDX-License-Identifier: MIT */
/*
 * The memory of one profiled image: a head, the ring and a store; private, or
 * in files of a directory where another process can read them at any moment,
 * whatever becomes of this one:
 *
 *     PID.IMAGE         head and ring
 *     PID.IMAGE.STORE   a store; the next one is begun when it is full
 *     scripts.NUMBER    places in scripts (collect/store/script_file.h)
 *     control           words of the recorder (signal/tables/mirror.h)
 *
 * IMAGE counts the execs of a pid, STORE the stores of an image, from 0.
 */
#ifndef COLLECT_SPOOL_H
#define COLLECT_SPOOL_H

#include "collect/signal/sample/ring.h"
#include "collect/store/store.h"

#include <limits.h>

#define CPPROF__SPOOL_MAGIC         "cpprofR2"
#define CPPROF__SPOOL_RING_OFFSET   4096u
#define CPPROF__SPOOL_CONTROL_BYTES 4096u
/* Of DIRECTORY/NAME. */
#define CPPROF__SPOOL_PATH_BYTES (PATH_MAX + 272)

enum cpprof__spool_state {
    CPPROF__SPOOL_RUNNING = 1,
    CPPROF__SPOOL_ENDED = 2, /* nothing more will be written */
};

/* What a profile says of its engine: bits of notes. */
enum cpprof__spool_note {
    CPPROF__SPOOL_NO_KERNEL = 1, /* time in the kernel is not there */
    CPPROF__SPOOL_OUTSIDE = 2,   /* stacks were copied by the recorder */
};

struct cpprof__spool_head {
    char magic[8];
    int32_t pid;
    uint32_t image;
    uint32_t state; /* enum cpprof__spool_state */
    uint32_t rate_hz;
    uint64_t period_ns;
    uint64_t ring_words;
    uint64_t start_ns; /* CLOCK_REALTIME */
    uint64_t start_mono_ns;
    uint64_t last_mono_ns; /* the image was alive then */
    uint64_t cpu_ns;    /* CPU time of the process since the start, at .last */
    uint64_t n_records; /* signals that brought a sample */
    uint32_t n_threads;
    uint32_t notes; /* enum cpprof__spool_note */
    char engine[16];
    char name[256];         /* of the executable, without its folder */
    uint64_t scripts;       /* number of the script file; 0: none */
    uint64_t pid_namespace; /* the pid is of it; 0: not known */
};

struct cpprof__spool {
    struct cpprof__spool_head *head;
    struct cpprof__ring *ring;
    size_t ring_block_bytes;
    struct cpprof__store store;
    void *store_block;
    const uint32_t *control;  /* NULL: private */
    char directory[PATH_MAX]; /* "": private */
    char store_path[PATH_MAX + 32];
    uint32_t n_stores;
    bool in_files;
    bool is_wiped; /* the kernel gives a forked child none of it */
};

/* n bytes of address space, of which the first n_file are those of a file,
 * shared, and the rest private memory with this protection. fd -1: all is
 * private. NULL: errno says why. */
void *
cpprof__map_file(int fd, size_t n_file, size_t n, int protection);

/* The words of DIRECTORY/control, mapped, or NULL. */
const uint32_t *
cpprof__spool_control(const char *directory);

/* The recorder's side: a plain file of a directory, of one name, for reading.
 * -1: there is none. */
int
cpprof__spool_open(const char *path);

/* Copy its first bytes; holes, and what is behind its end, stay what they are.
 */
void
cpprof__spool_copy(int fd, void *to, size_t n_bytes);

/* Words of a ring at that rate: room for what all processors can sample between
 * a few drains. */
uint64_t
cpprof__spool_ring_words(uint32_t rate_hz, uint32_t max_depth);

/* directory NULL: private memory. */
enum cpprof_status
cpprof__spool_make(struct cpprof__spool *spool, const char *directory,
                   uint64_t ring_words, struct cpprof_error *error);

/* Detach the store and begin an empty one. If the caller wants the old memory,
 * it is in *old and is the caller's to unmap (cpprof__store_bytes()). False:
 * nothing has changed. */
bool
cpprof__spool_next_store(struct cpprof__spool *spool, void **old);
/* Give the store to the caller; there is none from here on. */
void *
cpprof__spool_give_store(struct cpprof__spool *spool);

/* Is this process the command that the recorder started itself? */
bool
cpprof__spool_is_of_command(const struct cpprof__spool *spool);

/* The same of a process that has no spool yet. */
bool
cpprof__spool_begins_command(const char *directory);

/* Unmap; keep says whether files stay. */
void
cpprof__spool_free(struct cpprof__spool *spool, bool keep);

/* A child made by fork drops the parent's memory, and keeps the files. Private
 * memory, which is empty in the child, is unmapped when it makes its own: most
 * children end or exec before. The struct stays where it is until then. */
void
cpprof__spool_in_child(struct cpprof__spool *spool);

/* Has somebody asked for an end? */
bool
cpprof__spool_is_stopped(const struct cpprof__spool *spool);

#endif
