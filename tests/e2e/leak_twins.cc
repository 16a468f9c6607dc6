// SPDX-License-Identifier: MIT
// Memory that is lost and memory that is not, of which cpprof and LeakSanitizer
// are asked: leak_twins.py. Each function allocates for itself; those that
// begin with `keep` lose nothing.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

template <typename T>
NOINLINE T
seen(T value)
{
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}

struct node {
    node *next, *other;
    char rest[48];
};

static NOINLINE node *
zeroed()
{
    return seen(static_cast<node *>(std::calloc(1, sizeof(node))));
}

namespace
{

/* ---- lost -------------------------------------------------------------- */

NOINLINE void
lose_blocks()
{
    for (int i = 0; i < 40; i++)
        seen(std::malloc(100));
}

NOINLINE void
lose_lists()
{
    for (int i = 0; i < 10; i++) {
        node *first = nullptr;

        for (int j = 0; j < 6; j++) {
            node *n = zeroed();

            n->next = first;
            first = n;
        }
        seen(first);
    }
}

NOINLINE void
lose_rings()
{
    for (int i = 0; i < 10; i++) {
        node *first = zeroed(), *last = first;

        for (int j = 0; j < 4; j++) {
            last->next = zeroed();
            last = last->next;
        }
        last->next = first;
        seen(first);
    }
}

NOINLINE node *
tree(int depth)
{
    node *n = zeroed();

    if (depth) {
        n->next = tree(depth - 1);
        n->other = tree(depth - 1);
    }
    return n;
}

NOINLINE void
lose_trees()
{
    for (int i = 0; i < 4; i++)
        seen(tree(3));
}

struct person {
    std::shared_ptr<person> friend_;
    char rest[200];
};

NOINLINE void
lose_shared_cycles()
{
    for (int i = 0; i < 10; i++) {
        auto a = std::make_shared<person>(), b = std::make_shared<person>();

        a->friend_ = b;
        b->friend_ = a;
    }
}

NOINLINE void
lose_grown()
{
    for (int i = 0; i < 20; i++) {
        void *p = seen(std::malloc(24));

        seen(std::realloc(p, 3000));
    }
}

NOINLINE void
lose_aligned()
{
    void *p;

    for (int i = 0; i < 20; i++)
        if (!posix_memalign(&p, 256, 512))
            seen(p);
}

NOINLINE void
lose_containers()
{
    for (int i = 0; i < 10; i++)
        seen(new std::map<int, std::string>{{1, std::string(100, 'a')},
                                            {2, std::string(100, 'b')}});
}

NOINLINE void *
lose_in_thread(void *)
{
    void *volatile mine[20];

    for (void *volatile &p : mine)
        p = std::malloc(700);
    return nullptr;
}

NOINLINE void
lose_array()
{
    node **all = seen(static_cast<node **>(std::calloc(20, sizeof(node *))));

    for (int i = 0; i < 20; i++)
        all[i] = zeroed();
}

/* ---- kept -------------------------------------------------------------- */

} // namespace

// Seen from everywhere: else nobody reads them, and nothing is stored.
node *kept_list;
char *kept_inside[20];
thread_local node *kept_by_thread;
std::map<int, std::vector<int>> *kept_map;
std::shared_ptr<person> kept_person;
struct numbered {
    int number;
    node *n;
} kept_in_struct[20];

namespace
{

NOINLINE void
keep_data()
{
    for (int i = 0; i < 30; i++) {
        node *n = zeroed();

        n->next = kept_list;
        kept_list = n;
    }
    for (char *&p : kept_inside)
        p = seen(static_cast<char *>(std::malloc(500))) + 250;
    for (auto &k : kept_in_struct)
        k.n = zeroed();
    kept_by_thread = zeroed();
    kept_by_thread->next = zeroed();
    kept_map = new std::map<int, std::vector<int>>;
    for (int i = 0; i < 20; i++)
        (*kept_map)[i].resize(50);
    kept_person = std::make_shared<person>();
    kept_person->friend_ = std::make_shared<person>();
}

/* Alive until the end; its stack and its variables have the only pointers. */
NOINLINE void *
keep_in_thread(void *ready)
{
    node *volatile mine = zeroed();

    kept_by_thread = zeroed();
    mine->next = zeroed();
    pthread_barrier_wait(static_cast<pthread_barrier_t *>(ready));
    while (mine)
        pause();
    return nullptr;
}

NOINLINE void
keep_with_threads()
{
    static pthread_barrier_t ready;
    pthread_t thread;

    pthread_barrier_init(&ready, nullptr, 2);
    pthread_create(&thread, nullptr, keep_in_thread, &ready);
    pthread_barrier_wait(&ready);
}

/* What is left on the stack by those before. */
NOINLINE void
clear_stack()
{
    char room[65536];

    std::memset(room, 0, sizeof room);
    seen(&room[0]);
}

} // namespace

int
main()
{
    pthread_t thread;

    keep_data();
    keep_with_threads();
    lose_blocks();
    lose_lists();
    lose_rings();
    lose_trees();
    lose_shared_cycles();
    lose_grown();
    lose_aligned();
    lose_containers();
    lose_array();
    pthread_create(&thread, nullptr, lose_in_thread, nullptr);
    pthread_join(thread, nullptr);
    clear_stack();
    return 0;
}
