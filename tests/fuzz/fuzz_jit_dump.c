/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a jitdump file; every name and line that it has is read.
 *
 * By hand: tests/fuzz/run jit_dump SECONDS.
 */
#include "symbol/jit_dump.h"

#include "rewrite.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint32_t
sum_of(const char *text, size_t n)
{
    uint32_t sum = 0;

    while (n--)
        sum += (uint8_t)text[n];
    return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct cpprof__jit_table table = {0};
    volatile uint32_t sum = 0;
    size_t i;

    if (!cpprof__jit_dump_read(&table, data, n))
        expect(!table.codes.n && !table.tree.n);
    for (i = 0; i < table.codes.n && i < 1000; i++) {
        struct cpprof__jit_place place;

        if (!cpprof__jit_table_find(&table, table.codes.at[i].start,
                                    i % 2 ? n / 2 : n, &place))
            continue;
        expect(place.n_name > 0);
        sum += sum_of(place.name, place.n_name);
        sum += place.file ? sum_of(place.file, place.n_file) : place.line;
    }
    cpprof__jit_table_free(&table);
    return 0;
}
