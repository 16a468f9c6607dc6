// SPDX-License-Identifier: MIT
// Threads of C++ that are cancelled while they wait: every destructor and
// every handler above the call is run, those that wait themselves, too, and
// what was waited until then is in the block profile.
extern "C" {
#include "lock_calls.h"
#include "tap.h"

#include <cpprof/profiles.h>
#include <cpprof/records.h>
}

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cxxabi.h>
#include <mutex>
#include <pthread.h>
#include <unistd.h>

namespace
{

std::atomic<int> n_waiting, n_destroyed, n_caught;
std::mutex at_end;

struct guard {
    ~guard()
    {
        const std::lock_guard<std::mutex> held(at_end);

        usleep(1000);
        n_destroyed++;
    }
};

struct cleaner {
    int call;

    ~cleaner()
    {
        lock_call_cancelled(call);
    }
};

__attribute__((noinline)) void
wait_guarded(int call)
{
    const guard inner;
    const cleaner mutex = {call};

    n_waiting++;
    lock_call_wait(call);
}

void *
waits_to_be_cancelled(void *arg)
{
    const guard outer;

    try {
        wait_guarded(static_cast<int>(reinterpret_cast<intptr_t>(arg)));
    } catch (abi::__forced_unwind &) {
        n_caught++;
        throw;
    }
    return nullptr;
}

double
blocked_ms()
{
    static cpprof_wait_record records[1000];
    std::size_t n = 0;
    std::int64_t ns = 0;

    if (cpprof_block_records(records, 1000, &n, nullptr) || n > 1000)
        bail("no records");
    for (std::size_t i = 0; i < n; i++)
        ns += records[i].delay_ns;
    return static_cast<double>(ns) / 1e6;
}

// Returns for how long both waited, as the block profile has it.
double
unwind_two(int call, const char *name)
{
    const double before = blocked_ms();
    pthread_t threads[2];
    void *results[2] = {nullptr, nullptr};
    int i;

    n_waiting = n_destroyed = n_caught = 0;
    lock_call_prepare(call);
    for (i = 0; i < 2; i++)
        if (pthread_create(
                &threads[i], nullptr, waits_to_be_cancelled,
                reinterpret_cast<void *>(static_cast<intptr_t>(call))))
            bail("no thread");
    while (n_waiting < 2)
        usleep(1000);
    usleep(30000);
    for (i = 0; i < 2; i++)
        pthread_cancel(threads[i]);
    for (i = 0; i < 2; i++)
        while (pthread_tryjoin_np(threads[i], &results[i]))
            usleep(1000);
    check(results[0] == PTHREAD_CANCELED && results[1] == PTHREAD_CANCELED &&
              n_destroyed == 4 && n_caught == 2,
          name);
    return blocked_ms() - before;
}

// On a busy machine one may be cancelled before it waits: the longest of some.
void
is_unwound(int call)
{
    double ms = 0;
    char name[100];
    int i;

    std::snprintf(name, sizeof name, "%s: two are cancelled and unwound",
                  lock_call_names[call]);
    for (i = 0; i < 5 && ms < 30; i++)
        ms = std::max(ms, unwind_two(call, name));
    std::snprintf(name, sizeof name, "%s: what they waited counts",
                  lock_call_names[call]);
    check_at_least(ms, 30, name);
}

} // namespace

int
main()
{
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    for (int call = 0; call < LOCK_CALLS; call++)
        if (lock_call_is_cancellable(call))
            is_unwound(call);
    return check_done();
}
