/* SPDX-License-Identifier: MIT */
/*
 * What pprof_check() says of a profile that is broken in one place, and
 * that builds for debugging notice it by themselves.
 */
#include "pprof_fixture.h"
#include "profile/model/check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct pprof_profile *
make(void)
{
    struct pprof_profile *p = NULL;
    struct fixture f = {0};

    fixture_cpu(&f);
    fixture_mapping(&f, 1, 0x1000, "/bin/prog", "1234");
    fixture_stack(&f, "a<b main", 5, "key=x other=y bytes=12kb");
    fixture_stack(&f, "c main", 7, "key=z");
    cpprof__put_uint(&f.bytes, 13, fixture_string(&f, "comment"));
    fixture_strings(&f);
    assert_int_equal(pprof_read_data(f.bytes.data, f.bytes.n, NULL, &p, NULL),
                     CPPROF_OK);
    fixture_free(&f);
    return p;
}

typedef void
break_it(struct pprof_profile *p);

/* ---------------------------------- of the reference's TestCheckValid ---- */

/* Its other four are a sample, location, mapping or function that is nil: in
 * tables of records there is none. */

static void
no_sample_types(struct pprof_profile *p)
{
    p->sample_types.n = 0;
    p->values.n = 0;
}

static void
one_type_less(struct pprof_profile *p)
{
    p->sample_types.n--;
}

static void
no_such_location(struct pprof_profile *p)
{
    p->frames.at[p->samples.at[0].first_frame] = (uint32_t)p->locations.n;
}

static void
no_such_function(struct pprof_profile *p)
{
    p->lines.at[p->locations.at[0].first_line].function = UINT32_MAX;
}

/* ------------------------------------------- others that it knows ---- */

static void
mapping_id_is_0(struct pprof_profile *p)
{
    p->mappings.at[0].id = 0;
}

static void
function_id_is_0(struct pprof_profile *p)
{
    p->functions.at[1].id = 0;
}

static void
location_id_is_0(struct pprof_profile *p)
{
    p->locations.at[1].id = 0;
}

static void
two_functions_of_one_id(struct pprof_profile *p)
{
    p->functions.at[1].id = p->functions.at[0].id;
}

static void
two_locations_of_a_large_id(struct pprof_profile *p)
{
    p->locations.at[0].id = p->locations.at[1].id = UINT64_MAX;
}

static void
no_such_mapping(struct pprof_profile *p)
{
    p->locations.at[0].mapping = 1;
}

/* ---------------------------------------------------- only ours ---- */

static void
frames_outside(struct pprof_profile *p)
{
    p->samples.at[1].first_frame = p->frames.n - 1;
}

static void
frames_far_outside(struct pprof_profile *p)
{
    p->samples.at[1].first_frame = SIZE_MAX;
}

static void
lines_outside(struct pprof_profile *p)
{
    p->locations.at[0].n_lines = UINT32_MAX;
}

static void
no_such_label_set(struct pprof_profile *p)
{
    p->samples.at[0].labels = (uint32_t)p->labels.sets.n;
}

static void
label_without_key(struct pprof_profile *p)
{
    p->labels.labels.at[0].key = CPPROF__NO_STRING;
}

static void
unit_without_text(struct pprof_profile *p)
{
    p->sample_types.at[1].unit = (uint32_t)p->strings.table.n;
}

static void
drop_frames_without_text(struct pprof_profile *p)
{
    p->info.drop_frames = CPPROF__NO_STRING;
}

static void
comment_without_text(struct pprof_profile *p)
{
    p->comments.at[0] = CPPROF__NO_STRING;
}

static void
mapping_without_build_id(struct pprof_profile *p)
{
    p->mappings.at[0].build_id = CPPROF__NO_STRING;
}

static void
function_without_name(struct pprof_profile *p)
{
    p->functions.at[0].system_name = CPPROF__NO_STRING;
}

static const struct {
    break_it *how;
    const char *text; /* behind "malformed profile: " */
} breaks[] = {
    {no_sample_types, "missing sample type information"},
    {one_type_less, "mismatch: sample has 2 values vs. 1 types"},
    {no_such_location, "sample has nil location"},
    {no_such_function, "location id: 1 has a line with nil function"},
    {mapping_id_is_0, "found mapping with reserved ID=0"},
    {function_id_is_0, "found function with reserved ID=0"},
    {location_id_is_0, "found location with reserved id=0"},
    {two_functions_of_one_id, "multiple functions with same id: 1"},
    {two_locations_of_a_large_id,
     "multiple locations with same id: 18446744073709551615"},
    {no_such_mapping, "location id: 1 has an inconsistent mapping"},
    {frames_outside, "sample has frames outside their table"},
    {frames_far_outside, "sample has frames outside their table"},
    {lines_outside, "location id: 1 has lines outside their table"},
    {no_such_label_set, "sample has no such label set"},
    {label_without_key, "label has no such string"},
    {unit_without_text, "sample type has no such string"},
    {drop_frames_without_text, "profile has no such string"},
    {comment_without_text, "comment is no such string"},
    {mapping_without_build_id, "mapping has no such string"},
    {function_without_name, "function has no such string"},
};

static void
every_broken_invariant_has_its_words(void **state)
{
    size_t i;

    for (i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        struct pprof_profile *p = make();
        struct cpprof_error error;
        char text[112];

        assert_int_equal(pprof_check(p, NULL), CPPROF_OK);
        breaks[i].how(p);
        assert_int_equal(pprof_check(p, &error), CPPROF_BAD_DATA);
        snprintf(text, sizeof text, "malformed profile: %s", breaks[i].text);
        assert_string_equal(error.text, text);
        pprof_free(p);
    }
}

/* ------------------------------------------- what no file can break ---- */

static void
frames_overlap(struct pprof_profile *p)
{
    p->samples.at[1].first_frame = p->samples.at[0].first_frame + 1;
}

static void
lines_overlap(struct pprof_profile *p)
{
    p->locations.at[1].first_line = p->locations.at[0].first_line;
}

static void
text_goes_on(struct pprof_profile *p)
{
    p->strings.table.at[1].n--;
}

static void
text_comes_twice(struct pprof_profile *p)
{
    p->strings.table.at[2] = p->strings.table.at[1];
}

static void
labels_change_places(struct pprof_profile *p)
{
    size_t n;
    struct pprof_label *l = (struct pprof_label *)cpprof__label_set(
        &p->labels, p->samples.at[0].labels, &n);
    struct pprof_label first = l[0];

    assert_int_equal(n, 3);
    l[0] = l[n - 1];
    l[n - 1] = first;
}

static const struct {
    break_it *how;
    const char *text;
} deeper[] = {
    {frames_overlap, "frames of two samples overlap"},
    {lines_overlap, "lines of two locations overlap"},
    {text_goes_on, "string is not terminated"},
    {text_comes_twice, "string is not found"},
    {labels_change_places, "labels are not sorted"},
};

static void
every_broken_layout_has_its_words(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof deeper / sizeof *deeper; i++) {
        struct pprof_profile *p = make();
        struct cpprof_error error;
        char text[112];

        deeper[i].how(p);
        assert_int_equal(pprof_check(p, &error), CPPROF_BAD_DATA);
        snprintf(text, sizeof text, "inconsistent profile: %s", deeper[i].text);
        assert_string_equal(error.text, text);
        pprof_free(p);
    }
}

/* ------------------------------------------- builds for debugging ---- */

#ifdef CPPROF_CHECKED

/* What a child that changes the broken profile says when it dies. */
static int
die_of(break_it *how, char *said, size_t n)
{
    int status, ends[2];
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct pprof_profile *p = make();

        dup2(ends[1], STDERR_FILENO);
        how(p);
        pprof_scale(p, 2);
        _exit(0);
    }
    close(ends[1]);
    got = read(ends[0], said, n - 1);
    said[got > 0 ? got : 0] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
change_of_a_broken_profile_aborts_with_the_reason(void **state)
{
    size_t i;

    for (i = 0; i < sizeof deeper / sizeof *deeper; i++) {
        char said[1000], text[200];
        int status = die_of(deeper[i].how, said, sizeof said);

        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        snprintf(text, sizeof text,
                 "cpprof: broken profile: inconsistent profile: %s\n",
                 deeper[i].text);
        assert_string_equal(said, text);
    }
}

#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_invariant_has_its_words),
        cmocka_unit_test(every_broken_layout_has_its_words),
#ifdef CPPROF_CHECKED
        cmocka_unit_test(change_of_a_broken_profile_aborts_with_the_reason),
#endif
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
