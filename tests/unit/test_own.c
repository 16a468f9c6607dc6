/* SPDX-License-Identifier: MIT */
/* Memory of our own, sorting and folders: what is used in the place of malloc,
 * qsort and opendir. And what is said, where the library came late. */
#include "own/folder.h"
#include "own/memory.h"
#include "own/say.h"
#include "own/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 200

static uint64_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static bool
is_all(const void *block, int byte, size_t n)
{
    const unsigned char *at = block;

    return !n || (at[0] == byte && !memcmp(at, at + 1, n - 1));
}

static void
blocks_of_all_sizes_are_apart_and_aligned(void **state)
{
    static void *blocks[2 * MANY];
    size_t i, n;

    (void)state;
    for (i = 0; i < 2 * MANY; i++) {
        n = i < MANY ? i : (i - MANY) * 700;
        blocks[i] = cpprof__malloc(n);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)(i & 0xff), n);
    }
    for (i = 0; i < 2 * MANY; i++) {
        n = i < MANY ? i : (i - MANY) * 700;
        assert_true(is_all(blocks[i], (int)(i & 0xff), n));
        cpprof__free(blocks[i]);
    }
    cpprof__free(NULL);
}

static void
block_that_grows_and_shrinks_keeps_its_bytes(void **state)
{
    unsigned char *block = NULL;
    size_t n = 1, before = 0, i;

    (void)state;
    for (; n < 3000000; before = n, n += n / 2 + 1) {
        block = cpprof__realloc(block, n);
        assert_non_null(block);
        for (i = 0; i < before; i++)
            assert_int_equal(block[i], i % 251);
        for (; i < n; i++)
            block[i] = (unsigned char)(i % 251);
    }
    for (n = before; n; n /= 3) {
        block = cpprof__realloc(block, n);
        assert_non_null(block);
        for (i = 0; i < n; i++)
            assert_int_equal(block[i], i % 251);
    }
    cpprof__free(block);
}

static void
cleared_block_is_zero_where_another_was(void **state)
{
    size_t n;

    (void)state;
    for (n = 1; n < 200000; n += n / 3 + 1) {
        void *block = cpprof__malloc(n);

        assert_non_null(block);
        memset(block, 0xee, n);
        cpprof__free(block);
        block = cpprof__calloc(n, 1);
        assert_non_null(block);
        assert_true(is_all(block, 0, n));
        cpprof__free(block);
    }
}

/* The kernel would take the hole, which is the highest that is large enough. */
__attribute__((unused)) static void
blocks_leave_holes_of_the_program_empty(void **state)
{
    const size_t n = (size_t)1 << 20, n_page = 4096;
    void *blocks[20];
    char *hole;
    size_t i;

    (void)state;
    hole = mmap(NULL, n + 2 * n_page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(hole != MAP_FAILED);
    munmap(hole + n_page, n);
    for (i = 0; i < 20; i++) {
        blocks[i] = cpprof__malloc(n / 2);
        assert_non_null(blocks[i]);
        assert_true((uintptr_t)blocks[i] - (uintptr_t)hole >= n + n_page);
    }
    for (i = 0; i < 20; i++)
        cpprof__free(blocks[i]);
    munmap(hole, n + 2 * n_page);
}

static void
freed_memory_is_used_again(void **state)
{
    void *blocks[MANY] = {0};
    uint64_t random = 5;
    size_t after_first = 0, i, round;

    (void)state;
    for (round = 0; round < 50; round++) {
        for (i = 0; i < 1000; i++) {
            void **at = &blocks[next_random(&random) % MANY];

            cpprof__free(*at);
            *at = cpprof__malloc(next_random(&random) % 100000);
            assert_non_null(*at);
        }
        for (i = 0; i < MANY; i++) {
            cpprof__free(blocks[i]);
            blocks[i] = NULL;
        }
        if (round == 9)
            after_first = cpprof__memory_bytes();
    }
    /* A large block is given back to the kernel; lists may still grow a little,
     * as chance will have it. */
    assert_in_range(cpprof__memory_bytes(), 1, after_first * 3 / 2);
}

static void
text_is_copied_as_long_as_it_is(void **state)
{
    char *text = cpprof__strdup("whole"), *part = cpprof__strndup("whole", 3);

    (void)state;
    assert_string_equal(text, "whole");
    assert_string_equal(part, "who");
    cpprof__free(text);
    cpprof__free(part);
}

static void
more_than_there_can_be_is_refused(void **state)
{
    void *block = cpprof__malloc(100);
    volatile size_t many = SIZE_MAX / 8; /* the compiler would object */

    (void)state;
    errno = 0;
    assert_null(cpprof__calloc(many, 16));
    assert_int_equal(errno, ENOMEM);
    errno = 0;
    assert_null(cpprof__malloc((size_t)PTRDIFF_MAX - 20));
    assert_int_equal(errno, ENOMEM);
    assert_null(cpprof__realloc(block, (size_t)PTRDIFF_MAX - 20));
    cpprof__free(block);
}

/* ---- threads ---------------------------------------------------------- */

#define SLOTS 64
static unsigned char *shared[SLOTS];
static bool ends;

/* Blocks of one thread are freed by another: a block's first byte says what the
 * others are. */
static void *
exchange(void *arg)
{
    uint64_t random = (uintptr_t)arg * 77 + 1;
    unsigned i, wrong = 0;

    for (i = 0; i < 30000 && !__atomic_load_n(&ends, __ATOMIC_RELAXED); i++) {
        size_t n = next_random(&random) % (i % 64 ? 300 : 40000) + 9;
        unsigned char *block = cpprof__malloc(n), *old;

        if (!block)
            return (void *)1;
        memset(block, (int)(n & 0xff), n);
        memcpy(block, &n, sizeof n);
        old = __atomic_exchange_n(&shared[next_random(&random) % SLOTS], block,
                                  __ATOMIC_ACQ_REL);
        if (old) {
            memcpy(&n, old, sizeof n);
            wrong += !is_all(old + sizeof n, (int)(n & 0xff), n - sizeof n);
        }
        cpprof__free(old);
    }
    return (void *)(uintptr_t)wrong;
}

static void
free_shared(void)
{
    size_t i;

    for (i = 0; i < SLOTS; i++) {
        cpprof__free(shared[i]);
        shared[i] = NULL;
    }
}

static void
threads_free_blocks_of_others(void **state)
{
    pthread_t threads[4];
    uintptr_t i;

    (void)state;
    for (i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, exchange, (void *)(i + 1)), 0);
    for (i = 0; i < 4; i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    free_shared();
}

#ifndef __SANITIZE_THREAD__ /* its own locks are not for such children */
/* Nothing that a test may not use in such a child: no malloc, no printf. */
static void
child(void)
{
    unsigned char *blocks[MANY];
    unsigned i;

    alarm(100);
    for (i = 0; i < MANY; i++) {
        size_t n = i * 31 % 500 + 1;

        blocks[i] = cpprof__malloc(n);
        if (!blocks[i])
            _exit(1);
        memset(blocks[i], (int)i, n);
    }
    for (i = 0; i < MANY; i++) {
        if (!is_all(blocks[i], (int)i, i * 31 % 500 + 1))
            _exit(2);
        cpprof__free(blocks[i]);
    }
    _exit(0);
}

static void
child_of_any_moment_finds_lists_whole(void **state)
{
    pthread_t threads[2];
    uintptr_t i;

    (void)state;
    for (i = 0; i < 2; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, exchange, (void *)(i + 9)), 0);
    for (i = 0; i < 100; i++) {
        pid_t pid = fork();
        int status = -1;

        if (pid == 0)
            child();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free_shared();
}
#endif

/* ---- sorting ---------------------------------------------------------- */

struct item {
    uint32_t key;
    unsigned char copies[11];
};

static int
by_key(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

static int
by_key_down(const void *a, const void *b, void *ctx)
{
    ++*(size_t *)ctx;
    return by_key(b, a);
}

static void
items_of_any_number_are_sorted(void **state)
{
    static struct item items[500];
    uint64_t random = 1;
    size_t n, i, calls = 0;

    (void)state;
    for (n = 0; n < 500; n += n / 7 + 1) {
        uint64_t sum = 0;

        for (i = 0; i < n; i++) {
            items[i].key = (uint32_t)next_random(&random) % (n / 2 + 1);
            memset(items[i].copies, (int)(items[i].key & 0xff), 11);
            sum += items[i].key;
        }
        cpprof__sort(items, n, sizeof *items, by_key);
        for (i = 0; i < n; i++) {
            assert_true(!i || items[i - 1].key <= items[i].key);
            assert_true(
                is_all(items[i].copies, (int)(items[i].key & 0xff), 11));
            sum -= items[i].key;
        }
        assert_int_equal(sum, 0);
        cpprof__sort_by(items, n, sizeof *items, by_key_down, &calls);
        for (i = 1; i < n; i++)
            assert_true(items[i - 1].key >= items[i].key);
    }
    assert_true(calls > 500);
}

/* ---- folders ---------------------------------------------------------- */

static void
folder_names_all_that_is_in_it(void **state)
{
    char path[64] = "/tmp/cpprof-own-XXXXXX", name[128];
    struct cpprof__folder folder;
    const char *found;
    unsigned i, n = 0, again = 0;

    (void)state;
    assert_false(cpprof__folder_open(&folder, "/nonexistent"));
    assert_int_equal(errno, ENOENT);
    assert_non_null(mkdtemp(path));
    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%s/a-name-that-takes-some-room-%u", path,
                 i);
        assert_int_equal(mkdir(name, 0700), 0);
    }
    assert_true(cpprof__folder_open(&folder, path));
    while ((found = cpprof__folder_next(&folder)))
        n += *found != '.';
    assert_int_equal(errno, 0);
    cpprof__folder_rewind(&folder);
    while ((found = cpprof__folder_next(&folder)))
        again += *found != '.';
    cpprof__folder_close(&folder);
    assert_int_equal(n, MANY);
    assert_int_equal(again, MANY);
    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%s/a-name-that-takes-some-room-%u", path,
                 i);
        rmdir(name);
    }
    assert_int_equal(rmdir(path), 0);
}

/* Begin late in a new session, of which fd may become the terminal, with fd as
 * descriptor 2, and say it. */
static void
say_late_to(int fd, bool enters)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        setsid();
        dup2(fd, STDERR_FILENO);
        if (enters && ioctl(fd, TIOCSCTTY, 0))
            _exit(1);
        cpprof__say_begin(true);
        cpprof__say("said\n", 5);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static bool
can_be_read(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 100) == 1;
}

/* A file may be the program's, and what is written to the other end of a
 * terminal is typed into it. */
static void
latecomer_speaks_to_the_terminal_of_its_session_only(void **state)
{
    int far = posix_openpt(O_RDWR | O_NOCTTY), near, pipes[2];

    (void)state;
    assert_true(far >= 0 && !grantpt(far) && !unlockpt(far));
    near = open(ptsname(far), O_RDWR | O_NOCTTY);
    assert_true(near >= 0 && !pipe(pipes));
    say_late_to(pipes[1], false);
    assert_false(can_be_read(pipes[0]));
    say_late_to(far, false);
    assert_false(can_be_read(near));
    assert_false(can_be_read(far)); /* no echo */
    say_late_to(near, false);
    assert_false(can_be_read(far));
    say_late_to(near, true);
    assert_true(can_be_read(far));
    close(near);
    close(far);
    close(pipes[0]);
    close(pipes[1]);
}

static int
status_of_child(void (*f)(int fd), int fd)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        alarm(20);
        f(fd);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void
say_three_pages(int fd)
{
    static const char text[3 * PIPE_BUF];

    cpprof__say_to(fd, text, sizeof text);
}

/* A report is longer than what a pipe that is ready has room for. */
static void
long_text_ends_where_a_pipe_is_full(void **state)
{
    static const char bytes[PIPE_BUF];
    int pipes[2], in_pipe;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    fcntl(pipes[1], F_SETFL, O_NONBLOCK);
    while (write(pipes[1], bytes, sizeof bytes) == sizeof bytes)
        continue;
    fcntl(pipes[1], F_SETFL, 0);
    ioctl(pipes[0], FIONREAD, &in_pipe);
    assert_int_equal(read(pipes[0], (char[PIPE_BUF]){0}, PIPE_BUF), PIPE_BUF);
    assert_int_equal(status_of_child(say_three_pages, pipes[1]), 0);
    ioctl(pipes[0], FIONREAD, &in_pipe);
    assert_true(in_pipe >= PIPE_BUF);
    while (in_pipe > 0)
        in_pipe -= (int)read(pipes[0], (char[PIPE_BUF]){0}, PIPE_BUF);
    assert_int_equal(status_of_child(say_three_pages, pipes[1]), 0);
    ioctl(pipes[0], FIONREAD, &in_pipe);
    assert_int_equal(in_pipe, 3 * PIPE_BUF);
    close(pipes[0]);
    close(pipes[1]);
}

static int refused_as;

/* The signal would end it, at the latest when it is unblocked again. */
static void
write_with_a_filter(int fd)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigtimedwait, 0, 1),
        BPF_STMT(BPF_RET | BPF_K,
                 SECCOMP_RET_ERRNO | (unsigned short)refused_as),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
    sigset_t now;

    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(0); /* there are none here */
    if (cpprof__write_quietly(fd, "said\n", 5) != -1 || errno != EPIPE)
        _exit(1);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    if (sigismember(&now, SIGPIPE))
        _exit(2);
    if (signal(SIGPIPE, SIG_IGN) != SIG_DFL)
        _exit(3);
}

static void
closed_pipe_ends_nobody_whatever_a_filter_says(void **state)
{
    static const int ways[] = {0, EPERM, ENOSYS, EINTR, EAGAIN};
    int pipes[2];
    size_t i;

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    close(pipes[0]);
    for (i = 0; i < sizeof ways / sizeof *ways; i++) {
        refused_as = ways[i];
        assert_int_equal(status_of_child(write_with_a_filter, pipes[1]), 0);
    }
    close(pipes[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_all_sizes_are_apart_and_aligned),
        cmocka_unit_test(block_that_grows_and_shrinks_keeps_its_bytes),
        cmocka_unit_test(cleared_block_is_zero_where_another_was),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(blocks_leave_holes_of_the_program_empty),
#endif
        cmocka_unit_test(freed_memory_is_used_again),
        cmocka_unit_test(text_is_copied_as_long_as_it_is),
        cmocka_unit_test(more_than_there_can_be_is_refused),
        cmocka_unit_test(threads_free_blocks_of_others),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(child_of_any_moment_finds_lists_whole),
#endif
        cmocka_unit_test(items_of_any_number_are_sorted),
        cmocka_unit_test(folder_names_all_that_is_in_it),
        cmocka_unit_test(latecomer_speaks_to_the_terminal_of_its_session_only),
        cmocka_unit_test(long_text_ends_where_a_pipe_is_full),
        cmocka_unit_test(closed_pipe_ends_nobody_whatever_a_filter_says),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
