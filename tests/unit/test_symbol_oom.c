/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails, those of libdw and libelf too: this program has
 * the malloc of the process. A profile must lose names by that, never the
 * process; libdw by itself would end it.
 */
#include "symbol_fixture.h"

#include <elfutils/version.h>
#include <errno.h>

/* A unit that libdw cannot index; later ones also what they have of a file when
 * there is no memory for the tables of its units: a handle, the first block of
 * its memory and the name of its folder. */
#if _ELFUTILS_PREREQ(0, 189)
#define FORGOTTEN_BY_LIBDW 3
#else
#define FORGOTTEN_BY_LIBDW 1
#endif

/* Volatile: the compiler knows what malloc does, and not that it counts. */
static volatile long countdown =
    -1;                      /* allocations that still succeed; -1: all */
static volatile long n_live; /* allocations not yet freed */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 1

void *
__libc_malloc(size_t n);
void *
__libc_calloc(size_t n, size_t size);
void *
__libc_realloc(void *p, size_t n);
void
__libc_free(void *p);

/* For libdw and libelf too, not for this program alone. */
#pragma GCC visibility push(default)
void *
malloc(size_t n);
void *
calloc(size_t n, size_t size);
void *
realloc(void *p, size_t n);
void
free(void *p);
#pragma GCC visibility pop

static bool
fails_now(void)
{
    if (countdown < 0)
        return false;
    if (countdown > 0) {
        countdown--;
        return false;
    }
    errno = ENOMEM;
    return true;
}

static void *
count(void *p)
{
    n_live += p != NULL;
    return p;
}

void *
malloc(size_t n)
{
    return fails_now() ? NULL : count(__libc_malloc(n));
}

void *
calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : count(__libc_calloc(n, size));
}

void *
realloc(void *p, size_t n)
{
    void *moved = fails_now() ? NULL : __libc_realloc(p, n);

    n_live += moved && !p;
    return moved;
}

void
free(void *p)
{
    n_live -= p != NULL;
    __libc_free(p);
}
#else
#define HAS_OWN_MALLOC 0
#endif

static int
make_library(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("inline.c", INLINE_SOURCE);
    write_file("more.cc", "namespace { struct a { int get() const; }; }\n"
                          "int a::get() const { return 1; }\n"
                          "int more() { return a().get(); }\n");
    return !run("gcc -O2 -fPIC -c -g inline.c && g++ -fPIC -c -g more.cc && "
                "gcc -shared -o full.so inline.o more.o && "
                "objcopy --only-keep-debug full.so apart.debug && "
                "objcopy --strip-all --add-gnu-debuglink=apart.debug full.so "
                "apart.so && "
                "g++ -O1 -g -fPIC -shared -include regex -include thread "
                "-x c++ inline.c -o many.so");
}

/* Everything that a profile asks for; how many frames. */
static size_t
ask(struct loaded *l)
{
    struct cpprof__symbolizer_options options = {0};
    struct cpprof__symbolizer *s = cpprof__symbolizer.make(&options);
    struct cpprof__frame frames[MOST_FRAMES];
    size_t index;
    size_t n = 0;

    if (!s)
        return 0;
    index = cpprof__symbolizer.add_mapping(s, &l->mapping);
    n += cpprof__symbolizer.resolve(s, index, address_of(l, "at_leaf"), frames,
                                    MOST_FRAMES);
    n += cpprof__symbolizer.resolve(s, index, address_of(l, "at_hidden"),
                                    frames, MOST_FRAMES);
    n += cpprof__symbolizer.resolve(s, SIZE_MAX, 0x1000, frames, MOST_FRAMES);
    n += cpprof__symbolizer.knows_inlines(s, index);
    cpprof__symbolizer.free(s);
    return n;
}

static void
check_each_failure(const char *name)
{
    struct loaded l;
    size_t n_full;
    size_t n;
    long before;
    long i;

    if (!HAS_OWN_MALLOC) {
        say_skipped("malloc of our own");
        return;
    }
    load(&l, name, "at_leaf");
    n_full = ask(&l); /* what is made once for the process */
    assert_int_equal(n_full, 5);
    before = n_live;
    assert_int_equal(ask(&l), n_full);
    assert_int_equal(n_live, before);
    for (i = 0;; i++) {
        countdown = i;
        n = ask(&l);
        if (countdown > 0)
            break;
        countdown = -1;
        assert_true(n <= n_full);
        assert_in_range(n_live - before, 0, FORGOTTEN_BY_LIBDW);
        before = n_live;
    }
    countdown = -1;
    assert_int_equal(n, n_full);
    assert_true(i > 50);
    dlclose(l.handle);
}

static void
each_allocation_may_fail(void **state)
{
    check_each_failure("full.so");
}

static void
each_allocation_may_fail_with_a_debug_file(void **state)
{
    check_each_failure("apart.so");
}

/* More than the hash table of libdw holds at first: it is made larger, and what
 * is allocated for that is looked at by an assertion only. */
static void
each_allocation_may_fail_with_many_abbreviations(void **state)
{
    check_each_failure("many.so");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(each_allocation_may_fail_with_a_debug_file),
        cmocka_unit_test(each_allocation_may_fail_with_many_abbreviations),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_library, remove_folder);
}
