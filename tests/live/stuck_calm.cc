/* SPDX-License-Identifier: MIT */
/*
 * Who can go on: of these programs nothing may be said, or no more than a
 * suspicion.
 */
#include "stuck_scenes.h"

namespace
{

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

/* libc's own function may have no name: it goes on in another one. */
__attribute__((noinline)) void
wait_for(sem_t *sem)
{
    sem_wait(sem);
    asm volatile("");
}

void
semaphore()
{
    static sem_t sem;
    static pthread_barrier_t barrier;
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

    sem_init(&sem, 0, 0);
    pthread_barrier_init(&barrier, nullptr, 9);
    start([] { wait_for(&sem); });
    start([] { pthread_barrier_wait(&barrier); });
    start([] {
        pthread_mutex_lock(&mutexes[0]);
        pthread_cond_wait(&c, &mutexes[0]);
    });
    let_others_sleep();
    expect_nobody(3);
    cpprof__stuck_old_ns = 1;
    expect_stuck(1, {"suspicion: ", "for the semaphore 0x", "wait_for(...)"});
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

/* Not even a line. */
void
left_alone()
{
    int status = 1;
    const std::string text =
        run("once", "storm", "deadlock=abort", nullptr, &status);

    failures += status != 0 || !text.empty();
    if (!text.empty())
        fprintf(stderr, "# %s\n", text.c_str());
}

/* ---- conditions and semaphores of the waiter's own --------------------- */

/* Neither is told by its address, and both are futexes of 0 near the stack
 * pointer, as is what glibc waits for where the kernel refuses a mutex. */
void
on_own_stack()
{
    start([] {
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;

        pthread_mutex_lock(&mutexes[0]);
        pthread_cond_wait(&c, &mutexes[0]);
    });
    start([] {
        std::condition_variable c;
        std::mutex m;
        std::unique_lock<std::mutex> lock(m);

        c.wait(lock);
    });
    start([] {
        sem_t sem;

        sem_init(&sem, 0, 0);
        sem_wait(&sem);
    });
    let_others_sleep();
    expect_nobody(5);
}

void
on_own_stack_beside_block()
{
    cpprof_block_set_rate(1);
    on_own_stack();
}

/* ---- what a lock has in it while it changes hands ---------------------- */

/* A word that looks as that of a robust mutex, of somebody else. */
void
robust_ones_of_others()
{
    auto *f = new futex_lock[2];

    for (int i = 0; i < 2; i++)
        f[i].kind = 16;
    ring(
        2, [=](int i) { f[i].lock(true); },
        [=](int i) {
            f[i].word = FUTEX_WAITERS;
            syscall(SYS_futex, &f[i].word, FUTEX_WAIT_PRIVATE, FUTEX_WAITERS,
                    nullptr);
        });
    let_others_sleep();
    expect_nobody(5);
}

/* Numbers of threads mean nothing in a mutex that is shared between two pid
 * namespaces: the holder of this one is 1 there, and so is who waits here. */
void
shared_with_another_namespace()
{
    pthread_mutexattr_t attr;
    static between *b;
    static int reader;
    auto meets_itself = [](int *owner) {
        *owner |= static_cast<int>(syscall(SYS_gettid));
    };

    b = make_between();
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&b->mutexes[1], &attr);
    b->mutexes[0].__data.__lock = 2;
    b->mutexes[1].__data.__lock = static_cast<int>(FUTEX_WAITERS);
    pthread_rwlock_wrlock(&b->rwlocks[0]);
    b->rwlocks[0].__data.__cur_writer = 0;
    share(b);
    start([=] {
        meets_itself(&b->mutexes[0].__data.__owner);
        pthread_mutex_lock(&b->mutexes[0]);
    });
    start([=] {
        meets_itself(&reader);
        pthread_rwlock_rdlock(&b->rwlocks[0]);
    });
    start([=] {
        meets_itself(&b->mutexes[1].__data.__lock);
        pthread_mutex_lock(&b->mutexes[1]);
    });
    let_others_sleep();
    b->rwlocks[0].__data.__cur_writer = reader;
    expect_nobody(3);
    cpprof__stuck_old_ns = 1;
    expect_stuck(3, {"suspicion: ", " of this process or another"});
}

/* ---- who forks with a lock --------------------------------------------- */

void *
forks(void *)
{
    pthread_mutex_lock(&mutexes[0]);
    pthread_rwlock_wrlock(&rwlocks[0]);
    const pid_t child = fork();
    int status = 1;

    if (child) {
        waitpid(child, &status, 0);
        failures += status != 0;
        return nullptr;
    }
    /* One more, as daemons do it. */
    const pid_t grandchild = fork();

    if (grandchild) {
        waitpid(grandchild, &status, 0);
        _exit(status != 0);
    }
    start([] { pthread_mutex_lock(&mutexes[0]); });
    start([] { pthread_rwlock_rdlock(&rwlocks[0]); });
    let_others_sleep();
    expect_nobody(3);
    _exit(failures != 0);
}

void
forked_by_a_thread()
{
    pthread_t thread;

    pthread_create(&thread, nullptr, forks, nullptr);
    pthread_join(thread, nullptr);
}

/* The parent has ended when its child begins. */
void
forked_by_one_who_ends()
{
    int ends[2], result = 1;

    if (pipe(ends))
        bail("pipe");
    const pid_t parent = fork();
    if (!parent) {
        pthread_atfork(nullptr, nullptr, nullptr);
        std::thread([&] {
            pthread_mutex_lock(&mutexes[0]);
            if (fork())
                _exit(0);
            while (getppid() == parent)
                usleep(1000);
            start([] { pthread_mutex_lock(&mutexes[0]); });
            let_others_sleep();
            expect_nobody(3);
            if (write(ends[1], &failures, sizeof failures) < 0)
                _exit(1);
            _exit(0);
        }).join();
    }
    close(ends[1]);
    waitpid(parent, nullptr, 0);
    if (read(ends[0], &result, sizeof result) != sizeof result)
        result = 1;
    failures += result;
}

/* ---- memory that goes -------------------------------------------------- */

void
unmapped()
{
    auto *page = static_cast<pthread_mutex_t *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
             -1, 0));

    pthread_mutex_init(page, nullptr);
    pthread_mutex_lock(page);
    start([=] { pthread_mutex_lock(page); });
    let_others_sleep();
    expect_nobody(1);
    munmap(page, 4096);
    expect_nobody(3);
}

/* ---- many -------------------------------------------------------------- */

void
two_thousand()
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    pthread_mutex_lock(&mutexes[0]);
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;

        if (pthread_create(
                &thread, &attr,
                [](void *) -> void * {
                    pthread_mutex_lock(&mutexes[0]);
                    pthread_mutex_unlock(&mutexes[0]);
                    return nullptr;
                },
                nullptr))
            bail("pthread_create");
        pthread_detach(thread);
    }
    expect_nobody(3);
    pthread_mutex_unlock(&mutexes[0]);
    expect_nobody(5);
}

/* ---- what holds up a process ------------------------------------------- */

void
stopped()
{
    const pid_t self = getpid();

    if (!fork()) {
        for (int i = 0; i < 10; i++) {
            kill(self, SIGSTOP);
            usleep(20000);
            kill(self, SIGCONT);
            usleep(20000);
        }
        _exit(0);
    }
    storm();
    wait(nullptr);
}

/* ---- scenes ----------------------------------------------------------- */

const scene scenes[] = {
    {"waits with a limit are none", with_limits},
    {"locks of others are none", locks_of_others},
    {"a semaphore is suspected only", semaphore},
    {"a lock that is held for long is suspected only", held_for_long},
    {"a storm of locks has nobody", storm},
    {"CPPROF=deadlock lets others alone", left_alone},
    {"conditions and semaphores on the stack", on_own_stack},
    {"and with the profile of waits", on_own_stack_beside_block},
    {"words of others that look robust", robust_ones_of_others},
    {"numbers of another namespace", shared_with_another_namespace},
    {"locks of a thread that forks", forked_by_a_thread},
    {"locks of a thread that forks and ends", forked_by_one_who_ends},
    {"a lock whose memory is gone", unmapped},
    {"2 000 threads that go on", two_thousand},
    {"a process that is stopped", stopped},
};

} // namespace

int
main(int argc, char **argv)
{
    return play_all(scenes, argc, argv);
}
