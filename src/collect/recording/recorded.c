/* SPDX-License-Identifier: MIT */
/*
 * The tables of this process for a recorder: plans which memory is mirrored
 * where, makes the mirror start, and marks it as ended.
 *
 * The plan lists areas: ranges of private memory, with the word that says how
 * much of each is in use. mirror.c copies by this plan. Layouts are fixed and
 * checked by static assertions, because another process reads the copy.
 *
 * Invariants: tables come before the heads that count them in the plan, so a
 * reader never sees a count without its entries.
 */
#include "collect/recording/recorded.h"

#include "arch/clock.h"
#include "base/status.h"
#include "collect/runtime/proc.h"
#include "collect/signal/heap/heap.h"
#include "collect/signal/waits/wait_buckets.h"
#include "collect/signal/waits/waits.h"
#include "collect/store/script_file.h"
#include "collect/store/spool.h"
#include "collect/store/tables.h"
#include "collect/wall/wall_counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static size_t
part_bytes(enum cpprof__mirror_part part)
{
    switch (part) {
    case CPPROF__MIRROR_STORE:
        return cpprof__store_shared_bytes();
    case CPPROF__MIRROR_NODES:
        return CPPROF__TREE_NODES * sizeof(struct cpprof__tree_node);
    case CPPROF__MIRROR_BLOCKS:
        return CPPROF__HEAP_LIVE * sizeof(struct cpprof__heap_block);
    case CPPROF__MIRROR_BUCKETS:
        return CPPROF__HEAP_BUCKETS * sizeof(struct cpprof__heap_bucket);
    case CPPROF__MIRROR_WAITS:
        return cpprof__waits_bytes();
    case CPPROF__MIRROR_WALL:
        return sizeof *cpprof__wall_kept;
    default:
        return PAGE;
    }
}

uint64_t
cpprof__recorded_offset(enum cpprof__mirror_part part)
{
    uint64_t offset = 0;
    int i;

    for (i = 0; i < (int)part; i++)
        offset +=
            (part_bytes((enum cpprof__mirror_part)i) + PAGE - 1) / PAGE * PAGE;
    return offset;
}

/* ---- what is copied --------------------------------------------------- */

/* Copy [from, from + n_bytes) of a part that begins at part_start. If it is a
 * table, *n_used entries of `each` bytes are in use; else n_used is NULL. */
static void
add_area(enum cpprof__mirror_part part, const void *part_start,
         const void *from, size_t n_bytes, const uint32_t *n_used,
         uint32_t each)
{
    struct cpprof__mirror *plan = &cpprof__mirror_plan;

    plan->areas[plan->n_areas++] = (struct cpprof__mirror_area){
        .from = from,
        .n_bytes = n_bytes,
        .n_used = n_used,
        .each = each,
        .part = part,
        .offset = cpprof__recorded_offset(part) +
                  (uint64_t)((const char *)from - (const char *)part_start),
    };
}

static void
add_head(enum cpprof__mirror_part part, const void *head, size_t n_bytes)
{
    add_area(part, head, head, n_bytes, NULL, 0);
}

/* A table that is a part of its own. */
static void
add_table(enum cpprof__mirror_part part, const void *from,
          const uint32_t *n_used, uint32_t each)
{
    add_area(part, from, from, part_bytes(part), n_used, each);
}

/* The file need not be mapped behind the n_bytes of a part that are copied. */
static struct cpprof__piece
hole_in(enum cpprof__mirror_part part, size_t n_bytes)
{
    uint64_t start = cpprof__recorded_offset(part) + n_bytes;
    uint64_t end =
        cpprof__recorded_offset((enum cpprof__mirror_part)(part + 1));

    start = (start + CPPROF__PIECE_BYTES - 1) & ~(CPPROF__PIECE_BYTES - 1);
    end &= ~(CPPROF__PIECE_BYTES - 1);
    return (struct cpprof__piece){start < end ? start : end, end};
}

/* There is room for as many blocks and buckets as the rate makes likely. */
static void
plan_heap(const struct cpprof__heap *heap)
{
    size_t blocks = heap->live_bound * sizeof *heap->blocks;
    size_t buckets = heap->bucket_bound * sizeof *heap->buckets;

    add_area(CPPROF__MIRROR_BUCKETS, heap->buckets, heap->buckets, buckets,
             &heap->head->n_buckets, sizeof *heap->buckets);
    add_area(CPPROF__MIRROR_BLOCKS, heap->blocks, heap->blocks, blocks,
             &heap->head->n_blocks, sizeof *heap->blocks);
    add_head(CPPROF__MIRROR_HEAP, heap->head, sizeof *heap->head);
    cpprof__mirror_plan.holes[0] = hole_in(CPPROF__MIRROR_BLOCKS, blocks);
    cpprof__mirror_plan.holes[1] = hole_in(CPPROF__MIRROR_BUCKETS, buckets);
}

static void
plan_areas(void)
{
    const struct cpprof__store *store = &cpprof__tables.store;
    const struct cpprof__tree *tree = &cpprof__tables.tree;
    const struct cpprof__heap *heap = &cpprof__heap;
    const struct cpprof__waits *waits = &cpprof__waits;
    const struct cpprof__wall_kept *wall = cpprof__wall_kept;

    /* Tables come before the heads that count them. */
    add_area(CPPROF__MIRROR_STORE, store->head, store->text, CPPROF__STORE_TEXT,
             &store->head->n_text, 1);
    add_area(CPPROF__MIRROR_STORE, store->head, store->mappings,
             CPPROF__STORE_MAPPINGS * sizeof *store->mappings,
             &store->head->n_mappings, sizeof *store->mappings);
    add_head(CPPROF__MIRROR_STORE, store->head, sizeof *store->head);
    add_table(CPPROF__MIRROR_NODES, tree->nodes, &tree->head->n_nodes,
              sizeof *tree->nodes);
    add_head(CPPROF__MIRROR_TREE, tree->head, sizeof *tree->head);
    plan_heap(heap);
    /* Record 0 of these two is not used, and not counted. */
    add_area(CPPROF__MIRROR_WAITS, waits->head, waits->buckets + 1,
             (CPPROF__WAIT_BUCKETS - 1) * sizeof *waits->buckets,
             &waits->head->n_buckets, sizeof *waits->buckets);
    add_head(CPPROF__MIRROR_WAITS, waits->head, sizeof *waits->head);
    add_area(CPPROF__MIRROR_WALL, wall, wall->records + 1,
             sizeof wall->records - sizeof *wall->records,
             &wall->head.n_records, sizeof *wall->records);
    add_head(CPPROF__MIRROR_WALL, wall, sizeof wall->head);
}

_Static_assert(sizeof(struct cpprof__tree_head) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__heap_head) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__heap_block) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__heap_bucket) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__wait_bucket) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__waits_head) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__wall_count) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__wall_kept_head) % 8 == 0, "by words");
_Static_assert(sizeof(struct cpprof__store_head) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct cpprof__mirror_head) <= PAGE, "one page");

/* ---- start ------------------------------------------------------------ */

static bool
reads_zero(int fd, uint64_t offset, size_t n)
{
    char bytes[2 * sizeof(struct cpprof__heap_bucket)] = {0};
    size_t i;

    if (n > sizeof bytes || pread(fd, bytes, n, (off_t)offset) != (ssize_t)n)
        return false;
    for (i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Is the first record of each table free? Then no record was ever in use. */
static bool
reads_empty(int fd)
{
    size_t heap_bytes = 2 * sizeof(struct cpprof__heap_bucket);
    const char *first = (const char *)(cpprof__waits.buckets + 1);
    uint64_t waits = cpprof__recorded_offset(CPPROF__MIRROR_WAITS) +
                     (uint64_t)(first - (const char *)cpprof__waits.head);
    struct cpprof__mirror_head head = {0};

    return read(fd, &head, sizeof head) == sizeof head &&
           !memcmp(head.magic, CPPROF__MIRROR_MAGIC, sizeof head.magic) &&
           head.pid_namespace == cpprof__mirror_plan.pid_namespace &&
           head.n_bytes == cpprof__recorded_offset(CPPROF__MIRROR_END) &&
           !*head.owner &&
           reads_zero(fd, cpprof__recorded_offset(CPPROF__MIRROR_BUCKETS),
                      heap_bytes) &&
           reads_zero(fd, waits, sizeof *cpprof__waits.buckets) &&
           reads_zero(fd,
                      cpprof__recorded_offset(CPPROF__MIRROR_WALL) +
                          offsetof(struct cpprof__wall_kept, records[1]),
                      sizeof cpprof__wall_kept->records[0]);
}

/* Remove the file of an earlier image of this pid if nothing was sampled in it:
 * a shell that only execs leaves such files. In another pid namespace another
 * process has the pid. */
static void
remove_empty(const char *directory)
{
    char path[PATH_MAX + 32];
    uint32_t image;
    int fd;

    if (!cpprof__mirror_plan.pid_namespace)
        return;
    for (image = 0;; image++) {
        cpprof__mirror_path(path, directory, (int32_t)getpid(), image);
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            return;
        if (reads_empty(fd))
            unlink(path);
        close(fd);
    }
}

/* Hooks may be looking at the page of an earlier recorder: the new one is moved
 * into its place. */
static void
see_control(const char *directory)
{
    const uint32_t **plan = &cpprof__mirror_plan.control;
    const uint32_t *control = cpprof__spool_control(directory);
    size_t n = CPPROF__SPOOL_CONTROL_BYTES;

    if (*plan && control)
        mremap((void *)(uintptr_t)control, n, n, MREMAP_MAYMOVE | MREMAP_FIXED,
               (void *)(uintptr_t)*plan);
    else if (control)
        store_release(plan, control);
}

enum cpprof_status
cpprof__recorded_start(const char *directory, const char *owner,
                       struct cpprof_error *error)
{
    struct cpprof__mirror *plan = &cpprof__mirror_plan;
    int failed = ENOMEM;

    if (strlen(directory) >= sizeof plan->directory)
        return cpprof__fail(error, CPPROF_INVALID, 0, "path too long");
    if (cpprof__tables_make(NULL) != CPPROF_OK || !cpprof__heap_reserve() ||
        !cpprof__waits_reserve() || !cpprof__wall_keep_reserve())
        return cpprof__tables_fail(error);
    strcpy(plan->directory, directory);
    cpprof__proc_name(plan->name, sizeof plan->name);
    snprintf(plan->owner, sizeof plan->owner, "%s", owner ? owner : "");
    plan->n_bytes = cpprof__recorded_offset(CPPROF__MIRROR_END);
    plan->first_pid = (int32_t)getpid();
    plan->pid_namespace = cpprof__proc_pid_namespace();
    plan->scripts = cpprof__script_file_record(directory);
    plan->n_areas = 0;
    plan_areas();
    see_control(directory);
    remove_empty(directory);
    cpprof__tables_read_maps();
    if (cpprof__mirror_start())
        failed = cpprof__mirror_make();
    if (failed)
        return cpprof__fail(error, CPPROF_SYSTEM, failed,
                            "%s: not recording: %s", directory,
                            strerror(failed));
    __atomic_store_n(&plan->wanted, true, __ATOMIC_SEQ_CST);
    cpprof__mirror_all();
    return CPPROF_OK;
}

/* ---- while it runs, and the end --------------------------------------- */

/* The file of this process. A child that shares the memory of its parent until
 * it execs has none; its raw pid tells. */
static struct cpprof__mirror_head *
own_head(void)
{
    struct cpprof__mirror_head *head = cpprof__mirror_head();

    return head && head->pid == (int32_t)syscall(SYS_getpid) ? head : NULL;
}

static void
mark_ended(struct cpprof__mirror_head *head)
{
    store_relaxed(&head->end_ns, cpprof__now_ns(CLOCK_REALTIME));
    store_release(&head->state, (uint32_t)CPPROF__MIRROR_ENDED);
}

static bool
is_stopped(void)
{
    return cpprof__control_is_stopped(cpprof__mirror_plan.control);
}

void
cpprof__recorded_wall_ended(void)
{
    if (!own_head() || !cpprof__wall_kept ||
        !load_relaxed(&cpprof__wall_kept->head.n_records))
        return;
    cpprof__tables_resolve();
    cpprof__mirror_wall();
}

bool
cpprof__recorded_tick(void)
{
    struct cpprof__mirror_head *head = own_head();

    if (!head || !load_relaxed(&cpprof__mirror_plan.wanted))
        return false;
    cpprof__tables_resolve();
    if (!is_stopped())
        return true;
    store_relaxed(&cpprof__mirror_plan.wanted, false);
    cpprof__heap_set_rate(0);
    cpprof__waits_set_block_rate(0);
    cpprof__waits_set_mutex_fraction(0);
    cpprof_wall_stop(NULL);
    cpprof__recorded_wall_ended();
    mark_ended(head);
    return false;
}

/* Remove the file if it is empty and the recorder did not start the process
 * itself. This may be on a small stack of the program, and on a thread that a
 * filter would kill for it. */
static void
remove_if_empty(void)
{
    const uint32_t *control = cpprof__mirror_plan.control;
    const char *path = cpprof__mirror_file();
    int fd;

    if (!control || load_acquire(control + 1) == (uint32_t)getppid() ||
        cpprof__proc_had_filter())
        return;
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && reads_empty(fd))
        unlink(path);
    if (fd >= 0)
        close(fd);
}

void
cpprof__recorded_end(bool with_timeout)
{
    struct cpprof__mirror_head *head = own_head();

    if (!head || !load_relaxed(&cpprof__mirror_plan.wanted))
        return;
    if (!with_timeout)
        cpprof__tables_resolve();
    mark_ended(head);
    remove_if_empty();
}

/* Nobody is to hold on to the recorder's memory. */
void
cpprof__recorded_stop(void)
{
    const uint32_t *control = cpprof__mirror_plan.control;

    cpprof__mirror_stop();
    if (control)
        mmap((void *)(uintptr_t)control, CPPROF__SPOOL_CONTROL_BYTES, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (cpprof__wall_kept)
        memset(&cpprof__wall_kept->head, 0, sizeof cpprof__wall_kept->head);
}
