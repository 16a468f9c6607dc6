// SPDX-License-Identifier: MIT
// C++ on top of the hooks: each form of new and delete is seen once, whatever
// the allocator underneath does with it; what is thrown arrives.
extern "C" {
#include "command.h"
#include "heap_table.h"
#include "tap.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>
}

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

// Of collect/signal/heap/heap.h, which is C.
struct cpprof__hook_self {
    int64_t left;
};
extern "C" {
extern __thread struct cpprof__hook_self cpprof__hook_self
    __attribute__((visibility("hidden")));
}

namespace
{

using std::align_val_t;
using std::nothrow;

struct form {
    const char *name;
    void *(*get)(std::size_t n);
    void (*put)(void *block, std::size_t n);
};

constexpr align_val_t wide{64};

const form forms[] = {
    {"new", [](std::size_t n) { return ::operator new(n); },
     [](void *p, std::size_t) { ::operator delete(p); }},
    {"new, sized delete", [](std::size_t n) { return ::operator new(n); },
     [](void *p, std::size_t n) { ::operator delete(p, n); }},
    {"new[]", [](std::size_t n) { return ::operator new[](n); },
     [](void *p, std::size_t) { ::operator delete[](p); }},
    {"new[], sized delete[]", [](std::size_t n) { return ::operator new[](n); },
     [](void *p, std::size_t n) { ::operator delete[](p, n); }},
    {"nothrow new", [](std::size_t n) { return ::operator new(n, nothrow); },
     [](void *p, std::size_t) { ::operator delete(p, nothrow); }},
    {"nothrow new[]",
     [](std::size_t n) { return ::operator new[](n, nothrow); },
     [](void *p, std::size_t) { ::operator delete[](p, nothrow); }},
    {"aligned new", [](std::size_t n) { return ::operator new(n, wide); },
     [](void *p, std::size_t) { ::operator delete(p, wide); }},
    {"aligned new, sized delete",
     [](std::size_t n) { return ::operator new(n, wide); },
     [](void *p, std::size_t n) { ::operator delete(p, n, wide); }},
    {"aligned new[]", [](std::size_t n) { return ::operator new[](n, wide); },
     [](void *p, std::size_t) { ::operator delete[](p, wide); }},
    {"aligned new[], sized delete[]",
     [](std::size_t n) { return ::operator new[](n, wide); },
     [](void *p, std::size_t n) { ::operator delete[](p, n, wide); }},
    {"aligned nothrow new",
     [](std::size_t n) { return ::operator new(n, wide, nothrow); },
     [](void *p, std::size_t) { ::operator delete(p, wide, nothrow); }},
    {"aligned nothrow new[]",
     [](std::size_t n) { return ::operator new[](n, wide, nothrow); },
     [](void *p, std::size_t) { ::operator delete[](p, wide, nothrow); }},
    {"malloc", [](std::size_t n) { return std::malloc(n); },
     [](void *p, std::size_t) { std::free(p); }},
    {"calloc", [](std::size_t n) { return std::calloc(n, 1); },
     [](void *p, std::size_t) { std::free(p); }},
    {"realloc", [](std::size_t n) { return std::realloc(nullptr, n); },
     [](void *p, std::size_t) { std::free(p); }},
    {"reallocarray", [](std::size_t n) { return reallocarray(nullptr, n, 1); },
     [](void *p, std::size_t) { std::free(p); }},
    {"aligned_alloc", [](std::size_t n) { return aligned_alloc(64, n); },
     [](void *p, std::size_t) { std::free(p); }},
    {"memalign", [](std::size_t n) { return memalign(64, n); },
     [](void *p, std::size_t) { std::free(p); }},
    {"posix_memalign",
     [](std::size_t n) {
         void *p = nullptr;

         return posix_memalign(&p, 64, n) ? nullptr : p;
     },
     [](void *p, std::size_t) { std::free(p); }},
};

// Blocks of 640 bytes: all alignments divide it.
void
check_form(const form &f)
{
    std::size_t bytes = 0, n_there, n_gone;
    std::uint64_t n_before;
    int64_t before;
    void *p;

    cpprof_heap_set_rate(1);
    n_before = heap_n_sampled();
    p = f.get(640);
    n_there = heap_entries_of(p, &bytes);
    n_before = heap_n_sampled() - n_before;
    f.put(p, 640);
    n_gone = heap_entries_of(p, &bytes);
    check(n_there == 1 && n_gone == 0 && n_before == 1, f.name);
    if (n_there != 1 || n_gone != 0 || n_before != 1)
        note("%zu entries of %zu bytes, then %zu; sampled %llu times", n_there,
             bytes, n_gone, (unsigned long long)n_before);
    cpprof_heap_set_rate((int64_t)1 << 40);
    std::free(std::malloc(1)); // the new rate begins
    before = cpprof__hook_self.left;
    f.put(f.get(640), 640);
    check_equal(before - cpprof__hook_self.left,
                bytes >= 640 ? (int64_t)bytes : 640, "  is counted once");
}

// What is sampled goes although the rate is 0 when it is freed, and nothing
// comes meanwhile.
void
check_off(const form &f)
{
    std::size_t bytes = 0;
    std::uint64_t n_before;
    void *sampled, *other;

    cpprof_heap_set_rate(1);
    sampled = f.get(640);
    cpprof_heap_set_rate(0);
    n_before = heap_n_sampled();
    other = f.get(640);
    check(heap_n_sampled() == n_before && !heap_entries_of(other, &bytes),
          f.name);
    f.put(sampled, 640);
    check(!heap_entries_of(sampled, &bytes), "  is gone at rate 0");
    f.put(other, 640);
}

bool cannot_throw;
int n_handled;

void
handler()
{
    n_handled++;
    std::set_new_handler(nullptr);
}

template <typename F>
bool
throws(F f)
{
    try {
        f();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

volatile std::size_t too_much = SIZE_MAX / 2 - 4096;

// To somebody who may look at it: else GCC 10 makes nothing of a pair of new
// and delete, also where both are called by name.
void *
seen(void *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}

void
test_exceptions(const char *when)
{
    std::size_t before = heap_n_live();

    note("%s", when);
    if (cannot_throw) {
        check_skip(when, "this allocator ends the program instead");
        return;
    }
    check(throws([] { ::operator delete(seen(::operator new(too_much))); }),
          "what new throws arrives");
    check(throws([] { ::operator delete[](seen(::operator new[](too_much))); }),
          "what new[] throws arrives");
    check(
        throws([] { ::operator delete(seen(::operator new(too_much, wide))); }),
        "what aligned new throws arrives");
    check(!seen(::operator new(too_much, nothrow)), "nothrow new returns NULL");
    n_handled = 0;
    std::set_new_handler(handler);
    check(throws([] { ::operator delete(seen(::operator new(too_much))); }),
          "the handler is called and then it is thrown");
    check_at_least(n_handled, 1, "the handler was called");
    std::set_new_handler(nullptr);
    before = heap_n_live() - before;
    // What was thrown first: the runtime may keep memory for it.
    check_at_most((double)before, 1, "nothing of it stays in the table");
}

void
test_containers()
{
    std::size_t before, during;

    cpprof_heap_set_rate(1);
    before = heap_n_live();
    {
        std::map<int, std::string> m;
        std::vector<std::unique_ptr<int[]>> v;

        for (int i = 0; i < 1000; i++) {
            m[i] = std::string(100, 'x');
            v.emplace_back(new int[10]);
        }
        during = heap_n_live() - before;
    }
    check_equal((int64_t)during, 1000 * 3 + 1,
                "each node, string and array is in the table");
    check_equal((int64_t)heap_n_live(), (int64_t)before, "and then gone");
}

// A library that came when the allocator's operators were led to ours already.
void
test_plugin()
{
    void *library = dlopen(beside_path("libheap_plugin.so"), RTLD_NOW);
    auto get = library ? (void *(*)(std::size_t))dlsym(library, "plugin_new")
                       : nullptr;
    auto put =
        library ? (void (*)(void *))dlsym(library, "plugin_delete") : nullptr;
    std::size_t bytes = 0;
    void *p;

    if (!get || !put)
        bail("%s", dlerror());
    cpprof_heap_set_rate(1);
    p = get(640);
    check_equal((std::int64_t)heap_entries_of(p, &bytes), 1,
                "what a plug-in allocates is seen");
    put(p);
    check_equal((std::int64_t)heap_entries_of(p, &bytes), 0,
                "and what it frees");
    dlclose(library);
}

// Somebody may have known an operator by its address before it was led to ours.
void
test_leaks_after_late()
{
    cpprof_profile *leaks = cpprof_profile_lookup("heapleak");
    cpprof_error error = {};

    if (!leaks)
        bail("no profile heapleak");
    cpprof_profile_write_to_path(leaks, "/dev/null", nullptr, &error);
    check_has(error.text, "operator delete",
              "lost blocks are not looked for, with a reason");
}

} // namespace

int
main(int argc, char **argv)
{
    if (!heap_is_on(argc, argv))
        return check_skip_all("that allocator is not installed");
    if (argc > 1) // mimalloc: when it was compiled as C
        cannot_throw = std::string(argv[1]) == "mimalloc" ||
                       std::string(argv[1]) == "asan";
    cpprof_heap_set_rate(512 << 10);
    test_exceptions("first calls fail");
    for (const form &f : forms)
        check_form(f);
    for (const form &f : forms)
        check_off(f);
    for (const form &f : forms)
        check_form(f);
    cpprof_heap_set_rate(1);
    test_exceptions("sampled calls fail");
    test_containers();
    test_plugin();
    if (argc > 2 && !heap_is_glibc())
        test_leaks_after_late();
    return check_done();
}
