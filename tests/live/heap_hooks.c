/* SPDX-License-Identifier: MIT */
/*
 * The allocator's names, taken over, do what they did: values, errno, what is
 * refused; and the table of live blocks follows. Around threads, fork, the
 * loader, and before and after everything. Run on each allocator.
 */
#include "command.h"
#include "heap_table.h"
#include "tap.h"

#include "collect/runtime/exempt.h"
#include "collect/runtime/next.h"
#include "collect/signal/heap/heap.h"
#include <cpprof/heap.h>

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- before any constructor ------------------------------------------- */

#define N_EARLY 200
static void *early[N_EARLY];

static void
allocate_early(void)
{
    size_t i;

    for (i = 0; i < N_EARLY; i++)
        early[i] = i % 3 ? malloc(i * 100) : calloc(i, 100);
}

__attribute__((section(".preinit_array"),
               used)) static void (*preinit)(void) = allocate_early;

static void
test_before_our_constructor(void)
{
    size_t i, n_missing = 0;

    for (i = 0; i < N_EARLY; i++) {
        n_missing += early[i] == NULL;
        early[i] = i % 2 ? realloc(early[i], 5000) : early[i];
        free(early[i]);
    }
    check_equal((int64_t)n_missing, 0,
                "blocks from before our constructor can be grown and freed");
}

/* ---- values ----------------------------------------------------------- */

static bool
is_there(const void *block, size_t n)
{
    size_t bytes = 0, found = heap_entries_of(block, &bytes);

    if (found != 1 || bytes != n)
        note("%p: %zu entries, the last of %zu bytes, want %zu", block, found,
             bytes, n);
    return found == 1 && bytes == n;
}

static bool
is_gone(const void *block)
{
    size_t bytes;

    return heap_entries_of(block, &bytes) == 0;
}

/* Where it failed: not every allocator says so in errno, or always. */
static bool
says_no_memory(void)
{
    return errno == ENOMEM || !heap_is_glibc();
}

static void
test_realloc(void)
{
    size_t n_before = heap_n_live();
    void *a = realloc(NULL, 100), *b;

    check(a && is_there(a, 100), "realloc of NULL is malloc");
    memset(a, 7, 100);
    b = realloc(a, 101);
    check(b && is_there(b, 101), "a block that grew has its new size");
    check(b == a || is_gone(a), "and not its old one");
    errno = 0;
    a = realloc(b, SIZE_MAX / 2 - 4096);
    check(!a && says_no_memory(), "realloc to more than there is fails");
    check(is_there(b, 101), "and leaves the block in the table");
    a = realloc(b, 10);
    check(a && is_there(a, 10) && ((char *)a)[9] == 7,
          "a block that shrank has its new size and its contents");
    b = realloc(a, 0);
    if (b)
        free(b);
    check_equal((int64_t)heap_n_live(), (int64_t)n_before,
                "realloc to nothing leaves nothing in the table");
    errno = 0;
    a = reallocarray(NULL, SIZE_MAX / 2, 3);
    check(!a && errno == ENOMEM, "reallocarray refuses what overflows");
}

static void
test_refusals(void)
{
    static const size_t sizes[] = {SIZE_MAX,        SIZE_MAX - 4096,
                                   (size_t)1 << 63, ((size_t)1 << 63) + 1,
                                   (size_t)3 << 62, ((size_t)1 << 63) - 1,
                                   (size_t)1 << 62};
    size_t i, n_wrong = 0, n_missing = 0, n_before = heap_n_live();
    void *block;

    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        errno = 0;
        block = malloc(sizes[i]);
        n_wrong += block != NULL || !says_no_memory();
        block = malloc(40);
        n_missing += !is_there(block, 40);
        free(block);
        block = calloc(sizes[i], 1);
        n_wrong += block != NULL;
        block = malloc(41);
        n_missing += !is_there(block, 41);
        free(block);
    }
    errno = 0;
    block = calloc((size_t)1 << 33, (size_t)1 << 33);
    n_wrong += block != NULL || !says_no_memory();
    check_equal((int64_t)n_wrong, 0, "sizes that cannot be are refused");
    check_equal((int64_t)n_missing, 0, "and do not keep others from the table");
    check_equal((int64_t)heap_n_live(), (int64_t)n_before, "nor stay in it");
}

static void
test_rate_after_refusals(void)
{
    size_t i, n_before;
    void *blocks[100];

    cpprof_heap_set_rate(1000);
    for (i = 0; i < 40; i++)
        if (malloc(((size_t)1 << 63) + (i << 57)))
            abort();
    n_before = heap_n_live();
    for (i = 0; i < 100; i++)
        blocks[i] = malloc(100000);
    check_equal((int64_t)heap_n_live(), (int64_t)n_before + 100,
                "impossible sizes do not move the next sample away");
    cpprof_heap_set_rate(1);
    for (i = 0; i < 100; i++)
        free(blocks[i]);
}

static void
test_posix_memalign(void)
{
    void *block = &block;
    size_t n_before = heap_n_live();

    errno = 1234;
    check_equal(posix_memalign(&block, 3, 100), EINVAL,
                "an alignment that is no power of two is refused");
    check_equal(posix_memalign(&block, 2, 100), EINVAL,
                "an alignment below a pointer's is refused");
    check_equal(posix_memalign(&block, 64, SIZE_MAX / 2), ENOMEM,
                "posix_memalign returns ENOMEM");
    check(block == &block || !block, "and no block");
    check_equal((int64_t)heap_n_live(), (int64_t)n_before,
                "what was refused is not in the table");
    check_equal(posix_memalign(&block, 4096, 100), 0, "4096 is taken");
    check(is_there(block, 100) && (uintptr_t)block % 4096 == 0,
          "and is in the table");
    free(block);
    if (heap_has("pvalloc")) {
        block = pvalloc(1);
        check(is_there(block, (size_t)getpagesize()),
              "pvalloc's block is a page");
        free(block);
    }
}

static void
test_errno_and_sizes(void)
{
    typedef size_t usable_fn(void *);
    usable_fn *next = (usable_fn *)cpprof__next_symbol("malloc_usable_size");
    size_t n, n_wrong = 0, n_errno = 0;

    for (n = 0; n < 5000; n += 7) {
        void *block;

        errno = 1234;
        block = malloc(n);
        block = realloc(block, n + 1);
        free(block);
        block = calloc(1, n);
        n_errno += errno != 1234;
        n_wrong += malloc_usable_size(block) < n ||
                   malloc_usable_size(block) != next(block);
        free(block);
    }
    check_equal((int64_t)n_errno, 0, "errno stays as it was");
    check_equal((int64_t)n_wrong, 0, "malloc_usable_size is the allocator's");
    free(NULL);
    check(true, "NULL can be freed");
}

/* ---- threads and processes -------------------------------------------- */

static void *
free_it(void *block)
{
    void *left;

    free(block);
    left = malloc(77);
    /* No jump: ASan's own code would seem to be who asks. */
    __asm__ volatile("" : "+r"(left));
    return left;
}

static void
test_threads(void)
{
    void *block = malloc(55), *left;
    pthread_t thread;

    check(is_there(block, 55), "a block is in the table");
    pthread_create(&thread, NULL, free_it, block);
    pthread_join(thread, &left);
    check(is_gone(block) || left == block, "until another thread freed it");
    check(is_there(left, 77), "a block outlives the thread that made it");
    free(left);
    check(is_gone(left), "and can be freed after it");
}

static void
test_vfork(void)
{
    void *block = malloc(66);
    int status = -1;
    pid_t pid = vfork();

    if (!pid) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    check_equal(status, 0, "vfork and exec work");
    check(is_there(block, 66), "and leave the parent's table alone");
    free(block);
}

static int
child(void *inherited)
{
    void *block = malloc(88);
    int bad = !is_there(inherited, 99) || !is_there(block, 88);

    free(inherited);
    free(block);
    return bad || !is_gone(inherited) || !is_gone(block);
}

static void
test_fork(void)
{
    void *inherited = malloc(99);
    int status = -1;
    pid_t pid = fork();

    if (!pid)
        _exit(child(inherited));
    waitpid(pid, &status, 0);
    check_equal(status, 0, "a child frees what it inherited in its own table");
    check(is_there(inherited, 99), "and not in its parent's");
    free(inherited);
}

/* ---- the loader ------------------------------------------------------- */

typedef void *allocate_fn(size_t);
typedef void
release_fn(void *);

static void *
symbol(void *library, const char *name)
{
    void *f = dlsym(library, name);

    if (!f)
        bail("%s: %s", name, dlerror());
    return f;
}

static void *
open_plugin(int flags)
{
    void *library = dlopen(beside_path("libheap_plugin.so"), flags);

    if (!library)
        bail("dlopen: %s", dlerror());
    return library;
}

static void
test_plugin(void)
{
    int i, n_wrong = 0;

    for (i = 0; i < 20; i++) {
        void *library = open_plugin(RTLD_NOW);
        allocate_fn *get = (allocate_fn *)symbol(library, "plugin_malloc");
        allocate_fn *new = (allocate_fn *)symbol(library, "plugin_new");
        release_fn *put = (release_fn *)symbol(library, "plugin_free");
        release_fn *delete = (release_fn *)symbol(library, "plugin_delete");
        void *a = get(123), *b = new (321);

        n_wrong += !is_there(a, 123) || !is_there(b, 321);
        delete (b);
        n_wrong += !is_gone(b);
        if (i % 2)
            put(a);
        dlclose(library);
        if (!(i % 2))
            free(a);
        n_wrong += !is_gone(a);
    }
    check_equal(n_wrong, 0, "a library that comes and goes is seen");
}

/* Such a library calls libc's malloc and free, not ours. */
static void
test_deepbind(void)
{
    void *library, *block, *again[64];
    size_t i, n_wrong = 0, bytes;

    if (!heap_is_glibc()) {
        check_skip("RTLD_DEEPBIND", "its libc's free does not take our blocks");
        return;
    }
    library = open_plugin(RTLD_NOW | RTLD_DEEPBIND);
    block = malloc(4000);
    ((release_fn *)symbol(library, "plugin_free"))(block);
    for (i = 0; i < 64; i++) {
        again[i] = malloc(4000);
        n_wrong += heap_entries_of(again[i], &bytes) != 1;
    }
    for (i = 0; i < 64; i++) {
        free(again[i]);
        n_wrong += heap_entries_of(again[i], &bytes) != 0;
    }
    check_equal((int64_t)n_wrong, 0,
                "a block that was freed behind our back is forgotten when its "
                "address comes again");
    block = ((allocate_fn *)symbol(library, "plugin_malloc"))(100);
    free(block);
    dlclose(library);
    check(true, "a block that we did not see can be freed");
}

/* dlsym and dlerror allocate inside the loader. */
static void
test_loader_allocates(void)
{
    int i, n_found = 0;

    for (i = 0; i < 100; i++) {
        n_found += dlsym(RTLD_DEFAULT, "no_such_function") != NULL;
        n_found += dlerror() == NULL;
        n_found += dlopen("/no/such/library.so", RTLD_NOW) != NULL;
    }
    check_equal(n_found, 0, "the loader's own allocations work");
}

/* ---- exemption -------------------------------------------------------- */

static void
test_exempt(void)
{
    void *seen = malloc(200), *ours;

    {
        CPPROF__EXEMPT;
        ours = malloc(300);
        free(seen);
        check(is_gone(seen), "an exempt thread's frees are seen");
    }
    check(is_gone(ours), "an exempt thread's blocks are not");
    free(ours);
    seen = malloc(200);
    check(is_there(seen, 200), "until it is exempt no more");
    free(seen);
}

int
main(int argc, char **argv)
{
    if (!cpprof__heap.head)
        return check_skip_all("the heap's tables are not made");
    if (!heap_is_on(argc, argv))
        return check_skip_all("that allocator is not installed");
    test_before_our_constructor();
    cpprof_heap_set_rate(1);
    test_realloc();
    test_refusals();
    test_rate_after_refusals();
    test_posix_memalign();
    test_errno_and_sizes();
    test_threads();
    test_vfork();
    test_fork();
    test_loader_allocates();
    test_plugin();
    test_deepbind();
    test_exempt();
    open_plugin(RTLD_NOW); /* its destructor runs after ours */
    return check_done();
}
