// SPDX-License-Identifier: MIT
// Memory that is lost, and memory that only seems to be, each of a known
// number of blocks that a function of its own allocates: what is lost is in the
// profile, and nothing else ever. What is kept is freed in the end.
//
// The argument is the rate: 1, all blocks, or more.
extern "C" {
#include "profile.h"
#include "tap.h"

#include <cpprof/heap.h>
#include <cpprof/profiles.h>
}

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

// Compilers leave out a store that nobody reads, and an allocation with it.
template <typename T>
NOINLINE T
seen(T value)
{
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}

struct node {
    node *next;
    node *other;
    std::uint64_t rest[4];
};

node *
make_node(node *next)
{
    node *n = seen(static_cast<node *>(std::calloc(1, sizeof(node))));

    n->next = next;
    return n;
}

node *
make_chain(int n)
{
    node *first = nullptr;

    while (n--)
        first = make_node(first);
    return first;
}

void
free_chain(node *n)
{
    while (n) {
        node *next = n->next;

        std::free(n);
        n = next;
    }
}

// ---- lost -----------------------------------------------------------------

NOINLINE void
lost_list()
{
    seen(make_chain(100));
}

NOINLINE void
lost_cycle()
{
    node *first = make_chain(10), *last = first;

    while (last->next)
        last = last->next;
    last->next = seen(first);
}

NOINLINE void
lost_map()
{
    auto *map = seen(new std::map<int, std::string>);

    for (int i = 0; i < 50; i++)
        (*map)[i] = "a text that is too long to be in the string itself";
}

struct partner {
    std::shared_ptr<partner> other;
};

NOINLINE void
lost_shared_cycle()
{
    for (int i = 0; i < 5; i++) {
        auto a = std::make_shared<partner>(), b = std::make_shared<partner>();

        a->other = b;
        b->other = a;
    }
}

NOINLINE void
lost_pool()
{
    auto *pool = seen(static_cast<node *>(std::malloc(64 * sizeof(node))));

    for (int i = 0; i < 64; i++)
        pool[i].next = &pool[i + (i < 63)];
}

NOINLINE void
lost_realloc()
{
    void *p = seen(std::malloc(100));

    seen(std::realloc(p, 5000));
}

NOINLINE void
lost_huge()
{
    for (int i = 0; i < 4; i++)
        std::memset(seen(std::malloc(4 << 20)), 0, 100);
}

// The commonest of all: what a struct had is not freed with it.
NOINLINE void
lost_children()
{
    for (int i = 0; i < 10; i++) {
        node *parent = make_node(nullptr);

        parent->rest[1] =
            reinterpret_cast<std::uintptr_t>(seen(std::malloc(300)));
        std::free(parent);
    }
}

thread_local void *of_thread;

NOINLINE void
lost_tls()
{
    of_thread = seen(std::malloc(400));
}

NOINLINE void
lost_stack()
{
    void *volatile here[8];

    for (void *volatile &p : here)
        p = seen(std::malloc(500));
    seen(&here);
}

const struct {
    void (*lose)();
    const char *name;
    int n, n_direct;
} losses[] = {
    {lost_list, "lost_list", 100, 1},
    {lost_cycle, "lost_cycle", 10, 1},
    {lost_map, "lost_map", 101, 1},
    {lost_shared_cycle, "lost_shared_cycle", 10, 5},
    {lost_pool, "lost_pool", 1, 1},
    {lost_realloc, "lost_realloc", 1, 1},
    {lost_huge, "lost_huge", 4, 4},
    {lost_children, "lost_children", 10, 10},
    {lost_tls, "lost_tls", 1, 1},
    {lost_stack, "lost_stack", 8, 8},
};

// The stacks of threads that ended have nothing that is in use.
void *
lose_one(void *arg)
{
    (*static_cast<void (*const *)()>(arg))();
    return nullptr;
}

void
lose_all()
{
    for (auto &loss : losses) {
        pthread_t thread;

        pthread_create(&thread, nullptr, lose_one,
                       const_cast<void *>(static_cast<const void *>(&loss)));
        pthread_join(thread, nullptr);
    }
}

// ---- kept -----------------------------------------------------------------

node *list;
std::map<int, std::string> map_;
std::vector<std::unique_ptr<node>> vector_;
std::shared_ptr<partner> shared;
char *inside, *end_of;
std::uintptr_t tagged;
void *huge, **huge_holder, *resized;
node **mapped, **forbidden, **not_for_children;
int epoll, pipes[2];
sem_t ready, leave;

NOINLINE void
kept_list()
{
    list = make_chain(100);
}

NOINLINE void
kept_containers()
{
    for (int i = 0; i < 50; i++)
        map_[i] = "another text that is too long to be in the string itself";
    for (int i = 0; i < 50; i++)
        vector_.push_back(std::make_unique<node>());
    shared = std::make_shared<partner>();
    shared->other = std::make_shared<partner>();
}

NOINLINE void
kept_interior()
{
    inside = seen(static_cast<char *>(std::malloc(1000))) + 700;
    end_of = seen(static_cast<char *>(std::malloc(96))) + 96;
    tagged = reinterpret_cast<std::uintptr_t>(seen(std::malloc(200))) |
             std::uintptr_t(0xbeef) << 48;
}

NOINLINE void
kept_huge()
{
    huge = seen(std::malloc(5 << 20));
    huge_holder = seen(static_cast<void **>(std::calloc(1, 6 << 20)));
    huge_holder[400000] = seen(std::malloc(77));
    resized = seen(std::realloc(seen(std::malloc(50)), 9000));
}

// Sizes of allocators' classes are among them, so that the next block begins
// where one ends.
char *ends[60][20];

NOINLINE void
kept_ends()
{
    for (std::size_t i = 0; i < 60; i++)
        for (char *&end : ends[i])
            end = seen(static_cast<char *>(std::malloc(8 * i + 8))) + 8 * i + 8;
}

node **
map_page(int n)
{
    void *p = mmap(nullptr, 65536, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto **page = static_cast<node **>(p);

    page[100] = make_chain(n);
    return page;
}

NOINLINE void
kept_mapped()
{
    mapped = map_page(20);
    forbidden = map_page(20);
    mprotect(forbidden, 65536, PROT_NONE);
    not_for_children = map_page(20);
    madvise(not_for_children, 65536, MADV_DONTFORK);
}

NOINLINE void
kept_epoll()
{
    epoll_event event = {};

    epoll = epoll_create1(0);
    if (pipe(pipes))
        bail("pipe");
    event.events = EPOLLIN;
    event.data.ptr = make_chain(20);
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event);
}

thread_local node *in_tls;

NOINLINE void *
kept_thread(void *)
{
    node *volatile here = make_chain(20);

    in_tls = make_chain(20);
    sem_post(&ready);
    sem_wait(&leave);
    free_chain(here);
    free_chain(in_tls);
    return nullptr;
}

// In a register, and nowhere else, in a thread that sleeps.
#ifdef __x86_64__
NOINLINE node *
sleep_with(node *only)
{
    const struct timespec long_time = {100, 0};
    long result;

    // The chain goes from rdi to r15 by way of a stack that is overwritten.
    sem_post(&ready);
    do {
        asm volatile("mov %1, %%r15\n\t"
                     "xor %1, %1\n\t"
                     "mov %2, %%rdi\n\t"
                     "xor %%esi, %%esi\n\t"
                     "mov $35, %%eax\n\t"
                     "syscall\n\t"
                     "mov %%r15, %1\n\t"
                     "xor %%r15d, %%r15d"
                     : "=&a"(result), "+&r"(only)
                     : "r"(&long_time)
                     : "rdi", "rsi", "rcx", "r11", "r15", "memory");
    } while (result == -4 && sem_trywait(&leave));
    return only;
}

NOINLINE void *
kept_register(void *)
{
    free_chain(sleep_with(make_chain(20)));
    return nullptr;
}
#endif

// A stack that is not the thread's.
ucontext_t main_context, coroutine;
char *coroutine_stack;

NOINLINE void
kept_coroutine()
{
    node *volatile here = make_chain(20);

    swapcontext(&coroutine, &main_context);
    free_chain(here);
    swapcontext(&coroutine, &main_context);
}

void
begin_coroutine()
{
    void *p = mmap(nullptr, 65536, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    coroutine_stack = static_cast<char *>(p);
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = p;
    coroutine.uc_stack.ss_size = 65536;
    makecontext(&coroutine, kept_coroutine, 0);
    swapcontext(&main_context, &coroutine);
}

const char *const keeps[] = {
    "kept_list",     "kept_containers", "kept_interior", "kept_ends",
    "kept_huge",     "kept_mapped",     "kept_epoll",    "kept_thread",
    "kept_register", "kept_coroutine"};

void
on_alarm(int)
{
}

pthread_t threads[2];

NOINLINE void
keep_all()
{
    kept_list();
    kept_containers();
    kept_interior();
    kept_ends();
    kept_huge();
    kept_mapped();
    kept_epoll();
    begin_coroutine();
    pthread_create(&threads[0], nullptr, kept_thread, nullptr);
    sem_wait(&ready);
#ifdef __x86_64__
    pthread_create(&threads[1], nullptr, kept_register, nullptr);
    sem_wait(&ready);
    usleep(20000);
#endif
}

// Freeing what is kept also shows that it was in use.
void
free_all()
{
    std::uintptr_t untagged = tagged & ((std::uintptr_t(1) << 47) - 1);
    epoll_event event;
    char byte = 1;

    sem_post(&leave);
    sem_post(&leave);
    pthread_join(threads[0], nullptr);
#ifdef __x86_64__
    pthread_kill(threads[1], SIGUSR1);
    pthread_join(threads[1], nullptr);
#endif
    swapcontext(&main_context, &coroutine);
    free_chain(list);
    std::free(inside - 700);
    std::free(end_of - 96);
    for (std::size_t i = 0; i < 60; i++)
        for (char *end : ends[i])
            std::free(end - 8 * i - 8);
    std::free(reinterpret_cast<void *>(untagged));
    std::free(huge);
    std::free(huge_holder[400000]);
    std::free(huge_holder);
    std::free(resized);
    free_chain(mapped[100]);
    mprotect(forbidden, 65536, PROT_READ | PROT_WRITE);
    free_chain(forbidden[100]);
    free_chain(not_for_children[100]);
    if (write(pipes[1], &byte, 1) != 1 || epoll_wait(epoll, &event, 1, -1) != 1)
        bail("epoll");
    free_chain(static_cast<node *>(event.data.ptr));
}

// ---- the profile ----------------------------------------------------------

profile *
take(const char *path, const char *why)
{
    cpprof_profile_options options = {};
    cpprof_error error = {};
    cpprof_profile *leaks = cpprof_profile_lookup("heapleak");

    options.size = sizeof options;
    options.symbolize = CPPROF_SYMBOLIZE_FUNCTIONS;
    if (!leaks)
        bail("no profile heapleak");
    if (cpprof_profile_write_to_path(leaks, path, &options, &error) !=
        CPPROF_OK) {
        if (!why || !std::strstr(error.text, why))
            bail("heapleak: %s", error.text);
        return nullptr;
    }
    return profile_load(path);
}

std::int64_t
count_in(const profile *p, const char *name, const char *kind)
{
    std::int64_t n = 0;

    for (std::size_t i = 0; i < p->n_samples; i++) {
        const sample *s = &p->samples[i];
        bool is_kind = !kind, has_name = false;

        for (std::size_t k = 0; k < s->n_labels; k++)
            is_kind |= kind && !std::strcmp(s->labels[k].key, "kind") &&
                       !std::strcmp(s->labels[k].text, kind);
        for (std::size_t k = 0; k < s->n_frames; k++)
            has_name |= frame_is(&s->frames[k], name);
        if (is_kind && has_name)
            n += s->count;
    }
    return n;
}

// The stacks that no list here names.
void
note_others(const profile *p)
{
    for (std::size_t i = 0; i < p->n_samples; i++) {
        const sample *s = &p->samples[i];

        note("%lld blocks:", static_cast<long long>(s->count));
        for (std::size_t k = 0; k < s->n_frames; k++)
            note("  %s", s->frames[k].name);
    }
}

// A word that happens to look like a pointer, or is left of one, may hide what
// it leads to; it may not make anything lost.
void
check_all(const profile *p, bool is_exact, bool is_walked)
{
    char text[128];
    std::int64_t lost = 0, all = 0, named = 0;

    for (auto &loss : losses) {
        std::int64_t n = count_in(p, loss.name, nullptr);

        lost += n;
        all += loss.n;
        if (!is_walked || !is_exact)
            continue;
        std::snprintf(text, sizeof text, "of %s no more is found", loss.name);
        check_at_most(static_cast<double>(n), loss.n, text);
        std::snprintf(text, sizeof text, "%s: what nothing leads to",
                      loss.name);
        if (n == loss.n)
            check_equal(count_in(p, loss.name, "direct"), loss.n_direct, text);
    }
    for (const char *name : keeps) {
        std::snprintf(text, sizeof text, "%s is not lost", name);
        check_equal(count_in(p, name, nullptr), 0, text);
    }
    for (std::size_t i = 0; i < p->n_samples; i++)
        named += p->samples[i].count;
    check_equal(named, lost, "nothing else is lost");
    if (named != lost)
        note_others(p);
    if (is_walked && is_exact)
        check_at_least(static_cast<double>(lost),
                       0.95 * static_cast<double>(all),
                       "what is lost is found");
    note("%lld of %lld lost blocks", static_cast<long long>(lost),
         static_cast<long long>(all));
    for (std::size_t i = 0; i < p->n_comments; i++)
        note("%s", p->comments[i]);
}

int
main(int argc, char **argv)
{
    std::int64_t rate = argc > 1 ? std::atoll(argv[1]) : 1;
    bool is_walked = !std::getenv("LD_PRELOAD") || !*std::getenv("LD_PRELOAD");
    char path[] = "/tmp/heap_lost.XXXXXX";
    struct sigaction action = {};
    profile *p;

    action.sa_handler = on_alarm;
    sigaction(SIGUSR1, &action, nullptr);
    sem_init(&ready, 0, 0);
    sem_init(&leave, 0, 0);
    cpprof_heap_set_rate(rate);
    close(mkstemp(path));
    keep_all();
    p = take(path, nullptr);
    check_equal(static_cast<std::int64_t>(p->n_samples), 0,
                "nothing is lost at first");
    profile_free(p);
    lose_all();
    p = take(path, nullptr);
    check_all(p, rate == 1, is_walked);
    profile_free(p);
    free_all();
    p = take(path, nullptr);
    check_all(p, rate == 1, is_walked);
    profile_free(p);
    unlink(path);
    return check_done();
}
