/* SPDX-License-Identifier: MIT */
/*
 * Threads that use the library for the first time, all at once. In each of many
 * programs three threads call four parts of it each, which chance chooses; in
 * every third they call the same. Nothing may hang, crash or be wrong.
 *
 *     first_uses [PROGRAMS]
 *     first_uses seed N      is one of these programs
 */
#include "command.h"
#include "load.h"
#include "tap.h"
#include <cpprof/captures.h>
#include <cpprof/cpu.h>
#include <cpprof/deadlock.h>
#include <cpprof/heap.h>
#include <cpprof/http.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>
#include <cpprof/push.h>
#include <cpprof/wall.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_PROGRAMS 60
#define N_THREADS  3
#define N_CALLS    4

/* TSan follows neither the loader nor a fork of several threads. Its library
 * has neither server nor push, nor names that it takes over: no waits.
 * Sanitizers have an allocator in front of ours: no heap. */
#if defined(__SANITIZE_THREAD__)
#define IS_TSAN 1
#else
#define IS_TSAN 0
#endif
#if IS_TSAN || defined(__SANITIZE_ADDRESS__)
#define HAS_HEAP 0
#else
#define HAS_HEAP 1
#endif

#if IS_TSAN
/* It does not see the loader's lock, under which modules are listed. */
const char *
__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *
__tsan_default_suppressions(void)
{
    return "race:cpprof__libc_names_bind\n";
}
#endif

/* Under TSan a profile with lines takes a second of CPU time. What is first
 * used for them is first used for functions, too. */
#if IS_TSAN
#define NAMES CPPROF_SYMBOLIZE_FUNCTIONS
#else
#define NAMES CPPROF_SYMBOLIZE_FULL
#endif
static const struct cpprof_cpu_options cpu_options = {sizeof cpu_options,
                                                      .symbolize = NAMES};
static const struct cpprof_wall_options wall_options = {sizeof wall_options,
                                                        .symbolize = NAMES};
static const struct cpprof_profile_options options = {sizeof options,
                                                      .symbolize = NAMES};

static int
take(void *ctx, const void *data, size_t n_bytes)
{
    (void)data;
    *(size_t *)ctx += n_bytes;
    return 0;
}

static int
end(void *ctx, int failed)
{
    (void)ctx;
    return failed;
}

static struct cpprof_writer
writer_of(size_t *n)
{
    *n = 0;
    return (struct cpprof_writer){sizeof(struct cpprof_writer), take, end, n};
}

/* ---- parts of the library: is it right? -------------------------------- */

static bool
use_cpu(unsigned me)
{
    size_t n;
    struct cpprof_writer writer = writer_of(&n);
    enum cpprof_status status = cpprof_cpu_start(&writer, &cpu_options, NULL);

    (void)me;
    if (status != CPPROF_OK)
        return status == CPPROF_BUSY;
    hog_one(2 * MS);
    return cpprof_cpu_stop(NULL) == CPPROF_OK && n;
}

static bool
is_captured(enum cpprof_status started, struct cpprof_capture **capture,
            const size_t *n)
{
    if (started != CPPROF_OK)
        return false;
    hog_one(2 * MS);
    return cpprof_capture_stop(*capture, NULL) == CPPROF_OK && *n;
}

static bool
use_cpu_capture(unsigned me)
{
    size_t n;
    struct cpprof_writer writer = writer_of(&n);
    struct cpprof_capture *c;

    (void)me;
    return is_captured(
        cpprof_capture_start_cpu(&writer, &cpu_options, &c, NULL), &c, &n);
}

static bool
use_wall_capture(unsigned me)
{
    size_t n;
    struct cpprof_writer writer = writer_of(&n);
    struct cpprof_capture *c;

    (void)me;
    return is_captured(
        cpprof_capture_start_wall(&writer, &wall_options, &c, NULL), &c, &n);
}

static bool
use_heap(unsigned me)
{
    size_t n;
    struct cpprof_writer writer = writer_of(&n);
    void *volatile block;
    int i;

    (void)me;
    cpprof_heap_set_rate(1000);
    for (i = 0; i < 100; i++) {
        block = malloc(500);
        free(block);
    }
    return (cpprof_heap_write(&writer, NULL, NULL) == CPPROF_OK && n) ==
           HAS_HEAP;
}

static bool
is_written(const char *name)
{
    size_t n;
    struct cpprof_writer writer = writer_of(&n);
    struct cpprof_profile *p = cpprof_profile_lookup(name);

    return p && cpprof_profile_write(p, &writer, &options, NULL) == CPPROF_OK &&
           n;
}

static bool
use_dump(unsigned me)
{
    (void)me;
    return is_written("goroutine") && is_written("threadcreate");
}

static bool
use_waits(unsigned me)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    (void)me;
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    pthread_mutex_lock(&mutex);
    hog_one(1 * MS);
    pthread_mutex_unlock(&mutex);
    return (is_written("block") && is_written("mutex")) || IS_TSAN;
}

static bool
use_own(unsigned me)
{
    struct cpprof_profile *p = NULL;
    const void *value = &value + me;
    char name[16];
    bool ok;

    snprintf(name, sizeof name, "mine%u", me & 1);
    if (cpprof_profile_new(name, &p, NULL) != CPPROF_OK)
        p = cpprof_profile_lookup(name);
    ok = p && cpprof_profile_add(p, value, 0, NULL) == CPPROF_OK &&
         is_written(name);
    if (p)
        cpprof_profile_remove(p, value);
    return ok;
}

static void
burn_with_labels(void *ctx)
{
    *(bool *)ctx = cpprof_labels_find(cpprof_labels_current(), "key") != NULL;
}

static bool
use_labels(unsigned me)
{
    struct cpprof_labels *set = cpprof_labels_new("key", "value", NULL);
    bool ok = false;

    (void)me;
    cpprof_labels_do(set, burn_with_labels, &ok);
    cpprof_labels_free(set);
    return ok;
}

static bool
use_deadlock(unsigned me)
{
    (void)me;
    cpprof_deadlock_start(NULL, NULL);
    hog_one(1 * MS);
    cpprof_deadlock_stop();
    return true;
}

static void *
burn_shortly(void *arg)
{
    hog_one(1 * MS);
    return arg;
}

static bool
use_threads(unsigned me)
{
    pthread_t thread;

    (void)me;
    return !pthread_create(&thread, NULL, burn_shortly, NULL) &&
           !pthread_join(thread, NULL);
}

#if !IS_TSAN
static bool
use_loader(unsigned me)
{
    void *library = dlopen("libresolv.so.2", RTLD_NOW);

    (void)me;
    return library && !dlclose(library);
}

static bool
use_fork(unsigned me)
{
    int status = -1;
    pid_t child = fork();

    (void)me;
    if (child == 0)
        _exit(0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool
use_server(unsigned me)
{
    enum cpprof_status status = cpprof_http_listen("127.0.0.1:0", NULL, NULL);

    (void)me;
    cpprof_http_close();
    return status == CPPROF_OK || status == CPPROF_BUSY;
}

static bool
use_push(unsigned me)
{
    enum cpprof_status status =
        cpprof_push_start("http://127.0.0.1:9", NULL, NULL);

    (void)me;
    hog_one(1 * MS);
    cpprof_push_stop();
    return status == CPPROF_OK || status == CPPROF_BUSY;
}

/* Only the first line of an answer. */
static int
begin(void *ctx, int status, const struct cpprof_http_header *headers,
      size_t n_headers, int64_t n_body)
{
    (void)headers, (void)n_headers, (void)n_body;
    *(int *)ctx = status;
    return 0;
}

static int
leave(void *ctx, const void *data, size_t n_bytes)
{
    (void)ctx, (void)data, (void)n_bytes;
    return 0;
}

static bool
is_served(const char *path, const char *query)
{
    int status = 0;
    const struct cpprof_http_request request = {
        .size = sizeof request, .method = "GET", .path = path, .query = query};
    const struct cpprof_http_response response = {sizeof response, begin, leave,
                                                  &status};

    return cpprof_http_handle(&request, &response, NULL) == CPPROF_OK &&
           status == 200;
}

static bool
use_handler(unsigned me)
{
    (void)me;
    return is_served("/debug/pprof/", "") &&
           is_served("/debug/pprof/goroutine", "debug=2") &&
           is_served("/debug/pprof/heap", "debug=1") == HAS_HEAP;
}
#endif

static const struct part {
    const char *name;
    bool (*use)(unsigned me);
} parts[] = {
    {"cpu", use_cpu},
    {"capture of cpu", use_cpu_capture},
    {"capture of wall", use_wall_capture},
    {"heap", use_heap},
    {"dump", use_dump},
    {"waits", use_waits},
    {"own", use_own},
    {"labels", use_labels},
    {"deadlock", use_deadlock},
    {"threads", use_threads},
#if !IS_TSAN
    {"loader", use_loader},
    {"fork", use_fork},
    {"server", use_server},
    {"push", use_push},
    {"handler", use_handler},
#endif
};

/* ---- one program ------------------------------------------------------- */

static unsigned seed, n_there, n_wrong;

static void *
use_parts(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    unsigned random = seed % 3 ? seed * N_THREADS + me : seed;
    unsigned i;

    __atomic_add_fetch(&n_there, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&n_there, __ATOMIC_SEQ_CST) < N_THREADS)
        continue;
    for (i = 0; i < N_CALLS; i++) {
        const struct part *part =
            &parts[(unsigned)rand_r(&random) % (sizeof parts / sizeof *parts)];

        if (!part->use(me)) {
            __atomic_add_fetch(&n_wrong, 1, __ATOMIC_RELAXED);
            fprintf(stderr, "%s is wrong\n", part->name);
        }
    }
    return NULL;
}

static int
run_program(const char *number)
{
    pthread_t threads[N_THREADS];
    uintptr_t i;

    seed = (unsigned)atoi(number);
    for (i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, use_parts, (void *)i))
            return 2;
    for (i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    return n_wrong != 0;
}

/* Of a thread of ours that is just ending nothing points to its block, which it
 * frees: no leak. */
static const char *const surroundings[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};

int
main(int argc, char **argv)
{
    unsigned n = argc == 2 ? (unsigned)atoi(argv[1]) : N_PROGRAMS;
    unsigned i, n_failed = 0;
    struct result result;
    char number[16];

    if (argc == 3)
        return run_program(argv[2]);
    for (i = 0; i < n; i++) {
        snprintf(number, sizeof number, "%u", i);
        run_command((const char *const[]){beside_path("first_uses"), "seed",
                                          number, NULL},
                    surroundings, 60, &result);
        if (result.status) {
            n_failed++;
            note("program %u has status %#x: %.300s", i, result.status,
                 result.err);
        }
    }
    check_at_least(n, 1, "there are programs");
    check_equal(n_failed, 0,
                "parts that are used first by threads at once work");
    return check_done();
}
