/* SPDX-License-Identifier: MIT */
/* C++ as it is built for production: maps, strings, sorting, exceptions and
 * virtual calls; cxx_load SECONDS. */
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

struct shape {
    virtual ~shape() = default;
    virtual double
    area(int depth) const = 0;
};

struct square final : shape {
    double side;
    explicit square(double s) : side(s)
    {
    }
    double
    area(int depth) const override
    {
        if (depth == 0)
            throw std::runtime_error("too deep");
        return side * side + (depth > 1 ? area(depth - 1) : 0);
    }
};

double
sum_areas(const std::vector<std::unique_ptr<shape>> &shapes, int i)
{
    double sum = 0;

    for (const auto &s : shapes) {
        try {
            sum += s->area(i % 20);
        } catch (const std::exception &e) {
            sum += e.what()[0];
        }
    }
    return sum;
}

std::size_t
count_words(int i)
{
    std::map<std::string, int> words;
    std::vector<std::string> keys;

    for (int k = 0; k < 500; k++)
        words[std::to_string(k * (i + 7) % 313) + "-word"]++;
    for (const auto &w : words)
        keys.push_back(w.first);
    std::sort(keys.begin(), keys.end(),
              [](const std::string &a, const std::string &b) { return b < a; });
    return keys.size();
}

} // namespace

int
main(int argc, char **argv)
{
    using clock = std::chrono::steady_clock;
    const auto end =
        clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 1);
    std::vector<std::unique_ptr<shape>> shapes;
    double sink = 0;

    for (int i = 0; i < 20; i++)
        shapes.push_back(std::make_unique<square>(i));
    for (int i = 0; clock::now() < end; i++)
        sink += sum_areas(shapes, i) + double(count_words(i));
    return sink < 0;
}
