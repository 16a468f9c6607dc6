// SPDX-License-Identifier: MIT
// A program on oneTBB that knows what must come out: its locks (queuing,
// spinning readers and writers), those of the C++ library, a map that locks its
// elements, tasks that wait for each other. Prints what it found and ends with
// 1 when it is wrong.
#include <oneapi/tbb/concurrent_hash_map.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/parallel_sort.h>
#include <oneapi/tbb/queuing_mutex.h>
#include <oneapi/tbb/spin_rw_mutex.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace tbb = oneapi::tbb;

static const int n_steps = 60000, n_keys = 1000;
static bool all_right = true;

static void
check(const char *what, long got, long wanted)
{
    std::printf("%s %ld\n", what, got);
    if (got != wanted) {
        std::printf("  wanted %ld\n", wanted);
        all_right = false;
    }
}

template <class Mutex>
static void
count_under(const char *name)
{
    Mutex mutex;
    long n = 0;

    tbb::parallel_for(0, n_steps, [&](int) {
        typename Mutex::scoped_lock lock(mutex);
        n++;
    });
    check(name, n, n_steps);
}

// Readers see both halves of what a writer changed, or neither.
static void
read_and_write()
{
    tbb::spin_rw_mutex mutex;
    std::shared_mutex shared;
    long a = 0, b = 0, c = 0, d = 0;
    std::atomic<long> n_torn{0};

    tbb::parallel_for(0, n_steps, [&](int i) {
        {
            tbb::spin_rw_mutex::scoped_lock lock(mutex, i % 8 == 0);
            if (i % 8 == 0) {
                a++;
                b--;
            } else if (a + b != 0) {
                n_torn++;
            }
        }
        if (i % 8 == 0) {
            std::unique_lock<std::shared_mutex> lock(shared);
            c++;
            d--;
        } else {
            std::shared_lock<std::shared_mutex> lock(shared);
            n_torn += c + d != 0;
        }
    });
    check("written", a + c, 2 * (n_steps / 8));
    check("torn", n_torn, 0);
}

static void
count_in_map()
{
    tbb::concurrent_hash_map<int, long> map;
    std::mutex mutex;
    long sum = 0, in_map = 0;

    tbb::parallel_for(0, n_steps, [&](int i) {
        tbb::concurrent_hash_map<int, long>::accessor at;

        map.insert(at, i % n_keys);
        at->second += i;
        std::lock_guard<std::mutex> lock(mutex);
        sum += i;
    });
    for (const auto &element : map)
        in_map += element.second;
    check("keys", static_cast<long>(map.size()), n_keys);
    check("in the map", in_map, sum);
    check("sum", sum, static_cast<long>(n_steps) * (n_steps - 1) / 2);
}

// A queue of one place between two threads.
static void
hand_over()
{
    std::mutex mutex;
    std::condition_variable changed;
    const int n = 2000;
    int place = 0;
    long sum = 0;

    std::thread producer([&] {
        for (int i = 1; i <= n; i++) {
            std::unique_lock<std::mutex> lock(mutex);
            changed.wait(lock, [&] { return place == 0; });
            place = i;
            changed.notify_all();
        }
    });
    for (int i = 1; i <= n; i++) {
        std::unique_lock<std::mutex> lock(mutex);
        while (!changed.wait_for(lock, std::chrono::milliseconds(50),
                                 [&] { return place != 0; })) {
        }
        sum += place;
        place = 0;
        changed.notify_all();
    }
    producer.join();
    check("handed over", sum, static_cast<long>(n) * (n + 1) / 2);
}

static void
sort_and_reduce()
{
    std::vector<unsigned> values(300000);
    unsigned x = 1;
    long wanted = 0, got;

    for (auto &value : values) {
        value = x = x * 1664525u + 1013904223u;
        wanted += value;
    }
    tbb::parallel_sort(values.begin(), values.end());
    check("sorted", std::is_sorted(values.begin(), values.end()), 1);
    got = tbb::parallel_reduce(
        tbb::blocked_range<size_t>(0, values.size()), 0L,
        [&](const tbb::blocked_range<size_t> &range, long sum) {
            for (size_t i = range.begin(); i < range.end(); i++)
                sum += values[i];
            return sum;
        },
        [](long a, long b) { return a + b; });
    check("reduced", got, wanted);
}

int
main()
{
    tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                4);
    tbb::task_arena arena(4);

    arena.execute([] {
        count_under<tbb::queuing_mutex>("under a queuing mutex");
        count_under<tbb::spin_rw_mutex>("under a spinning mutex");
        read_and_write();
        count_in_map();
        sort_and_reduce();
    });
    hand_over();
    return all_right ? 0 : 1;
}
