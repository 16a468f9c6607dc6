/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a profile: read, check, change, merge, print.
 *
 * The first byte chooses the report; the rest is the file. By hand, in the
 * root of the tree:
 *
 *     clang-14 -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined
 *         -Iinclude -Isrc tests/fuzz/fuzz_decode.c src/profile/[a-z]*.c
 *         src/report/[a-z]*.c src/base/[a-z]*.c -ldeflate -lpcre2-8 -liberty
 *         -o fuzz_decode
 *     ./fuzz_decode -max_len=4096 corpus-of-yours tests/fuzz/corpus/decode
 */
#include <cpprof/report.h>

#include <stdlib.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Enough for what is tried, too little for a bomb. */
#define MAX_BYTES (16 << 20)

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
must_be_valid(const struct cpprof_pprof *p)
{
    if (cpprof_pprof_check(p, NULL) != CPPROF_OK)
        abort();
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
    must_be_valid(p);
    cpprof_pprof_demangle(p, (enum cpprof_pprof_demangle)(choice % 4),
                          choice & 1, NULL);
    cpprof_pprof_drop_frames(p, NULL);
    must_be_valid(p);
    if (choice & 64)
        p = merge(p, choice);
    must_be_valid(p);
    report(p, choice);
    must_be_valid(p);
    cpprof_pprof_free(p);
    return 0;
}
