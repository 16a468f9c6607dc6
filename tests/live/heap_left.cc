// SPDX-License-Identifier: MIT
// The profiler left by the back door: siglongjmp out of a handler that came
// in the middle of it, exceptions and cancellations through it. The thread is
// sampled again afterwards, however often that happens.
extern "C" {
#include "../unit/trap_flag.h"
#include "heap_table.h"
#include "tap.h"

#include <cpprof/heap.h>
}

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

// Of collect/signal/heap/heap.h, which is C.
struct cpprof__hook_self {
    int64_t left;
    uintptr_t exempt;
};
extern "C" {
extern __thread struct cpprof__hook_self cpprof__hook_self
    __attribute__((visibility("hidden")));
// The program's text, with the library in it.
extern const char __executable_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
}

namespace
{

bool
is_sampled(std::size_t n)
{
    std::size_t bytes = 0;
    void *volatile block = std::malloc(n);
    bool there = heap_entries_of(block, &bytes) == 1 && bytes == n;

    std::free(block);
    return there;
}

__attribute__((noinline)) bool
is_sampled_deeper()
{
    volatile char room[600];

    for (volatile char &c : room)
        c = 0;
    return is_sampled(700) && room[0] == 0;
}

// ---- jumps ---------------------------------------------------------------

sigjmp_buf back;
volatile std::size_t steps_to_go;
volatile bool jumps;

// In the middle of a sample, and not of the allocator, whose locks are held
// there.
bool
is_inside(const void *context)
{
#ifdef __x86_64__
    auto *regs = static_cast<const ucontext_t *>(context);
    auto pc = static_cast<uintptr_t>(regs->uc_mcontext.gregs[REG_RIP]);

    return cpprof__hook_self.exempt &&
           pc >= reinterpret_cast<uintptr_t>(__executable_start) &&
           pc < reinterpret_cast<uintptr_t>(etext);
#else
    return context == nullptr;
#endif
}

// No instruction after this handler is stepped through.
void
steps_end(void *context)
{
#ifdef __x86_64__
    static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
#else
    (void)context;
#endif
}

void
on_step(int, siginfo_t *, void *context)
{
    if (!jumps || !is_inside(context) || steps_to_go-- > 0)
        return;
    jumps = false;
    siglongjmp(back, 1);
}

void
install(int flags)
{
    struct sigaction action = {};

    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(SIGTRAP, &action, nullptr);
}

// Jump out of the sample of a block after so many instructions of it; false: it
// was over before.
__attribute__((noinline)) bool
jump_out(std::size_t n_steps)
{
    void *volatile block = nullptr;

    steps_to_go = n_steps;
    if (sigsetjmp(back, 1))
        return true;
    jumps = true;
    trap_flag_on();
    block = std::malloc(500);
    trap_flag_off();
    jumps = false;
    std::free(block);
    return false;
}

void
try_jumps(const char *name)
{
    std::size_t i, n_jumps = 0, n_missing = 0, n_sampled_deeper = 0;

    for (i = 0; i < 60; i++) {
        if (!jump_out(i * 23))
            continue;
        n_jumps++;
        n_missing += !is_sampled(600 + i);
        n_sampled_deeper += is_sampled_deeper();
        n_missing += cpprof__hook_self.exempt != 0;
    }
    note("%zu jumps", n_jumps);
    check_at_least(static_cast<double>(n_jumps), 40, name);
    check_equal(static_cast<int64_t>(n_missing), 0,
                "and the thread is sampled again each time");
    check_equal(static_cast<int64_t>(n_sampled_deeper),
                static_cast<int64_t>(n_jumps), "also further down");
}

void *
try_jumps_in_thread(void *)
{
    try_jumps("handlers of a thread jumped out of samples");
    return nullptr;
}

// An alternate stack that is part of the stack.
void
try_jumps_from_variable()
{
    alignas(16) static char *stack;
    stack_t other = {}, off = {};
    char here[65536];

    stack = here;
    other.ss_sp = stack;
    other.ss_size = sizeof here;
    off.ss_flags = SS_DISABLE;
    sigaltstack(&other, nullptr);
    install(SA_ONSTACK);
    try_jumps("handlers on a stack within the stack jumped out of samples");
    sigaltstack(&off, nullptr);
}

// ---- on an alternate stack -----------------------------------------------

volatile bool seen_inside, exempt_inside;

// Came in the middle of a sample: exempt here, and still when it returns.
void
on_step_nested(int, siginfo_t *, void *context)
{
    std::size_t bytes;
    void *block;

    if (!jumps || !is_inside(context) || steps_to_go-- > 0)
        return;
    jumps = false;
    block = std::malloc(40);
    seen_inside = heap_entries_of(block, &bytes) != 0;
    exempt_inside = cpprof__hook_self.exempt != 0;
    std::free(block);
    steps_end(context);
}

void
test_nested(const char *name, char *stack, std::size_t n)
{
    struct sigaction action = {};
    stack_t other = {}, off = {};
    std::size_t i, n_wrong = 0;

    other.ss_sp = stack;
    other.ss_size = n;
    off.ss_flags = SS_DISABLE;
    sigaltstack(&other, nullptr);
    action.sa_sigaction = on_step_nested;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGTRAP, &action, nullptr);
    for (i = 0; i < 30; i++) {
        seen_inside = exempt_inside = false;
        jump_out(i * 17);
        n_wrong += seen_inside || !exempt_inside || !is_sampled(800 + i);
    }
    check_equal(static_cast<int64_t>(n_wrong), 0, name);
    sigaltstack(&off, nullptr);
}

void
test_alternate_stacks()
{
    const std::size_t n = 65536;
    char here[n];
    void *other = mmap(nullptr, n, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    test_nested("a handler on an alternate stack does not end a sample",
                static_cast<char *>(other), n);
    test_nested("nor does one on a stack within the stack", here, n);
    munmap(other, n);
}

// ---- exceptions, cancellation --------------------------------------------

int
throw_it(void *, const void *, std::size_t)
{
    throw std::runtime_error("no disk");
}

int
cancel_it(void *, const void *, std::size_t)
{
    pthread_exit(nullptr);
}

int
close_it(void *, int)
{
    return 0;
}

cpprof_writer
writer(int (*write)(void *, const void *, std::size_t))
{
    cpprof_writer out = {};

    out.size = sizeof out;
    out.write = write;
    out.close = close_it;
    return out;
}

void
test_exception()
{
    cpprof_heap_options options = {};
    cpprof_writer out = writer(throw_it);
    bool caught = false;
    int i;

    options.size = sizeof options;
    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    for (i = 0; i < 3; i++) {
        try {
            cpprof_heap_write(&out, &options, nullptr);
        } catch (const std::runtime_error &) {
            caught = true;
        }
        check(caught, "an exception of a writer goes through us");
        check(is_sampled(901), "and the thread is sampled again");
    }
}

pthread_key_t key;
bool sampled_at_end;

void
at_thread_end(void *)
{
    // Once what it left on the stack is overwritten.
    if (!is_sampled(902))
        is_sampled_deeper();
    sampled_at_end = is_sampled(903);
}

void *
end_in_writer(void *)
{
    cpprof_heap_options options = {};
    cpprof_writer out = writer(cancel_it);

    options.size = sizeof options;
    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    pthread_setspecific(key, &key);
    cpprof_heap_write(&out, &options, nullptr);
    return nullptr;
}

void
test_thread_end()
{
    pthread_t thread;

    pthread_key_create(&key, at_thread_end);
    pthread_create(&thread, nullptr, end_in_writer, nullptr);
    pthread_join(thread, nullptr);
    check(sampled_at_end, "a thread that ends inside of us is sampled in its "
                          "destructors");
}

} // namespace

int
main(int argc, char **argv)
{
    pthread_t thread;

    if (!heap_is_on(argc, argv))
        return check_skip_all("that allocator is not installed");
    cpprof_heap_set_rate(1);
    check(is_sampled(100), "a block is sampled");
    test_exception();
    test_thread_end();
    if (HAS_TRAP_FLAG) {
        install(0);
        try_jumps("handlers jumped out of samples");
        pthread_create(&thread, nullptr, try_jumps_in_thread, nullptr);
        pthread_join(thread, nullptr);
        try_jumps_from_variable();
        test_alternate_stacks();
    } else {
        check_skip("jumps", "no trap flag here");
    }
    return check_done();
}
