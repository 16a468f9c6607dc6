/* SPDX-License-Identifier: MIT */
/*
 * Any text as the memory map of a legacy profile, with locations that lie in
 * it, at its edges, and beside it.
 *
 * The first bytes are the number of locations and their addresses; the rest
 * is the map. By hand: tests/fuzz/run maps SECONDS.
 */
#include "profile/legacy/maps.h"
#include "profile/model/make.h"
#include "rewrite.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MAX_LOCATIONS 15

/* A sample of locations at the given addresses, and one of each. */
static void
fill(struct pprof_profile *p, const uint8_t *addresses, size_t n)
{
    uint32_t locations[MAX_LOCATIONS];
    struct cpprof__maker m = {.p = p};
    int64_t value = 1;
    size_t i;

    cpprof__make_sample_type(&m, "samples", "count");
    for (i = 0; i < n; i++) {
        uint64_t address;

        memcpy(&address, addresses + i * sizeof address, sizeof address);
        locations[i] =
            cpprof__make_location(&m, PPROF_NONE, address, PPROF_NONE, 0);
        cpprof__make_sample(&m, &locations[i], 1, &value);
    }
    cpprof__make_sample(&m, locations, n, &value);
    expect(!m.failed);
    cpprof__maker_free(&m);
}

static void
must_have_mappings(const struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->locations.n; i++)
        expect(!p->locations.at[i].address ||
               p->locations.at[i].mapping < p->mappings.n);
}

static struct pprof_profile *
profile(const uint8_t *addresses, size_t n)
{
    struct pprof_profile *p = cpprof__pprof_make();

    expect(p != NULL);
    fill(p, addresses, n);
    return p;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct cpprof__legacy_lines lines, again;
    struct cpprof_error error = {0};
    size_t n_locations;
    struct pprof_profile *p;

    if (n < 1)
        return 0;
    n_locations = *data++ % (MAX_LOCATIONS + 1);
    n--;
    if (n < n_locations * sizeof(uint64_t))
        return 0;
    lines.next = (const char *)data + n_locations * sizeof(uint64_t);
    lines.end = (const char *)data + n;
    again = lines;
    p = profile(data, n_locations);
    cpprof__parse_maps(&lines, p, NULL);
    pprof_free(p);

    p = profile(data, n_locations);
    if (cpprof__read_maps(&again, p, &error) == CPPROF_OK) {
        expect(!error.text[0]);
        must_have_mappings(p);
        must_survive_writing(p);
    } else {
        expect(error.text[0] != 0);
    }
    pprof_free(p);
    return 0;
}
