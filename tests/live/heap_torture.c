/* SPDX-License-Identifier: MIT */
/*
 * Threads that allocate by every entry point, pass blocks to each other, grow,
 * shrink and free them, while the main thread forks: at rate 1 the table is
 * exactly what is live, in the parent and in each child; what blocks hold stays
 * as it was; alignments are kept. Run alone and with each allocator underneath.
 *
 *     heap_torture [ALLOCATOR [SECONDS]]
 */
#include "heap_table.h"
#include "tap.h"

#include "collect/runtime/exempt.h"
#include "collect/signal/heap/heap.h"
#include <cpprof/heap.h>

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 4
#define N_SLOTS   400
#define N_MAIL    64

/* C++'s, as C. */
void *
new_one(size_t n) __asm__("_Znwm");
void *
new_array(size_t n) __asm__("_Znam");
void *
new_aligned(size_t n, size_t alignment) __asm__("_ZnwmSt11align_val_t");
void
delete_one(void *block) __asm__("_ZdlPv");
void
delete_array(void *block) __asm__("_ZdaPv");
void
delete_sized(void *block, size_t n) __asm__("_ZdlPvm");
void
delete_aligned(void *block, size_t alignment) __asm__("_ZdlPvSt11align_val_t");
void
free_sized(void *block, size_t n);
void
free_aligned_sized(void *block, size_t alignment, size_t n);

/* How a block is to be freed. */
enum release {
    BY_FREE,
    BY_SIZE,
    BY_ALIGNMENT,
    BY_DELETE,
    BY_DELETE_ARRAY,
    BY_DELETE_ALIGNED
};

struct block {
    unsigned char *at; /* NULL: none */
    size_t n;
    size_t alignment;
    enum release release;
    unsigned char fill;
};

struct worker {
    pthread_t thread;
    uint64_t random;
    struct block slots[N_SLOTS];
    uint64_t n_operations;
    uint64_t n_wrong; /* contents or alignment */
};

static struct worker workers[N_THREADS];
static struct block mail[N_MAIL];
static pthread_mutex_t mail_lock = PTHREAD_MUTEX_INITIALIZER;
static bool stop;
static bool can_fork, is_glibc, has_pvalloc, has_valloc, has_memalign;

static uint64_t
next_random(struct worker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

/* Mostly small, some of pages, a few that are mapped. */
static size_t
random_size(struct worker *w)
{
    uint64_t r = next_random(w);

    switch (r % 16) {
    case 0:
        return 0;
    case 1:
        return r / 16 % 70000;
    case 2:
        return r / 16 % 64 ? r / 16 % 5000 : 200000 + r / 16 % 200000;
    default:
        return r / 16 % 300;
    }
}

static void
fill(struct worker *w, struct block *b)
{
    size_t alignment = b->alignment;

    b->fill = (unsigned char)next_random(w);
    if (b->n)
        memset(b->at, b->fill, b->n);
    /* Some allocators do not keep more than that, nor for no bytes. */
    if (!is_glibc && alignment > 64)
        alignment = 64;
    if (b->n || is_glibc)
        w->n_wrong += (uintptr_t)b->at % alignment != 0;
}

/* Both ends and the middle: what a lost or doubled block would overwrite. */
static void
look(struct worker *w, const struct block *b, size_t n)
{
    if (n)
        w->n_wrong += b->at[0] != b->fill || b->at[n - 1] != b->fill ||
                      b->at[n / 2] != b->fill;
}

static bool
is_zero(const unsigned char *at, size_t n)
{
    return !n || (!at[0] && !at[n - 1] && !at[n / 2]);
}

static void
allocate_aligned(struct worker *w, struct block *b)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = NULL;

    b->alignment = (size_t)16 << next_random(w) % 9;
    switch (next_random(w) % 6) {
    case 0:
        w->n_wrong += posix_memalign(&at, b->alignment, b->n) != 0;
        break;
    case 1:
        b->n = (b->n + b->alignment - 1) / b->alignment * b->alignment;
        at = aligned_alloc(b->alignment, b->n);
        b->release = BY_ALIGNMENT;
        break;
    case 2:
        b->release = BY_DELETE_ALIGNED;
        at = new_aligned(b->n, b->alignment);
        break;
    case 3:
        at = has_memalign ? memalign(b->alignment, b->n)
                          : aligned_alloc(b->alignment, b->n);
        break;
    case 4:
        b->alignment = has_valloc ? page : 8;
        at = has_valloc ? valloc(b->n) : malloc(b->n);
        break;
    default:
        b->alignment = has_pvalloc ? page : 8;
        if (has_pvalloc)
            b->n = (b->n + page - 1) / page * page;
        at = has_pvalloc ? pvalloc(b->n) : malloc(b->n);
    }
    b->at = at;
}

static void
allocate(struct worker *w, struct block *b)
{
    *b = (struct block){NULL, random_size(w), 8, BY_FREE, 0};
    switch (next_random(w) % 8) {
    case 0:
        b->at = calloc(b->n, 1);
        w->n_wrong += !is_zero(b->at, b->n);
        break;
    case 1:
        b->at = realloc(NULL, b->n);
        break;
    case 2:
        b->at = reallocarray(NULL, b->n, 1);
        break;
    case 3:
        b->at = new_one(b->n);
        b->release = BY_DELETE;
        break;
    case 4:
        b->at = new_array(b->n);
        b->release = BY_DELETE_ARRAY;
        break;
    case 5:
        allocate_aligned(w, b);
        break;
    default:
        b->at = malloc(b->n);
        b->release = BY_SIZE;
    }
    if (!b->at) {
        w->n_wrong++;
        return;
    }
    fill(w, b);
}

static void
release(struct worker *w, struct block *b)
{
    look(w, b, b->n);
    switch (b->release) {
    case BY_FREE:
        free(b->at);
        break;
    case BY_SIZE:
        free_sized(b->at, b->n);
        break;
    case BY_ALIGNMENT:
        free_aligned_sized(b->at, b->alignment, b->n);
        break;
    case BY_DELETE:
        if (b->n % 2)
            delete_sized(b->at, b->n);
        else
            delete_one(b->at);
        break;
    case BY_DELETE_ARRAY:
        delete_array(b->at);
        break;
    case BY_DELETE_ALIGNED:
        delete_aligned(b->at, b->alignment);
        break;
    }
    b->at = NULL;
}

/* realloc keeps what is in a block, whatever alignment it had. */
static void
resize(struct worker *w, struct block *b)
{
    size_t n = random_size(w);
    void *at;

    if (b->release != BY_FREE && b->release != BY_SIZE)
        return;
    if (!n)
        n = 1;
    if (next_random(w) % 4 == 0) {
        look(w, b, b->n);
        at = realloc(b->at, (size_t)1 << 62);
        w->n_wrong += at != NULL;
    }
    at = next_random(w) % 2 ? realloc(b->at, n) : reallocarray(b->at, n, 1);
    if (!at) {
        w->n_wrong++;
        return;
    }
    b->at = at;
    look(w, b, n < b->n ? n : b->n);
    b->n = n;
    b->alignment = 8;
    fill(w, b);
}

static void
exchange(struct worker *w, struct block *b)
{
    struct block *other = &mail[next_random(w) % N_MAIL];
    struct block saved;

    pthread_mutex_lock(&mail_lock);
    saved = *b;
    *b = *other;
    *other = saved;
    pthread_mutex_unlock(&mail_lock);
}

static void
step(struct worker *w)
{
    struct block *b = &w->slots[next_random(w) % N_SLOTS];

    w->n_operations++;
    if (!b->at)
        allocate(w, b);
    else if (next_random(w) % 4 == 0)
        resize(w, b);
    else
        release(w, b);
    if (next_random(w) % 4 == 0)
        exchange(w, b);
}

static void *
work(void *arg)
{
    struct worker *w = arg;

    while (!load_acquire(&stop))
        step(w);
    return NULL;
}

/* ---- what must be ----------------------------------------------------- */

/* A C++ runtime asks malloc for a byte more than none, and for whole
 * alignments. */
static bool
is_size(const struct block *b, size_t bytes)
{
    size_t most = (b->n + b->alignment - 1) / b->alignment * b->alignment;

    if (b->release < BY_DELETE)
        return bytes == b->n;
    return bytes >= b->n && bytes <= (most ? most : b->alignment);
}

static size_t
check_block(const struct heap_table *table, const struct block *b)
{
    size_t n, bytes = 0;

    if (!b->at)
        return 0;
    n = heap_table_find(table, b->at, &bytes);
    if (n != 1)
        note("%p (%zu bytes, %d) is there %zu times", (void *)b->at, b->n,
             (int)b->release, n);
    else if (!is_size(b, bytes))
        note("%p has %zu bytes, said to be %zu (%d)", (void *)b->at, b->n,
             bytes, (int)b->release);
    return n != 1 || !is_size(b, bytes);
}

/* The blocks that are not as they should be in the table. */
static size_t
check_all(size_t *n_blocks)
{
    struct heap_table table;
    size_t i, j, n_bad = 0;

    heap_table_read(&table);
    *n_blocks = 0;
    for (i = 0; i < N_THREADS; i++)
        for (j = 0; j < N_SLOTS; j++) {
            *n_blocks += workers[i].slots[j].at != NULL;
            if (n_bad < 10)
                n_bad += check_block(&table, &workers[i].slots[j]);
        }
    for (i = 0; i < N_MAIL; i++) {
        *n_blocks += mail[i].at != NULL;
        if (n_bad < 10)
            n_bad += check_block(&table, &mail[i]);
    }
    heap_table_free(&table);
    return n_bad;
}

static void
release_all(void)
{
    size_t i, j;

    for (i = 0; i < N_THREADS; i++)
        for (j = 0; j < N_SLOTS; j++)
            if (workers[i].slots[j].at)
                release(&workers[i], &workers[i].slots[j]);
    for (i = 0; i < N_MAIL; i++)
        if (mail[i].at)
            release(&workers[0], &mail[i]);
}

/* ---- fork ------------------------------------------------------------- */

/* A child of a process whose other threads were in the middle of something: it
 * allocates, its own blocks are in its table, and its children's too. Returns
 * bits for what went wrong. */
static int
child_works(int depth)
{
    struct worker *w = &workers[0];
    struct block blocks[100];
    size_t i, n_before = heap_n_live();
    int bad = 0, status;
    pid_t pid;

    w->n_wrong = 0;
    for (i = 0; i < 100; i++)
        allocate(w, &blocks[i]);
    if (heap_n_live() != n_before + 100)
        bad |= 1;
    if (depth) {
        pid = fork();
        if (!pid)
            _exit(child_works(depth - 1));
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
            bad |= 2;
    }
    for (i = 0; i < 100; i++)
        if (blocks[i].at)
            release(w, &blocks[i]);
    if (heap_n_live() != n_before)
        bad |= 4;
    return bad | (w->n_wrong ? 8 : 0);
}

static bool
child_failed(pid_t pid)
{
    int status = -1;

    if (pid > 0 && waitpid(pid, &status, 0) == pid && !status)
        return false;
    note("a child ended with %#x", (unsigned)status);
    return true;
}

static size_t
fork_until(double seconds, size_t *n_forks)
{
    struct timespec start, now;
    size_t n_bad = 0;
    pid_t pid;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        if (can_fork) {
            pid = fork();
            if (!pid)
                _exit(child_works(1));
            ++*n_forks;
            n_bad += child_failed(pid);
        }
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) +
                 (double)(now.tv_nsec - start.tv_nsec) * 1e-9 <
             seconds);
    return n_bad;
}

static void
one_round(double seconds)
{
    size_t i, n_blocks, n_bad, n_forks = 0;
    uint64_t n_operations = 0, n_wrong = 0;

    store_release(&stop, false);
    {
        /* libc keeps some memory for each thread that it made. */
        CPPROF__EXEMPT;
        for (i = 0; i < N_THREADS; i++)
            pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    n_bad = fork_until(seconds, &n_forks);
    store_release(&stop, true);
    for (i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        n_operations += workers[i].n_operations;
        n_wrong += workers[i].n_wrong;
    }
    note("%llu operations, %zu forks", (unsigned long long)n_operations,
         n_forks);
    check_equal((int64_t)n_bad, 0, "children of fork have a right table");
    check_equal((int64_t)n_wrong, 0, "blocks keep contents and alignment");
    check_equal((int64_t)check_all(&n_blocks), 0,
                "each live block is in the table, once, with its size");
    check_at_least((double)n_blocks, 100, "there are live blocks");
}

int
main(int argc, char **argv)
{
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    size_t i, before;

    if (!cpprof__heap.head)
        return check_skip_all("the heap's tables are not made");
    if (!heap_is_on(argc, argv))
        return check_skip_all("that allocator is not installed");
    /* The sanitizer's allocator leaves its locks as they are. */
    can_fork = argc < 2 || strcmp(argv[1], "asan") != 0;
    is_glibc = heap_is_glibc();
    has_pvalloc = heap_has("pvalloc");
    has_valloc = heap_has("valloc");
    has_memalign = heap_has("memalign");
    for (i = 0; i < N_THREADS; i++)
        workers[i].random = 88172645463325252u + i * 7919;
    note("glibc underneath: %d, pvalloc: %d", is_glibc, has_pvalloc);
    cpprof_heap_set_rate(1);
    one_round(seconds / 2); /* what libc keeps for good is there afterwards */
    release_all();
    before = heap_n_live();
    one_round(seconds / 2);
    release_all();
    check_equal((int64_t)heap_n_live(), (int64_t)before,
                "when all is freed nothing stays in the table");
    check_equal((int64_t)cpprof__heap.head->n_lost, 0, "no sample is lost");
    return check_done();
}
