/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a profile: read, check, write, change, merge, print.
 *
 * The first byte chooses what is done; the rest is the file. By hand:
 * tests/fuzz/run decode SECONDS.
 */
#include "rewrite.h"
#include <cpprof/report.h>

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
report(struct cpprof_pprof *p, uint8_t choice)
{
    static const char *const words[] = {NULL, "", "a", ".", "main|[a-m]"};
    static const char *const tags[] = {NULL, "a", "1kb:", "bytes=1:9", "k=v,w"};
    struct cpprof_report_options options = CPPROF_REPORT_DEFAULTS;
    unsigned sum = 0;
    struct cpprof_writer writer = {forget, NULL, &sum};

    options.granularity = (enum cpprof_report_granularity)(choice % 5);
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
    cpprof_report_write(p, CPPROF_REPORT_TOP, &options, writer, NULL);
}

/* The profile with itself, subtracted or added; frees it. */
static struct cpprof_pprof *
merge(struct cpprof_pprof *p, uint8_t choice)
{
    struct cpprof_pprof_merger *merger;
    struct cpprof_pprof *merged = NULL;

    if (cpprof_pprof_merger_make(&merger, NULL) != CPPROF_OK)
        return p;
    if (cpprof_pprof_merger_add(merger, p, NULL) == CPPROF_OK) {
        if (choice & 1)
            cpprof_pprof_scale(p, -1);
        if (choice & 2)
            cpprof_pprof_set_label(p, "pprof::base", "true", NULL);
        must_be_valid(p);
        if (cpprof_pprof_merger_add(merger, p, NULL) == CPPROF_OK)
            cpprof_pprof_merger_finish(merger, &merged, NULL);
    }
    cpprof_pprof_merger_free(merger);
    if (!merged)
        return p;
    cpprof_pprof_free(p);
    return merged;
}

/* As many samples and the same sums whether merged with itself or copied. */
static void
copy_and_compact(const struct cpprof_pprof *p)
{
    struct cpprof__buffer before = {0}, after = {0};
    struct cpprof_pprof *copy = NULL;

    expect(cpprof_pprof_copy(p, &copy, NULL) == CPPROF_OK);
    rewrite_write(p, CPPROF_PPROF_PLAIN, &before);
    rewrite_write(copy, CPPROF_PPROF_PLAIN, &after);
    must_be_equal(&before, &after);
    expect(cpprof_pprof_compact(copy, NULL) == CPPROF_OK);
    expect(cpprof_pprof_info(copy).n_samples <= cpprof_pprof_info(p).n_samples);
    must_survive_writing(copy);
    cpprof_pprof_free(copy);
    cpprof__buffer_free(&before);
    cpprof__buffer_free(&after);
}

static void
filter(struct cpprof_pprof *p, uint8_t choice)
{
    static const char *const words[] = {NULL, "", "a", ".", "main|[a-m]"};
    struct cpprof_pprof_name_filter names = {
        sizeof names, words[choice % 5], words[choice / 5 % 3],
        words[choice / 15 % 3], words[choice / 45 % 5]};

    cpprof_pprof_filter_names(p, &names, NULL, NULL);
    cpprof_pprof_filter_tags(p, words[choice / 3 % 5], "1kb:", NULL, NULL);
    cpprof_pprof_filter_tag_keys(p, words[choice / 7 % 5], "^b", NULL, NULL);
    cpprof_pprof_show_from(p, words[choice / 11 % 5], NULL, NULL);
    cpprof_pprof_prune_from(p, words[choice / 13 % 3], NULL);
}

static void
change(struct cpprof_pprof *p, uint8_t choice)
{
    size_t index;

    expect(cpprof_pprof_set_number(p, "n", choice, "bytes", NULL) == CPPROF_OK);
    if (choice & 4)
        expect(cpprof_pprof_remove_label(p, "key", NULL) == CPPROF_OK);
    if (choice & 8)
        expect(cpprof_pprof_remove_number(p, "n", NULL) == CPPROF_OK);
    expect(cpprof_pprof_normalize(p, p, NULL) == CPPROF_OK);
    if (cpprof_pprof_sample_index(p, NULL, &index, NULL) == CPPROF_OK)
        expect(index < cpprof_pprof_info(p).n_sample_types);
    cpprof_pprof_has_functions(p);
    cpprof_pprof_has_file_lines(p);
    filter(p, choice);
    expect(cpprof_pprof_aggregate(p, choice & 63, NULL) == CPPROF_OK);
    must_survive_writing(p);
}

/* Each way changes the profile, so an input goes one of them. */
static struct cpprof_pprof *
try(struct cpprof_pprof *p, uint8_t choice)
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
    struct cpprof_pprof_read_options options = {sizeof options, MAX_BYTES};
    struct cpprof_pprof *p;
    uint8_t choice;

    if (!n)
        return 0;
    choice = *data;
    if (cpprof_pprof_read_data(data + 1, n - 1, &options, &p, NULL) !=
        CPPROF_OK)
        return 0;
    /* It may be in an older format: then what it is written as counts. */
    must_survive_writing(p);
    cpprof_pprof_demangle(p, (enum cpprof_pprof_demangle)(choice % 4),
                          choice & 1, NULL);
    cpprof_pprof_drop_frames(p, NULL);
    must_be_valid(p);
    cpprof_pprof_free(try(p, choice));
    return 0;
}
