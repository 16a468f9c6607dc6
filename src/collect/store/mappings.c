/* SPDX-License-Identifier: MIT */
/*
 * The executable mappings of a store, kept up to date with /proc/self/maps.
 *
 * A refresh compares the maps with what is known: new mappings are added, those
 * that have gone are marked and stay for the samples that refer to them. The
 * program's own mapping is added first, because readers take the first one for
 * it.
 *
 * An address that lies in none of the mappings that are there now makes the
 * maps be read again, once between two drains, unless it lay in none after the
 * last reading either. It is code that a compiler made at run time, where other
 * code may come to lie: so it is kept with the length, at this drain, of the
 * file that names such code.
 */
#include "collect/store/mappings.h"

#include "arch/atomic.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "collect/runtime/proc.h"
#include "collect/signal/tables/scripts.h"
#include "collect/signal/tables/stack_tree.h"
#include "object/build_id.h"
#include "object/symbolizer.h"
#include <cpprof/object.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
cpprof__mappings_init(struct cpprof__mappings *m, struct cpprof__store *store,
                      bool live)
{
    uint32_t i, at;

    memset(m, 0, sizeof *m);
    m->store = store;
    m->live = live;
    for (i = 0; i < store->head->n_mappings; i++) {
        if (store->mappings[i].is_gone)
            continue;
        for (at = m->n_now++; at > 0; at--) {
            if (store->mappings[m->now[at - 1]].start <=
                store->mappings[i].start)
                break;
            m->now[at] = m->now[at - 1];
        }
        m->now[at] = i;
    }
}

void
cpprof__mappings_begin(struct cpprof__mappings *m)
{
    m->refreshed = false;
    m->has_code = false;
}

/* How long the file is by now in which a JIT compiler names its code: that
 * which it maps to tell where it is, or else the perf map. */
static uint32_t
code_now(const struct cpprof__mappings *m)
{
    const struct cpprof__store *store = m->store;
    const char *path = NULL;
    char map[64];
    struct stat info;
    uint32_t i;

    for (i = 0; i < m->n_now && !path; i++) {
        path = cpprof__store_text(store, store->mappings[m->now[i]].path);
        if (cpprof__jit_dump_pid(path) != getpid())
            path = NULL;
    }
    snprintf(map, sizeof map, "/tmp/perf-%d.map", getpid());
    return stat(path ? path : map, &info) == 0 && info.st_size > 0
               ? cpprof__made_code((uint64_t)info.st_size)
               : CPPROF__NO_MAPPING;
}

static uint32_t
made_code(struct cpprof__mappings *m)
{
    if (m->live && !m->has_code) {
        m->code = code_now(m);
        m->has_code = true;
    }
    return m->live ? m->code : CPPROF__NO_MAPPING;
}

static bool
same(const struct cpprof__store *store,
     const struct cpprof__store_mapping *known, const struct cpprof_map *line)
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
image_base(const char *text, const char *end, const struct cpprof_map *line)
{
    struct cpprof_map other = {.size = sizeof other};
    uint64_t base = line->offset ? 0 : line->start;

    while (cpprof_maps_next(&text, end, &other) && other.start < line->start)
        if (other.offset == 0 && other.inode == line->inode &&
            other.n_path == line->n_path &&
            memcmp(other.path, line->path, line->n_path) == 0)
            base = other.start;
    return base;
}

static void
find_build_id(const char *text, const char *end, const struct cpprof_map *line,
              char build_id[CPPROF_BUILD_ID_MAX])
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
    if (cpprof_build_id_of_file(path, build_id, NULL) != CPPROF_OK)
        build_id[0] = 0;
}

static uint32_t
add(struct cpprof__mappings *m, const char *text, const char *end,
    const struct cpprof_map *line)
{
    struct cpprof__store_mapping mapping = {
        .start = line->start,
        .limit = line->limit,
        .offset = line->offset,
        .inode = line->inode,
    };
    char build_id[CPPROF_BUILD_ID_MAX];

    find_build_id(text, end, line, build_id);
    mapping.path = cpprof__store_add_text(m->store, line->path, line->n_path);
    mapping.build_id =
        cpprof__store_add_text(m->store, build_id, strlen(build_id));
    return cpprof__store_add_mapping(m->store, &mapping);
}

/* One pass over the maps, whose lines are in the order of addresses. The main
 * binary is added in a pass of its own before the others, because readers take
 * the first mapping for it. */
static void
see_lines(struct cpprof__mappings *m, const struct cpprof__buffer *text,
          const char *exe, bool only_exe)
{
    const char *p = (char *)text->data, *end = p + text->n;
    struct cpprof_map line = {.size = sizeof line};

    while (cpprof_maps_next(&p, end, &line)) {
        bool is_exe = strlen(exe) == line.n_path &&
                      memcmp(exe, line.path, line.n_path) == 0;
        uint32_t i, n = m->store->head->n_mappings;

        if (!cpprof_map_is_listed(&line) || (only_exe && !is_exe))
            continue;
        for (i = 0; i < n && !same(m->store, &m->store->mappings[i], &line);)
            i++;
        if (i == n)
            i = add(m, (char *)text->data, end, &line);
        if (only_exe || i == CPPROF__NO_MAPPING ||
            m->n_now == CPPROF__STORE_MAPPINGS)
            continue;
        store_relaxed(&m->store->mappings[i].is_gone, 0);
        m->now[m->n_now++] = i;
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
    m->n_now = 0;
    see_lines(m, &text, exe, true);
    see_lines(m, &text, exe, false);
    cpprof__buffer_free(&text);
    memset(m->unknown, 0, sizeof m->unknown);
}

static uint32_t
search(const struct cpprof__mappings *m, uint64_t pc)
{
    uint32_t lo = 0, hi = m->n_now;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        const struct cpprof__store_mapping *known =
            &m->store->mappings[m->now[mid]];

        if (pc < known->start)
            hi = mid;
        else if (pc >= known->limit)
            lo = mid + 1;
        else
            return m->now[mid];
    }
    return CPPROF__NO_MAPPING;
}

static uint32_t
find_one(struct cpprof__mappings *m, uint64_t pc)
{
    uint64_t *unknown =
        &m->unknown[cpprof__mix_u64(pc) % CPPROF__MAPPINGS_UNKNOWN];
    uint32_t mapping;

    if (pc < CPPROF__FRAME_END || cpprof__is_script(pc))
        return CPPROF__NO_MAPPING;
    mapping = search(m, pc);
    if (mapping != CPPROF__NO_MAPPING)
        return mapping;
    if (m->live && !m->refreshed && *unknown != pc) {
        cpprof__mappings_refresh(m);
        mapping = search(m, pc);
    }
    if (mapping != CPPROF__NO_MAPPING)
        return mapping;
    *unknown = pc;
    return made_code(m);
}

void
cpprof__mappings_find(struct cpprof__mappings *m, const uint64_t *pcs, size_t n,
                      uint32_t *mappings)
{
    size_t i;

    for (i = 0; i < n; i++)
        mappings[i] = find_one(m, pcs[i]);
}
