// SPDX-License-Identifier: MIT
// Stacks as each profile by name has them: up to 128 frames and no more, with
// inlined functions apart, and functions made of one template told apart (Go:
// TestProfilerStackDepth, TestBlockMutexProfileInlineExpansion,
// TestGenericsInlineLocations, TestGoroutineCounts).
extern "C" {
#include "tap.h"
#include "writers.h"
}

#include <cpprof/heap.h>
#include <cpprof/labels.hpp>
#include <cpprof/profiles.h>

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline))
#define INLINE   inline __attribute__((always_inline))

static const int depth_max = 128;

static std::string
text_of(const char *name)
{
    struct cpprof_profile_options options = {};
    struct cpprof_error error = {};
    char *text = nullptr;
    size_t n;
    FILE *file = open_memstream(&text, &n);
    cpprof_writer writer = stream_writer(file);

    options.size = sizeof options;
    options.debug = 1;
    if (!file || cpprof_profile_write(cpprof_profile_lookup(name), &writer,
                                      &options, &error) != CPPROF_OK)
        bail("%s: %s", name, error.text);
    fclose(file);
    std::string result(text);
    free(text);
    return result;
}

// One row of a profile: its first line, and those of its frames.
struct row {
    std::string head;
    std::vector<std::string> frames;
};

static std::vector<row>
rows_of(const std::string &text)
{
    std::istringstream lines(text);
    std::vector<row> rows;
    std::string line;

    while (std::getline(lines, line)) {
        if (line.find(" @ 0x") != std::string::npos)
            rows.push_back({line, {}});
        else if (!rows.empty() && line.compare(0, 4, "#\t0x") == 0)
            rows.back().frames.push_back(line);
    }
    return rows;
}

static bool
is_of(const std::string &frame, const std::string &function)
{
    return frame.find("\t" + function) != std::string::npos;
}

// The row with the most frames of a function.
static row
row_with(const char *name, const std::string &function, long *n_frames)
{
    row best;

    *n_frames = 0;
    for (const row &r : rows_of(text_of(name))) {
        long n = 0;

        for (const std::string &frame : r.frames)
            n += is_of(frame, function);
        if (n > *n_frames) {
            *n_frames = n;
            best = r;
        }
    }
    return best;
}

static long
addresses_of(const row &r)
{
    long n = 0;

    for (size_t at = r.head.find(" 0x"); at != std::string::npos;
         at = r.head.find(" 0x", at + 1))
        n++;
    return n;
}

// ---- what leaves stacks ----------------------------------------------------

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t together;

static void *
wait_for_lock(void *)
{
    pthread_barrier_wait(&together);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return nullptr;
}

// Unlocked by who calls, after somebody waited.
static pthread_t
held_with_a_waiter()
{
    pthread_t thread;

    pthread_mutex_lock(&lock);
    if (pthread_create(&thread, nullptr, wait_for_lock, nullptr))
        bail("pthread_create");
    pthread_barrier_wait(&together);
    // As glibc says that somebody waits.
    for (int i = 0; i < 10000 &&
                    __atomic_load_n(&lock.__data.__lock, __ATOMIC_RELAXED) != 2;
         i++)
        usleep(1000);
    usleep(10000);
    return thread;
}

static void *volatile kept;
static std::string goroutines;

NOINLINE static void
leave_all()
{
    kept = malloc(1 << 20);
    cpprof_block_add(1000000, 0);
    pthread_mutex_unlock(&lock);
    goroutines = text_of("goroutine");
}

// Written behind a call, so that it is not the last of its function.
static volatile int turns;

NOINLINE static void
dig_down(int n)
{
    if (n > 0)
        dig_down(n - 1);
    else
        leave_all();
    turns = n;
}

NOINLINE static void
leave_from(int depth)
{
    pthread_t thread = held_with_a_waiter();

    dig_down(depth);
    pthread_join(thread, nullptr);
    free(kept);
}

// ---- how deep --------------------------------------------------------------

static void
check_depth(const char *name, long n_least)
{
    const std::string what(name);
    long n;
    row r = row_with(name, "dig_down", &n);

    if (r.frames.empty())
        bail("%s: no frames", name);
    check_at_least(n, n_least, (what + ": frames are there").c_str());
    // The call that gave a lock up comes on top.
    check_equal(addresses_of(r) - is_of(r.frames.front(), "pthread_mutex"),
                depth_max + 1,
                (what + ": 128 frames and one that says so").c_str());
    check(is_of(r.frames.back(), "[truncated]"),
          (what + ": the last is [truncated]").c_str());
}

static void
test_depth()
{
    leave_from(500);
    check_depth("heap", depth_max - 3);
    check_depth("block", depth_max - 3);
    check_depth("mutex", depth_max - 3);
    long n = 0;
    row best;
    for (const row &r : rows_of(goroutines))
        if (addresses_of(r) > n) {
            n = addresses_of(r);
            best = r;
        }
    // What writes the profile was walked, too, and is left out.
    check_at_least(n, depth_max - 8, "goroutine: as many");
    check(n <= depth_max + 1, "goroutine: no more than that");
    check(!best.frames.empty() && is_of(best.frames.back(), "[truncated]"),
          "goroutine: the last is [truncated]");
}

// ---- inlined, and of templates ---------------------------------------------

INLINE static void
inlined_inner()
{
    leave_all();
    turns = 1;
}

INLINE static void
inlined_outer()
{
    inlined_inner();
    turns = 2;
}

NOINLINE static void
not_inlined()
{
    inlined_outer();
    turns = 3;
}

template <typename T>
NOINLINE static void
of_type(T value)
{
    kept = malloc(1 << 20);
    cpprof_block_add(1000000, 0);
    pthread_mutex_unlock(&lock);
    turns = static_cast<int>(value);
}

static void
test_inlined(const char *name)
{
    long n;
    row r = row_with(name, "inlined_inner", &n);
    std::string order;

    for (const std::string &frame : r.frames) {
        order += is_of(frame, "inlined_inner") ? "i" : "";
        order += is_of(frame, "inlined_outer") ? "o" : "";
        order += is_of(frame, "not_inlined") ? "n" : "";
    }
    check_text(order.c_str(), "ion",
               (std::string(name) + ": inlined functions in order").c_str());
}

static void
test_templates(const char *name)
{
    long n_int, n_double;
    row a = row_with(name, "void of_type<int>(int)", &n_int);
    row b = row_with(name, "void of_type<double>(double)", &n_double);

    check_equal(n_int, 1, (std::string(name) + ": one template").c_str());
    check_equal(n_double, 1, "and the other");
    check(a.head != b.head, "in rows of their own");
}

static void
test_shapes()
{
    static const char *const names[] = {"heap", "block", "mutex"};
    pthread_t thread = held_with_a_waiter();

    not_inlined();
    pthread_join(thread, nullptr);
    free(kept);
    for (int i = 0; i < 2; i++) {
        thread = held_with_a_waiter();
        if (i)
            of_type(1);
        else
            of_type(1.0);
        pthread_join(thread, nullptr);
        free(kept);
    }
    for (const char *name : names) {
        test_inlined(name);
        test_templates(name);
    }
}

// ---- how many threads, with which labels -----------------------------------

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

NOINLINE static void *
crowd_one(void *)
{
    pthread_barrier_wait(&together);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return nullptr;
}

NOINLINE static void *
crowd_two(void *)
{
    pthread_barrier_wait(&together);
    pthread_mutex_lock(&gate);
    turns = 2;
    pthread_mutex_unlock(&gate);
    return nullptr;
}

static void
start_some(std::vector<pthread_t> &threads, int n, void *(*fn)(void *))
{
    for (; n > 0; n--) {
        threads.emplace_back();
        if (pthread_create(&threads.back(), nullptr, fn, nullptr))
            bail("pthread_create");
    }
}

// The counts of more than one thread, and labels, in their order.
static std::string
counts_in(const std::string &text)
{
    std::istringstream lines(text);
    std::string line, result;

    while (std::getline(lines, line)) {
        size_t at = line.find(" @ 0x");

        if (at != std::string::npos && std::atoi(line.c_str()) > 1)
            result += line.substr(0, at) + "\n";
        else if (line.compare(0, 10, "# labels: ") == 0)
            result += line.substr(10) + "\n";
    }
    return result;
}

static void
test_counts()
{
    const std::string labels = "{\"label\":\"value\"}\n";
    const std::string wanted = "10\n7\n" + labels + "5\n3\n" + labels;
    std::vector<pthread_t> threads;
    std::string got;

    pthread_barrier_destroy(&together);
    pthread_barrier_init(&together, nullptr, 10 + 7 + 5 + 3 + 1);
    pthread_mutex_lock(&gate);
    start_some(threads, 10, crowd_one);
    {
        cpprof::labels_scope scope{{"label", "value"}};
        start_some(threads, 7, crowd_one);
        start_some(threads, 3, crowd_two);
    }
    start_some(threads, 5, crowd_two);
    pthread_barrier_wait(&together);
    for (int i = 0; i < 100 && got != wanted; i++) { // until all are there
        usleep(50000);
        got = counts_in(text_of("goroutine"));
    }
    pthread_mutex_unlock(&gate);
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
    check_text(got.c_str(), wanted.c_str(),
               "threads are counted by stack and labels, most first");
}

int
main()
{
    pthread_barrier_init(&together, nullptr, 2);
    cpprof_heap_set_rate(1);
    cpprof_block_set_rate(1);
    cpprof_mutex_set_fraction(1);
    test_depth();
    test_shapes();
    test_counts();
    return check_done();
}
