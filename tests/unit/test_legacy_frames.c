/* SPDX-License-Identifier: MIT */
/* Which frames of a legacy profile are uninteresting: the kind decides. */
#include "legacy_fixture.h"
#include "profile/model/make.h"
#include "views.h"

/* The drop_frames that sample types, parted by spaces, get: how they begin. */
static void
assert_drops(const char *types, const char *drop, const char *keep)
{
    struct cpprof__maker m = {.p = cpprof__pprof_make()};
    char copy[100], *next = copy, *type;
    struct pprof_info info;

    assert_non_null(m.p);
    snprintf(copy, sizeof copy, "%s", types);
    while ((type = strsep(&next, " ")))
        cpprof__make_sample_type(&m, type, "unit");
    assert_false(m.failed);
    assert_int_equal(cpprof__legacy_frames(m.p, NULL), CPPROF_OK);
    info = info_of(m.p);
    assert_memory_equal(pprof_text(m.p, info.drop_frames, NULL), drop,
                        strlen(drop));
    assert_string_equal(pprof_text(m.p, info.keep_frames, NULL), keep);
    cpprof__maker_free(&m);
    pprof_free(m.p);
}

#define KEEP "runtime\\.panic|runtime\\.reflectcall|runtime\\.call[0-9]*"

static void
types_of_heap_drop_allocators(void **state)
{
    static const char *const types[] = {
        "allocations size",
        "objects space",
        "inuse_objects inuse_space",
        "alloc_objects alloc_space",
        "alloc_objects alloc_space inuse_objects inuse_space",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof types / sizeof *types; i++)
        assert_drops(types[i], "calloc|cfree|malloc|free|memalign|", KEEP);
}

static void
types_of_contention_drop_locks(void **state)
{
    (void)state;
    assert_drops("contentions delay", "RecordLockProfileData|", "");
}

static void
all_other_types_drop_the_cpu_profiler(void **state)
{
    static const char *const types[] = {
        "objects",
        "objects unknown",
        "inuse_objects inuse_space alloc_objects alloc_space",
        "alloc_objects alloc_space inuse_objects",
        "contentions",
        "contentions delay more",
        "samples cpu",
        "thread",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof types / sizeof *types; i++)
        assert_drops(types[i],
                     "ProfileData::Add|ProfileData::prof_handler|"
                     "CpuProfiler::prof_handler|__pthread_sighandler|__restore",
                     "");
}

/* They are regular expressions: one that does not compile would be found by
 * nobody before it is needed. */
static void
expressions_compile(void **state)
{
    static const char text[] = "heap profile: 1: 2 [1: 2] @ heapprofile\n"
                               " 1: 8 [ 1: 8] @ 0x11 0x21\n";
    struct pprof_profile *p = NULL;
    struct cpprof_error error;

    (void)state;
    assert_int_equal(pprof_read_data(text, sizeof text - 1, NULL, &p, &error),
                     CPPROF_OK);
    assert_int_equal(pprof_drop_frames(p, &error), CPPROF_OK);
    pprof_free(p);
}

static void
every_allocation_may_fail(void **state)
{
    struct pprof_profile *p = cpprof__pprof_make();
    enum cpprof_status status = CPPROF_NOMEM;
    char filler[4060]; /* leaves no room in the first block of texts */
    long n;

    (void)state;
    assert_non_null(p);
    memset(filler, 'x', sizeof filler);
    assert_int_not_equal(
        cpprof__strings_add(&p->strings, filler, sizeof filler),
        CPPROF__NO_STRING);
    for (n = 0; status == CPPROF_NOMEM; n++) {
        oom.countdown = n;
        status = cpprof__legacy_frames(p, NULL);
        oom.countdown = -1;
    }
    assert_int_equal(status, CPPROF_OK);
    assert_true(n > 1);
    pprof_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_heap_drop_allocators),
        cmocka_unit_test(types_of_contention_drop_locks),
        cmocka_unit_test(all_other_types_drop_the_cpu_profiler),
        cmocka_unit_test(expressions_compile),
        cmocka_unit_test(every_allocation_may_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
