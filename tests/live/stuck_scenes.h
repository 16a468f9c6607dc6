/* SPDX-License-Identifier: MIT */
/*
 * Programs of which it is known who can never go on, and the profile threadleak
 * of them. Each scene is a child of its own, since its threads stay where they
 * are.
 */
#ifndef LIVE_STUCK_SCENES_H
#define LIVE_STUCK_SCENES_H

extern "C" {
#include "collect/stuck/stuck.h"
#include "others.h"
#include "tap.h"
}

#include <cpprof/deadlock.h>
#include <cpprof/labels.h>
#include <cpprof/profiles.h>

#include <atomic>
#include <condition_variable>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* ---- the profile ------------------------------------------------------ */

inline int
append(void *ctx, const void *data, size_t n) noexcept
{
    static_cast<std::string *>(ctx)->append(static_cast<const char *>(data), n);
    return 0;
}

inline int
done(void *, int) noexcept
{
    return 0;
}

inline std::string
take(int debug)
{
    cpprof_profile_options options{};
    cpprof_writer writer{};
    cpprof_error error{};
    std::string text;

    options.size = sizeof options;
    options.debug = debug;
    writer.size = sizeof writer;
    writer.write = append;
    writer.close = done;
    writer.ctx = &text;
    if (cpprof_profile_write(cpprof_profile_lookup("threadleak"), &writer,
                             &options, &error))
        text = std::string("failed: ") + error.text;
    return text;
}

inline std::string
total(int n)
{
    return "threadleak profile: total " + std::to_string(n) + "\n";
}

/* Threads come to where they stay in their own time. */
inline std::string
take_total(int n)
{
    std::string text;

    for (int i = 0; i < 500; i++) {
        text = take(2);
        if (text.rfind(total(n), 0) == 0)
            break;
        usleep(10000);
    }
    return text;
}

inline int failures;

inline void
expect(const std::string &text, const std::string &part)
{
    if (text.find(part) != std::string::npos)
        return;
    failures++;
    fprintf(stderr, "# not there: %s\n# in:\n%s\n", part.c_str(), text.c_str());
}

/* That many threads, and these words. */
inline void
expect_stuck(int n, std::initializer_list<const char *> parts)
{
    const std::string text = take_total(n);

    expect(text, total(n));
    for (const char *part : parts)
        expect(text, part);
}

/* Nobody, in so many looks, of which each may be the unlucky one. */
inline void
expect_nobody(int looks)
{
    for (int i = 0; i < looks; i++)
        expect(take(2), total(0));
}

/* ---- threads ---------------------------------------------------------- */

template <class F>
void
start(F f)
{
    new std::thread(f); /* which can be joined */
}

inline void
name_me(const char *name)
{
    pthread_setname_np(pthread_self(), name);
}

/* All of n are there. */
struct meeting {
    std::atomic<int> left;
    explicit meeting(int n) : left(n)
    {
    }
    void
    wait()
    {
        left--;
        while (left > 0)
            usleep(1000);
    }
};

/* A ring of n: each has its own and wants the next one's. */
template <class Lock, class Want>
void
ring(int n, Lock take_own, Want want)
{
    auto *all = new meeting(n);

    for (int i = 0; i < n; i++)
        start([=] {
            name_me(("ring " + std::to_string(i)).c_str());
            take_own(i);
            all->wait();
            want((i + 1) % n);
        });
}

inline pthread_mutex_t mutexes[10];
inline pthread_rwlock_t rwlocks[2];

inline void
make_mutexes(int type, int protocol = PTHREAD_PRIO_NONE,
             int robust = PTHREAD_MUTEX_STALLED)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, type);
    pthread_mutexattr_setprotocol(&attr, protocol);
    pthread_mutexattr_setrobust(&attr, robust);
    for (pthread_mutex_t &m : mutexes)
        pthread_mutex_init(&m, &attr);
}

inline void
forever()
{
    for (;;)
        pause();
}

/* Locks between processes, in memory that others may have, too. */
struct between {
    pthread_mutex_t mutexes[2];
    pthread_rwlock_t rwlocks[2];
};

inline between *
make_between(int protocol = PTHREAD_PRIO_NONE)
{
    auto *memory = static_cast<between *>(
        mmap(nullptr, sizeof(between), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pthread_mutexattr_t attr;
    pthread_rwlockattr_t rwattr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setprotocol(&attr, protocol);
    pthread_rwlockattr_init(&rwattr);
    pthread_rwlockattr_setpshared(&rwattr, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&memory->mutexes[i], &attr);
        pthread_rwlock_init(&memory->rwlocks[i], &rwattr);
    }
    return memory;
}

inline void
between_ring(between *b)
{
    ring(
        2, [=](int i) { pthread_mutex_lock(&b->mutexes[i]); },
        [=](int i) { pthread_mutex_lock(&b->mutexes[i]); });
    ring(
        2, [=](int i) { pthread_rwlock_wrlock(&b->rwlocks[i]); },
        [=](int i) { pthread_rwlock_rdlock(&b->rwlocks[i]); });
}

/* Another process that has it, for as long as this one lives. */
inline pid_t
share(between *b)
{
    int ends[2];
    char byte;

    if (pipe(ends))
        bail("pipe");
    const pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        byte = *reinterpret_cast<volatile char *>(b);
        if (write(ends[1], &byte, 1) == 1)
            forever();
    }
    if (child < 0 || read(ends[0], &byte, 1) != 1)
        bail("fork");
    return child;
}

inline void
mutex_ring(int n)
{
    ring(
        n, [](int i) { pthread_mutex_lock(&mutexes[i]); },
        [](int i) { pthread_mutex_lock(&mutexes[i]); });
}

/* ---- scenes ----------------------------------------------------------- */

/* Run this program again as another scene, which is to "stay" or is played
 * "once"; what it says on standard error, up to the part that it is waited for,
 * or its end. */
inline std::string
run(const char *how, const char *scene, const char *variable, const char *until,
    int *status)
{
    std::string text;
    char bytes[4096];
    ssize_t n;
    int ends[2];
    pid_t child;

    if (pipe(ends))
        bail("pipe");
    child = fork();
    if (!child) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        setenv("CPPROF", variable, 1);
        execl("/proc/self/exe", "stuck", how, scene, nullptr);
        _exit(127);
    }
    close(ends[1]);
    while ((!until || text.find(until) == std::string::npos) &&
           (n = read(ends[0], bytes, sizeof bytes)) > 0)
        text.append(bytes, static_cast<size_t>(n));
    if (until)
        kill(child, SIGKILL);
    close(ends[0]);
    waitpid(child, status, 0);
    return text;
}

struct scene {
    const char *name;
    void (*play)();
};

inline void
play(const scene &s)
{
    alarm(60);
    make_mutexes(PTHREAD_MUTEX_NORMAL);
    for (pthread_rwlock_t &r : rwlocks)
        pthread_rwlock_init(&r, nullptr);
    s.play();
}

/* All scenes, or those with that part in their names. "stay" or "once" and a
 * part: only this one, in this process, for run(). */
template <size_t N>
int
play_all(const scene (&scenes)[N], int argc, char **argv)
{
    for (const scene &s : scenes) {
        int status = 1;
        pid_t child;

        if (argc > 2 && strstr(s.name, argv[2])) {
            play(s);
            if (!strcmp(argv[1], "stay"))
                forever();
            return failures != 0;
        }
        if (argc > 1 && !strstr(s.name, argv[1]))
            continue;
        fflush(stdout);
        child = fork();
        if (!child) {
            play(s);
            _exit(failures != 0);
        }
        waitpid(child, &status, 0);
        check_equal(status, 0, s.name);
    }
    return check_done();
}

#endif
