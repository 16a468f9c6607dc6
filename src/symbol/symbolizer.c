/* SPDX-License-Identifier: MIT */
/*
 * libcpprof-symbol.so: the operations of object/symbolizer.h. Each address
 * goes to the module of its mapping and, if that says nothing, to the map that
 * a JIT compiler left.
 *
 * Modules outlive a process if another one may have the same: if they have a
 * build id, and were found.
 */
#include "object/symbolizer.h"

#include "own/memory.h"
#include "symbol/elf/array.h"
#include "symbol/elf/way_out.h"
#include "symbol/perf_map.h"
#include "symbol/resolve.h"

#include <cpprof/status.h>
#include <string.h>
#include <unistd.h>

/* Tunable: so many modules at most are kept for the next process. Each has its
 * files mapped, and some megabytes if there is much debug information. */
#define KEPT_MAX 256

struct mapping {
    struct cpprof__symbolizer_mapping as_given; /* strings: the module's */
    struct cpprof__module *module;
};

struct cpprof__symbolizer {
    struct cpprof__symbolizer_options options;
    struct cpprof__names names;
    struct cpprof__perf_map perf_map;
    uint64_t n_code_bytes; /* of its file, that count */
    CPPROF__ARRAY(struct mapping) mappings;
    CPPROF__ARRAY(struct cpprof__module *) modules; /* by path and build id */
};

static struct cpprof__symbolizer *
make(const struct cpprof__symbolizer_options *options)
{
    struct cpprof__symbolizer *s =
        cpprof__way_out_is_ready() ? cpprof__calloc(1, sizeof *s) : NULL;

    if (!s)
        return NULL;
    s->options = *options;
    if (s->options.pid <= 0)
        s->options.pid = getpid();
    cpprof__perf_map_init(&s->perf_map, &s->options.fetcher, s->options.pid);
    s->n_code_bytes = UINT64_MAX;
    return s;
}

static bool
no_module(const struct cpprof__module *module)
{
    (void)module;
    return false;
}

static bool
is_lasting(const struct cpprof__module *module)
{
    return *module->build_id && module->is_opened && !module->is_broken &&
           (module->image.elf || module->debug.elf);
}

/* Close all modules but those to keep. */
static void
close_modules(struct cpprof__symbolizer *s,
              bool (*is_kept)(const struct cpprof__module *module))
{
    size_t i, n = 0;

    for (i = 0; i < s->modules.n; i++) {
        struct cpprof__module *module = s->modules.at[i];

        if (is_kept(module)) {
            s->modules.at[n++] = module;
            continue;
        }
        cpprof__module_close(module);
        cpprof__free(module);
    }
    s->modules.n = n;
}

static void
free_symbolizer(struct cpprof__symbolizer *s)
{
    if (!s)
        return;
    close_modules(s, no_module);
    cpprof__free(s->modules.at);
    cpprof__free(s->mappings.at);
    cpprof__perf_map_free(&s->perf_map);
    cpprof__names_free(&s->names);
    cpprof__free(s);
}

static struct cpprof__module *
make_module(const struct cpprof__symbolizer_mapping *mapping)
{
    struct cpprof__module *module = cpprof__calloc(1, sizeof *module);

    if (!module)
        return NULL;
    module->path = cpprof__strdup(mapping->path);
    if (!module->path) {
        cpprof__free(module);
        return NULL;
    }
    strncat(module->build_id, mapping->build_id, CPPROF_BUILD_ID_MAX - 1);
    module->inode = mapping->inode;
    module->map_start = mapping->start;
    module->map_limit = mapping->limit;
    return module;
}

static struct cpprof__module *
find_module(const struct cpprof__symbolizer *s,
            const struct cpprof__symbolizer_mapping *mapping)
{
    size_t i;

    for (i = 0; i < s->modules.n; i++)
        if (strcmp(s->modules.at[i]->path, mapping->path) == 0 &&
            strncmp(s->modules.at[i]->build_id, mapping->build_id,
                    CPPROF_BUILD_ID_MAX - 1) == 0 &&
            (*mapping->build_id || s->modules.at[i]->inode == mapping->inode))
            return s->modules.at[i];
    return NULL;
}

static struct cpprof__module *
find_or_make_module(struct cpprof__symbolizer *s,
                    const struct cpprof__symbolizer_mapping *mapping)
{
    struct cpprof__module *module = find_module(s, mapping);

    if (module || !CPPROF__BOUNDED_ROOM(&s->modules))
        return module;
    module = make_module(mapping);
    if (module)
        s->modules.at[s->modules.n++] = module;
    return module;
}

/* A symbolizer that is kept is told of the same mappings again. */
static size_t
find_mapping(const struct cpprof__symbolizer *s,
             const struct cpprof__module *module,
             const struct cpprof__symbolizer_mapping *mapping)
{
    size_t i;

    for (i = 0; i < s->mappings.n; i++) {
        const struct mapping *m = &s->mappings.at[i];

        if (m->module == module && m->as_given.start == mapping->start &&
            m->as_given.limit == mapping->limit &&
            m->as_given.offset == mapping->offset)
            return i;
    }
    return SIZE_MAX;
}

static size_t
add_mapping(struct cpprof__symbolizer *s,
            const struct cpprof__symbolizer_mapping *mapping)
{
    struct cpprof__module *module = find_or_make_module(s, mapping);
    size_t found = module ? find_mapping(s, module, mapping) : SIZE_MAX;
    struct mapping *added;

    cpprof__perf_map_see(&s->perf_map, mapping->path);
    if (found != SIZE_MAX || !module || !CPPROF__BOUNDED_ROOM(&s->mappings))
        return found;
    added = &s->mappings.at[s->mappings.n];
    added->module = module;
    added->as_given = *mapping;
    added->as_given.path = added->module->path;
    added->as_given.build_id = added->module->build_id;
    return s->mappings.n++;
}

/* Compilers of C++ and Rust at run time write mangled names; the names of all
 * others are as they are written, with any '@' or '.' in them. */
static const char *
jit_name(struct cpprof__symbolizer *s, const struct cpprof__jit_place *place)
{
    bool is_mangled = place->n_name > 2 && (!memcmp(place->name, "_Z", 2) ||
                                            !memcmp(place->name, "_R", 2));

    return is_mangled
               ? cpprof__names_demangle(&s->names, place->name, place->n_name)
               : cpprof__names_add(&s->names, place->name, place->n_name);
}

static size_t
resolve_jit(struct cpprof__symbolizer *s, uint64_t pc,
            struct cpprof__frame *frame)
{
    struct cpprof__jit_place place;

    *frame = (struct cpprof__frame){0};
    if (!cpprof__perf_map_find(&s->perf_map, pc, s->n_code_bytes, &place))
        return 0;
    frame->system_name = cpprof__names_add(&s->names, place.name, place.n_name);
    frame->name = jit_name(s, &place);
    if (place.file && !s->options.functions_only) {
        frame->file = cpprof__names_add(&s->names, place.file, place.n_file);
        frame->line = place.line;
    }
    return frame->name && frame->system_name;
}

/* Code of the kernel's in every process, "[vdso]" and "[vsyscall]", by its
 * mapping. */
static size_t
resolve_kernel(const struct cpprof__module *module, struct cpprof__frame *frame)
{
    if (strcmp(module->path, "[vdso]") != 0 &&
        strcmp(module->path, "[vsyscall]") != 0)
        return 0;
    *frame = (struct cpprof__frame){
        .name = module->path, .system_name = module->path, .is_stand_in = true};
    return 1;
}

static size_t
resolve(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc,
        struct cpprof__frame *frames, size_t max)
{
    size_t n = 0;

    if (!max)
        return 0;
    if (mapping < s->mappings.n)
        n = cpprof__resolve(s->mappings.at[mapping].module, &s->options,
                            &s->names, &s->mappings.at[mapping].as_given, pc,
                            frames, max);
    if (!n)
        n = resolve_jit(s, pc, frames);
    if (!n && mapping < s->mappings.n)
        n = resolve_kernel(s->mappings.at[mapping].module, frames);
    return n;
}

static void
expect(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc)
{
    if (mapping < s->mappings.n)
        cpprof__module_expect(s->mappings.at[mapping].module, &s->options,
                              &s->mappings.at[mapping].as_given, pc);
}

static bool
knows_inlines(struct cpprof__symbolizer *s, size_t mapping)
{
    return mapping < s->mappings.n &&
           cpprof__resolves_inlines(s->mappings.at[mapping].module,
                                    &s->options);
}

/* What is held, and the module that holds most of it; NULL: none holds any. */
static size_t
add_up(const struct cpprof__symbolizer *s, struct cpprof__module **largest)
{
    size_t n = s->names.arena.n_bytes +
               s->names.items.capacity * sizeof *s->names.items.at +
               s->mappings.capacity * sizeof *s->mappings.at;
    size_t n_largest = 0, i;

    *largest = NULL;
    for (i = 0; i < s->modules.n; i++) {
        size_t n_module = cpprof__module_held(s->modules.at[i]);

        n += n_module;
        if (n_module > n_largest) {
            n_largest = n_module;
            *largest = s->modules.at[i];
        }
    }
    return n;
}

static size_t
trim(struct cpprof__symbolizer *s, size_t max_bytes)
{
    struct cpprof__module *largest;
    size_t n, i;

    for (i = 0; i < s->modules.n; i++)
        if (!cpprof__module_is_current(s->modules.at[i]))
            cpprof__module_forget(s->modules.at[i]);
    while ((n = add_up(s, &largest)) > max_bytes && largest)
        cpprof__module_forget(largest);
    return n;
}

static void
turn_to(struct cpprof__symbolizer *s, int32_t pid)
{
    close_modules(s, s->modules.n < KEPT_MAX ? is_lasting : no_module);
    s->mappings.n = 0;
    s->options.pid = pid;
    cpprof__perf_map_free(&s->perf_map);
    cpprof__perf_map_init(&s->perf_map, &s->options.fetcher, pid);
    s->n_code_bytes = UINT64_MAX;
}

static void
turn_to_code(struct cpprof__symbolizer *s, uint64_t n_bytes)
{
    s->n_code_bytes = n_bytes;
}

CPPROF_API extern const struct cpprof__symbolizer_ops cpprof__symbolizer;

const struct cpprof__symbolizer_ops cpprof__symbolizer = {
    .abi = CPPROF__SYMBOLIZER_ABI,
    .borrow = cpprof__memory_borrow,
    .make = make,
    .add_mapping = add_mapping,
    .expect = expect,
    .resolve = resolve,
    .turn_to_code = turn_to_code,
    .knows_inlines = knows_inlines,
    .trim = trim,
    .turn_to = turn_to,
    .free = free_symbolizer,
};
