/* SPDX-License-Identifier: MIT */
/*
 * The executable mappings of a store, kept up to date with /proc/self/maps.
 *
 * A refresh compares the maps with what is known: new mappings are added, those
 * that have gone are marked and stay for the samples that refer to them. The
 * program's own mapping is added first, because readers take the first one for
 * it.
 *
 * An address is looked up in a small cache, then among all live mappings. If it
 * lies in none, the maps are read again, once between two drains.
 */
#include "collect/store/mappings.h"

#include "arch/atomic.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "collect/runtime/proc.h"
#include "collect/signal/tables/scripts.h"
#include "collect/store/frame.h"
#include "object/build_id.h"
#include "object/maps.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

void
cpprof__mappings_init(struct cpprof__mappings *m, struct cpprof__store *store,
                      bool live)
{
    memset(m, 0, sizeof *m);
    m->store = store;
    m->live = live;
}

void
cpprof__mappings_begin(struct cpprof__mappings *m)
{
    m->refreshed = false;
}

static bool
same(const struct cpprof__store *store,
     const struct cpprof__store_mapping *known,
     const struct cpprof__map_line *line)
{
    const char *path = cpprof__store_text(store, known->path);

    return known->start == line->start && known->limit == line->limit &&
           known->offset == line->offset && known->inode == line->inode &&
           strlen(path) == line->n_path &&
           memcmp(path, line->path, line->n_path) == 0;
}

/* Where the image that line is a part of begins: the mapping of its first
 * page, which comes before it in the same file. */
static uint64_t
image_base(const char *text, const char *end,
           const struct cpprof__map_line *line)
{
    struct cpprof__map_line other;
    uint64_t base = line->offset ? 0 : line->start;

    while (cpprof__maps_next(&text, end, &other) && other.start < line->start)
        if (other.offset == 0 && other.inode == line->inode &&
            other.n_path == line->n_path &&
            memcmp(other.path, line->path, line->n_path) == 0)
            base = other.start;
    return base;
}

static void
find_build_id(const char *text, const char *end,
              const struct cpprof__map_line *line,
              char build_id[CPPROF__BUILD_ID_TEXT])
{
    uint64_t base = image_base(text, end, line);
    char path[PATH_MAX];

    build_id[0] = 0;
    if (base && cpprof__build_id_of_memory(base, build_id, NULL) == CPPROF_OK)
        return;
    build_id[0] = 0;
    if (line->deleted || line->n_path >= sizeof path || line->path[0] != '/')
        return;
    memcpy(path, line->path, line->n_path);
    path[line->n_path] = 0;
    if (cpprof__build_id_of_file(path, build_id, NULL) != CPPROF_OK)
        build_id[0] = 0;
}

static void
add(struct cpprof__mappings *m, const char *text, const char *end,
    const struct cpprof__map_line *line)
{
    struct cpprof__store_mapping mapping = {
        .start = line->start,
        .limit = line->limit,
        .offset = line->offset,
        .inode = line->inode,
    };
    char build_id[CPPROF__BUILD_ID_TEXT];

    find_build_id(text, end, line, build_id);
    mapping.path = cpprof__store_add_text(m->store, line->path, line->n_path);
    mapping.build_id =
        cpprof__store_add_text(m->store, build_id, strlen(build_id));
    cpprof__store_add_mapping(m->store, &mapping);
}

static bool
is_known(struct cpprof__mappings *m, const struct cpprof__map_line *line)
{
    uint32_t i;

    for (i = 0; i < m->store->head->n_mappings; i++) {
        struct cpprof__store_mapping *known = &m->store->mappings[i];

        if (same(m->store, known, line)) {
            store_relaxed(&known->is_gone, 0);
            return true;
        }
    }
    return false;
}

/* One pass over the maps that adds what is new; the main binary in a pass of
 * its own before the others, because readers take the first mapping for it. */
static void
add_new(struct cpprof__mappings *m, const char *text, const char *end,
        const char *exe, bool only_exe)
{
    struct cpprof__map_line line;
    const char *p = text;

    while (cpprof__maps_next(&p, end, &line)) {
        bool is_exe = strlen(exe) == line.n_path &&
                      memcmp(exe, line.path, line.n_path) == 0;

        if (!cpprof__map_line_is_listed(&line) || (only_exe && !is_exe))
            continue;
        if (!is_known(m, &line))
            add(m, text, end, &line);
    }
}

void
cpprof__mappings_refresh(struct cpprof__mappings *m)
{
    struct cpprof__buffer text = {0};
    char exe[PATH_MAX];
    uint32_t i;

    m->refreshed = true;
    if (!cpprof__proc_maps(&text))
        return;
    cpprof__proc_exe(exe, sizeof exe);
    for (i = 0; i < m->store->head->n_mappings; i++)
        store_relaxed(&m->store->mappings[i].is_gone, 1);
    add_new(m, (char *)text.data, (char *)text.data + text.n, exe, true);
    add_new(m, (char *)text.data, (char *)text.data + text.n, exe, false);
    cpprof__buffer_free(&text);
    memset(m->cache, 0, sizeof m->cache);
}

static uint32_t
search(const struct cpprof__mappings *m, uint64_t pc)
{
    uint32_t i, n = m->store->head->n_mappings;

    for (i = 0; i < n; i++) {
        const struct cpprof__store_mapping *known = &m->store->mappings[i];

        if (pc >= known->start && pc < known->limit && !known->is_gone)
            return i;
    }
    return CPPROF__STORE_NO_MAPPING;
}

uint32_t
cpprof__mappings_find(struct cpprof__mappings *m, uint64_t pc)
{
    struct cpprof__mapping_cached *cached =
        &m->cache[cpprof__mix_u64(pc) % CPPROF__MAPPING_CACHE];
    uint32_t mapping;

    if (pc < CPPROF__FRAME_END || cpprof__is_script(pc))
        return CPPROF__STORE_NO_MAPPING;
    if (cached->pc == pc)
        return cached->mapping;
    mapping = search(m, pc);
    if (mapping == CPPROF__STORE_NO_MAPPING && m->live && !m->refreshed) {
        cpprof__mappings_refresh(m);
        mapping = search(m, pc);
    }
    cached->pc = pc;
    cached->mapping = mapping;
    return mapping;
}
