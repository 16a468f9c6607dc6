/* SPDX-License-Identifier: MIT */
/*
 * Who can never go on: what the profile threadleak must hold, and how many
 * threads must be in it; and who is told of it.
 */
#include "stuck_scenes.h"

#include "arch/kernel.h"

#include <setjmp.h>

namespace
{

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
robust_of_the_kernel()
{
    make_mutexes(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT,
                 PTHREAD_MUTEX_ROBUST);
    auto *held = new meeting(2);

    mutex_ring(3);
    let_others_sleep();
    start([=] {
        pthread_mutex_lock(&mutexes[3]);
        pthread_mutex_lock(&mutexes[4]);
        held->wait();
        pthread_mutex_lock(&mutexes[2]);
    });
    start([=] {
        held->wait();
        pthread_mutex_lock(&mutexes[3]);
    });
    expect_stuck(5,
                 {"for the mutex that the kernel refuses", "for the mutex 0x"});
}

void
between_processes()
{
    between_ring(make_between());
    expect_stuck(4, {"of 2 threads:\n", "deadlock 2, of 2",
                     "for the rwlock (to read) 0x"});
}

void
between_processes_by_the_kernel()
{
    between_ring(make_between(PTHREAD_PRIO_INHERIT));
    expect_stuck(4,
                 {"deadlock 1, of 2 threads:\n",
                  "for the mutex that the kernel refuses", "for the mutex 0x"});
}

/* As long as another process has them the tid in one may be of its threads. */
void
between_two()
{
    between *b = make_between();
    const pid_t other = share(b);

    between_ring(b);
    let_others_sleep();
    expect_nobody(2);
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
    expect_stuck(4, {"deadlock 2, of 2"});
}

sigjmp_buf out_of_it[2];
thread_local int number_of_mine;

void
jump(int)
{
    siglongjmp(out_of_it[number_of_mine], 1);
}

/* What a thread has left is not what it waits for. */
template <bool with_block>
void
left_by_a_jump()
{
    static pthread_t who[2];
    static std::mutex m;
    static std::condition_variable c;

    signal(SIGUSR1, jump);
    if (with_block)
        cpprof_block_set_rate(1);
    ring(
        2,
        [](int i) {
            number_of_mine = i;
            who[i] = pthread_self();
            pthread_mutex_lock(&mutexes[i]);
        },
        [](int i) {
            if (!sigsetjmp(out_of_it[number_of_mine], 1))
                pthread_mutex_lock(&mutexes[i]);
            std::unique_lock<std::mutex> lock(m);
            for (;;)
                c.wait(lock);
        });
    expect_stuck(2, {"deadlock 1, of 2"});
    pthread_kill(who[0], SIGUSR1);
    let_others_sleep();
    expect_nobody(3);
    pthread_kill(who[1], SIGUSR1);
    let_others_sleep();
    cpprof__stuck_old_ns = 1;
    expect_nobody(3);
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

/* It is a zombie, which has a clock, but never runs. */
void
first_holds_and_ends()
{
    pthread_mutex_lock(&mutexes[0]);
    start([] {
        start([] { pthread_mutex_lock(&mutexes[0]); });
        expect_stuck(1, {"which has ended.\n"});
        _exit(failures != 0);
    });
    pthread_exit(nullptr);
}

void
of_the_kernel_twice()
{
    make_mutexes(PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
    start([] {
        pthread_mutex_lock(&mutexes[0]);
        pthread_mutex_lock(&mutexes[0]);
    });
    let_others_sleep();
    start([] {
        pthread_mutex_lock(&mutexes[1]);
        pthread_mutex_lock(&mutexes[0]);
    });
    expect_stuck(2, {"for the mutex that the kernel refuses"});
}

/* In a function that the loader calls, with its lock: there are no names, and
 * the end, which needs another one, is not held up. */
void
the_loaders()
{
    static std::atomic<int> has;
    auto visit = [] {
        dl_iterate_phdr(
            [](dl_phdr_info *, size_t, void *) {
                has++;
                while (has < 2)
                    usleep(1000);
                pthread_mutex_lock(&mutexes[0]);
                return 0;
            },
            nullptr);
    };

    start(visit);
    start([=] {
        pthread_mutex_lock(&mutexes[0]);
        while (has < 1)
            usleep(1000);
        has++;
        visit();
    });
    expect_stuck(2, {"deadlock 1, of 2 threads:\n", "[deadlock, waits for"});
    expect(take(1), "threadleak profile: total 2\n");
    exit(failures != 0); /* needs a lock of the loader, too */
}

/* The filter is that of all threads, ours included. */
void
refuse(int number)
{
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0,
                 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter = {4, code};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                &filter))
        bail("seccomp");
}

void
without_copies_of_descriptors()
{
    refuse(SYS_pidfd_getfd);
    two_threads();
}

template <int number>
void
unreadable()
{
    refuse(number);
    mutex_ring(2);
    let_others_sleep();
    expect(take(2), "failed: threads cannot be read: ");
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

/* It is the watch's own thread that waits for the callback. */
void
stop_when_told(const cpprof_deadlock *, void *ctx) noexcept
{
    cpprof_error error{};

    cpprof_deadlock_stop();
    failures += cpprof_deadlock_start(nullptr, &error) != CPPROF_BUSY;
    ++*static_cast<std::atomic<int> *>(ctx);
}

void
stopped_by_the_callback()
{
    static std::atomic<int> n_told;
    cpprof_deadlock_options options{};
    cpprof_error error{};

    options.size = sizeof options;
    options.told = stop_when_told;
    options.ctx = &n_told;
    failures += cpprof_deadlock_start(&options, &error) != CPPROF_OK;
    mutex_ring(2);
    while (!n_told)
        usleep(10000);
    start([] {
        pthread_mutex_lock(&mutexes[5]);
        pthread_mutex_lock(&mutexes[5]);
    });
    usleep(900000);
    failures += n_told != 1;
    failures += cpprof_deadlock_start(&options, &error) != CPPROF_OK;
    while (n_told < 2)
        usleep(10000);
    cpprof_deadlock_stop();
    failures += n_told != 2;
}

/* Of libc's own functions others have no names without its debug information.
 */
const char lock_name[] = "pthread_mutex_lock(...)\n";

void
reported()
{
    int status = 0;
    const std::string text =
        run("stay", "two threads", "deadlock=report", lock_name, &status);

    expect(text, "cpprof: 2 threads can never go on\n\ndeadlock 1, of 2");
    expect(text, lock_name);
}

void
aborted()
{
    int status = 0;
    const std::string text =
        run("stay", "ten", "deadlock=abort", nullptr, &status);

    expect(text, "cpprof: 10 threads can never go on\n\ndeadlock 1, of 10");
    failures += !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT;
}

sigjmp_buf before_the_lock;

void
jump_back(int)
{
    siglongjmp(before_the_lock, 1);
}

/* The program's handler of SIGABRT is called where the deadlock is. */
void
leave_by_a_handler()
{
    if (!getenv("CPPROF"))
        return; /* it is for who runs it below */
    signal(SIGABRT, jump_back);
    std::thread thread([] {
        if (sigsetjmp(before_the_lock, 1))
            return;
        pthread_mutex_lock(&mutexes[0]);
        pthread_mutex_lock(&mutexes[0]);
    });
    thread.join();
    usleep(900000);
    fprintf(stderr, "went on\n");
    _exit(0);
}

void
stay_with_a_handler()
{
    if (!getenv("CPPROF"))
        return;
    signal(SIGABRT, [](int) {});
    mutex_ring(2);
}

void
aborted_with_a_handler()
{
    int status = 0;
    const std::string text =
        run("stay", "a handler that jumps", "deadlock=abort", nullptr, &status);

    expect(text, "held by itself.");
    expect(text, "went on\n");
    failures += status != 0;
    run("stay", "a handler that returns", "deadlock=abort", nullptr, &status);
    failures += !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT;
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

/* As containers are by default. */
void
reported_without_copies()
{
    int status = 0;
    const std::string text = run("stay", "two threads where a descriptor",
                                 "deadlock=report", lock_name, &status);

    expect(text, "cpprof: 2 threads can never go on\n\ndeadlock 1, of 2");
    expect(text, lock_name);
}

void
complained()
{
    int status = 0;
    const std::string text =
        run("stay", "where memory cannot", "deadlock=abort", "\n", &status);

    expect(text, "cpprof: not looking for deadlocks: threads cannot be read: ");
}

/* ---- scenes ----------------------------------------------------------- */

const scene scenes[] = {
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
    {"robust mutexes with the kernel's queue", robust_of_the_kernel},
    {"locks between processes that one has", between_processes},
    {"and with the kernel's queue", between_processes_by_the_kernel},
    {"locks between two processes, until one ends", between_two},
    {"waits that were left by siglongjmp", left_by_a_jump<false>},
    {"and with the profile of waits, too", left_by_a_jump<true>},
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
    {"the count is that of the last profile", count_is_that_of_the_last},
    {"with a first thread that has ended", without_the_first},
    {"a lock of a first thread that has ended", first_holds_and_ends},
    {"a mutex with the kernel's queue, locked twice", of_the_kernel_twice},
    {"the loader's lock", the_loaders},
    {"two threads where a descriptor cannot be copied",
     without_copies_of_descriptors},
    {"where memory cannot be copied", unreadable<SYS_process_vm_readv>},
    {"where clocks cannot be read", unreadable<SYS_clock_gettime>},
    {"a callback is called once for what is new", called_back},
    {"a callback stops the watch", stopped_by_the_callback},
    {"CPPROF=deadlock=report tells it", reported},
    {"and where a descriptor cannot be copied", reported_without_copies},
    {"a line says why nothing can be seen", complained},
    {"CPPROF=deadlock=abort ends by a signal", aborted},
    {"a handler that jumps", leave_by_a_handler},
    {"a handler that returns", stay_with_a_handler},
    {"which a handler may leave, but not bear", aborted_with_a_handler},
};

} // namespace

int
main(int argc, char **argv)
{
    return play_all(scenes, argc, argv);
}
