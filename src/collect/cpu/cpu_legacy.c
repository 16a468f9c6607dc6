/* SPDX-License-Identifier: MIT */
/*
 * Writes the binary form of CPU profiles: words through a buffer, then the
 * decoys, the trailer and the text of the mappings.
 *
 * The number of decoys depends on the number of records: enough that no caller
 * is in nearly all of them. Mappings of all stores are gathered while records
 * are added, each once.
 *
 * Source: gperftools doc/cpuprofile-fileformat.html, src/profiledata.cc;
 * google/pprof profile/legacy_profile.go (cpuProfile).
 */
#include "collect/cpu/cpu_legacy.h"

#include "base/status.h"
#include "base/writer.h"
#include "collect/encode/builder.h"
#include "collect/signal/sample/ring.h"
#include "collect/signal/tables/scripts.h"

#include <inttypes.h>
#include <string.h>

/* Size of the buffer in front of the writer. */
#define OUT_BYTES (64 * 1024)

/* Readers strip a caller that is missing in fewer than one of so many records.
 */
#define FEW 32

struct range {
    uint64_t start, limit, offset;
    size_t path; /* of its line in .maps */
};

/* ---- output ----------------------------------------------------------- */

static void
flush(struct cpprof__cpu_legacy *l)
{
    int sys;

    if (l->out.failed || l->maps.failed || l->ranges.failed)
        cpprof__fail_nomem(&l->error);
    if (l->error.status != CPPROF_OK || !l->out.n)
        return;
    sys = l->writer.write(l->writer.ctx, l->out.data, l->out.n);
    if (sys)
        cpprof__fail(&l->error, CPPROF_SYSTEM, sys, "write: %s", strerror(sys));
    l->out.n = 0;
}

static void
put_words(struct cpprof__cpu_legacy *l, const uint64_t *words, size_t n)
{
    if (l->error.status != CPPROF_OK)
        return;
    cpprof__buffer_append(&l->out, words, n * sizeof *words);
    if (l->out.failed || l->out.n >= OUT_BYTES)
        flush(l);
}

void
cpprof__cpu_legacy_begin(struct cpprof__cpu_legacy *l, uint64_t period_ns,
                         bool no_decoys, struct cpprof_writer writer)
{
    uint64_t period_us = (period_ns + 500) / 1000;
    const uint64_t words[] = {0, 3, 0, period_us ? period_us : 1, 0};

    memset(l, 0, sizeof *l);
    l->writer = writer;
    l->no_decoys = no_decoys;
    put_words(l, words, sizeof words / sizeof *words);
}

/* ---- mappings --------------------------------------------------------- */

static bool
is_there(const struct cpprof__cpu_legacy *l, const struct range *range,
         const char *path)
{
    const struct range *ranges = (const void *)l->ranges.data;
    size_t i, n_path = strlen(path);

    if (l->maps.failed)
        return false;
    for (i = 0; i < l->ranges.n / sizeof *ranges; i++) {
        const struct range *other = &ranges[i];

        if (other->start == range->start && other->limit == range->limit &&
            other->offset == range->offset &&
            l->maps.n - other->path > n_path &&
            !memcmp(l->maps.data + other->path, path, n_path) &&
            l->maps.data[other->path + n_path] == '\n')
            return true;
    }
    return false;
}

/* Escaped as the kernel prints a path: a line break would begin another
 * mapping. */
static void
put_path(struct cpprof__buffer *maps, const char *path)
{
    for (; *path; path++)
        if (*path == '\n')
            cpprof__buffer_append(maps, "\\012", 4);
        else
            cpprof__buffer_append(maps, path, 1);
    cpprof__buffer_append(maps, "\n", 1);
}

static void
add_mappings(struct cpprof__cpu_legacy *l, const struct cpprof__store *store)
{
    uint32_t i;

    for (i = 0; i < store->head->n_mappings; i++) {
        const struct cpprof__store_mapping *m = &store->mappings[i];
        struct range range = {m->start, m->limit, m->offset, 0};
        const char *path = cpprof__store_text(store, m->path);

        if (is_there(l, &range, path))
            continue;
        cpprof__buffer_printf(&l->maps,
                              "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64
                              " 00:00 %" PRIu64 " ",
                              m->start, m->limit, m->offset, m->inode);
        range.path = l->maps.n;
        put_path(&l->maps, path);
        cpprof__buffer_append(&l->ranges, &range, sizeof range);
    }
}

/* ---- records ---------------------------------------------------------- */

/*
 * The leaf as it is, callers as return addresses. Frames of scripts have no
 * address and are left out. A reader takes a caller whose return address equals
 * the leaf for a second copy of the leaf; so it gets the byte before, which
 * belongs to the same call.
 */
static size_t
stack_of(const struct cpprof__store *store, uint32_t node, uint64_t *pcs)
{
    size_t n = 0;

    for (; node && n < CPPROF__RING_MAX_PCS; node = store->nodes[node].parent) {
        uint64_t pc = store->nodes[node].pc;

        if (cpprof__is_script(pc))
            continue;
        pcs[n] = n ? pc + 1 : pc;
        if (n == 1 && pcs[1] == pcs[0])
            pcs[1]--;
        n++;
    }
    if (!n)
        pcs[n++] = CPPROF__FRAME_BROKEN;
    return n;
}

static void
put_record(struct cpprof__cpu_legacy *l, uint64_t count, uint64_t n)
{
    const uint64_t words[] = {count, n};

    put_words(l, words, 2);
    l->n_records++;
}

void
cpprof__cpu_legacy_add(struct cpprof__cpu_legacy *l,
                       const struct cpprof__store *store)
{
    uint64_t pcs[CPPROF__RING_MAX_PCS];
    uint32_t i;

    add_mappings(l, store);
    for (i = 0; i < store->head->n_samples; i++) {
        const struct cpprof__store_sample *sample = &store->samples[i];
        size_t n;

        if (!sample->count)
            continue;
        n = stack_of(store, sample->node, pcs);
        put_record(l, sample->count, n);
        put_words(l, pcs, n);
    }
}

/*
 * A caller that no stack has: the first byte of a mapping, which no call
 * returns to. N records may all have one caller in common. With d decoys that
 * caller is in fewer than (N + d) - (N + d) / 32 of them.
 */
static void
put_decoys(struct cpprof__cpu_legacy *l)
{
    const struct range *first = (const void *)l->ranges.data;
    uint64_t start = l->ranges.n ? first->start : CPPROF__FRAME_END;
    const uint64_t record[] = {0, 2, start, start + 1};
    uint64_t n = l->n_records ? l->n_records / (FEW - 1) + 2 : 0;

    while (n-- > 0)
        put_words(l, record, 4);
}

enum cpprof_status
cpprof__cpu_legacy_end(struct cpprof__cpu_legacy *l, uint64_t lost,
                       struct cpprof_error *error)
{
    static const uint64_t trailer[] = {0, 1, 0};
    static const char title[] = "\nMAPPED_LIBRARIES:\n";
    const uint64_t frame = CPPROF__FRAME_LOST;

    if (lost) {
        put_record(l, lost, 1);
        put_words(l, &frame, 1);
    }
    if (!l->no_decoys)
        put_decoys(l);
    put_words(l, trailer, 3);
    cpprof__buffer_append(&l->out, title, sizeof title - 1);
    cpprof__buffer_append(&l->out, l->maps.data, l->maps.n);
    flush(l);
    cpprof__writer_end(&l->writer, &l->error);
    cpprof__buffer_free(&l->out);
    cpprof__buffer_free(&l->maps);
    cpprof__buffer_free(&l->ranges);
    if (l->error.status != CPPROF_OK && error)
        *error = l->error;
    return l->error.status;
}
