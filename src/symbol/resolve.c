/* SPDX-License-Identifier: MIT */
/*
 * From an address to its frames.
 *
 * An answer comes from the first of these that has one: inlined frames out of
 * DWARF, the symbol table, DWARF's functions, the PLT, and the frame table,
 * which says where functions are but not their names.
 *
 * Invariant: all work on files happens under cpprof__without_exit(), because
 * the libraries below end the process when memory runs out; a module in which
 * that happened is broken and gives no answers any more.
 */
#include "symbol/resolve.h"

#include "symbol/elf/way_out.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * From an address of the process to one of the image, by way of the offset in
 * the file, which both know. The program headers of a debug file have lost
 * their offsets; an image that only has one is mapped from the page on that
 * its code begins in.
 */
static bool
to_image(const struct cpprof__module *module,
         const struct cpprof__symbolizer_mapping *mapping, uint64_t pc,
         uint64_t *address)
{
    if (cpprof__elf_address(&module->image, cpprof__module_offset(mapping, pc),
                            address))
        return true;
    *address = pc - mapping->start + module->text_start;
    return !module->image.elf && module->debug.elf;
}

/* "FUNCTION@plt" of the first n bytes. */
static const char *
add_stub(struct cpprof__names *names, const char *function, size_t n)
{
    struct cpprof__buffer text = {0};
    const char *name = NULL;

    cpprof__buffer_printf(&text, "%.*s@plt", (int)n, function);
    if (!text.failed)
        name = cpprof__names_add(names, (char *)text.data, text.n);
    cpprof__buffer_free(&text);
    return name;
}

static size_t
resolve_plt(struct cpprof__module *module, struct cpprof__names *names,
            uint64_t address, struct cpprof__frame *frame)
{
    const char *function =
        module->image.elf
            ? cpprof__plt_find(&module->image, &module->symbols, address)
            : NULL;
    const char *demangled =
        function ? cpprof__names_demangle(names, function, strlen(function))
                 : NULL;

    *frame = (struct cpprof__frame){0};
    if (demangled) {
        frame->name = add_stub(names, demangled, strlen(demangled));
        frame->system_name = add_stub(names, function, strcspn(function, "@"));
    }
    return frame->name && frame->system_name;
}

/* "[IMAGE+0xADDRESS]" or the like of a function that has no name. */
static const char *
add_stand_in(const struct cpprof__module *module, struct cpprof__names *names,
             const char *format, ...) __attribute__((format(printf, 3, 4)));

static const char *
add_stand_in(const struct cpprof__module *module, struct cpprof__names *names,
             const char *format, ...)
{
    const char *slash = strrchr(module->path, '/');
    struct cpprof__buffer text = {0};
    const char *name = NULL;
    char what[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    cpprof__buffer_printf(&text, "[%s%s]", slash ? slash + 1 : module->path,
                          what);
    if (!text.failed)
        name = cpprof__names_add(names, (char *)text.data, text.n);
    cpprof__buffer_free(&text);
    return name;
}

/* A question to a module, as one argument for cpprof__without_exit(). */
struct question {
    struct cpprof__module *module;
    const struct cpprof__symbolizer_options *options;
    struct cpprof__names *names;
    const struct cpprof__symbolizer_mapping *mapping;
    uint64_t pc;
    struct cpprof__frame *frames;
    size_t max;
    size_t n;       /* the answer */
    uint64_t start; /* if it is the frame table's: of the piece */
};

/* The function at address by the frame table. */
static size_t
resolve_piece(struct question *q, uint64_t address)
{
    struct cpprof__module *module = q->module;
    struct cpprof__frame *frame = q->frames;
    struct cpprof__piece piece;
    const char *name;
    bool is_part, is_sure = true;

    if (!cpprof__frame_table_find(&module->frame_table, address, &piece))
        return 0;
    is_part = piece.function != piece.start;
    name = cpprof__symbols_at(&module->symbols, piece.function, is_part);
    if (!name)
        name = cpprof__code_name(&module->code_names, &module->frame_table,
                                 &module->symbols, piece.function, &is_sure);
    *frame = (struct cpprof__frame){0};
    if (name && !cpprof__frame_of_symbol(q->names, name, frame))
        return 0;
    if (!name)
        frame->name = frame->system_name =
            add_stand_in(module, q->names, "+0x%" PRIx64, piece.function);
    frame->is_stand_in = !name || is_part || !is_sure;
    q->start = piece.start;
    return frame->name != NULL;
}

/* "[IMAGE after SYMBOL]": code that nothing covers, as some written by hand. */
static size_t
resolve_after(struct question *q, uint64_t address)
{
    struct cpprof__module *module = q->module;
    const char *symbol =
        module->path[0] == '/'
            ? cpprof__symbols_before(&module->symbols, &module->code, address,
                                     &q->start)
            : NULL;
    const char *name =
        symbol ? cpprof__names_demangle(q->names, symbol, strlen(symbol))
               : NULL;

    if (name)
        name = add_stand_in(module, q->names, " after %s", name);
    *q->frames = (struct cpprof__frame){
        .name = name, .system_name = name, .is_stand_in = true};
    return name != NULL;
}

/* The symbol that covers address. One without a size, as those of crtstuff.c,
 * does not where another function begins in between. */
static const char *
symbol_of(struct cpprof__module *module, uint64_t address)
{
    const struct cpprof__range *range =
        cpprof__symbols_range(&module->symbols, address);
    struct cpprof__piece piece;

    if (range && !cpprof__symbols_has_end(range) &&
        cpprof__frame_table_find(&module->frame_table, address, &piece) &&
        piece.start > range->start)
        return NULL;
    return cpprof__symbols_find(&module->symbols, address);
}

static size_t
resolve_address(struct question *q, uint64_t address)
{
    struct cpprof__module *module = q->module;
    struct cpprof__frame_source source = {.names = q->names,
                                          .units = &module->units,
                                          .scopes = &module->scopes,
                                          .code = &module->code,
                                          .symbols = &module->symbols};
    const char *symbol = symbol_of(module, address);
    size_t n = 0;

    if (!q->options->functions_only)
        n = cpprof__frames_find(&source, address, q->frames, q->max);
    if (!n && symbol)
        n = cpprof__frame_of_symbol(q->names, symbol, q->frames);
    if (!n && q->options->functions_only)
        n = cpprof__frames_find_function(&source, address, q->frames);
    if (!n)
        n = resolve_plt(module, q->names, address, q->frames);
    if (!n)
        n = resolve_piece(q, address);
    return n ? n : resolve_after(q, address);
}

/* The range of the function that covers address, or of the piece of it that
 * address lies in; NULL when that is not known. */
static const struct cpprof__range *
range_of(struct cpprof__module *module, uint64_t address)
{
    const struct cpprof__range *range =
        cpprof__symbols_range(&module->symbols, address);
    struct cpprof__unit *unit;

    if (range)
        return range;
    unit = cpprof__units_find(&module->units, address);
    return unit ? cpprof__ranges_find(&unit->ranges, address) : NULL;
}

static void
set_entry(struct question *q, uint64_t address)
{
    const struct cpprof__range *range =
        q->n && !q->start ? range_of(q->module, address) : NULL;
    uint64_t start = range ? range->start : q->start;
    size_t i;

    for (i = 0; i < q->n; i++) {
        q->frames[i].entry = start ? q->pc - (address - start) : 0;
        q->frames[i].limit = range ? q->pc + (range->limit - address) : 0;
    }
}

/* Functions that were inlined, and where functions are declared, are in a file
 * that is not there, or is a package, which libdw does not read. */
static void
note_lost_split(struct question *q, uint64_t address)
{
    struct cpprof__module *module = q->module;
    const struct cpprof__unit *unit =
        cpprof__units_find(&module->units, address);
    char package[PATH_MAX];
    bool has_package;

    if (!unit || !unit->lost_split)
        return;
    snprintf(package, sizeof package, "%s.dwp", module->path);
    has_package = access(package, F_OK) == 0;
    cpprof__module_tell_lost(
        module, &q->options->fetcher,
        "inlined functions are missing: %s is not there%s%s%s; put the "
        ".dwo files beside it",
        unit->lost_split, has_package ? ", and " : "",
        has_package ? package : "", has_package ? " is not read" : "");
}

static void
answer(void *arg)
{
    struct question *q = arg;
    uint64_t address = q->pc;

    cpprof__module_ready(q->module, q->options);
    if (!q->mapping || (!q->options->addresses &&
                        !to_image(q->module, q->mapping, q->pc, &address)))
        return;
    cpprof__module_ready_for(q->module, q->options, address);
    q->n = resolve_address(q, address);
    set_entry(q, address);
    note_lost_split(q, address);
}

size_t
cpprof__resolve(struct cpprof__module *module,
                const struct cpprof__symbolizer_options *options,
                struct cpprof__names *names,
                const struct cpprof__symbolizer_mapping *mapping, uint64_t pc,
                struct cpprof__frame *frames, size_t max)
{
    struct question q = {module, options, names, mapping,
                         pc,     frames,  max,   .n = 0};

    if (module->is_broken)
        return 0;
    if (!cpprof__without_exit(answer, &q)) {
        module->is_broken = true;
        return 0;
    }
    return q.n;
}

bool
cpprof__resolves_inlines(struct cpprof__module *module,
                         const struct cpprof__symbolizer_options *options)
{
    struct question q = {.module = module, .options = options};

    if (options->functions_only || module->is_broken)
        return false;
    if (!cpprof__without_exit(answer, &q))
        module->is_broken = true;
    return !module->is_broken && module->units.has_inlines &&
           !module->lacks_inlines;
}
