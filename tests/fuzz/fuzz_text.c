/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as stacks in lines of text: collapsed, or of perf script; and what
 * is read written as both.
 *
 * The first byte chooses; the rest is the file. By hand:
 * tests/fuzz/run text SECONDS.
 */
#include "profile/text/text.h"
#include "rewrite.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int64_t
total(const struct pprof_profile *p)
{
    uint64_t sum = 0; /* wraps, as sums of values do */
    size_t i;

    for (i = 0; i < p->samples.n; i++)
        sum += (uint64_t)cpprof__values(p, i)[0];
    return (int64_t)sum;
}

/* Reads as one of the formats; NULL when it is not. Not through a file: a name
 * may look like the first line of another format. */
static struct pprof_profile *
read_as(cpprof__legacy_reader *read, const void *data, size_t n)
{
    struct pprof_profile *p = NULL;
    struct cpprof_error error = {0};
    enum cpprof_status status = cpprof__legacy_try(read, data, n, &p, &error);

    expect((status == CPPROF_OK) == !error.text[0]);
    return p;
}

/* What is written as text reads again. */
static void
convert(const struct pprof_profile *p, enum pprof_format format)
{
    struct pprof_write_options options = {.size = sizeof options,
                                          .sample_index = 0};
    struct cpprof__buffer out = {0};
    struct cpprof_writer writer = {sizeof writer, rewrite_take, NULL, &out};
    bool collapsed = format == PPROF_FORMAT_COLLAPSED;
    struct pprof_profile *again;

    if (!p->sample_types.n)
        return;
    expect(pprof_write(p, &writer, format, &options, NULL) == CPPROF_OK);
    again =
        read_as(collapsed ? cpprof__read_collapsed : cpprof__read_perf_script,
                out.data, out.n);
    if (again) {
        must_survive_writing(again);
        expect(!collapsed || total(again) == total(p));
    }
    pprof_free(again);
    cpprof__buffer_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct pprof_profile *p;

    if (!n)
        return 0;
    p = read_as(*data & 1 ? cpprof__read_collapsed : cpprof__read_perf_script,
                data + 1, n - 1);
    if (p) {
        must_survive_writing(p);
        convert(p,
                *data & 2 ? PPROF_FORMAT_COLLAPSED : PPROF_FORMAT_PERF_SCRIPT);
    }
    pprof_free(p);
    return 0;
}
