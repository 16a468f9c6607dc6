/* SPDX-License-Identifier: MIT */
/* C++ that lives on small allocations: maps of strings that grow, change and
 * shrink; heap_cxx ROUNDS. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

std::uint64_t state = 1;

std::uint64_t
next()
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

std::string
word(std::uint64_t n)
{
    return "a-word-longer-than-the-small-strings-" + std::to_string(n);
}

std::size_t
churn(int n)
{
    std::map<std::string, std::string> ordered;
    std::unordered_map<std::string, std::vector<std::string>> lists;

    for (int i = 0; i < n; i++) {
        std::string key = word(next() % 5000);

        ordered[key] += "x";
        lists[key].push_back(word(next()));
        if (i % 3 == 0)
            ordered.erase(word(next() % 5000));
        if (i % 5 == 0)
            lists.erase(key);
    }
    return ordered.size() + lists.size();
}

} // namespace

int
main(int argc, char **argv)
{
    std::size_t sum = 0;

    for (int i = argc > 1 ? std::atoi(argv[1]) : 1; i > 0; i--)
        sum += churn(30000);
    std::printf("%zu\n", sum);
    return 0;
}
