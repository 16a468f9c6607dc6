// SPDX-License-Identifier: MIT
// Everything at once for some seconds at 1000 Hz: fork, vfork, spawn, exec,
// dlopen, exceptions, threads that come and go, malloc, signals, jumps, and
// starting and stopping all the while. Nothing may hang, crash or be wrong.
//
//     stress ENGINE [SECONDS]
//     STRESS_SECONDS=SECONDS stress ENGINE
extern "C" {
#include "command.h"
#include "load.h"
#include "session.h"
#include "tap.h"
}

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace
{

bool stop_all;
char plugin[4200];

// One kind of work: what it does once, how often it did, what went wrong.
struct kind {
    const char *name;
    bool (*once)(unsigned i);
    unsigned n_done;
    unsigned n_wrong;
};

bool
ended_with(pid_t child, int code)
{
    int status = -1;

    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == code;
}

bool
fork_once(unsigned i)
{
    pid_t child = fork();

    if (child == 0) {
        // Locks of libc must be usable in the child.
        free(malloc(100 + i));
        _exit(int(i % 100));
    }
    return ended_with(child, int(i % 100));
}

bool
vfork_once(unsigned)
{
    pid_t child = vfork();

    if (child == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(9);
    }
    return ended_with(child, 0);
}

bool
spawn_once(unsigned)
{
    char name[] = "false";
    char *argv[] = {name, nullptr};
    pid_t child = 0;

    return posix_spawnp(&child, "false", nullptr, nullptr, argv, environ) ==
               0 &&
           ended_with(child, 1);
}

bool
load_once(unsigned)
{
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    void *at = library ? dlsym(library, "plugin_a_hog") : nullptr;

    if (!at)
        return false;
    load_sink = reinterpret_cast<uint64_t (*)(uint64_t)>(at)(200000);
    return dlclose(library) == 0;
}

__attribute__((noinline)) int
throw_at(unsigned depth, unsigned value)
{
    std::string ballast(depth * 10, 'x');

    if (depth == 0)
        throw std::runtime_error(std::to_string(value));
    return throw_at(depth - 1, value) + int(ballast.size());
}

bool
throw_once(unsigned i)
{
    try {
        throw_at(i % 30, i);
    } catch (const std::runtime_error &e) {
        return std::stoul(e.what()) == i;
    }
    return false;
}

void *
short_thread(void *value)
{
    for (int i = 0; i < 20; i++)
        load_sink = churn(load_sink);
    return value;
}

bool
thread_once(unsigned i)
{
    pthread_t thread;
    void *result = nullptr;
    void *value = reinterpret_cast<void *>(uintptr_t(i));

    return pthread_create(&thread, nullptr, short_thread, value) == 0 &&
           pthread_join(thread, &result) == 0 && result == value;
}

bool
malloc_once(unsigned i)
{
    std::vector<std::string> words;

    for (unsigned k = 0; k < 200; k++)
        words.push_back(std::string(k + i % 50, char('a' + k % 26)));
    return words[100].size() == 100 + i % 50 && words[100][0] == 'w';
}

__thread sigjmp_buf escape;

void
on_escape(int)
{
    siglongjmp(escape, 1);
}

bool
jump_once(unsigned)
{
    if (sigsetjmp(escape, 1) == 0) {
        pthread_kill(pthread_self(), SIGUSR1);
        return false;
    }
    return true;
}

// The deepest frames of a recursion, so that the unwinder has work.
__attribute__((noinline)) unsigned
dive(unsigned depth)
{
    load_sink = churn(load_sink);
    return depth == 0 ? 0 : dive(depth - 1) + 1;
}

bool
dive_once(unsigned i)
{
    return dive(i % 300) == i % 300;
}

kind kinds[] = {
    {"fork", fork_once, 0, 0},         {"vfork and exec", vfork_once, 0, 0},
    {"posix_spawn", spawn_once, 0, 0}, {"dlopen", load_once, 0, 0},
    {"throw", throw_once, 0, 0},       {"threads", thread_once, 0, 0},
    {"malloc", malloc_once, 0, 0},     {"jumps", jump_once, 0, 0},
    {"dives", dive_once, 0, 0},
};

void *
run_kind(void *arg)
{
    kind *k = static_cast<kind *>(arg);

    while (!__atomic_load_n(&stop_all, __ATOMIC_RELAXED)) {
        k->n_wrong += !k->once(k->n_done);
        __atomic_store_n(&k->n_done, k->n_done + 1, __ATOMIC_RELAXED);
    }
    return nullptr;
}

// Nothing moves any more: say what moved last and end.
void
on_alarm(int)
{
    static const char text[] = "Bail out! it hangs\n";

    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(98);
    abort();
}

unsigned n_profiles, n_stacks;
double last_ns;

void
profile_for(double seconds)
{
    struct profile *p;
    struct timespec nap = {time_t(seconds),
                           long((seconds - double(time_t(seconds))) * 1e9)};

    session_start(1000);
    while (nanosleep(&nap, &nap))
        continue;
    p = session_stop();
    n_profiles++;
    n_stacks += unsigned(p->n_samples);
    last_ns = double(profile_cpu_ns(p));
    profile_free(p);
}

double
cpu_seconds()
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void
run(double seconds)
{
    size_t n = sizeof kinds / sizeof kinds[0];
    std::vector<pthread_t> threads(n);
    double done, used = 0;

    signal(SIGUSR1, on_escape);
    signal(SIGALRM, on_alarm);
    alarm(unsigned(seconds) * 4 + 30);
    for (size_t i = 0; i < n; i++)
        pthread_create(&threads[i], nullptr, run_kind, &kinds[i]);
    for (done = 0; done < seconds * 2 / 3; done += 1)
        profile_for(done < 2 ? 0.1 : 1);
    // Beside programs that take the processors away, again and longer.
    for (int more = 1; more <= 4; more *= 2) {
        used = -cpu_seconds();
        profile_for(seconds / 3 * more);
        used += cpu_seconds();
        if (last_ns / 1e9 >= used / 2)
            break;
    }
    __atomic_store_n(&stop_all, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], nullptr);
    alarm(0);
    note("%u profiles, %u stacks; the last saw %.2f s of %.2f s", n_profiles,
         n_stacks, last_ns / 1e9, used);
    check_at_least(last_ns / 1e9, used / 2, "what runs is what is seen");
    check_at_most(last_ns / 1e9, used * 1.2, "and not more");
}

} // namespace

int
main(int argc, char **argv)
{
    const char *wanted = argc > 2 ? argv[2] : getenv("STRESS_SECONDS");

    session_engine(argc, argv);
    snprintf(plugin, sizeof plugin, "%s", beside_path("libplugin_a.so"));
    run(wanted ? atof(wanted) : 6);
    for (const kind &k : kinds) {
        char name[64];

        snprintf(name, sizeof name, "%s went on", k.name);
        check_at_least(k.n_done, 10, name);
        snprintf(name, sizeof name, "%s went right", k.name);
        check_equal(k.n_wrong, 0, name);
        note("%u times", k.n_done);
    }
    return check_done();
}
