/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as OTLP Profiles: what is read is whole; written as OTLP and read
 * again it is the same, to the byte. By hand: tests/fuzz/run otlp SECONDS.
 */
#include "profile/otlp/otlp.h"
#include "rewrite.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct cpprof__otlp_options options;
    struct cpprof__buffer written[2] = {{0}};
    struct pprof_profile *p = NULL, *again = NULL;

    cpprof__is_otlp(data, n);
    if (cpprof__otlp_decode(data, n, MAX_BYTES, &p, NULL) != CPPROF_OK)
        return 0;
    must_survive_writing(p);
    expect(cpprof__otlp_encode(p, &options, &written[0], NULL) == CPPROF_OK);
    /* The stacks are as large as they were; the columns may be more. */
    expect(cpprof__otlp_decode(written[0].data, written[0].n, UINT64_MAX,
                               &again, NULL) == CPPROF_OK);
    must_be_valid(again);
    expect(pprof_sample_count(again) == pprof_sample_count(p) ||
           !pprof_sample_type_count(p));
    expect(cpprof__otlp_encode(again, &options, &written[1], NULL) ==
           CPPROF_OK);
    must_be_equal(&written[0], &written[1]);
    pprof_free(p);
    pprof_free(again);
    cpprof__buffer_free(&written[0]);
    cpprof__buffer_free(&written[1]);
    return 0;
}
