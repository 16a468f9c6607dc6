/* SPDX-License-Identifier: MIT */
/*
 * A program that runs without the library loads it in a thread, as `cpprof
 * record -p PID` has it loaded, and is profiled from then on: threads that are
 * there and those that come, what is allocated and waited for through entries
 * that were bound before or are bound later. Then all is as it was; and again.
 */
#include "load.h"
#include "profile.h"
#include "tap.h"
#include <cpprof/attach.h>
#include <cpprof/recording.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBC_SIGNAL 33

static __typeof__(cpprof_attach) *attach;
static __typeof__(cpprof_detach) *detach;
static __typeof__(cpprof_recording_prepare) *prepare;
static char folder[] = "/tmp/cpprof-attach-XXXXXX";
static char why[256];

/* ---- what a process has ------------------------------------------------ */

struct owned {
    int n_tasks;
    int n_fds;
    int n_maps;
    uintptr_t handler; /* of libc's signal */
};

static int
count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static int
count_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    int n = 0, c;

    while (file && (c = getc(file)) != EOF)
        n += c == '\n';
    if (file)
        fclose(file);
    return n;
}

static struct owned
look(void)
{
    struct owned has;
    uintptr_t action[4] = {0};

    syscall(SYS_rt_sigaction, LIBC_SIGNAL, NULL, action, 8);
    has.handler = action[0];
    has.n_tasks = count_entries("/proc/self/task");
    has.n_fds = count_entries("/proc/self/fd");
    has.n_maps = count_lines("/proc/self/maps");
    return has;
}

static int
count_tasks(void)
{
    return look().n_tasks;
}

/* Until there are no more than so many, for ten seconds at most. */
static void
wait_for_tasks(int n)
{
    int i;

    for (i = 0; i < 100 && count_tasks() > n; i++)
        usleep(100000);
}

/* ---- attaching --------------------------------------------------------- */

static void
begin(const char *config)
{
    if (attach(config, why, sizeof why))
        bail("attach %s: %s", config, why);
}

static void
end(void)
{
    if (detach(why, sizeof why))
        bail("detach: %s", why);
}

static const char *
to_file(const char *kinds)
{
    static char config[200];

    snprintf(config, sizeof config, "%s,out=%s/%%k.pb.gz", kinds, folder);
    return config;
}

static struct profile *
load_file(const char *kind)
{
    char path[100];

    snprintf(path, sizeof path, "%s/%s.pb.gz", folder, kind);
    return profile_load(path);
}

static void *
load(void *unused)
{
    void *library = dlopen("libcpprof.so", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        bail("%s", dlerror());
    *(void **)&attach = dlsym(library, "cpprof_attach");
    *(void **)&detach = dlsym(library, "cpprof_detach");
    *(void **)&prepare = dlsym(library, "cpprof_recording_prepare");
    return NULL;
}

static void
run_thread(void *(*f)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, f, NULL))
        bail("pthread_create");
    pthread_join(thread, NULL);
}

static void *
nothing(void *unused)
{
    return NULL;
}

static void
test_loaded_late_it_does_nothing(void)
{
    struct owned before, after;

    run_thread(nothing); /* libc installs its handler */
    before = look();
    setenv("CPPROF", to_file("cpu,heap,wall"), 1);
    run_thread(load);
    unsetenv("CPPROF");
    after = look();
    check_equal(after.n_tasks, before.n_tasks, "loaded late it has no thread");
    check_equal(after.n_fds, before.n_fds, "and no descriptor");
    check(after.handler == before.handler, "and no handler");
    check(!getenv("CPPROF_OWNER"), "and changes no variable");
}

/* ---- CPU and wall time ------------------------------------------------- */

static pthread_barrier_t barrier;
static uint64_t hog_ns;

static void *
hog_old(void *unused)
{
    pthread_barrier_wait(&barrier);
    hog_one(hog_ns);
    return NULL;
}

static void *
hog_new(void *unused)
{
    hog_two(hog_ns);
    return NULL;
}

static void
test_cpu_of_old_and_new_threads(unsigned length)
{
    pthread_t old, new;
    struct profile *p;

    hog_ns = 300ull * length * MS;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&old, NULL, hog_old, NULL);
    begin(to_file("cpu=1000"));
    pthread_barrier_wait(&barrier);
    pthread_create(&new, NULL, hog_new, NULL);
    pthread_join(old, NULL);
    pthread_join(new, NULL);
    end();
    p = load_file("cpu");
    check_near((double)profile_cpu_in(p, "hog_one"), (double)hog_ns,
               (double)hog_ns / 10, "a thread that was there is sampled");
    check_near((double)profile_cpu_in(p, "hog_two"), (double)hog_ns,
               (double)hog_ns / 10, "a thread that came is sampled");
    check(profile_comment(p, "engine timer") != NULL, "by timers");
    profile_free(p);
}

__attribute__((noinline)) static void
sleep_here(unsigned ms)
{
    usleep(ms * 1000);
    __asm__ volatile("");
}

static void
test_wall_time_of_a_sleeper(unsigned length)
{
    struct profile *p;

    begin(to_file("wall=100"));
    sleep_here(500 * length);
    end();
    p = load_file("wall");
    check_near((double)profile_cpu_in(p, "sleep_here"), 500.0 * length * MS,
               100.0 * length * MS, "a sleeper is seen by wall time");
    profile_free(p);
}

/* ---- heap -------------------------------------------------------------- */

enum { N_BLOCKS = 200, BLOCK = 1000 };

static void *blocks[N_BLOCKS];

__attribute__((noinline)) static void
allocate(void)
{
    int i;

    for (i = 0; i < N_BLOCKS; i++)
        blocks[i] = malloc(BLOCK);
    __asm__ volatile("");
}

/* Nothing has called this one before. */
__attribute__((noinline)) static void *
allocate_aligned(void)
{
    void *block = aligned_alloc(64, 64 * BLOCK);

    __asm__ volatile("" : "+r"(block));
    return block;
}

static void
release(int from, int to)
{
    while (from < to)
        free(blocks[from++]);
}

static void
test_heap_since_attach(void)
{
    struct profile *p;
    void *aligned;

    allocate(); /* before */
    begin(to_file("heap=1"));
    release(0, N_BLOCKS);
    allocate();
    release(0, N_BLOCKS / 2);
    aligned = allocate_aligned();
    end();
    p = load_file("heap");
    check_equal(profile_cpu_in(p, "allocate"), N_BLOCKS * BLOCK,
                "all that is allocated after it is counted, and no more");
    check_equal(profile_cpu_in(p, "allocate_aligned"), 64 * BLOCK,
                "so is what a function gives that was never called before");
    check(profile_comment(p, "since it was attached") != NULL,
          "the profile says since when");
    profile_free(p);
    release(N_BLOCKS / 2, N_BLOCKS);
    free(aligned);
    begin(to_file("heap=1"));
    end();
    p = load_file("heap");
    check_equal(profile_cpu_in(p, "allocate"), 0,
                "the next time begins with nothing");
    profile_free(p);
}

static void *(*plugin_malloc)(size_t n);

/* Its last step is the call of malloc: its frame is gone by then. */
__attribute__((noinline)) static void *
call_plugin(void)
{
    void *block = plugin_malloc(12345);

    __asm__ volatile("" : "+r"(block));
    return block;
}

static void
test_heap_of_a_library_that_comes(void)
{
    char path[400] = {0};
    void *library, *block;
    struct profile *p;

    if (readlink("/proc/self/exe", path, sizeof path - 40) < 0)
        bail("/proc/self/exe");
    strcpy(strrchr(path, '/'), "/libheap_plugin.so");
    begin(to_file("heap=1"));
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        bail("%s", dlerror());
    *(void **)&plugin_malloc = dlsym(library, "plugin_malloc");
    usleep(500000);
    block = call_plugin();
    end();
    p = load_file("heap");
    check_equal(profile_cpu_in(p, "call_plugin"), 12345,
                "a library that was loaded later is seen");
    profile_free(p);
    free(block);
    check_equal(dlclose(library), 0, "and can go");
}

/* ---- locks ------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void
hold(void)
{
    pthread_mutex_lock(&mutex);
    pthread_barrier_wait(&barrier);
    usleep(200000);
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("");
}

static void *
run_hold(void *unused)
{
    hold();
    return NULL;
}

__attribute__((noinline)) static void
wait_for_it(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("");
}

static void
test_waits(unsigned length)
{
    pthread_t holder;
    struct profile *p;

    pthread_barrier_init(&barrier, NULL, 2);
    begin(to_file("block=1,mutex=1"));
    pthread_create(&holder, NULL, run_hold, NULL);
    pthread_barrier_wait(&barrier);
    wait_for_it();
    pthread_join(holder, NULL);
    end();
    p = load_file("block");
    check_at_least((double)profile_cpu_in(p, "wait_for_it"), 100.0 * MS,
                   "who waits for a lock is seen");
    profile_free(p);
    p = load_file("mutex");
    check_at_least((double)profile_cpu_in(p, "hold"), 100.0 * MS,
                   "and who held it");
    profile_free(p);
}

/* pthread_rwlock_wrlock() by a stub, which -fno-plt does without. Nobody has
 * called it before: the entry is bound by the first call, long after entries
 * were looked at for the last time. */
int
lock_by_stub(pthread_rwlock_t *lock);
#if defined __x86_64__
__asm__(".text\n"
        "lock_by_stub: jmp pthread_rwlock_wrlock@PLT\n");
#else
__asm__(".text\n"
        "lock_by_stub: b pthread_rwlock_wrlock\n");
#endif

static pthread_rwlock_t late = PTHREAD_RWLOCK_INITIALIZER;

__attribute__((noinline)) static void
lock_late(unsigned hold_us)
{
    lock_by_stub(&late);
    if (hold_us)
        pthread_barrier_wait(&barrier);
    usleep(hold_us);
    pthread_rwlock_unlock(&late);
    __asm__ volatile("");
}

static void *
run_late(void *unused)
{
    lock_late(1000000);
    return NULL;
}

/* Once: the entry is bound from then on. */
static void
test_late_waits(void)
{
    pthread_t holder;
    struct profile *p;

    pthread_barrier_init(&barrier, NULL, 2);
    begin(to_file("block=1"));
    sleep(2);
    pthread_create(&holder, NULL, run_late, NULL);
    pthread_barrier_wait(&barrier);
    lock_late(0);
    pthread_join(holder, NULL);
    end();
    p = load_file("block");
    check_at_least((double)profile_cpu_in(p, "lock_late"), 1.0 * MS,
                   "a wait by an entry that is bound late is seen");
    profile_free(p);
}

/* ---- refusals ---------------------------------------------------------- */

static void
test_refusals(void)
{
    check_equal(detach(why, sizeof why), 0, "nothing attached: no error");
    check_equal(attach(NULL, why, sizeof why), EINVAL, "no config");
    check_equal(attach("cpu=fast", why, sizeof why), EINVAL, "a wrong rate");
    check_has(why, "cpu=fast", "is named");
    check_equal(attach("http=127.0.0.1:0", why, sizeof why), ENOTSUP,
                "no server");
    check_equal(attach("cpu,record=/no/such", why, sizeof why), ENOENT,
                "a directory that is not there");
    begin(to_file("cpu"));
    check_equal(attach(to_file("cpu"), why, sizeof why), EBUSY, "twice");
    check_has(why, "already", "is refused with a line");
    end();
    check_equal(detach(NULL, 0), 0, "detached twice: no error");
}

/* ---- again and again --------------------------------------------------- */

static bool is_over;

static void *
allocate_all_the_time(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *volatile block = malloc(5000);

        block = realloc(block, 50000);
        free(block);
    }
    return NULL;
}

static void *
fork_all_the_time(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        pid_t pid = fork();
        int status = 0;

        if (!pid)
            _exit(3);
        waitpid(pid, &status, 0);
        if (WEXITSTATUS(status) != 3)
            bail("a child ended with %x", (unsigned)status);
    }
    return NULL;
}

static void *
load_all_the_time(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *library = dlopen("libresolv.so.2", RTLD_LAZY);

        if (library)
            dlclose(library);
        run_thread(nothing);
    }
    return NULL;
}

enum { N_WORKERS = 5 };

static void
cycle(unsigned n, const char *config)
{
    while (n--) {
        begin(config);
        end();
    }
}

static void
test_cycles(unsigned n)
{
    void *(*const work[N_WORKERS])(void *) = {
        allocate_all_the_time, allocate_all_the_time, allocate_all_the_time,
        fork_all_the_time, load_all_the_time};
    const char *config =
        to_file("cpu,heap=64k,block,mutex,wall,symbolize=none");
    pthread_t workers[N_WORKERS];
    struct owned before, after;
    int i;

    cycle(10, config);
    before = look();
    cycle(10, config);
    wait_for_tasks(before.n_tasks);
    after = look();
    check_equal(after.n_tasks, before.n_tasks, "cycles leave no thread");
    check_equal(after.n_fds, before.n_fds, "no descriptor");
    check_at_most(after.n_maps, before.n_maps + 2, "no mapping");
    check(after.handler == before.handler, "and no handler");
    for (i = 0; i < N_WORKERS; i++)
        pthread_create(&workers[i], NULL, work[i], NULL);
    cycle(n, config);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (i = 0; i < N_WORKERS; i++)
        pthread_join(workers[i], NULL);
    wait_for_tasks(before.n_tasks);
    check_equal(count_tasks(), before.n_tasks,
                "cycles beside who allocates, forks and loads");
}

/* ---- a recorder that goes ---------------------------------------------- */

/* A process that waits to be killed. */
static pid_t
start_recorder(char *path)
{
    char byte;
    int ready[2];
    pid_t pid;

    if (!mkdtemp(path) || pipe(ready))
        bail("mkdtemp");
    pid = fork();
    if (pid == 0) {
        if (prepare(path, NULL) == CPPROF_OK && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    if (pid < 0 || read(ready[0], &byte, 1) != 1)
        bail("%s cannot be prepared", path);
    close(ready[0]);
    return pid;
}

static void
test_recorder_is_killed(void)
{
    char path[] = "/dev/shm/cpprof-XXXXXX", command[100];
    struct owned before = look();
    pid_t recorder = start_recorder(path);

    snprintf(why, sizeof why, "cpu,heap,wall,record=%s", path);
    begin(why);
    sleep_here(200);
    check_at_least(count_tasks(), before.n_tasks + 1, "it is recorded");
    /* As for a process that has become another user. */
    chmod(path, 0);
    kill(recorder, SIGKILL);
    waitpid(recorder, NULL, 0);
    wait_for_tasks(before.n_tasks);
    check_equal(count_tasks(), before.n_tasks,
                "without its recorder a process cleans up by itself");
    check(look().handler == before.handler, "its handler too");
    chmod(path, 0700);
    snprintf(command, sizeof command, "cpu,record=%s", path);
    check_equal(attach(command, why, sizeof why), ENOENT,
                "nothing is recorded for one that was killed before");
    wait_for_tasks(before.n_tasks); /* one that was joined may be seen yet */
    check_equal(count_tasks(), before.n_tasks, "nor begun");
    begin(to_file("cpu"));
    end();
    check(true, "and may be attached again");
    snprintf(command, sizeof command, "rm -r %s", path);
    if (system(command))
        note("%s is left", path);
}

int
main(int argc, char **argv)
{
    char command[100];

    if (!mkdtemp(folder))
        bail("mkdtemp");
    test_loaded_late_it_does_nothing();
    test_refusals();
    check_tries(5, test_cpu_of_old_and_new_threads);
    check_tries(5, test_wall_time_of_a_sleeper);
    test_heap_since_attach();
    test_heap_of_a_library_that_comes();
    check_tries(5, test_waits);
    test_late_waits();
    test_recorder_is_killed();
    test_cycles(argc > 1 ? (unsigned)atoi(argv[1]) : 100);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command))
        note("%s is left", folder);
    return check_done();
}
