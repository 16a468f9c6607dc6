/* SPDX-License-Identifier: MIT */
/*
 * The profile threadleak on programs of which it is known who can never go on.
 * Each scene is a child of its own, since its threads stay where they are: it
 * says what the profile must hold, and how many threads must be in it.
 */
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
#include <fcntl.h>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <threads.h>
#include <time.h>
#include <unistd.h>

namespace
{

/* ---- the profile ------------------------------------------------------ */

int
append(void *ctx, const void *data, size_t n) noexcept
{
    static_cast<std::string *>(ctx)->append(static_cast<const char *>(data), n);
    return 0;
}

int
done(void *, int) noexcept
{
    return 0;
}

std::string
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

std::string
total(int n)
{
    return "threadleak profile: total " + std::to_string(n) + "\n";
}

/* Threads come to where they stay in their own time. */
std::string
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

int failures;

void
expect(const std::string &text, const std::string &part)
{
    if (text.find(part) != std::string::npos)
        return;
    failures++;
    fprintf(stderr, "# not there: %s\n# in:\n%s\n", part.c_str(), text.c_str());
}

/* That many threads, and these words. */
void
expect_stuck(int n, std::initializer_list<const char *> parts)
{
    const std::string text = take_total(n);

    expect(text, total(n));
    for (const char *part : parts)
        expect(text, part);
}

/* Nobody, in so many looks, of which each may be the unlucky one. */
void
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

void
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

pthread_mutex_t mutexes[10];
pthread_rwlock_t rwlocks[2];

void
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

void
mutex_ring(int n)
{
    ring(
        n, [](int i) { pthread_mutex_lock(&mutexes[i]); },
        [](int i) { pthread_mutex_lock(&mutexes[i]); });
}

void
forever()
{
    for (;;)
        pause();
}

/* ---- who can never go on ---------------------------------------------- */

void
two_threads()
{
    mutex_ring(2);
    expect_stuck(2,
                 {"deadlock 1, of 2 threads:\n", "\"ring 0\" waits",
                  "\"ring 1\", which waits", " for the mutex 0x",
                  "pthread_mutex_lock(...)",
                  "[deadlock, waits for the mutex 0x", ", holds the mutex 0x"});
    expect(take(1), "\"stuck\":\"deadlock\", \"waits for\":\"mutex\"");
}

void
three_threads()
{
    mutex_ring(3);
    expect_stuck(3, {"deadlock 1, of 3 threads:\n"});
}

void
ten_threads()
{
    mutex_ring(10);
    expect_stuck(10, {"deadlock 1, of 10 threads:\n"});
}

void
locked_twice()
{
    start([] {
        pthread_mutex_lock(&mutexes[0]);
        pthread_mutex_lock(&mutexes[0]);
    });
    expect_stuck(1, {"deadlock 1, of 1 thread:\n", " held by itself.\n"});
}

void
two_cycles_and_one_behind()
{
    mutex_ring(2);
    ring(
        2, [](int i) { pthread_mutex_lock(&mutexes[4 + i]); },
        [](int i) { pthread_mutex_lock(&mutexes[4 + i]); });
    let_others_sleep();
    start([] {
        name_me("late");
        pthread_mutex_lock(&mutexes[0]);
    });
    expect_stuck(5, {"deadlock 1, of 2 threads:\n", "deadlock 2, of 2",
                     "behind it: thread ", "\"late\" waits"});
}

template <int type>
void
of_type()
{
    make_mutexes(type);
    two_threads();
}

void
robust()
{
    make_mutexes(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
    mutex_ring(3);
    expect_stuck(3, {"deadlock 1, of 3 threads:\n"});
}

void
of_the_kernel()
{
    make_mutexes(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
    mutex_ring(3);
    expect_stuck(3, {"for the mutex that the kernel refuses, because it would "
                     "close a circle",
                     "for the mutex 0x"});
}

void
writers()
{
    ring(
        2, [](int i) { pthread_rwlock_wrlock(&rwlocks[i]); },
        [](int i) { pthread_rwlock_wrlock(&rwlocks[i]); });
    expect_stuck(2, {"deadlock 1, of 2", "for the rwlock (to write) 0x",
                     "holds the rwlock 0x"});
}

void
writers_who_read()
{
    ring(
        2, [](int i) { pthread_rwlock_wrlock(&rwlocks[i]); },
        [](int i) { pthread_rwlock_rdlock(&rwlocks[i]); });
    expect_stuck(2, {"deadlock 1, of 2", "for the rwlock (to read) 0x"});
}

/* Readers are not known: nothing is proven, and nothing is said. */
void
readers_who_write()
{
    ring(
        2, [](int i) { pthread_rwlock_rdlock(&rwlocks[i]); },
        [](int i) { pthread_rwlock_wrlock(&rwlocks[i]); });
    let_others_sleep();
    expect_nobody(3);
    cpprof__stuck_old_ns = 1;
    expect_stuck(2, {"suspicion: ", "held by readers, who are not known; "
                                    "nobody has woken it since"});
}

void
of_cpp()
{
    auto *m = new std::mutex[2];
    auto *s = new std::shared_mutex;
    auto *all = new meeting(3);

    start([=] {
        m[0].lock();
        all->wait();
        m[1].lock();
    });
    start([=] {
        m[1].lock();
        all->wait();
        s->lock_shared();
    });
    start([=] {
        s->lock();
        all->wait();
        m[0].lock();
    });
    expect_stuck(3, {"deadlock 1, of 3", "for the rwlock (to read)"});
}

void
of_c11()
{
    static mtx_t m[2];

    mtx_init(&m[0], mtx_plain);
    mtx_init(&m[1], mtx_plain);
    ring(
        2, [](int i) { mtx_lock(&m[i]); }, [](int i) { mtx_lock(&m[i]); });
    expect_stuck(2, {"deadlock 1, of 2"});
}

void
join_and_mutex()
{
    start([] {
        pthread_mutex_lock(&mutexes[0]);
        std::thread other([] { pthread_mutex_lock(&mutexes[0]); });
        name_me("joiner");
        other.join();
    });
    expect_stuck(2, {"deadlock 1, of 2", "for the end of thread ",
                     "held by thread ", "\"joiner\""});
}

void
joins()
{
    static std::atomic<pthread_t> who[3];

    ring(
        3, [](int i) { who[i] = pthread_self(); },
        [](int i) { pthread_join(who[i], nullptr); });
    expect_stuck(3, {"deadlock 1, of 3", "for the end of thread "});
}

/* It wakes up from its condition, and wants its mutex again. */
void
condition()
{
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    static std::atomic<int> waits;

    start([] {
        pthread_mutex_lock(&mutexes[1]);
        pthread_mutex_lock(&mutexes[0]);
        waits = 1;
        pthread_cond_wait(&c, &mutexes[0]);
    });
    while (!waits)
        usleep(1000);
    start([] {
        pthread_mutex_lock(&mutexes[0]);
        pthread_cond_signal(&c);
        pthread_mutex_lock(&mutexes[1]);
    });
    expect_stuck(2, {"deadlock 1, of 2", "pthread_cond_wait(...)"});
}

void
ended()
{
    std::thread([] { pthread_mutex_lock(&mutexes[0]); }).join();
    std::thread([] { pthread_rwlock_wrlock(&rwlocks[0]); }).join();
    start([] { pthread_mutex_lock(&mutexes[0]); });
    start([] {
        pthread_mutex_lock(&mutexes[1]);
        pthread_rwlock_rdlock(&rwlocks[0]);
    });
    let_others_sleep();
    start([] {
        name_me("third");
        pthread_mutex_lock(&mutexes[1]);
    });
    expect_stuck(3, {"for the mutex 0x", "which has ended.\n",
                     "for the rwlock (to read) 0x", "\"third\" waits"});
    expect(take(1), "\"stuck\":\"holder ended\"");
    expect(take(1), "\"stuck\":\"behind\"");
}

/* The child has a copy of a lock, and of the one thread that forked. */
void
inherited()
{
    static std::atomic<int> has;

    start([] {
        pthread_mutex_lock(&mutexes[1]);
        has = 1;
        forever();
    });
    while (!has)
        usleep(1000);
    pthread_mutex_lock(&mutexes[0]);
    const pid_t child = fork();
    if (child) {
        int status = 1;

        waitpid(child, &status, 0);
        failures += status != 0;
        return;
    }
    start([] { pthread_mutex_lock(&mutexes[0]); });
    let_others_sleep();
    expect_nobody(3);
    start([] { pthread_mutex_lock(&mutexes[1]); });
    expect_stuck(1, {"which has ended.\n"});
    _exit(failures);
}

void
labels()
{
    start([] {
        cpprof_labels_set_current(cpprof_labels_new("route", "/cart", nullptr));
        pthread_mutex_lock(&mutexes[0]);
        pthread_mutex_lock(&mutexes[0]);
    });
    take_total(1);
    expect(take(1), "{\"route\":\"/cart\", \"stuck\":\"deadlock\", "
                    "\"waits for\":\"mutex\"}");
}

/* The hooks of the profiles of waits are in the stack. */
void
beside_block()
{
    cpprof_block_set_rate(1);
    mutex_ring(2);
    expect_stuck(2, {"deadlock 1, of 2"});
}

/* ---- who can ---------------------------------------------------------- */

void
with_limits()
{
    static std::atomic<int> done_waiting;
    auto soon = [] {
        timespec t;

        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_sec += 1;
        return t;
    };

    ring(
        2, [](int i) { pthread_mutex_lock(&mutexes[i]); },
        [=](int i) {
            const timespec t = soon();

            pthread_mutex_timedlock(&mutexes[i], &t);
            done_waiting++;
            forever();
        });
    ring(
        2, [](int i) { pthread_rwlock_wrlock(&rwlocks[i]); },
        [=](int i) {
            const timespec t = soon();

            pthread_rwlock_timedwrlock(&rwlocks[i], &t);
            done_waiting++;
            forever();
        });
    while (done_waiting < 4)
        expect_nobody(1);
}

/* Locks that others made of futexes, and some that look like glibc's. */
struct futex_lock {
    std::atomic<uint32_t> word{0};
    uint32_t count = 0;
    int32_t owner = 0;
    uint32_t users = 1;
    int32_t kind = 0;
    uint32_t rest[8] = {};

    void
    lock(bool by_libc)
    {
        uint32_t free = 0;

        if (word.compare_exchange_strong(free, 1)) {
            owner = (int32_t)syscall(SYS_gettid);
            return;
        }
        while (word.exchange(2)) {
            if (by_libc)
                syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, nullptr);
            else
                raw_wait();
        }
    }

    void
    raw_wait()
    {
#ifdef __x86_64__
        register long timeout __asm__("r10") = 0;
        long result;

        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"(SYS_futex), "D"(&word), "S"(FUTEX_WAIT_PRIVATE),
                           "d"(2), "r"(timeout)
                         : "rcx", "r11", "memory");
#else
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, nullptr);
#endif
    }
};

void
locks_of_others()
{
    auto *f = new futex_lock[4];
    static pthread_spinlock_t spins[2];

    ring(
        2, [=](int i) { f[i].lock(true); }, [=](int i) { f[i].lock(true); });
    ring(
        2, [=](int i) { f[2 + i].lock(false); },
        [=](int i) { f[2 + i].lock(false); });
    pthread_spin_init(&spins[0], 0);
    pthread_spin_lock(&spins[0]);
    let_others_sleep();
    start([] { pthread_spin_lock(&spins[0]); });
    expect_nobody(5);
}

void
semaphore()
{
    static sem_t sem;
    static pthread_barrier_t barrier;
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

    sem_init(&sem, 0, 0);
    pthread_barrier_init(&barrier, nullptr, 9);
    start([] { sem_wait(&sem); });
    start([] { pthread_barrier_wait(&barrier); });
    start([] {
        pthread_mutex_lock(&mutexes[0]);
        pthread_cond_wait(&c, &mutexes[0]);
    });
    let_others_sleep();
    expect_nobody(3);
    cpprof__stuck_old_ns = 1;
    expect_stuck(1, {"suspicion: ", "for the semaphore 0x", "sem_wait"});
}

/* Held for long by one who sleeps elsewhere: a suspicion, with his stack. */
__attribute__((noinline)) void
holds_and_sleeps()
{
    pthread_mutex_lock(&mutexes[0]);
    forever();
}

void
held_for_long()
{
    start([] {
        name_me("holder");
        holds_and_sleeps();
    });
    let_others_sleep();
    start([] { pthread_mutex_lock(&mutexes[0]); });
    let_others_sleep();
    expect_nobody(3);
    cpprof__stuck_old_ns = 1;
    expect_stuck(1, {"suspicion: ", "\"holder\"",
                     "[waited for, holds the mutex", "holds_and_sleeps"});
}

std::atomic<bool> storm_is_over;

void
storm_thread(unsigned seed)
{
    static std::mutex locks[4];
    static std::shared_mutex shared;
    static std::condition_variable changed;
    static sem_t sem;
    static std::once_flag once;

    std::call_once(once, [] { sem_init(&sem, 0, 1); });
    while (!storm_is_over) {
        unsigned first = rand_r(&seed) % 4;

        switch (rand_r(&seed) % 6) {
        case 0: {
            std::unique_lock<std::mutex> lock(locks[first]);

            changed.notify_all();
            changed.wait_for(lock, std::chrono::microseconds(50));
            break;
        }
        case 1: {
            std::shared_lock<std::shared_mutex> lock(shared);

            sched_yield();
            break;
        }
        case 2: {
            std::unique_lock<std::shared_mutex> lock(shared);
            std::lock_guard<std::mutex> inner(locks[0]);

            sched_yield();
            break;
        }
        case 3:
            sem_wait(&sem);
            sched_yield();
            sem_post(&sem);
            break;
        case 4:
            std::thread([&] {
                std::lock_guard<std::mutex> lock(locks[3]);
            }).join();
            break;
        default:
            for (unsigned i = first; i < 4; i++)
                locks[i].lock();
            usleep(20);
            for (unsigned i = first; i < 4; i++)
                locks[i].unlock();
        }
    }
}

void
storm()
{
    std::thread threads[8];

    for (unsigned i = 0; i < 8; i++)
        threads[i] = std::thread(storm_thread, i + 1);
    expect_nobody(60);
    storm_is_over = true;
    for (std::thread &t : threads)
        t.join();
}

void
count_is_that_of_the_last()
{
    cpprof_profile *profile = cpprof_profile_lookup("threadleak");

    failures += cpprof_profile_count(profile) != 0;
    mutex_ring(2);
    take_total(2);
    failures += cpprof_profile_count(profile) != 2;
}

/* ---- who is told ------------------------------------------------------ */

struct told {
    std::atomic<int> n{0};
    std::atomic<size_t> n_cycles{0}, n_threads{0};
    std::atomic<int32_t> first{0};
    std::string text;
};

void
note_deadlock(const cpprof_deadlock *deadlock, void *ctx) noexcept
{
    told *t = static_cast<told *>(ctx);

    t->text = deadlock->text;
    t->n_cycles = deadlock->n_cycles;
    t->n_threads = deadlock->n_threads;
    t->first = deadlock->n_threads ? deadlock->tids[0] : 0;
    t->n++;
}

void
called_back()
{
    auto *t = new told;
    cpprof_deadlock_options options{};
    cpprof_error error{};

    options.size = sizeof options;
    options.told = note_deadlock;
    options.ctx = t;
    failures += cpprof_deadlock_start(&options, &error) != CPPROF_OK;
    failures += cpprof_deadlock_start(&options, &error) != CPPROF_BUSY;
    mutex_ring(2);
    while (!t->n)
        usleep(10000);
    expect(t->text, "deadlock 1, of 2 threads:\n");
    expect(t->text, "[deadlock, waits for the mutex 0x");
    expect(t->text, "pthread_mutex_lock(...)");
    expect(t->text, "thread " + std::to_string(t->first) + " \"ring ");
    failures += t->n_cycles != 1 || t->n_threads != 2;
    /* The next is news, what was told is not. */
    start([] {
        pthread_mutex_lock(&mutexes[5]);
        pthread_mutex_lock(&mutexes[5]);
    });
    while (t->n < 2)
        usleep(10000);
    expect(t->text, "deadlock 2, of 1 thread:\n");
    failures += t->n_cycles != 2 || t->n_threads != 3;
    usleep(900000);
    if (t->n != 2)
        expect(t->text, "told once");
    cpprof_deadlock_stop();
    cpprof_deadlock_stop();
    mutex_ring(3);
    failures += cpprof_deadlock_start(nullptr, &error) != CPPROF_OK;
    cpprof_deadlock_stop();
}

/* Run this program again as another scene; what it says on standard error, up
 * to the part that it is waited for, or its end. */
std::string
run(const char *scene, const char *variable, const char *until, int *status)
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
        execl("/proc/self/exe", "stuck", "play", scene, nullptr);
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

void
reported()
{
    int status = 0;
    const std::string text =
        run("two threads", "deadlock=report", "clone3(...)", &status);

    expect(text, "cpprof: 2 threads can never go on\n\ndeadlock 1, of 2");
    expect(text, "pthread_mutex_lock(...)\n");
}

void
aborted()
{
    int status = 0;
    const std::string text = run("ten", "deadlock=abort", nullptr, &status);

    expect(text, "cpprof: 10 threads can never go on\n\ndeadlock 1, of 10");
    failures += !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT;
}

/* Not even a line. */
void
left_alone()
{
    int status = 1;
    const std::string text = run("storm", "deadlock=abort", nullptr, &status);

    failures += status != 0 || !text.empty();
    if (!text.empty())
        fprintf(stderr, "# %s\n", text.c_str());
}

/* The first thread has ended, and the kernel tells nothing of it. */
void
without_the_first()
{
    start([] {
        usleep(100000);
        mutex_ring(2);
        expect_stuck(2, {"deadlock 1, of 2"});
        _exit(failures != 0);
    });
    pthread_exit(nullptr);
}

/* ---- scenes ----------------------------------------------------------- */

const struct scene {
    const char *name;
    void (*play)();
} scenes[] = {
    {"two threads that lock two mutexes crosswise", two_threads},
    {"three threads in a ring", three_threads},
    {"ten threads in a ring", ten_threads},
    {"a mutex that is locked twice", locked_twice},
    {"two cycles, and a thread behind one", two_cycles_and_one_behind},
    {"recursive mutexes", of_type<PTHREAD_MUTEX_RECURSIVE>},
    {"mutexes that check", of_type<PTHREAD_MUTEX_ERRORCHECK>},
    {"adaptive mutexes", of_type<PTHREAD_MUTEX_ADAPTIVE_NP>},
    {"robust mutexes", robust},
    {"mutexes with the kernel's queue", of_the_kernel},
    {"two writers", writers},
    {"writers who want to read", writers_who_read},
    {"readers who want to write are suspected only", readers_who_write},
    {"std::mutex and std::shared_mutex", of_cpp},
    {"mtx_t", of_c11},
    {"a join of a thread that waits for a mutex", join_and_mutex},
    {"joins in a ring", joins},
    {"the mutex of a condition", condition},
    {"locks of threads that have ended", ended},
    {"locks that a child inherits", inherited},
    {"labels are kept", labels},
    {"with the profile of waits", beside_block},
    {"waits with a limit are none", with_limits},
    {"locks of others are none", locks_of_others},
    {"a semaphore is suspected only", semaphore},
    {"a lock that is held for long is suspected only", held_for_long},
    {"a storm of locks has nobody", storm},
    {"the count is that of the last profile", count_is_that_of_the_last},
    {"with a first thread that has ended", without_the_first},
    {"a callback is called once for what is new", called_back},
    {"CPPROF=deadlock=report tells it", reported},
    {"CPPROF=deadlock=abort ends by a signal", aborted},
    {"CPPROF=deadlock lets others alone", left_alone},
};

void
play(const scene &s)
{
    alarm(60);
    make_mutexes(PTHREAD_MUTEX_NORMAL);
    for (pthread_rwlock_t &r : rwlocks)
        pthread_rwlock_init(&r, nullptr);
    s.play();
}

/* What others are told of it is looked for elsewhere: this only plays it. */
int
play_again(const char *name)
{
    for (const scene &s : scenes)
        if (strstr(s.name, name)) {
            play(s);
            if (s.play != storm)
                forever();
            return failures != 0;
        }
    return 1;
}

} // namespace

int
main(int argc, char **argv)
{
    if (argc > 2)
        return play_again(argv[2]);
    for (const scene &s : scenes) {
        int status = 1;
        pid_t child;

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
