// SPDX-License-Identifier: MIT
// Labels in C++, and on the program's own coroutines: a scheduler keeps each
// one's current set while another one runs, and puts it back with it.
//
//     c++ coroutines.cc -lcpprof && ./a.out
//     cpprof tags coroutines.pb.gz
#include <cpprof/cpprof.h>
#include <cpprof/labels.hpp>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <ucontext.h>
#include <vector>

namespace
{

struct coroutine {
    std::string name;
    int rounds;
    bool done = false;
    const struct cpprof_labels *labels = nullptr; // while it does not run
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(256 * 1024);
};

ucontext_t scheduler;
coroutine *running;
volatile std::uint64_t sink;

void
burn(unsigned ms)
{
    std::clock_t end = std::clock() + ms * (CLOCKS_PER_SEC / 1000);

    while (std::clock() < end)
        sink = sink * 31 + 7;
}

// From a coroutine to the scheduler. The labels stay with the coroutine.
void
yield()
{
    coroutine *self = running;

    self->labels = cpprof_labels_set_current(nullptr);
    swapcontext(&self->context, &scheduler);
}

void
resume(coroutine &c)
{
    running = &c;
    cpprof_labels_set_current(c.labels);
    swapcontext(&scheduler, &c.context);
}

void
work()
{
    coroutine *self = running;

    // Until the coroutine ends, on whatever thread it goes on.
    {
        cpprof::labels_scope scope{{"coroutine", self->name},
                                   {"rounds", self->rounds}};

        for (int i = 0; i < self->rounds; i++) {
            burn(10);
            yield();
        }
    }
    self->done = true;
    yield();
}

void
run(std::vector<coroutine> &all)
{
    for (bool some = true; some;) {
        some = false;
        for (coroutine &c : all) {
            if (c.done)
                continue;
            resume(c);
            some = true;
        }
    }
}

int
fail(const cpprof_error &error)
{
    std::fprintf(stderr, "coroutines: %s\n", error.text);
    return 1;
}

} // namespace

int
main()
{
    std::vector<coroutine> all(3);
    cpprof_writer writer;
    cpprof_error error;
    int rounds = 10;

    for (coroutine &c : all) {
        c.name = std::string("c") + std::to_string(rounds / 10);
        c.rounds = rounds;
        rounds += 10;
        getcontext(&c.context);
        c.context.uc_stack.ss_sp = c.stack.data();
        c.context.uc_stack.ss_size = c.stack.size();
        makecontext(&c.context, work, 0);
    }
    if (cpprof_writer_to_path("coroutines.pb.gz", &writer, &error) ||
        cpprof_cpu_start(&writer, nullptr, &error))
        return fail(error);
    run(all);
    if (cpprof_cpu_stop(&error))
        return fail(error);
    return 0;
}
