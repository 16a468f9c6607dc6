/* SPDX-License-Identifier: MIT */
/*
 * Blocks in use whose only pointer is where it is easily overlooked: nothing of
 * it is lost. Not position-independent, so that addresses of the heap are
 * short.
 */
#include "tap.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define N 40

#define LOST       30
#define LOST_BYTES 3000

/* Each case keeps N blocks of a size of its own, in a thread that then sleeps.
 */
struct hidden {
    const char *name;
    size_t bytes;
    void (*keep)(const struct hidden *h);
};

static uint32_t n_ready;

static void *
block_of(const struct hidden *h)
{
    return calloc(1, h->bytes);
}

static void
rest(void)
{
    __atomic_fetch_add(&n_ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
}

static void **
in_mapping(const struct hidden *h, int flags, int fd)
{
    void **words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
    int i;

    if (words == MAP_FAILED)
        bail("mmap");
    for (i = 0; i < N; i++)
        words[i] = block_of(h);
    return words;
}

static void
by_dev_zero(const struct hidden *h)
{
    in_mapping(h, MAP_PRIVATE, open("/dev/zero", O_RDWR | O_CLOEXEC));
}

static void
in_dev_shm(const struct hidden *h, int flags)
{
    char path[] = "/dev/shm/hidden.XXXXXX";
    int fd = mkstemp(path);

    unlink(path);
    if (ftruncate(fd, 4096))
        bail("ftruncate");
    in_mapping(h, flags, fd);
}

static void
by_dev_shm(const struct hidden *h)
{
    in_dev_shm(h, MAP_PRIVATE);
}

static void
by_shared_file(const struct hidden *h)
{
    in_dev_shm(h, MAP_SHARED);
}

static void
by_shared_memory(const struct hidden *h)
{
    in_mapping(h, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static void
by_segment(const struct hidden *h)
{
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), i;
    void **words = shmat(id, NULL, 0);

    shmctl(id, IPC_RMID, NULL);
    if (words == (void *)-1)
        bail("shmat");
    for (i = 0; i < N; i++)
        words[i] = block_of(h);
}

#define PAGE          4096
#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL, of Linux 6.13 */

/* Three pages with words in the first and the last; what is between them cannot
 * be read. */
static void
in_guarded(const struct hidden *h, char *pages, bool by_advice)
{
    int i;

    for (i = 0; i < N; i++)
        ((void **)(pages + (i % 2) * 2 * PAGE))[i] = block_of(h);
    memset(pages + PAGE, 1, PAGE);
    if (!by_advice || madvise(pages + PAGE, PAGE, GUARD_INSTALL))
        mprotect(pages + PAGE, PAGE, PROT_NONE);
}

static void *volatile guarded[2];

static void
by_guarded_block(const struct hidden *h)
{
    guarded[0] = memalign(PAGE, 3 * PAGE);
    in_guarded(h, guarded[0], false);
}

static void
by_block_with_marker(const struct hidden *h)
{
    guarded[1] = memalign(PAGE, 3 * PAGE);
    in_guarded(h, guarded[1], true);
}

static void
by_guarded_mapping(const struct hidden *h)
{
    in_guarded(h,
               mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
               true);
}

static void
in_protected(const struct hidden *h, int flags, int protection, int advice)
{
    void **words = in_mapping(h, flags | MAP_ANONYMOUS, -1);

    madvise(words, PAGE, advice);
    mprotect(words, PAGE, protection);
}

static void
by_constant_shared(const struct hidden *h)
{
    in_protected(h, MAP_SHARED, PROT_READ, MADV_NORMAL);
}

static void
by_protected_shared(const struct hidden *h)
{
    in_protected(h, MAP_SHARED, PROT_NONE, MADV_NORMAL);
}

static void
by_protected_kept(const struct hidden *h)
{
    in_protected(h, MAP_PRIVATE, PROT_NONE, MADV_DONTFORK);
}

/* Written by a mapping that is gone, and read by one that is private. */
static void
by_memory_file(const struct hidden *h)
{
    int fd = memfd_create("hidden", MFD_CLOEXEC);
    volatile char *other;
    void **words;

    if (fd < 0 || ftruncate(fd, PAGE))
        bail("memfd_create");
    words = in_mapping(h, MAP_SHARED, fd);
    other = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)other[0];
    munmap(words, PAGE);
}

/* Memory that is reserved, and holds something in few places: a search looks at
 * no more than these. */
#define SPARSE (1L << 40)

static void
in_sparse(const struct hidden *h, int flags, int fd)
{
    char *memory = mmap(NULL, SPARSE, PROT_READ | PROT_WRITE,
                        flags | MAP_NORESERVE, fd, 0);
    int i;

    if (memory == MAP_FAILED)
        bail("mmap");
    for (i = 0; i < N; i++)
        *(void **)(memory + SPARSE / N / 8 * 8 * i) = block_of(h);
}

static void
by_sparse_file(const struct hidden *h)
{
    int fd = memfd_create("sparse", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, SPARSE))
        bail("memfd_create");
    in_sparse(h, MAP_SHARED, fd);
}

static void
by_sparse_memory(const struct hidden *h)
{
    in_sparse(h, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void
by_epoll(const struct hidden *h)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), i;

    for (i = 0; i < N; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = block_of(h)};

        epoll_ctl(epoll, EPOLL_CTL_ADD, eventfd(0, EFD_CLOEXEC), &event);
    }
}

/* The latest block may be known elsewhere, and stay in dead frames. */
__attribute__((noinline)) static void
forget(void)
{
    volatile char frames[4096];
    unsigned i;

    free(calloc(1, 700));
    for (i = 0; i < sizeof frames; i++)
        frames[i] = 0;
}

__attribute__((noinline)) static void
take_altstack(const struct hidden *h)
{
    stack_t stack = {.ss_sp = block_of(h), .ss_size = h->bytes};

    sigaltstack(&stack, NULL);
}

static void *
by_altstack_thread(void *arg)
{
    const struct hidden *h = arg;

    take_altstack(h);
    forget();
    rest();
    return NULL;
}

static void
by_altstack(const struct hidden *h)
{
    pthread_t thread;
    int i;

    for (i = 0; i < N; i++)
        pthread_create(&thread, NULL, by_altstack_thread, (void *)h);
    while (__atomic_load_n(&n_ready, __ATOMIC_SEQ_CST) < N)
        usleep(1000);
    __atomic_fetch_sub(&n_ready, N, __ATOMIC_SEQ_CST);
}

/* What compilers spill to: kept over a call of the kernel that is not libc's.
 */
static void *
by_vector_thread(void *arg)
{
    const struct timespec time = {600, 0};
    uintptr_t hidden = ~(uintptr_t)block_of(arg);

    forget();
    __atomic_fetch_add(&n_ready, 1, __ATOMIC_SEQ_CST);
#if defined __x86_64__
    __asm__ volatile("notq %0\n\t"
                     "movq %0, %%xmm9\n\t"
                     "xorl %k0, %k0\n\t"
                     "xorl %%esi, %%esi\n\t"
                     "movl %1, %%eax\n\t"
                     "syscall\n\t"
                     : "+&r"(hidden)
                     : "i"(SYS_nanosleep), "D"(&time)
                     : "rax", "rsi", "rcx", "r11", "xmm9", "memory");
#elif defined __aarch64__
    __asm__ volatile("mvn %0, %0\n\t"
                     "fmov d9, %0\n\t"
                     "mov %0, xzr\n\t"
                     "mov x0, %2\n\t"
                     "mov x1, xzr\n\t"
                     "mov x8, %1\n\t"
                     "svc #0\n\t"
                     : "+&r"(hidden)
                     : "i"(SYS_nanosleep), "r"(&time)
                     : "x0", "x1", "x8", "v9", "memory");
#endif
    return NULL;
}

static void
by_vector(const struct hidden *h)
{
    pthread_t thread;
    int i;

    for (i = 0; i < N; i++)
        pthread_create(&thread, NULL, by_vector_thread, (void *)h);
    while (__atomic_load_n(&n_ready, __ATOMIC_SEQ_CST) < N)
        usleep(1000);
    __atomic_fetch_sub(&n_ready, N, __ATOMIC_SEQ_CST);
}

/* A thread's cache goes back to the heap's lists when the thread ends; what is
 * allocated from those still has a word of the cache in it, unless the program
 * writes there. */
static void *volatile separators[N];
static unsigned n_separators;

static void *
free_from_cache(void *arg)
{
    void **blocks = arg, *volatile *at = &separators[n_separators++];
    int i;

    for (i = 0; i < 7; i++)
        free(blocks[i]);
    *at = malloc(200); /* between the cache's own block and the heap's end */
    return NULL;
}

static void **volatile holders[N];

static void
by_stale_word(const struct hidden *h)
{
    void *blocks[7];
    pthread_t thread;
    int i, k;

    for (i = 0; i < N; i++) {
        for (k = 0; k < 7; k++)
            blocks[k] = malloc(104);
        pthread_create(&thread, NULL, free_from_cache, blocks);
        pthread_join(thread, NULL);
        holders[i] = malloc(104);
        holders[i][3] = block_of(h);
    }
}

static const struct hidden cases[] = {
    {"a private mapping of /dev/zero", 2008, by_dev_zero},
    {"a private mapping of a file in /dev/shm", 2104, by_dev_shm},
    {"epoll", 2200, by_epoll},
    {"the kernel's alternate stack", 16312, by_altstack},
    {"a vector register of a thread that sleeps", 2408, by_vector},
    {"a block with a stale word of a cache", 2504, by_stale_word},
    {"a shared file", 2600, by_shared_file},
    {"shared memory", 2696, by_shared_memory},
    {"a segment of shared memory", 2792, by_segment},
    {"a block with a protected page", 2888, by_guarded_block},
    {"a block with a guard", 3112, by_block_with_marker},
    {"a mapping with a guard", 3208, by_guarded_mapping},
    {"shared memory that is constant now", 3304, by_constant_shared},
    {"shared memory that is protected now", 3400, by_protected_shared},
    {"protected memory that children do not get", 3496, by_protected_kept},
    {"a file of memory, privately", 3592, by_memory_file},
    {"a file of memory that is mostly empty", 3688, by_sparse_file},
    {"memory that is mostly empty", 3784, by_sparse_memory},
};
#define N_CASES (sizeof cases / sizeof *cases)

static void *
run_case(void *arg)
{
    const struct hidden *h = arg;

    h->keep(h);
    forget();
    rest();
    return NULL;
}

/* How many blocks of a size are lost. */
static long
n_lost(const char *text, size_t bytes)
{
    static const char space[] = "# leak_space: ";
    long n = 0, objects, all;

    while ((text = strstr(text, space))) {
        text += sizeof space - 1;
        if (sscanf(text, "%ld bytes %ld @", &all, &objects) == 2 && objects &&
            (size_t)(all / objects) == bytes)
            n += objects;
    }
    return n;
}

static char text[1 << 20];

/* False: some thread was not where it may be stopped. */
static bool
search(void)
{
    struct cpprof_profile_options options = {
        .size = sizeof options, .debug = 1, .symbolize = CPPROF_SYMBOLIZE_NONE};
    struct cpprof_error error = {.text = ""};
    char path[] = "/tmp/hidden.XXXXXX";
    enum cpprof_status status;
    int fd = mkstemp(path);

    close(fd);
    status = cpprof_profile_write_to_path(cpprof_profile_lookup("heapleak"),
                                          path, &options, &error);
    if (status != CPPROF_OK) {
        unlink(path);
        note("%s", error.text);
        if (status != CPPROF_BUSY)
            bail("heapleak");
        return false;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    memset(text, 0, sizeof text);
    if (read(fd, text, sizeof text - 1) <= 0)
        bail("read");
    close(fd);
    unlink(path);
    return true;
}

/* Of the children that searched. */
static double
cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Tunable: one that looks at the entries of all pages needs some nine. */
#define SEARCH_SECONDS 2

static void
check_cost(unsigned n_searches)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2 ||
        major * 100 + minor < 607)
        check_skip("what is empty costs nothing",
                   "the kernel has no PAGEMAP_SCAN");
    else
        check_at_most(cpu_seconds() / n_searches, SEARCH_SECONDS,
                      "what is empty costs nothing");
}

/* Where the heap could not be walked nothing is found, and nothing shown. */
static void *
check_all(void *arg)
{
    static char name[100];
    unsigned i, n = 0;
    int result;

    for (i = 0; i < 20 && n < 5 && n_lost(text, LOST_BYTES) < LOST / 2; i++)
        n += search();
    check_cost(i);
    check_at_least((double)n_lost(text, LOST_BYTES), LOST / 2.0,
                   "what is lost is found");
    for (i = 0; i < N_CASES; i++) {
        snprintf(name, sizeof name, "%s: nothing is lost", cases[i].name);
        check_equal(n_lost(text, cases[i].bytes), 0, name);
    }
    result = check_done();
    fflush(NULL);
    _exit(result);
    return arg;
}

static void *
lose(void *arg)
{
    int i;

    for (i = 0; i < LOST; i++) {
        void *volatile block = calloc(1, LOST_BYTES);

        (void)block;
    }
    return arg;
}

int
main(int argc, char **argv)
{
    pthread_t thread;
    unsigned i;

    (void)argv;
    mallopt(M_ARENA_MAX, 1);
    cpprof_heap_set_rate(1);
    pthread_create(&thread, NULL, lose, NULL);
    pthread_join(thread, NULL);
    for (i = 0; i < N_CASES; i++) {
        pthread_create(&thread, NULL, run_case, (void *)&cases[i]);
        while (__atomic_load_n(&n_ready, __ATOMIC_SEQ_CST) <= i)
            usleep(1000);
    }
    pthread_create(&thread, NULL, check_all, NULL);
    if (argc > 1)
        pthread_exit(
            NULL); /* a main thread that has ended has no descriptors */
    pthread_join(thread, NULL);
    return 1;
}
