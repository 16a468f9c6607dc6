// SPDX-License-Identifier: MIT
// C++ exceptions thrown at full rate while the process is sampled at 1000 Hz:
// the unwinder of the language and the one of the profiler do not meet.
extern "C" {
#include "load.h"
#include "session.h"
#include "tap.h"
}

#include <pthread.h>
#include <stdexcept>
#include <string>

namespace
{

int n_destroyed;

struct guard {
    ~guard()
    {
        __atomic_fetch_add(&n_destroyed, 1, __ATOMIC_RELAXED);
    }
};

__attribute__((noinline)) int
thrower(int depth, int value)
{
    guard g;

    if (depth == 0) {
        load_sink = churn(load_sink);
        throw std::runtime_error(std::to_string(value));
    }
    return thrower(depth - 1, value) + 1;
}

// What arrives at the catch, or -1.
__attribute__((noinline)) int
throw_and_catch(int depth, int value)
{
    try {
        return -thrower(depth, value);
    } catch (const std::runtime_error &e) {
        return std::stoi(e.what());
    }
}

struct work {
    uint64_t cpu_ns;
    int n_thrown;
    int n_wrong;
};

void *
throw_all_the_time(void *arg)
{
    work *w = static_cast<work *>(arg);
    uint64_t end = thread_cpu_ns() + w->cpu_ns;

    while (thread_cpu_ns() < end) {
        int value = w->n_thrown % 1000 + 1;

        w->n_wrong += throw_and_catch(value % 20, value) != value;
        w->n_thrown++;
    }
    return nullptr;
}

// CPU time of broken stacks: with the language's unwinder at work, or without.
int64_t
broken_ns(const struct profile *p, bool landing)
{
    int64_t all = profile_cpu_in(p, "[unwind failed]");
    int64_t in_landing =
        profile_cpu_stack(p, "_Unwind_Resume;...;[unwind failed]") +
        profile_cpu_stack(p, "_Unwind_RaiseException;...;[unwind failed]");

    return landing ? in_landing : all - in_landing;
}

void
test_exceptions()
{
    work works[3] = {{700 * MS, 0, 0}, {700 * MS, 0, 0}, {700 * MS, 0, 0}};
    pthread_t threads[3];
    struct profile *p;
    int n_thrown = 0, n_wrong = 0, n_guards = 0;

    session_start(1000);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], nullptr, throw_all_the_time, &works[i]);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], nullptr);
        n_thrown += works[i].n_thrown;
        n_wrong += works[i].n_wrong;
        for (int v = 0; v < works[i].n_thrown; v++)
            n_guards += (v % 1000 + 1) % 20 + 1;
    }
    p = session_stop();
    note("%d exceptions, %.1f ms of broken stacks", n_thrown,
         double(profile_cpu_in(p, "[unwind failed]")) / 1e6);
    check_at_least(n_thrown, 1000, "exceptions fly while it is sampled");
    check_equal(n_wrong, 0, "each arrives with its value");
    check_equal(n_destroyed, n_guards, "and every destructor ran once");
    if (!check_at_least((double)profile_cpu_in(p, "_Unwind_RaiseException"),
                        0.1 * (double)profile_cpu_ns(p),
                        "the language's unwinder is what is seen at work"))
        profile_note(p, 5);
    // At its end the language's unwinder overwrites its own frame with the
    // registers of the catcher: in that moment nobody can walk it.
    check_at_most(double(broken_ns(p, false)),
                  0.005 * double(profile_cpu_ns(p)),
                  "and all stacks are whole");
    check_at_most(double(broken_ns(p, true)), 0.02 * double(profile_cpu_ns(p)),
                  "but those in the moment of landing");
    profile_note_in(p, "[unwind failed]", 4);
    profile_free(p);
}

} // namespace

int
main(int argc, char **argv)
{
    session_engine(argc, argv);
    test_exceptions();
    return check_done();
}
