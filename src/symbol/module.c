/* SPDX-License-Identifier: MIT */
/*
 * One image of a process: opens its file and its debug files when the first
 * address is asked for. symbol/resolve.c answers from them.
 *
 * The image is opened by its path if the build id there is the right one, or
 * the inode of one without. Otherwise it is opened from /proc, where the kernel
 * keeps the file that runs even after it was replaced.
 *
 * Of debug information only the units that the expected addresses need are
 * read, if .debug_aranges tells which. If more were expected since then the
 * module is opened once more for all of them; where another address is asked
 * for, or a unit refers to others, it is opened whole: the answers are the same
 * either way.
 *
 * Invariant: all work on files happens in calls that symbol/resolve.c makes
 * under cpprof__without_exit().
 */
#include "symbol/module.h"

#include "base/file.h"
#include "own/memory.h"
#include <cpprof/object.h>

#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE_MASK (~(uint64_t)4095)

/* A vdso is two pages; what is copied at most. */
#define LARGEST_VDSO (256 * 1024)

static enum cpprof__elf_use
use_of(const struct cpprof__symbolizer_options *options)
{
    return options->functions_only ? CPPROF__ELF_SYMBOLS : CPPROF__ELF_DWARF;
}

/* Does the link /proc/PID/exe name the module's file, also when deleted? */
static bool
is_named_by(const char *link, const char *path)
{
    char text[4096];
    ssize_t n = readlink(link, text, sizeof text - 1);

    if (n <= 0)
        return false;
    text[n] = 0;
    return strncmp(text, path, strlen(path)) == 0 &&
           (!text[strlen(path)] || !strcmp(text + strlen(path), " (deleted)"));
}

/* Is that the file that was mapped? A union of file systems shows a file's
 * inode elsewhere than where it lies. */
static bool
is_mapped(const struct cpprof__module *module)
{
    struct statfs system;

    return *module->build_id || !module->inode ||
           module->image.state.inode == module->inode ||
           statfs(module->image.path, &system) ||
           system.f_type == OVERLAYFS_SUPER_MAGIC;
}

static bool
open_if_mapped(struct cpprof__module *module, const char *path,
               enum cpprof__elf_use use)
{
    struct cpprof__wanted *wanted = module->image.wanted;

    if (!cpprof__elf_open(&module->image, path, module->build_id, use))
        return false;
    if (is_mapped(module))
        return true;
    cpprof__elf_close(&module->image);
    module->image.wanted = wanted;
    return false;
}

/*
 * Where the kernel keeps the very file that runs, even when it was deleted or
 * replaced: as the executable of the process, or, for whoever may look there,
 * as a mapping.
 */
static bool
open_from_proc(struct cpprof__module *module,
               const struct cpprof__symbolizer_options *options,
               enum cpprof__elf_use use)
{
    const char *proc = cpprof__proc_of(&options->fetcher);
    char path[128];

    snprintf(path, sizeof path, "%s/%d/exe", proc, (int)options->pid);
    if ((*module->build_id || is_named_by(path, module->path)) &&
        open_if_mapped(module, path, use))
        return true;
    snprintf(path, sizeof path, "%s/%d/map_files/%llx-%llx", proc,
             (int)options->pid, (unsigned long long)module->map_start,
             (unsigned long long)module->map_limit);
    return (*module->build_id || module->inode) &&
           open_if_mapped(module, path, use);
}

/* The file at its path, as the process sees the file system or as we do. */
static bool
open_from_path(struct cpprof__module *module,
               const struct cpprof__symbolizer_options *options,
               enum cpprof__elf_use use)
{
    char path[4096 + 64];

    if (module->path[0] != '/')
        return false;
    snprintf(path, sizeof path, "%s/%d/root%s",
             cpprof__proc_of(&options->fetcher), (int)options->pid,
             module->path);
    if ((options->fetcher.proc || options->pid != getpid()) &&
        open_if_mapped(module, path, use))
        return true;
    return open_if_mapped(module, module->path, use);
}

/* ---- what is expected -------------------------------------------------- */

/* Tunable: of more addresses than this the debug file is read whole. */
#define EXPECTED_MAX 16384

uint64_t
cpprof__module_offset(const struct cpprof__symbolizer_mapping *mapping,
                      uint64_t pc)
{
    return pc - mapping->start + mapping->offset;
}

static bool
is_partial(const struct cpprof__module *module)
{
    return module->image.is_partial || module->debug.is_partial;
}

void
cpprof__module_expect(struct cpprof__module *module,
                      const struct cpprof__symbolizer_options *options,
                      const struct cpprof__symbolizer_mapping *mapping,
                      uint64_t pc)
{
    if (module->takes_all || (module->is_opened && !is_partial(module)))
        return;
    if (module->expected.n >= EXPECTED_MAX ||
        !CPPROF__BOUNDED_ROOM(&module->expected))
        module->takes_all = true;
    else
        module->expected.at[module->expected.n++] =
            options->addresses ? pc : cpprof__module_offset(mapping, pc);
}

/* They become addresses when the image is opened. */
static void
set_wanted(struct cpprof__module *module,
           const struct cpprof__symbolizer_options *options)
{
    size_t n_bytes = module->expected.n * sizeof *module->expected.at;
    struct cpprof__wanted *wanted = &module->wanted;

    if (module->takes_all || !module->expected.n)
        return;
    wanted->at = cpprof__malloc(n_bytes);
    if (!wanted->at)
        return;
    memcpy(wanted->at, module->expected.at, n_bytes);
    wanted->n = module->expected.n;
    wanted->are_offsets = !options->addresses;
    module->image.wanted = wanted;
}

/* ---- opening ----------------------------------------------------------- */

/* The line of /proc/self/maps that is the vdso. */
static bool
find_vdso(struct cpprof_map *line)
{
    struct cpprof__buffer text = {0};
    /* That of the process is empty once its main thread has ended. */
    bool found = false;
    const char *at;

    if (cpprof__file_read(&text, "/proc/thread-self/maps", SIZE_MAX))
        cpprof__file_read(&text, "/proc/self/maps", SIZE_MAX);
    at = (const char *)text.data;
    while (!found && text.n &&
           cpprof_maps_next(&at, (const char *)text.data + text.n, line))
        found = line->n_path == 6 && !memcmp(line->path, "[vdso]", 6);
    cpprof__buffer_free(&text);
    return found;
}

/* Every process has the same one, this one's. */
static bool
open_vdso(struct cpprof__module *module)
{
    struct cpprof_map line = {.size = sizeof line};
    void *copy;

    if (!find_vdso(&line) || line.limit - line.start > LARGEST_VDSO)
        return false;
    copy = cpprof__malloc(line.limit - line.start);
    if (!copy)
        return false;
    memcpy(copy, (const void *)(uintptr_t)line.start, line.limit - line.start);
    if (!cpprof__elf_open_memory(&module->image, copy, line.limit - line.start))
        return false;
    if (!*module->build_id ||
        strcmp(module->build_id, module->image.build_id) == 0)
        return true;
    cpprof__elf_close(&module->image);
    return false;
}

static bool
open_image(struct cpprof__module *module,
           const struct cpprof__symbolizer_options *options)
{
    enum cpprof__elf_use use = use_of(options);

    if (strcmp(module->path, "[vdso]") == 0)
        return open_vdso(module);
    return open_from_path(module, options, use) ||
           open_from_proc(module, options, use);
}

static bool
needs_debug_file(const struct cpprof__module *module, enum cpprof__elf_use use)
{
    if (!module->image.elf)
        return *module->build_id;
    return !cpprof__elf_has_section(&module->image, ".symtab") ||
           (use == CPPROF__ELF_DWARF && !module->image.dwarf);
}

static bool
open_debug_file(struct cpprof__module *module,
                const struct cpprof__symbolizer_options *options)
{
    enum cpprof__elf_use use = use_of(options);
    const char *build_id = module->build_id;

    if (!needs_debug_file(module, use))
        return false;
    if (module->image.elf) {
        build_id = module->image.build_id;
        if (cpprof__debug_file_open(&module->debug, &module->image,
                                    module->path, use))
            return true;
    } else if (cpprof__debug_file_open_by_id(&module->debug, build_id, use)) {
        return true;
    }
    return cpprof__debug_file_fetch(&module->debug, &options->fetcher, build_id,
                                    use);
}

/* The file whose DWARF is read, or NULL. */
static struct cpprof__elf_file *
dwarf_file(struct cpprof__module *module)
{
    return module->image.dwarf   ? &module->image
           : module->debug.dwarf ? &module->debug
                                 : NULL;
}

static void
tell_of_mini(struct cpprof__module *module,
             const struct cpprof__fetcher *fetcher)
{
    char text[PATH_MAX + 128];

    if (!fetcher->warn || module->has_told_mini)
        return;
    module->has_told_mini = true;
    snprintf(text, sizeof text,
             "%s: its .gnu_debugdata is more than %zu MB and is not read",
             module->path, CPPROF__MINI_BYTES >> 20);
    fetcher->warn(fetcher->ctx, text);
}

void
cpprof__module_tell_lost(struct cpprof__module *module,
                         const struct cpprof__fetcher *fetcher,
                         const char *format, ...)
{
    char text[3 * PATH_MAX];
    va_list args;
    int n;

    module->lacks_inlines = true;
    if (!fetcher->warn || module->has_told)
        return;
    module->has_told = true;
    n = snprintf(text, sizeof text, "%.*s: ", PATH_MAX, module->path);
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    fetcher->warn(fetcher->ctx, text);
}

/* Neither file has debug information that can be read. */
static void
note_unread(struct cpprof__module *module,
            const struct cpprof__fetcher *fetcher)
{
    const struct cpprof__elf_file *file = &module->image;

    if (!cpprof__elf_has_dwarf(file))
        file = &module->debug;
    if (!cpprof__elf_has_dwarf(file))
        return;
    cpprof__module_tell_lost(
        module, fetcher, "lines and inlined functions are missing: %s",
        file->is_packed
            ? "libelf here cannot unpack its debug information; objcopy "
              "--decompress-debug-sections does"
            : "its debug information is damaged, or too large to unpack");
}

/* False when only exported functions are known. */
static bool
open_symbols(struct cpprof__module *module,
             const struct cpprof__fetcher *fetcher)
{
    struct cpprof__symbols *symbols = &module->symbols;
    const struct cpprof__ranges *code = &module->code;
    bool is_too_large, is_whole;

    symbols->wanted = module->wanted.n ? &module->wanted : NULL;
    is_whole = cpprof__symbols_add(symbols, &module->image, SHT_SYMTAB, code) ||
               cpprof__symbols_add(symbols, &module->debug, SHT_SYMTAB, code);
    if (!is_whole) {
        cpprof__symbols_add(symbols, &module->image, SHT_DYNSYM, code);
        if (cpprof__debug_file_open_mini(&module->mini, &module->image,
                                         &is_too_large))
            cpprof__symbols_add(symbols, &module->mini, SHT_SYMTAB, code);
        else if (is_too_large)
            tell_of_mini(module, fetcher);
    }
    return cpprof__symbols_seal(symbols, code) && is_whole;
}

/* Functions alone come from a symbol table that lists them all; DWARF is read
 * for them only where there is none. */
static void
open_units(struct cpprof__module *module,
           const struct cpprof__symbolizer_options *options,
           bool has_all_symbols)
{
    struct cpprof__elf_file *file;
    const char *lost;

    if (!has_all_symbols) {
        cpprof__elf_open_dwarf(&module->image);
        cpprof__elf_open_dwarf(&module->debug);
    }
    file = dwarf_file(module);
    if (!file && !options->functions_only)
        note_unread(module, &options->fetcher);
    if (!file)
        return;
    lost = cpprof__debug_file_open_shared(&module->shared, file,
                                          &options->fetcher);
    if (lost && !options->functions_only)
        cpprof__module_tell_lost(
            module, &options->fetcher,
            "inlined functions are missing: %s, which dwz moved them to, "
            "is not there or of another build",
            lost);
    module->units.wants_discriminators = options->discriminators;
    cpprof__units_open(&module->units, file, &module->code);
}

static void
open_module(struct cpprof__module *module,
            const struct cpprof__symbolizer_options *options)
{
    struct cpprof__elf_file *file = &module->image;

    module->is_opened = true;
    module->n_opened_for = module->expected.n;
    set_wanted(module, options);
    open_image(module, options);
    if (!module->image.elf || module->wanted.are_offsets)
        module->wanted.n = 0;
    if (module->wanted.n)
        module->debug.wanted = &module->wanted;
    open_debug_file(module, options);
    if (!file->elf)
        file = &module->debug;
    if (!file->elf)
        return;
    cpprof__elf_code(file, &module->code);
    if (module->code.n)
        module->text_start = module->code.items[0].start & PAGE_MASK;
    if (module->image.elf && strcmp(module->path, "[vdso]") != 0)
        cpprof__frame_table_open(&module->frame_table, &module->image);
    open_units(module, options, open_symbols(module, &options->fetcher));
}

/* All but what was known before. */
static void
close_files(struct cpprof__module *module)
{
    struct cpprof__module kept = {.path = module->path,
                                  .inode = module->inode,
                                  .map_start = module->map_start,
                                  .map_limit = module->map_limit,
                                  .has_told = module->has_told,
                                  .has_told_mini = module->has_told_mini,
                                  .lacks_inlines = module->lacks_inlines,
                                  .takes_all = true};

    memcpy(kept.build_id, module->build_id, sizeof kept.build_id);
    cpprof__scopes_free(&module->scopes);
    cpprof__units_close(&module->units);
    cpprof__code_names_free(&module->code_names);
    cpprof__frame_table_free(&module->frame_table);
    cpprof__symbols_free(&module->symbols);
    cpprof__ranges_free(&module->code);
    cpprof__elf_close(&module->image);
    cpprof__elf_close(&module->debug);
    cpprof__elf_close(&module->shared);
    cpprof__elf_close(&module->mini);
    cpprof__free(module->wanted.at);
    CPPROF__ARRAY_FREE(&module->expected);
    *module = kept;
}

void
cpprof__module_close(struct cpprof__module *module)
{
    close_files(module);
    cpprof__free(module->path);
    memset(module, 0, sizeof *module);
}

/* A packed symbol table is unpacked by libelf. */
static size_t
mini_bytes(const struct cpprof__elf_file *mini)
{
    size_t n = 0;

    return mini->elf && elf_rawfile(mini->elf, &n) ? n : 0;
}

size_t
cpprof__module_held(const struct cpprof__module *module)
{
    if (!module->is_opened)
        return 0;
    return sizeof *module + cpprof__units_held(&module->units) +
           module->image.n_unpacked_bytes + module->debug.n_unpacked_bytes +
           module->shared.n_unpacked_bytes + mini_bytes(&module->mini) +
           module->symbols.ranges.n *
               (sizeof *module->symbols.ranges.items + sizeof(char *)) +
           module->symbols.items.capacity * sizeof *module->symbols.items.at;
}

/* libdw does not say which files of split units it has open. */
bool
cpprof__module_is_current(const struct cpprof__module *module)
{
    return !module->is_broken && !cpprof__units_are_split(&module->units) &&
           cpprof__elf_is_current(&module->image) &&
           cpprof__elf_is_current(&module->debug) &&
           cpprof__elf_is_current(&module->shared);
}

void
cpprof__module_forget(struct cpprof__module *module)
{
    close_files(module);
    module->takes_all = false;
}

/* Says a part of the units what all of them say? */
static bool
is_enough(const struct cpprof__module *module)
{
    return !is_partial(module) ||
           (!module->units.is_cut && module->units.has_inlines);
}

/* The same of an address. */
static bool
is_enough_for(struct cpprof__module *module, uint64_t address)
{
    struct cpprof__unit *unit;

    if (!is_partial(module))
        return true;
    unit = cpprof__units_find(&module->units, address);
    return unit && !cpprof__unit_refers_out(unit);
}

static void
open_whole(struct cpprof__module *module,
           const struct cpprof__symbolizer_options *options)
{
    close_files(module);
    open_module(module, options);
}

/* For what is expected now. */
static void
open_again(struct cpprof__module *module,
           const struct cpprof__symbolizer_options *options)
{
    struct cpprof__module kept = *module;

    memset(&module->expected, 0, sizeof module->expected);
    close_files(module);
    memcpy(&module->expected, &kept.expected, sizeof kept.expected);
    module->takes_all = kept.takes_all;
    open_module(module, options);
}

void
cpprof__module_ready(struct cpprof__module *module,
                     const struct cpprof__symbolizer_options *options)
{
    if (!module->is_opened)
        open_module(module, options);
    if (!is_enough(module))
        open_whole(module, options);
}

void
cpprof__module_ready_for(struct cpprof__module *module,
                         const struct cpprof__symbolizer_options *options,
                         uint64_t address)
{
    if (!is_enough_for(module, address) &&
        module->n_opened_for < module->expected.n)
        open_again(module, options);
    if (!is_enough(module) || !is_enough_for(module, address))
        open_whole(module, options);
}
