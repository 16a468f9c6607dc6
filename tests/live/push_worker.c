/* SPDX-License-Identifier: MIT */
/*
 * A program whose profiles are pushed: the other half of push.py.
 *
 *     push_worker URL [OPTION=VALUE...] STEP...
 *
 * URL "-": only what CPPROF says. Options: name, labels, kinds, interval,
 * ingest, queue, keep. Steps, one after the other: work=MS, burn=MS (until it
 * has used so much CPU time), quiet=MS, stacks=N (allocate, each time on
 * another one), custom=NAME, weighted=NAME (a profile of its own, with three
 * values; "space"/"bytes" of 1, 2 and 3 more), fork=MS (a child that works so
 * long), again (start again), stop, fds, threads, maps=NAME,
 * end=exit|_exit|quick|kill|thread.
 */
#include <cpprof/push.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct cpprof_push_options options = {.size = sizeof options};
static const char *url;
static unsigned n_allocated;

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
sleep_ms(int ms)
{
    double until = now() + ms / 1e3;

    while (now() < until)
        usleep(10000);
}

/* ---- work ------------------------------------------------------------- */

__attribute__((noinline)) static void
burn_here(void)
{
    volatile double x = 0;
    int i;

    for (i = 0; i < 300000; i++)
        x += i;
}

__attribute__((noinline)) static void
allocate_here(void)
{
    void *volatile p = malloc(1000);

    free(p);
    n_allocated++;
}

/* Bit by bit of path, so that each is a stack of its own. */
__attribute__((noinline)) static void
left(unsigned path, int n);

__attribute__((noinline)) static void
right(unsigned path, int n)
{
    if (n)
        (path & 1 ? right : left)(path >> 1, n - 1);
    else
        allocate_here();
    __asm__ volatile("");
}

__attribute__((noinline)) static void
left(unsigned path, int n)
{
    if (n)
        (path & 1 ? right : left)(path >> 1, n - 1);
    else
        allocate_here();
    __asm__ volatile("");
}

static void
stacks(int n)
{
    while (n-- > 0)
        left((unsigned)n, 16);
}

__attribute__((noinline)) static void
keep_here(struct cpprof_profile *profile, long i)
{
    const struct cpprof_profile_entry entry = {
        .size = sizeof entry, .value = (const void *)(i + 1), .weight = i + 1};

    cpprof_profile_add_entry(profile, &entry, NULL);
    __asm__ volatile("");
}

static void
custom(const char *name, int is_weighted)
{
    struct cpprof_profile *profile = NULL;
    long i;

    if (is_weighted)
        cpprof_profile_new_weighted(name, "space", "bytes", &profile, NULL);
    else
        cpprof_profile_new(name, &profile, NULL);
    for (i = 0; i < 3; i++)
        keep_here(profile, i);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *
hold(void *arg)
{
    pthread_mutex_lock(&lock);
    usleep(2000);
    pthread_mutex_unlock(&lock);
    return arg;
}

/* One has to wait for the other. */
static void
contend(void)
{
    pthread_t two[2];
    int i;

    for (i = 0; i < 2; i++)
        pthread_create(&two[i], NULL, hold, NULL);
    for (i = 0; i < 2; i++)
        pthread_join(two[i], NULL);
}

static void
work(int ms)
{
    double until = now() + ms / 1e3;

    while (now() < until) {
        burn_here();
        allocate_here();
        contend();
    }
}

static void
burn(int ms)
{
    struct timespec t;

    do {
        burn_here();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

/* ---- what it sees of itself ------------------------------------------- */

static int
n_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int n = 0;

    while (dir && (entry = readdir(dir)))
        n += entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir);
    if (dir)
        closedir(dir);
    return n;
}

/* Of many looks the least: what is read from /proc is open for a moment, and
 * where names are looked up for as long as that takes. */
static void
print_descriptors(void)
{
    int i, n, least = n_descriptors();

    for (i = 0; i < 600 && least > 3; i++) {
        usleep(5000);
        n = n_descriptors();
        least = n < least ? n : least;
    }
    printf("fds %d\n", least);
}

static void
print_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int n = 0, n_open = 0;
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[300], line[256];
        unsigned long long blocked;
        FILE *status;

        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid() ||
            !(status = fopen(path, "r")))
            continue;
        n++;
        while (fgets(line, sizeof line, status))
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
                n_open += !(blocked & 1ull << (SIGPROF - 1)) ||
                          !(blocked & 1ull << (SIGPIPE - 1));
        fclose(status);
    }
    if (dir)
        closedir(dir);
    printf("threads %d %d\n", n, n_open);
}

static void
print_map(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (maps && fgets(line, sizeof line, maps))
        n += strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    printf("maps %s %s\n", name, n ? "yes" : "no");
}

/* ---- steps ------------------------------------------------------------ */

static void
report(void *ctx, const char *line)
{
    (void)ctx;
    printf("report %s\n", line);
    fflush(stdout);
}

static void
start(void)
{
    struct cpprof_error error;
    enum cpprof_status status = cpprof_push_start(url, &options, &error);

    printf("start %s %s\n", cpprof_status_name(status),
           status == CPPROF_OK ? "" : error.text);
}

static void
fork_one(int ms)
{
    pid_t child = fork();

    if (!child) {
        work(ms);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("child %d\n", (int)child);
}

static void
end_by(const char *how)
{
    fflush(stdout);
    if (!strcmp(how, "_exit"))
        _exit(7);
    if (!strcmp(how, "quick"))
        quick_exit(7);
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    if (!strcmp(how, "thread"))
        pthread_exit(NULL);
    exit(7);
}

static void
stop(void)
{
    double begun = now();

    cpprof_push_stop();
    printf("stop %.3f\n", now() - begun);
}

static void
step(const char *word)
{
    const char *value = strchr(word, '=');
    size_t n = value ? (size_t)(value++ - word) : strlen(word);

#define IS(name) (n == strlen(name) && !strncmp(word, name, n))
    if (IS("work"))
        work(atoi(value));
    else if (IS("burn"))
        burn(atoi(value));
    else if (IS("quiet"))
        sleep_ms(atoi(value));
    else if (IS("stacks"))
        stacks(atoi(value));
    else if (IS("custom") || IS("weighted"))
        custom(value, IS("weighted"));
    else if (IS("fork"))
        fork_one(atoi(value));
    else if (IS("again"))
        start();
    else if (IS("stop"))
        stop();
    else if (IS("fds"))
        print_descriptors();
    else if (IS("threads"))
        print_threads();
    else if (IS("maps"))
        print_map(value);
    else if (IS("end"))
        end_by(value);
    fflush(stdout);
}

/* False: it is a step. */
static int
is_option(const char *word)
{
    const char *value = strchr(word, '=');
    size_t n = value ? (size_t)(value++ - word) : 0;

    if (IS("name"))
        options.name = value;
    else if (IS("labels"))
        options.labels = value;
    else if (IS("kinds"))
        options.kinds = (uint32_t)atoi(value);
    else if (IS("interval"))
        options.interval_seconds = (uint32_t)atoi(value);
    else if (IS("ingest"))
        options.protocol = CPPROF_PUSH_INGEST;
    else if (IS("queue"))
        options.queue_bytes = (uint32_t)atoi(value);
    else if (IS("keep"))
        options.keep = (uint32_t)atoi(value);
    else
        return 0;
    return 1;
#undef IS
}

int
main(int argc, char **argv)
{
    int i = 2;

    url = argc > 1 ? argv[1] : "-";
    options.report = report;
    while (i < argc && is_option(argv[i]))
        i++;
    if (strcmp(url, "-"))
        start();
    for (; i < argc; i++)
        step(argv[i]);
    printf("allocated %u\n", n_allocated);
    return 0;
}
