/* SPDX-License-Identifier: MIT */
/*
 * A copy of the tables in a file, which another process can read whatever
 * happens to this one. The tables themselves are private memory. So a forked
 * child has its own by copy on write, and no hook or handler touches memory
 * that could fault on a full file system.
 *
 * Protocol: whoever has changed words reports it, and the words are copied
 * until the copy agrees. So the order of reports does not matter, and the last
 * state remains. Holes of the file are filled before they are touched; changes
 * that find no room are counted.
 *
 * Only this process maps the file (MADV_DONTFORK). A forked child forgets it
 * (MADV_WIPEONFORK) and makes its own at its first sample. So nothing has to be
 * done around a fork, and a child that allocates little pays nothing.
 *
 * The file, each part at a multiple of 4096; ORDER: enum cpprof__mirror_part.
 */
#ifndef COLLECT_SIGNAL_MIRROR_H
#define COLLECT_SIGNAL_MIRROR_H

#include "arch/atomic.h"
#include "collect/signal/tables/reserve.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__MIRROR_MAGIC "cpprofT4"

enum cpprof__mirror_part {
    CPPROF__MIRROR_HEAD,
    CPPROF__MIRROR_STORE, /* as store/store.h; mappings, labels, text */
    CPPROF__MIRROR_TREE,  /* struct cpprof__tree_head */
    CPPROF__MIRROR_NODES,
    CPPROF__MIRROR_HEAP, /* struct cpprof__heap_head */
    CPPROF__MIRROR_BLOCKS,
    CPPROF__MIRROR_BUCKETS,
    CPPROF__MIRROR_WAITS, /* as signal/waits/wait_buckets.h */
    CPPROF__MIRROR_WALL,  /* struct cpprof__wall_kept */
    CPPROF__MIRROR_END,
};

enum cpprof__mirror_state {
    CPPROF__MIRROR_RUNNING = 1,
    CPPROF__MIRROR_ENDED = 2, /* in order, at .end_ns */
};

struct cpprof__mirror_head {
    char magic[8];
    int32_t pid;
    uint32_t image; /* execs of a pid: the first number that was free */
    uint32_t state; /* enum cpprof__mirror_state */
    uint32_t is_forked;
    uint64_t n_bytes;       /* of the whole layout: a check on versions */
    uint64_t start_ns;      /* CLOCK_REALTIME */
    uint64_t end_ns;        /* of the orderly end */
    uint64_t n_refused;     /* changes that found no room in the file */
    char name[256];         /* of the executable, without its folder */
    char owner[256];        /* whose malloc it is, when it is not ours */
    uint64_t scripts;       /* see store/script_file.h; 0: none */
    uint64_t pid_namespace; /* the first pid is of it; 0: not known */
};

/* Memory that is copied: a table with n_used entries of `each` bytes, or
 * n_used NULL and one entry. */
struct cpprof__mirror_area {
    const char *from;
    size_t n_bytes;
    const uint32_t *n_used;
    uint32_t each;
    enum cpprof__mirror_part part;
    uint64_t offset; /* in the file */
};
#define CPPROF__MIRROR_AREAS 16
#define CPPROF__MIRROR_HOLES 2

/* What the copy is made of, and where to. Set before .wanted is. */
struct cpprof__mirror {
    bool wanted;
    char directory[PATH_MAX];
    char name[256];
    char owner[256];
    uint64_t pid_namespace;
    uint64_t n_bytes;                                 /* of the file */
    struct cpprof__piece holes[CPPROF__MIRROR_HOLES]; /* are not mapped */
    int32_t first_pid;
    uint64_t scripts;
    const uint32_t *control; /* of the directory, or NULL */
    struct cpprof__mirror_area areas[CPPROF__MIRROR_AREAS];
    uint32_t n_areas;
};
extern struct cpprof__mirror cpprof__mirror_plan;

/* The words of DIRECTORY/control: 1 tells everybody to stop; the recorder's
 * pid; and that of a robust mutex, which the kernel marks when the recorder's
 * thread ends. Safety: AS. */
#define CPPROF__CONTROL_RECORDER 16

static inline bool
cpprof__control_is_stopped(const uint32_t *control)
{
    return control && (load_acquire(control) ||
                       load_relaxed(control + CPPROF__CONTROL_RECORDER) &
                           FUTEX_OWNER_DIED);
}

/* The n bytes at p, in one of the areas and aligned to 8, have changed. */
void
cpprof__mirror_copy(const void *p, size_t n);

/* Report such a change. It costs one load when there is no recorder. Safety:
 * AS, lock-free. */
static inline void
cpprof__mirror(const void *p, size_t n)
{
    if (load_relaxed(&cpprof__mirror_plan.wanted))
        cpprof__mirror_copy(p, n);
}

/* Copy what is changed outside of handlers: store and nodes. Safety: MT. */
void
cpprof__mirror_tables(void);

/* Copy all of it. Safety: MT. */
void
cpprof__mirror_all(void);

/* Copy the wall profile and the tables that it needs, even if the recorder has
 * told that it stops: what is charged at the end comes after that. Safety: MT.
 */
void
cpprof__mirror_wall(void);

/* Memory for what is known of the file, outside handlers. */
bool
cpprof__mirror_start(void);

/* Forget the file, whose copy is final. Another one may be started; its layout
 * is as long. Outside handlers. */
void
cpprof__mirror_stop(void);

/* Make the file now, and not at the first change: 0 or an errno. Safety: AS. */
int
cpprof__mirror_make(void);

/* The head of this process's file, or NULL when there is none. Safety: AS. */
struct cpprof__mirror_head *
cpprof__mirror_head(void);

/* The path of that file, if there is one. */
const char *
cpprof__mirror_file(void);

/* DIRECTORY/PID.IMAGE.tables into path, of PATH_MAX + 32. Safety: AS. */
void
cpprof__mirror_path(char *path, const char *directory, int32_t pid,
                    uint32_t image);

#endif
