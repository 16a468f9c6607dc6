/* SPDX-License-Identifier: MIT */
/*
 * Work whose instructions are of several functions and files at once: inlined
 * code, templates, a lambda, clones of functions. formats.py records it.
 */
#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

static volatile unsigned long sink;

namespace
{

inline unsigned long
mix(unsigned long x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdul;
    return x ^ x >> 29;
}

template <class T> struct Box {
    std::vector<T> v;

    __attribute__((noinline)) void
    fill(int n)
    {
        for (int i = 0; i < n; i++)
            v.push_back(mix(i + v.size()));
    }

    __attribute__((noinline)) T
    sum() const
    {
        T s = 0;

        for (auto x : v)
            s += mix(x);
        return s;
    }
};

} // namespace

__attribute__((noinline)) static void
sorting(int n)
{
    Box<unsigned long> box;

    box.fill(n);
    std::sort(box.v.begin(), box.v.end(),
              [](auto a, auto b) { return mix(a) < mix(b); });
    sink = sink + box.sum();
}

__attribute__((noinline)) static void
filling(int n)
{
    char buffer[4096];

    for (int i = 0; i < n; i++) {
        memset(buffer, i, sizeof buffer);
        sink = sink + buffer[i % 4096];
    }
}

int
main()
{
    for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) {
        sorting(10000);
        filling(2000);
    }
    return 0;
}
