/* SPDX-License-Identifier: MIT */
/*
 * From the samples of a profile to counts of addresses, by the builds of the
 * program. The address of a leaf is one of an instruction that took time. All
 * others of a stack lie inside a call, and with the frame below say who was
 * called. A call counts once in a stack, however often it recurs.
 *
 * The program is what -binary names, else the first mapping; all files of its
 * name are builds of it, told apart by their build ids.
 */
#include "cli/pgo/pgo.h"

#include "base/status.h"
#include "base/text.h"
#include "cli/fetch/debuginfod.h"
#include "cli/messages.h"
#include "profile/model/model.h"
#include "profile/model/path.h"
#include "symbolize/given.h"
#include "symbolize/image_find.h"

#include <string.h>

#define NO_BUILD UINT32_MAX

/* What a location is: somewhere in a routine. */
struct spot {
    uint32_t build; /* NO_BUILD: outside of the program */
    uint32_t name;  /* of its routine; 0: unknown */
    uint64_t address, start, limit;
    bool has_lines, is_line_0, has_discriminator, is_whole;
};

struct pair {
    uint32_t site; /* location */
    uint32_t callee;
};

struct work {
    struct cpprof__pgo_counts *counts;
    const struct cpprof__pgo_request *request;
    struct pprof_profile *p;
    struct pprof_symbolize_options options;
    struct cpprof__given *given;
    uint32_t *builds;   /* by mapping */
    struct spot *spots; /* by location */
    double *outside;    /* by string: samples in files that are not of it */
    size_t value;       /* the sample type */
    double unit;        /* what one sample of it is */
    CPPROF__ARRAY(struct pair) pairs; /* of one sample */
    struct cpprof__frame frames[CPPROF__LOOKUP_FRAMES];
    bool failed; /* out of memory */
};

/* -------------------------------------------------------- what it is ---- */

static const char *
text_of(const struct work *w, uint32_t string)
{
    return cpprof__strings_text(&w->p->strings, string);
}

static bool
is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strstr(text, *words))
            return true;
    return false;
}

/* Choose the values that say how often a place was met. */
static enum cpprof_status
choose_value(struct work *w, struct cpprof_error *error)
{
    static const char *const other[] = {"wall",  "space",       "objects",
                                        "delay", "contentions", NULL};
    static const char *const fit[] = {"samples", "cpu",   "cycles",
                                      "clock",   "event", NULL};
    const struct pprof_profile *p = w->p;
    size_t i, found = p->sample_types.n;

    for (i = 0; i < p->sample_types.n; i++) {
        const char *type = text_of(w, p->sample_types.at[i].type);

        if (is_one_of(type, other))
            return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                                "a profile of %s does not say how often code "
                                "runs; record one of CPU time: cpprof record "
                                "-t cpu",
                                type);
        if (found == p->sample_types.n && is_one_of(type, fit))
            found = i;
    }
    if (found == p->sample_types.n)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "no profile of CPU time: it has no samples, cpu "
                            "or cycles");
    w->value = found;
    w->unit = 1;
    if (strcmp(text_of(w, p->sample_types.at[found].unit), "count") == 0)
        return CPPROF_OK;
    w->unit = (double)p->info.period;
    if (p->info.period > 0)
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "the profile has %s in %s and no period, so nobody "
                        "knows how many samples it has",
                        text_of(w, p->sample_types.at[found].type),
                        text_of(w, p->sample_types.at[found].unit));
}

static enum cpprof_status
check_addresses(const struct work *w, struct cpprof_error *error)
{
    const struct pprof_profile *p = w->p;
    size_t i;

    if (!p->samples.n)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "the profile has no samples: record for longer, "
                            "while the program works");
    for (i = 0; i < p->locations.n; i++)
        if (p->locations.at[i].address &&
            p->locations.at[i].mapping != PPROF_NONE)
            return CPPROF_OK;
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "the profile has no addresses, only names: it does not "
                        "say which block of a function ran; use the pprof file "
                        "that was recorded");
}

/* ------------------------------------------------------------ builds ---- */

/* The last element of a path. */
struct base {
    const char *at;
    size_t n;
};

static struct base
base_of(const char *path)
{
    struct base base;

    base.at = cpprof__path_base(path, strlen(path), &base.n);
    return base;
}

/* The build of a file name and build id, added if it is new. */
static uint32_t
find_build(struct work *w, const char *file, const char *build_id)
{
    struct cpprof__pgo_counts *c = w->counts;
    struct cpprof__pgo_build *b;
    uint32_t i;

    for (i = 0; i < c->builds.n; i++)
        if (strcmp(c->builds.at[i].build_id, build_id) == 0 &&
            (*build_id || strcmp(c->builds.at[i].name, file) == 0))
            return i;
    b = CPPROF__ARRAY_ADD(&c->builds);
    if (!b) {
        w->failed = true;
        return NO_BUILD;
    }
    *b = (struct cpprof__pgo_build){.name = strdup(file),
                                    .build_id = strdup(build_id)};
    w->failed |= !b->name || !b->build_id;
    return (uint32_t)(c->builds.n - 1);
}

/* Is the mapping of the program? */
static bool
is_program(const struct work *w, uint32_t mapping, uint32_t program)
{
    const struct pprof_mapping *m = w->p->mappings.at;
    struct base a = base_of(text_of(w, m[mapping].file));
    struct base b = base_of(text_of(w, m[program].file));

    if (mapping == program ||
        cpprof__given_for(w->given, w->request->n_binaries, w->p, mapping))
        return true;
    return a.n == b.n && a.n && memcmp(a.at, b.at, a.n) == 0;
}

/* The mapping of what -binary names, else the first one. */
static uint32_t
program_of(const struct work *w)
{
    uint32_t i;

    for (i = 0; w->given && i < w->p->mappings.n; i++)
        if (cpprof__given_for(w->given, w->request->n_binaries, w->p, i))
            return i;
    return 0;
}

static bool
has_code(const struct cpprof__image *image)
{
    size_t i;

    for (i = 0; i < image->n_loads; i++)
        if (image->loads[i].executable && image->loads[i].file_bytes)
            return true;
    return false;
}

/* Is the code there? Then it is the build's. */
static bool
try_code(struct work *w, struct cpprof__pgo_build *b,
         const struct cpprof__wanted_image *wanted)
{
    struct cpprof__image image = {0};
    struct cpprof_error error = {0};
    char path[PATH_MAX];

    if (cpprof__find_image(&image, wanted, path, &error) != CPPROF_OK)
        return false;
    if (has_code(&image)) {
        b->code = strdup(path);
        w->failed |= !b->code;
    }
    cpprof__image_close(&image);
    return b->code != NULL;
}

/* What has the lines may be a file of debug information: then the code is in
 * another one that was given, or in the file that the profile names. */
static void
find_code(struct work *w, struct cpprof__pgo_build *b,
          struct cpprof__wanted_image wanted)
{
    const char *named = wanted.file;
    size_t i;

    if (try_code(w, b, &wanted))
        return;
    for (i = 0; i < w->request->n_binaries; i++) {
        wanted.file = w->request->binaries[i];
        if (wanted.file != named && try_code(w, b, &wanted))
            return;
    }
    wanted.file = b->name;
    try_code(w, b, &wanted);
}

/* Open the file of a mapping, for its build. */
static void
open_build(struct work *w, uint32_t mapping)
{
    const struct pprof_mapping *m = &w->p->mappings.at[mapping];
    struct cpprof__pgo_build *b = &w->counts->builds.at[w->builds[mapping]];
    const char *given =
        cpprof__given_for(w->given, w->request->n_binaries, w->p, mapping);
    struct cpprof__wanted_image wanted = {
        .file = given ? given : text_of(w, m->file),
        .build_id = text_of(w, m->build_id),
        .range = {m->start, m->limit, m->offset},
        .options = &w->options,
    };
    char path[PATH_MAX];
    struct cpprof_error error = {0};
    bool nomem;

    if (b->path)
        return;
    if (cpprof__find_image(&b->image, &wanted, path, &error) != CPPROF_OK) {
        if (!b->why && error.status == CPPROF_BAD_DATA)
            b->why = strdup(error.text);
        return;
    }
    b->path = strdup(path);
    find_code(w, b, wanted);
    b->number = cpprof__lookup_binary(&w->counts->lookup, path,
                                      b->image.build_id, &nomem);
    w->failed |= nomem || !b->path;
    if (!*b->build_id)
        cpprof__cli_warn("pgo: the profile has no build ID of %s: %s is taken "
                         "for what ran",
                         b->name, path);
}

static enum cpprof_status
find_builds(struct work *w, struct cpprof_error *error)
{
    const struct pprof_profile *p = w->p;
    uint32_t program, i;

    w->builds = malloc((p->mappings.n + 1) * sizeof *w->builds);
    if (!w->builds)
        return cpprof__fail_nomem(error);
    program = program_of(w);
    for (i = 0; i < p->mappings.n && !w->failed; i++) {
        const struct pprof_mapping *m = &p->mappings.at[i];

        w->builds[i] =
            is_program(w, i, program)
                ? find_build(w, text_of(w, m->file), text_of(w, m->build_id))
                : NO_BUILD;
        if (w->builds[i] != NO_BUILD && !w->failed)
            open_build(w, i);
    }
    if (w->counts->lookup.no_library)
        return cpprof__fail(error, CPPROF_SYSTEM, 0,
                            "libcpprof-symbol.so cannot be loaded");
    return w->failed ? cpprof__fail_nomem(error) : CPPROF_OK;
}

/* --------------------------------------------------------- locations ---- */

/* Are all frames in a function and on a line of which the compiler will know
 * what they are? Code that it made for no line is on line 0. */
static void
look_at_lines(struct spot *s, const struct cpprof__frame *frames, size_t n)
{
    bool has_starts = n > 0, has_lines = n > 0;
    size_t i;

    for (i = 0; i < n; i++) {
        has_starts &= frames[i].start_line != 0;
        has_lines &= frames[i].line != 0;
    }
    s->has_lines = has_starts && has_lines;
    s->is_line_0 = has_starts && !has_lines;
}

static uint32_t
add_name(struct work *w, const char *text, size_t n)
{
    uint32_t name = cpprof__strings_add(&w->counts->names, text, n);

    w->failed |= name == CPPROF__NO_STRING;
    return w->failed ? 0 : name;
}

static void
name_spot(struct work *w, struct spot *s)
{
    const struct cpprof__pgo_build *b = &w->counts->builds.at[s->build];
    size_t n = cpprof__lookup_frames(&w->counts->lookup, b->number, s->address,
                                     w->frames),
           i, n_name;
    const struct cpprof__frame *outer = &w->frames[n ? n - 1 : 0];

    if (!n || outer->is_stand_in)
        return;
    n_name = cpprof__symbol_source_length(outer->system_name,
                                          strlen(outer->system_name));
    s->name = add_name(w, outer->system_name, n_name);
    s->start = outer->entry;
    s->limit = outer->limit;
    s->is_whole = !strstr(outer->system_name + n_name, ".cold") &&
                  !strstr(outer->system_name + n_name, ".part");
    look_at_lines(s, w->frames, n);
    for (i = 0; i < n; i++)
        s->has_discriminator |= w->frames[i].discriminator != 0;
}

static bool
find_spots(struct work *w)
{
    const struct pprof_profile *p = w->p;
    size_t i;

    w->spots = calloc(p->locations.n + 1, sizeof *w->spots);
    if (!w->spots)
        return false;
    for (i = 0; i < p->locations.n && !w->failed; i++) {
        const struct pprof_location *l = &p->locations.at[i];
        const struct pprof_mapping *m = p->mappings.at + l->mapping;
        struct spot *s = &w->spots[i];

        s->build = l->mapping == PPROF_NONE ? NO_BUILD : w->builds[l->mapping];
        if (s->build == NO_BUILD || !w->counts->builds.at[s->build].path)
            continue;
        if (cpprof__image_address(
                &w->counts->builds.at[s->build].image,
                &(struct cpprof__mapped_range){m->start, m->limit, m->offset},
                l->address, &s->address))
            name_spot(w, s);
    }
    return !w->failed;
}

/* ----------------------------------------------------------- samples ---- */

static int
by_site(const void *x, const void *y)
{
    const struct pair *a = x, *b = y;

    if (a->site != b->site)
        return a->site < b->site ? -1 : 1;
    return (a->callee > b->callee) - (a->callee < b->callee);
}

/* The calls of a stack, each once. */
static bool
add_calls(struct work *w, const uint32_t *frames, uint32_t n, double value)
{
    struct cpprof__pgo_counts *c = w->counts;
    uint32_t i;
    size_t k;

    w->pairs.n = 0;
    if (!CPPROF__ARRAY_ROOM(&w->pairs, n))
        return false;
    for (i = 1; i < n; i++)
        if (w->spots[frames[i]].name && w->spots[frames[i - 1]].name)
            w->pairs.at[w->pairs.n++] =
                (struct pair){frames[i], w->spots[frames[i - 1]].name};
    if (w->pairs.n)
        qsort(w->pairs.at, w->pairs.n, sizeof *w->pairs.at, by_site);
    for (k = 0; k < w->pairs.n; k++) {
        const struct spot *s = &w->spots[w->pairs.at[k].site];
        struct cpprof__pgo_call *call;

        if (k && by_site(&w->pairs.at[k - 1], &w->pairs.at[k]) == 0)
            continue;
        call = CPPROF__ARRAY_ADD(&c->calls);
        if (!call)
            return false;
        *call = (struct cpprof__pgo_call){s->build, s->address,
                                          w->pairs.at[k].callee, value};
    }
    return true;
}

static bool
add_leaf(struct work *w, uint32_t location, double value)
{
    struct cpprof__pgo_counts *c = w->counts;
    const struct spot *s = &w->spots[location];
    struct cpprof__pgo_leaf *leaf;

    c->n_samples += value;
    if (s->build == NO_BUILD) {
        w->outside[cpprof__location_file(
            w->p, &w->p->locations.at[location])] += value;
        return true;
    }
    c->builds.at[s->build].n_samples += (uint64_t)(value + 0.5);
    if (!c->builds.at[s->build].path)
        return true;
    c->n_inside += value;
    c->n_named += s->name ? value : 0;
    c->n_lines += s->has_lines ? value : 0;
    c->n_line_0 += s->is_line_0 ? value : 0;
    c->n_discriminators += s->has_discriminator ? value : 0;
    if (!s->name)
        return true;
    leaf = CPPROF__ARRAY_ADD(&c->leaves);
    if (leaf)
        *leaf = (struct cpprof__pgo_leaf){s->build, s->address, value};
    return leaf != NULL;
}

static bool
add_samples(struct work *w)
{
    const struct pprof_profile *p = w->p;
    size_t i;

    w->outside = calloc(p->strings.table.n + 1, sizeof *w->outside);
    if (!w->outside)
        return false;
    for (i = 0; i < p->samples.n; i++) {
        const struct cpprof__sample *s = &p->samples.at[i];
        double value = (double)cpprof__values(p, i)[w->value] / w->unit;

        if (value <= 0 || !s->n_frames)
            continue;
        if (!add_leaf(w, p->frames.at[s->first_frame], value) ||
            !add_calls(w, p->frames.at + s->first_frame, s->n_frames, value))
            return false;
    }
    for (i = 1; i < p->strings.table.n; i++)
        if (w->outside[i] > w->counts->n_other) {
            w->counts->n_other = w->outside[i];
            w->counts->other = add_name(w, text_of(w, (uint32_t)i),
                                        strlen(text_of(w, (uint32_t)i)));
        }
    return !w->failed;
}

/* ------------------------------------------------------------ tables ---- */

static int
leaf_order(const void *x, const void *y)
{
    const struct cpprof__pgo_leaf *a = x, *b = y;

    if (a->build != b->build)
        return a->build < b->build ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

static int
call_order(const void *x, const void *y)
{
    const struct cpprof__pgo_call *a = x, *b = y;

    if (a->build != b->build)
        return a->build < b->build ? -1 : 1;
    if (a->site != b->site)
        return a->site < b->site ? -1 : 1;
    return (a->callee > b->callee) - (a->callee < b->callee);
}

static int
routine_order(const void *x, const void *y)
{
    const struct cpprof__pgo_routine *a = x, *b = y;

    if (a->build != b->build)
        return a->build < b->build ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

/* Sort an array and add up what is equal. */
#define ADD_UP(array, order)                                                   \
    do {                                                                       \
        size_t i_, n_ = 0;                                                     \
        if ((array)->n)                                                        \
            qsort((array)->at, (array)->n, sizeof *(array)->at, order);        \
        for (i_ = 0; i_ < (array)->n; i_++)                                    \
            if (n_ && order(&(array)->at[n_ - 1], &(array)->at[i_]) == 0)      \
                (array)->at[n_ - 1].n += (array)->at[i_].n;                    \
            else                                                               \
                (array)->at[n_++] = (array)->at[i_];                           \
        (array)->n = n_;                                                       \
    } while (0)

/* Where the routine is declared. */
static void
find_declaration(struct work *w, struct cpprof__pgo_routine *r)
{
    size_t n = cpprof__lookup_frames(&w->counts->lookup,
                                     w->counts->builds.at[r->build].number,
                                     r->start, w->frames);
    const struct cpprof__frame *outer = &w->frames[n ? n - 1 : 0];

    if (!n)
        return;
    r->line = outer->start_line;
    if (outer->file)
        r->file = add_name(w, outer->file, strlen(outer->file));
}

static bool
find_routines(struct work *w)
{
    struct cpprof__pgo_counts *c = w->counts;
    size_t i, k = 0;

    for (i = 0; i < w->p->locations.n; i++) {
        const struct spot *s = &w->spots[i];
        struct cpprof__pgo_routine *r;

        if (!s->name || !s->start || s->limit <= s->start)
            continue;
        r = CPPROF__ARRAY_ADD(&c->routines);
        if (!r)
            return false;
        *r = (struct cpprof__pgo_routine){.build = s->build,
                                          .start = s->start,
                                          .limit = s->limit,
                                          .name = s->name,
                                          .is_whole = s->is_whole};
    }
    ADD_UP(&c->routines, routine_order);
    for (i = 0; i < c->leaves.n && k < c->routines.n;) {
        const struct cpprof__pgo_leaf *leaf = &c->leaves.at[i];
        struct cpprof__pgo_routine *r = &c->routines.at[k];

        if (leaf->build > r->build ||
            (leaf->build == r->build && leaf->address >= r->limit)) {
            k++;
            continue;
        }
        if (leaf->build == r->build && leaf->address >= r->start)
            r->n += leaf->n;
        i++;
    }
    for (i = 0; i < c->routines.n && !w->failed; i++)
        find_declaration(w, &c->routines.at[i]);
    return !w->failed;
}

/* -------------------------------------------------------- everything ---- */

static enum cpprof_status
count(struct work *w, struct cpprof_error *error)
{
    struct cpprof__pgo_counts *c = w->counts;
    enum cpprof_status status = choose_value(w, error);

    if (status == CPPROF_OK)
        status = check_addresses(w, error);
    if (status == CPPROF_OK)
        status = cpprof__given_read(w->p, &w->options, &w->given, error);
    if (status == CPPROF_OK)
        status = find_builds(w, error);
    if (status != CPPROF_OK)
        return status;
    if (!find_spots(w) || !add_samples(w))
        return cpprof__fail_nomem(error);
    ADD_UP(&c->leaves, leaf_order);
    ADD_UP(&c->calls, call_order);
    return find_routines(w) ? CPPROF_OK : cpprof__fail_nomem(error);
}

static void
set_times(struct cpprof__pgo_counts *c, const struct work *w)
{
    const struct pprof_info *info = &w->p->info;

    c->seconds = (double)info->duration_ns / 1e9;
    if (info->period > 0 &&
        strcmp(text_of(w, info->period_type.unit), "nanoseconds") == 0)
        c->rate_hz = 1e9 / (double)info->period;
}

/* The lookup wants debug files alone. */
static bool
fetch_debug_file(void *ctx, const char *build_id, char *path, size_t n_path)
{
    (void)ctx;
    return cpprof__debuginfod_fetch(NULL, PPROF_WANTED_DEBUG_FILE, build_id,
                                    path, n_path);
}

/* The lookup tells one thing of a binary: a .dwo file that is not there. */
static void
tell_lost_split(void *ctx, const char *text)
{
    struct cpprof__pgo_counts *counts = ctx;

    counts->lacks_split = true;
    cpprof__cli_warn("pgo: %s", text);
}

enum cpprof_status
cpprof__pgo_count(struct cpprof__pgo_counts *counts,
                  const struct cpprof__pgo_request *request,
                  struct cpprof_error *error)
{
    struct work *w = calloc(1, sizeof *w);
    enum cpprof_status status;

    if (!w || !cpprof__strings_begin(&counts->names)) {
        free(w);
        return cpprof__fail_nomem(error);
    }
    w->counts = counts;
    w->request = request;
    w->p = request->profile;
    w->options = (struct pprof_symbolize_options){
        .size = sizeof w->options,
        .binaries = request->binaries,
        .n_binaries = request->n_binaries,
        .fetch = cpprof__debuginfod_is_on() ? cpprof__debuginfod_fetch : NULL};
    counts->lookup.discriminators = true;
    counts->lookup.fetcher.ctx = counts;
    counts->lookup.fetcher.warn = tell_lost_split;
    if (w->options.fetch)
        counts->lookup.fetcher.debug_file = fetch_debug_file;
    set_times(counts, w);
    status = count(w, error);
    free(w->given);
    free(w->builds);
    free(w->spots);
    free(w->outside);
    CPPROF__ARRAY_FREE(&w->pairs);
    free(w);
    return status;
}

void
cpprof__pgo_counts_free(struct cpprof__pgo_counts *counts)
{
    size_t i;

    for (i = 0; i < counts->builds.n; i++) {
        free(counts->builds.at[i].path);
        free(counts->builds.at[i].code);
        free(counts->builds.at[i].name);
        free(counts->builds.at[i].build_id);
        free(counts->builds.at[i].why);
        cpprof__image_close(&counts->builds.at[i].image);
    }
    CPPROF__ARRAY_FREE(&counts->builds);
    CPPROF__ARRAY_FREE(&counts->leaves);
    CPPROF__ARRAY_FREE(&counts->calls);
    CPPROF__ARRAY_FREE(&counts->routines);
    cpprof__strings_free(&counts->names);
    cpprof__lookup_free(&counts->lookup);
}
