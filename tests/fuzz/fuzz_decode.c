/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a profile: read, check, write, change, merge, print.
 *
 * The first byte chooses what is done; the rest is the file. By hand:
 * tests/fuzz/run decode SECONDS.
 */
#include "rewrite.h"
#include <cpprof/pprof/report.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int
forget(void *ctx, const void *data, size_t n)
{
    const unsigned char *p = data;
    unsigned *sum = ctx;
    size_t i;

    for (i = 0; i < n; i++)
        *sum += p[i];
    return 0;
}

static void
report(struct pprof_profile *p, uint8_t choice)
{
    static const char *const words[] = {NULL, "", "a", ".", "main|[a-m]"};
    static const char *const tags[] = {NULL, "a", "1kb:", "bytes=1:9", "k=v,w"};
    struct pprof_report_options options = PPROF_REPORT_DEFAULTS;
    unsigned sum = 0;
    struct cpprof_writer writer = {sizeof writer, forget, NULL, &sum};

    options.granularity = (enum pprof_report_granularity)(choice % 5);
    options.flags = (choice & 0xf0) | (choice & 1);
    options.focus = words[choice % 5];
    options.hide = words[choice / 5 % 3];
    options.show_from = words[choice / 3 % 5];
    options.prune_from = words[choice / 7 % 5];
    options.tagfocus = tags[choice / 11 % 5];
    options.tagignore = tags[choice / 13 % 5];
    options.taghide = words[choice / 17 % 5];
    options.tagroot = words[choice / 19 % 3];
    options.tagleaf = choice & 4 ? "bytes,k" : NULL;
    options.nodecount = choice & 8 ? 2 : -1;
    pprof_report_write(p, &writer, PPROF_REPORT_TOP, &options, NULL);
}

/* The profile with itself, subtracted or added; frees it. */
static struct pprof_profile *
merge(struct pprof_profile *p, uint8_t choice)
{
    struct pprof_merger *merger;
    struct pprof_profile *merged = NULL;

    if (pprof_merger_new(&merger, NULL) != CPPROF_OK)
        return p;
    if (pprof_merger_add(merger, p, NULL) == CPPROF_OK) {
        if (choice & 1)
            pprof_scale(p, -1);
        if (choice & 2)
            pprof_set_label(p, "pprof::base", "true", NULL);
        must_be_valid(p);
        if (pprof_merger_add(merger, p, NULL) == CPPROF_OK)
            pprof_merger_finish(merger, &merged, NULL);
    }
    pprof_merger_free(merger);
    if (!merged)
        return p;
    pprof_free(p);
    return merged;
}

/* As many samples and the same sums whether merged with itself or copied. */
static void
copy_and_compact(const struct pprof_profile *p)
{
    struct cpprof__buffer before = {0}, after = {0};
    struct pprof_profile *copy = NULL;

    expect(pprof_copy(p, &copy, NULL) == CPPROF_OK);
    rewrite_write(p, PPROF_FORMAT_PLAIN, &before);
    rewrite_write(copy, PPROF_FORMAT_PLAIN, &after);
    must_be_equal(&before, &after);
    expect(pprof_compact(copy, NULL) == CPPROF_OK);
    expect(pprof_sample_count(copy) <= pprof_sample_count(p));
    must_survive_writing(copy);
    pprof_free(copy);
    cpprof__buffer_free(&before);
    cpprof__buffer_free(&after);
}

static void
filter(struct pprof_profile *p, uint8_t choice)
{
    static const char *const words[] = {NULL, "", "a", ".", "main|[a-m]"};
    struct pprof_name_filter names = {
        sizeof names, words[choice % 5], words[choice / 5 % 3],
        words[choice / 15 % 3], words[choice / 45 % 5]};

    pprof_filter_names(p, &names, NULL, NULL);
    pprof_filter_labels(p, words[choice / 3 % 5], "1kb:", NULL, NULL);
    pprof_filter_label_keys(p, words[choice / 7 % 5], "^b", NULL, NULL);
    pprof_show_from(p, words[choice / 11 % 5], NULL, NULL);
    pprof_prune_from(p, words[choice / 13 % 3], NULL);
}

static void
change(struct pprof_profile *p, uint8_t choice)
{
    size_t index;

    expect(pprof_set_num_label(p, "n", choice, "bytes", NULL) == CPPROF_OK);
    if (choice & 4)
        expect(pprof_remove_label(p, "key", NULL) == CPPROF_OK);
    if (choice & 8)
        expect(pprof_remove_num_label(p, "n", NULL) == CPPROF_OK);
    expect(pprof_normalize(p, p, NULL) == CPPROF_OK);
    if (pprof_find_sample_type(p, NULL, &index, NULL) == CPPROF_OK)
        expect(index < pprof_sample_type_count(p));
    pprof_has_functions(p);
    pprof_has_file_lines(p);
    filter(p, choice);
    expect(pprof_aggregate(p, choice & 63, NULL) == CPPROF_OK);
    must_survive_writing(p);
}

/* Each way changes the profile, so an input goes one of them. */
static struct pprof_profile *
try(struct pprof_profile *p, uint8_t choice)
{
    if (choice & 64)
        p = merge(p, choice);
    must_be_valid(p);
    if (choice & 128)
        change(p, choice);
    else
        copy_and_compact(p);
    report(p, choice);
    must_be_valid(p);
    return p;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct pprof_read_options options = {sizeof options, MAX_BYTES};
    struct pprof_profile *p;
    uint8_t choice;

    if (!n)
        return 0;
    choice = *data;
    if (pprof_read_data(data + 1, n - 1, &options, &p, NULL) != CPPROF_OK)
        return 0;
    /* It may be in an older format: then what it is written as counts. */
    must_survive_writing(p);
    pprof_demangle(p, (enum pprof_demangle)(choice % 4), choice & 1, NULL);
    pprof_drop_frames(p, NULL);
    must_be_valid(p);
    pprof_free(try(p, choice));
    return 0;
}
