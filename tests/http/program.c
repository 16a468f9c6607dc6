/* SPDX-License-Identifier: MIT */
/*
 * A program that serves its profiles and has something in each of them, until
 * its standard input ends. reference.go is the same in Go.
 *
 *     program ADDRESS [FLAGS [MAX-SECONDS]]
 *
 * It says "OK ADDRESS", or what is wrong. ADDRESS "-": what CPPROF says.
 */
#include <cpprof/http.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Names that pages, addresses and headers have to escape. */
static const char *const names[] = {"a'b<c>&\"d", "x:y/z?q", "*",
                                    "brackets[1]!(2)", "~$,;=@+%zz"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t never;
static volatile unsigned long sink;
static void *volatile kept;

__attribute__((noinline)) static void
burn_time(unsigned ms)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (int i = 0; i < 10000; i++)
            sink += sink ^ (unsigned long)i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 +
                 (now.tv_nsec - begin.tv_nsec) / 1000000 <
             ms);
}

__attribute__((noinline)) static void
allocate_much(void)
{
    size_t i;

    for (i = 0; i < 64; i++) {
        free(kept);
        kept = malloc(100000);
        if (kept)
            memset(kept, 1, 100000);
    }
}

__attribute__((noinline)) static void
hold_lock(void)
{
    pthread_mutex_lock(&lock);
    usleep(3000);
    pthread_mutex_unlock(&lock);
    sink++; /* no tail call, which would not be on the stack */
}

static void *
run_busy(void *arg)
{
    struct cpprof_labels *set = cpprof_labels_new("job", "busy", NULL);

    (void)arg;
    cpprof_labels_set_current(set);
    for (;;) {
        burn_time(4);
        allocate_much();
        usleep(30000);
    }
    return NULL;
}

static void *
run_locking(void *arg)
{
    (void)arg;
    for (;;)
        hold_lock();
    return NULL;
}

/* A wait that does not end. */
static void *
run_waiting(void *arg)
{
    (void)arg;
    for (;;)
        sem_wait(&never);
    return NULL;
}

/* Nothing of it is touched. */
__attribute__((noinline)) static void
map_much(void)
{
    if (mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        exit(2);
    sink++; /* no tail call */
}

static void
start(void *(*run)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, NULL))
        exit(2);
}

__attribute__((noinline)) static void
make_profiles(void)
{
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++) {
        struct cpprof_profile *profile;
        struct cpprof_error error;

        if (cpprof_profile_new(names[i], &profile, &error) != CPPROF_OK ||
            cpprof_profile_add(profile, names[i], 0, &error) != CPPROF_OK) {
            printf("%s\n", error.text);
            exit(2);
        }
    }
}

int
main(int argc, char **argv)
{
    struct cpprof_http_options options = {.size = sizeof options};
    struct cpprof_error error;
    char where[160];

    setvbuf(stdout, NULL, _IOLBF, 0);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    sem_init(&never, 0, 0);
    make_profiles();
    map_much();
    start(run_busy);
    start(run_locking);
    start(run_locking);
    start(run_waiting);
    options.flags = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    options.max_seconds = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
    if (argc < 2 || (strcmp(argv[1], "-") != 0 &&
                     cpprof_http_listen(argv[1], &options, &error))) {
        printf("%s\n", argc < 2 ? "usage" : error.text);
        return 1;
    }
    cpprof_http_address(where, sizeof where);
    printf("OK %s\n", where);
    while (getchar() != EOF)
        ;
    return 0;
}
