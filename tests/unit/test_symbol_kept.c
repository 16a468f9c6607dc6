/* SPDX-License-Identifier: MIT */
/*
 * A program that is asked for profiles again and again: the second opens no
 * file that the first has opened, also for addresses that are new, unless the
 * file has changed. The kernel tells who opens files.
 */
#include "symbol_fixture.h"

#include "collect/encode/names.h"

#include <sys/inotify.h>

static int watch = -1;

static int
make_library(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("work.c", "int one(int x) { return x * 3 + 1; }\n"
                         "int two(int x) { return x * 5 + 2; }\n"
                         "int three(int x) { return x * 7 + 3; }\n"
                         "int four(int x) { return x * 9 + 4; }\n");
    return !run("gcc -O2 -fPIC -shared -g -Wl,--build-id=sha1 -o work.so "
                "%s/work.c && cp work.so copy.so && "
                "gcc -O2 -fPIC -shared -g -gsplit-dwarf -Wl,--build-id=sha1 "
                "-o split.so %s/work.c",
                folder, folder);
}

/* How often a file of the folder was opened since the last call. */
static unsigned
count_opened(void)
{
    char events[65536];
    const char *at = events;
    unsigned n = 0;
    ssize_t n_read;

    if (watch < 0) {
        watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(watch >= 0);
        assert_true(inotify_add_watch(watch, ".", IN_OPEN) >= 0);
    }
    n_read = read(watch, events, sizeof events);
    while (n_read > 0 && at < events + n_read) {
        const struct inotify_event *event = (const struct inotify_event *)at;

        n += event->len && strstr(event->name, ".so");
        at += sizeof *event + event->len;
    }
    return n;
}

/* A profile with one function. How many files it opened. */
static unsigned
ask(const struct loaded *l, const char *function)
{
    const struct cpprof__symbolizer_ops *ops =
        cpprof__names_over(&cpprof__symbolizer);
    struct cpprof__symbolizer_options options = {.pid = getpid()};
    struct cpprof__symbolizer *s = ops->make(&options);
    struct cpprof__frame frames[256];
    size_t number;

    count_opened();
    number = ops->add_mapping(s, &l->mapping);
    ops->expect(s, number, address_of(l, function));
    assert_int_equal(
        ops->resolve(s, number, address_of(l, function), frames, 256), 1);
    assert_string_equal(frames[0].name, function);
    assert_non_null(frames[0].file);
    assert_true(frames[0].line > 0);
    ops->free(s);
    return count_opened();
}

static void
second_profile_opens_no_file_again(void **state)
{
    struct loaded l;

    load(&l, "work.so", "one");
    assert_true(ask(&l, "one") > 0);
    assert_int_equal(ask(&l, "two"), 0);
    assert_int_equal(ask(&l, "three"), 0);
    assert_true(cpprof__names_held() < 300000);
    cpprof__names_forget();
    assert_true(ask(&l, "four") > 0);
    cpprof__names_forget();
    dlclose(l.handle);
}

/* What was mapped before is not read any more: it could be cut. */
static void
file_that_was_replaced_is_opened_anew(void **state)
{
    struct loaded l;

    load(&l, "work.so", "one");
    build_id_of(&l);
    assert_true(ask(&l, "one") > 0);
    assert_true(run("cp work.so new.so && mv new.so work.so"));
    assert_true(ask(&l, "two") > 0);
    assert_int_equal(ask(&l, "three"), 0);
    assert_true(run("touch -d 2001-01-01 work.so"));
    assert_true(ask(&l, "four") > 0);
    cpprof__names_forget();
    dlclose(l.handle);
}

/* libdw has opened the file of the split unit, and does not say where. */
static void
image_with_split_units_is_not_kept(void **state)
{
    struct loaded l;

    load(&l, "split.so", "one");
    assert_true(ask(&l, "one") > 0);
    assert_true(ask(&l, "two") > 0);
    cpprof__names_forget();
    dlclose(l.handle);
}

/* 1000 profiles of new addresses and of new mappings of the same file. */
static void
memory_stays_bounded(void **state)
{
    struct loaded l;
    uint64_t i;

    load(&l, "work.so", "one");
    for (i = 0; i < 1000; i++) {
        const struct cpprof__symbolizer_ops *ops =
            cpprof__names_over(&cpprof__symbolizer);
        struct cpprof__symbolizer_options options = {.pid = getpid()};
        struct cpprof__symbolizer *s = ops->make(&options);
        struct cpprof__symbolizer_mapping moved = l.mapping;
        struct cpprof__frame frames[256];
        size_t number;

        moved.start += i << 20;
        moved.limit += i << 20;
        number = ops->add_mapping(s, &moved);
        ops->resolve(s, number, address_of(&l, "one") + (i << 20), frames, 256);
        ops->free(s);
    }
    assert_true(cpprof__names_held() < 2000000);
    cpprof__names_forget();
    assert_int_equal(cpprof__names_held(), 0);
    dlclose(l.handle);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_profile_opens_no_file_again),
        cmocka_unit_test(file_that_was_replaced_is_opened_anew),
        cmocka_unit_test(image_with_split_units_is_not_kept),
        cmocka_unit_test(memory_stays_bounded),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_library, remove_folder);
}
