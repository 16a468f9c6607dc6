/* SPDX-License-Identifier: MIT */
/*
 * Any text as what users write: regular expressions, tag expressions, lists of
 * keys, units, names of sample types; tried on one small profile.
 *
 * The first byte chooses the call; the rest is its arguments, parted by line
 * feeds. A hang is a fault: matching is bounded. By hand:
 * tests/fuzz/run expressions SECONDS.
 */
#include "../unit/pprof_fixture.h"
#include <cpprof/pprof/report.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define N_ARGUMENTS 4
#define MAX_BYTES   4096

struct arguments {
    char text[MAX_BYTES + 1];
    const char *at[N_ARGUMENTS]; /* NULL where there are fewer */
};

static void
expect(int holds)
{
    if (!holds)
        abort();
}

static void
split(struct arguments *a, const uint8_t *data, size_t n)
{
    char *next = a->text;
    int i;

    memcpy(a->text, data, n);
    a->text[n] = 0;
    for (i = 0; i < N_ARGUMENTS; i++)
        a->at[i] = strsep(&next, "\n");
}

/* Names that expressions have trouble with: templates, spaces, bytes that are
 * no UTF-8, a text that backtracking takes long over. */
static void
build(struct fixture *f)
{
    fixture_cpu(f);
    fixture_mapping(f, 1, 0x1000, "/usr/bin/prog", "1234");
    fixture_stack(f, "a<b main", 5, "key=value bytes=12kb");
    fixture_stack(f, "operator() ns::f(int) main", 7, "key=other bytes=3mb");
    fixture_stack(f, "\xff\xfe\xc3\xa9 \xe2\x82\xac main", 9, "thread=t1");
    fixture_stack(f, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab main", 1, "");
    fixture_stack(f, "github.com/a/b.(*T).M[...] runtime.goexit", 2,
                  "request=4096 pprof::base=true key=value,x");
    fixture_strings(f);
}

static struct pprof_profile *
read_it(void)
{
    static struct fixture f; /* made once */
    struct pprof_profile *p = NULL;

    if (!f.bytes.n)
        build(&f);
    expect(pprof_read_data(f.bytes.data, f.bytes.n, NULL, &p, NULL) ==
           CPPROF_OK);
    return p;
}

static enum cpprof_status
filter_names(struct pprof_profile *p, const char *const *at,
             struct cpprof_error *error)
{
    struct pprof_name_filter filter = {sizeof filter, at[0], at[1], at[2],
                                       at[3]};
    uint32_t matched;

    return pprof_filter_names(p, &filter, &matched, error);
}

static enum cpprof_status
ask(struct pprof_profile *p, const char *const *at, struct cpprof_error *error)
{
    size_t index = SIZE_MAX, n_others;
    enum cpprof_status status;

    pprof_label_unit(p, at[0], &n_others);
    if (at[1])
        pprof_has_label(p, 0, at[0], at[1]);
    status = pprof_find_sample_type(p, at[0], &index, error);
    expect(status != CPPROF_OK || index < pprof_sample_type_count(p));
    return status;
}

static int
forget(void *ctx, const void *data, size_t n)
{
    return 0;
}

static enum cpprof_status
report(struct pprof_profile *p, const char *const *at,
       struct cpprof_error *error)
{
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    struct cpprof_writer writer = {sizeof writer, forget, NULL, NULL};

    options.unit = at[0];
    options.trim_path = at[1];
    options.tagleaf = at[2];
    options.tagfocus = at[3];
    return pprof_report_write(p, &writer, PPROF_REPORT_TOP, &options, error);
}

static enum cpprof_status
call(struct pprof_profile *p, unsigned choice, const char *const *at,
     struct cpprof_error *error)
{
    uint32_t matched;

    switch (choice) {
    case 0:
        return filter_names(p, at, error);
    case 1:
        return pprof_show_from(p, at[0], &matched, error);
    case 2:
        return pprof_filter_labels(p, at[0], at[1], &matched, error);
    case 3:
        return pprof_filter_label_keys(p, at[0], at[1], &matched, error);
    case 4:
        return pprof_add_label_frames(p, at[0], at[1], at[2], &matched, error);
    case 5:
        return pprof_prune(p, at[0], at[1], error);
    case 6:
        return pprof_prune_from(p, at[0], error);
    case 7:
        return ask(p, at, error);
    }
    return report(p, at, error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct arguments arguments;
    struct cpprof_error error = {0};
    size_t n_before;
    enum cpprof_status status;
    struct pprof_profile *p;

    if (n < 1 || n > MAX_BYTES)
        return 0;
    split(&arguments, data + 1, n - 1);
    p = read_it();
    n_before = pprof_sample_count(p);
    status = call(p, *data % 9, arguments.at, &error);
    expect((status == CPPROF_OK) == !error.text[0]);
    /* What does not compile changes nothing. */
    if (status == CPPROF_BAD_DATA && *data % 9 < 8)
        expect(pprof_sample_count(p) == n_before);
    expect(pprof_check(p, NULL) == CPPROF_OK);
    pprof_free(p);
    return 0;
}
