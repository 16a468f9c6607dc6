/* SPDX-License-Identifier: MIT */
#include "profile/text/perf_mappings.h"

#include "profile/model/path.h"

#include <string.h>

#define PAGE UINT64_C(4096)

static void
finish_mapping(struct pprof_mapping *m)
{
    m->start &= -PAGE;
    m->limit |= PAGE - 1;
    m->limit += m->limit != UINT64_MAX;
    m->offset = m->start;
}

/* How well a mapping would do as the program: 2, named like the process, of
 * which 15 bytes are known; 1, neither kernel nor library; 0. */
static int
is_program(const struct pprof_profile *p, uint32_t comm_string,
           const struct pprof_mapping *m)
{
    const struct cpprof__strings *strings = &p->strings;
    const char *file = cpprof__strings_text(strings, m->file);
    const char *comm = cpprof__strings_text(strings, comm_string);
    size_t n = cpprof__strings_n(strings, m->file), n_base;
    size_t n_comm = cpprof__strings_n(strings, comm_string);
    const char *base = cpprof__path_base(file, n, &n_base);

    if (n_comm && memcmp(base, comm, n_comm < n_base ? n_comm : n_base) == 0 &&
        (n_comm == n_base || (n_comm == 15 && n_base > n_comm)))
        return 2;
    return n > 1 && file[0] == '/' && file[1] != '/' &&
           !memmem(base, n_base, ".so", 3) && !memmem(base, n_base, ".map", 4);
}

/* Tell what is known of the locations of each mapping. */
static void
set_flags(struct pprof_profile *p)
{
    size_t i;

    for (i = 0; i < p->mappings.n; i++)
        p->mappings.at[i].flags = PPROF_HAS_FUNCTIONS;
    for (i = 0; i < p->locations.n; i++) {
        const struct pprof_location *l = &p->locations.at[i];

        if (l->mapping == PPROF_NONE)
            continue;
        if (!l->n_lines)
            p->mappings.at[l->mapping].flags &= ~PPROF_HAS_FUNCTIONS;
        if (l->n_lines > 1)
            p->mappings.at[l->mapping].flags |= PPROF_HAS_INLINE_FRAMES;
    }
}

/* Make a mapping the first one. */
static void
move_to_front(struct pprof_profile *p, uint32_t mapping)
{
    struct pprof_mapping moved = p->mappings.at[mapping];
    size_t i;

    memmove(p->mappings.at + 1, p->mappings.at,
            mapping * sizeof *p->mappings.at);
    p->mappings.at[0] = moved;
    for (i = 0; i < p->mappings.n; i++)
        p->mappings.at[i].id = i + 1;
    for (i = 0; i < p->locations.n; i++) {
        uint32_t *m = &p->locations.at[i].mapping;

        if (*m == mapping)
            *m = 0;
        else if (*m < mapping)
            ++*m;
    }
}

void
cpprof__perf_mappings(struct pprof_profile *p, uint32_t comm)
{
    int best = 0;
    size_t i, main = 0;

    for (i = 0; i < p->mappings.n; i++) {
        int how = is_program(p, comm, &p->mappings.at[i]);

        finish_mapping(&p->mappings.at[i]);
        if (how > best) {
            best = how;
            main = i;
        }
    }
    if (main)
        move_to_front(p, (uint32_t)main);
    set_flags(p);
}
