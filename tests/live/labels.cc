// SPDX-License-Identifier: MIT
// Labels come off again however a block or a call ends, and threads have those
// of their maker (Go: TestSetGoroutineLabels, TestDo).
extern "C" {
#include "tap.h"
}

#include <cpprof/labels.hpp>

#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <threads.h>
#include <unistd.h>

static const char *
value_of(const char *key)
{
    const cpprof_label *l = cpprof_labels_find(cpprof_labels_current(), key);

    return l && l->str ? l->str : "";
}

static bool
is(const char *key, const char *text)
{
    return std::strcmp(value_of(key), text) == 0;
}

static void
fail(void *)
{
    throw std::runtime_error("x");
}

struct two {
    const struct cpprof_labels *inner;
    bool was_right;
};

static void
do_inner(void *arg)
{
    two *t = static_cast<two *>(arg);

    t->was_right = is("a", "1");
    cpprof_labels_do(t->inner, fail, nullptr);
}

static void
test_exceptions()
{
    cpprof::labels outer{{"a", "1"}}, inner{{"b", "2"}};
    two t{inner.get(), false};
    bool caught = false;

    try {
        cpprof_labels_do(outer.get(), do_inner, &t);
    } catch (const std::runtime_error &) {
        caught = true;
    }
    check(caught && t.was_right,
          "an exception goes through cpprof_labels_do()");
    check(!cpprof_labels_current(), "which takes its labels off");
    {
        cpprof::labels_scope scope{{"here", "1"}};

        try {
            cpprof_labels_do(inner.get(), fail, nullptr);
        } catch (const std::runtime_error &) {
            check(is("here", "1") && is("b", ""), "and puts those before back");
        }
    }
    check(!cpprof_labels_current(), "a scope ends with its block");
}

static void
test_scopes()
{
    std::string path = "/cart";
    static const cpprof::labels idle{{"state", "idle"}};
    cpprof::labels copy = idle, moved = std::move(copy);

    cpprof::labels_scope scope{{"route", path}, {"items", 3, "count"}};
    check(is("route", "/cart"), "a string is text");
    const cpprof_label *items =
        cpprof_labels_find(cpprof_labels_current(), "items");
    check(items && items->num == 3 && !std::strcmp(items->unit, "count"),
          "a number has its unit");
    {
        cpprof::labels_scope inner{moved};

        check(is("state", "idle") && is("route", "/cart"),
              "a scope is over the one around it");
    }
    check(is("state", "") && is("route", "/cart"), "until its end");
}

// ---- threads ----

static bool inherited, restored;
static struct cpprof_labels *mine;

static void *
child(void *)
{
    inherited = is("maker", "me");
    struct cpprof_labels *own = cpprof_labels_new("own", "1", nullptr);
    const struct cpprof_labels *before = cpprof_labels_set_current(own);
    inherited = inherited && is("own", "1") && is("maker", "");
    cpprof_labels_set_current(before);
    restored = is("maker", "me");
    cpprof_labels_free(own);
    return nullptr;
}

static int
child_of_c11(void *)
{
    return is("maker", "me");
}

static void
test_inheritance()
{
    pthread_t thread;
    thrd_t c11;
    int had = 0;

    mine = cpprof_labels_new("maker", "me", nullptr);
    cpprof_labels_set_current(mine);
    pthread_create(&thread, nullptr, child, nullptr);
    thrd_create(&c11, child_of_c11, nullptr);
    cpprof_labels_set_current(nullptr);
    cpprof_labels_free(mine); // the children have a hold of their own
    pthread_join(thread, nullptr);
    thrd_join(c11, &had);
    check(inherited, "a thread has the labels of its maker");
    check(had, "also one of C11");
    check(restored, "and can go back to them");
    check(!cpprof_labels_current(), "the maker took its own off");
}

// A key's destructor that is called after labels were restored.
static pthread_key_t key;
static bool clean_at_exit;

static void
at_exit_of_thread(void *)
{
    clean_at_exit = is("x", "");
}

static void
leave(void *)
{
    pthread_exit(nullptr);
}

static void *
exits_inside(void *)
{
    cpprof::labels set{{"x", "1"}};

    pthread_setspecific(key, &key);
    cpprof_labels_do(set.get(), leave, nullptr);
    return &key; // never
}

static void
wait_for_ever(void *)
{
    for (;;)
        pause();
}

static void *
is_cancelled(void *)
{
    cpprof::labels set{{"x", "1"}};

    pthread_setspecific(key, &key);
    cpprof_labels_do(set.get(), wait_for_ever, nullptr);
    return &key;
}

static void
test_ends()
{
    pthread_t thread;
    void *result;

    pthread_key_create(&key, at_exit_of_thread);
    pthread_create(&thread, nullptr, exits_inside, nullptr);
    pthread_join(thread, &result);
    check(!result && clean_at_exit,
          "pthread_exit() goes through cpprof_labels_do(), which restores");
    clean_at_exit = false;
    pthread_create(&thread, nullptr, is_cancelled, nullptr);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    check(result == PTHREAD_CANCELED, "so does a cancellation");
    check(clean_at_exit, "which restores, too");
}

int
main()
{
    test_exceptions();
    test_scopes();
    test_inheritance();
    test_ends();
    return check_done();
}
