/* SPDX-License-Identifier: MIT */
/*
 * Programs for the tests of the symbolizer: made by the compilers of the
 * machine in a folder of their own, loaded into this process, and asked about
 * through the operations of the plug-in with the mapping that the kernel shows.
 *
 * The sources mark the instructions that are asked about with global labels,
 * so that the loader says where they are.
 */
#ifndef TESTS_SYMBOL_FIXTURE_H
#define TESTS_SYMBOL_FIXTURE_H

#include "object/build_id.h"
#include "object/symbolizer.h"
#include "symbol/elf/way_out.h"
#include <cpprof/object.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After the headers that it needs. */
#include <setjmp.h>

#include <cmocka.h>

#define MOST_FRAMES 16

extern const struct cpprof__symbolizer_ops cpprof__symbolizer;

/* A folder under /tmp, the working directory of the tests. */
static char folder[64];

static int
make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/cpprof-symbol-XXXXXX");
    return !mkdtemp(folder) || chdir(folder);
}

static inline int
remove_folder(void **state)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    /* All calls of libdw were made with memory of ours: none was another's. */
    return chdir("/") || system(command) || cpprof__within_n_others();
}

static inline void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Run a shell command; false when it fails. */
static inline bool
run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline bool
run(const char *format, ...)
{
    char command[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return system(command) == 0;
}

/* Why a test checks nothing here. Not skip(): what cmocka prints for that is a
 * failure to who reads TAP. */
static inline void
say_skipped(const char *why)
{
    print_message("# skipped: no %s here\n", why);
}

static inline bool
has_tool(const char *tool)
{
    return run("command -v %s >/dev/null", tool);
}

/* The rest of the function needs a tool that this machine may not have. */
#define NEED(tool)                                                             \
    do {                                                                       \
        if (!has_tool(tool)) {                                                 \
            say_skipped(tool);                                                 \
            return;                                                            \
        }                                                                      \
    } while (0)

/* clang or clang++, or the name that Debian's package gives it. */
static inline const char *
find_clang(bool is_cxx)
{
    if (run("command -v clang++ >/dev/null"))
        return is_cxx ? "clang++" : "clang";
    return is_cxx ? "clang++-14" : "clang-14";
}

/* A loaded library, and a symbolizer that knows its mapping. */
struct loaded {
    void *handle;
    struct cpprof__symbolizer *symbolizer;
    struct cpprof__symbolizer_mapping mapping;
    size_t index;
    char path[PATH_MAX];
    char build_id[CPPROF_BUILD_ID_MAX];
};

/* Fill in the mapping of this process that address lies in. */
static inline void
find_mapping(struct loaded *l, uint64_t address)
{
    static char text[256 * 1024];
    FILE *file = fopen("/proc/self/maps", "r");
    size_t n = fread(text, 1, sizeof text, file);
    const char *at = text;
    struct cpprof_map line = {.size = sizeof line};

    fclose(file);
    while (cpprof_maps_next(&at, text + n, &line))
        if (address >= line.start && address < line.limit) {
            snprintf(l->path, sizeof l->path, "%.*s", (int)line.n_path,
                     line.path);
            l->mapping = (struct cpprof__symbolizer_mapping){
                line.start, line.limit,  line.offset,
                l->path,    l->build_id, line.inode};
            return;
        }
    fail_msg("%#llx is not mapped", (unsigned long long)address);
}

static inline uint64_t
address_of(const struct loaded *l, const char *label)
{
    void *address = dlsym(l->handle, label);

    assert_non_null(address);
    return (uint64_t)(uintptr_t)address;
}

/* Load ./name and find where `label` of it is mapped. */
static inline void
load(struct loaded *l, const char *name, const char *label)
{
    char path[PATH_MAX];

    memset(l, 0, sizeof *l);
    snprintf(path, sizeof path, "./%s", name);
    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        fail_msg("%s", dlerror());
    find_mapping(l, address_of(l, label));
}

/* Of a symbol that is not exported, as nm lists it. */
static inline uint64_t
local_address(const struct loaded *l, const char *name, const char *label)
{
    unsigned long address = 0;
    Dl_info info;
    FILE *symbols;

    assert_true(run("nm %s | grep ' %s$' > local.nm", name, label));
    symbols = fopen("local.nm", "r");
    assert_int_equal(fscanf(symbols, "%lx", &address), 1);
    fclose(symbols);
    if (!l->handle)
        return address;
    assert_int_not_equal(dladdr((void *)(uintptr_t)l->mapping.start, &info), 0);
    return (uint64_t)(uintptr_t)info.dli_fbase + address;
}

static inline void
symbolize(struct loaded *l, bool functions_only)
{
    struct cpprof__symbolizer_options options = {.functions_only =
                                                     functions_only};

    l->symbolizer = cpprof__symbolizer.make(&options);
    assert_non_null(l->symbolizer);
    l->index = cpprof__symbolizer.add_mapping(l->symbolizer, &l->mapping);
    assert_int_equal(l->index, 0);
}

static inline void
unload(struct loaded *l)
{
    cpprof__symbolizer.free(l->symbolizer);
    if (l->handle)
        dlclose(l->handle);
}

static inline size_t
frames_of(struct loaded *l, uint64_t pc, struct cpprof__frame *frames)
{
    return cpprof__symbolizer.resolve(l->symbolizer, l->index, pc, frames,
                                      MOST_FRAMES);
}

static inline size_t
frames_at(struct loaded *l, const char *label, struct cpprof__frame *frames)
{
    return frames_of(l, address_of(l, label), frames);
}

/* file: its last part. */
static inline void
check_frame(const struct cpprof__frame *frame, const char *name,
            const char *file, int64_t line, int64_t start_line)
{
    const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

    assert_string_equal(frame->name, name);
    assert_string_equal(slash ? slash + 1 : "none", file);
    assert_int_equal(frame->line, line);
    assert_int_equal(frame->start_line, start_line);
}

/* Three functions, of which two are inlined into the third. */
#define INLINE_SOURCE                                                          \
    "static int counter;\n"                                                    \
    "static inline __attribute__((always_inline)) int leaf(int x)\n"           \
    "{\n"                                                                      \
    "    __asm__ volatile(\".globl at_leaf\\nat_leaf: nop\");\n"               \
    "    return x + counter;\n"                                                \
    "}\n"                                                                      \
    "static inline __attribute__((always_inline)) int middle(int x)\n"         \
    "{\n"                                                                      \
    "    return leaf(x) * 2;\n"                                                \
    "}\n"                                                                      \
    "__attribute__((noinline)) int outer(int x)\n"                             \
    "{\n"                                                                      \
    "    return middle(x) + 1;\n"                                              \
    "}\n"                                                                      \
    "static __attribute__((noinline)) int hidden(int x)\n"                     \
    "{\n"                                                                      \
    "    __asm__ volatile(\".globl at_hidden\\nat_hidden: nop\");\n"           \
    "    return outer(x) + 3;\n"                                               \
    "}\n"                                                                      \
    "int entry(int x)\n"                                                       \
    "{\n"                                                                      \
    "    return hidden(x) + hidden(x + 1);\n"                                  \
    "}\n"

/* What is known of at_leaf where there is DWARF. */
static inline void
check_inlined(struct loaded *l)
{
    struct cpprof__frame frames[MOST_FRAMES];
    char file[PATH_MAX];

    assert_int_equal(frames_at(l, "at_leaf", frames), 3);
    check_frame(&frames[0], "leaf", "inline.c", 4, 2);
    check_frame(&frames[1], "middle", "inline.c", 9, 7);
    check_frame(&frames[2], "outer", "inline.c", 13, 11);
    assert_string_equal(frames[2].system_name, "outer");
    snprintf(file, sizeof file, "%s/inline.c", folder);
    assert_string_equal(frames[0].file, file);
    assert_string_equal(frames[1].file, file);
    assert_string_equal(frames[2].file, file);
    assert_true(cpprof__symbolizer.knows_inlines(l->symbolizer, l->index));
    /* The physical function begins there, for all of them. */
    assert_int_equal(frames[0].entry, address_of(l, "outer"));
    assert_int_equal(frames[2].entry, address_of(l, "outer"));
}

/* What is known of at_leaf from a symbol table alone. */
static inline void
check_symbol_only(struct loaded *l)
{
    struct cpprof__frame frames[MOST_FRAMES];

    assert_int_equal(frames_at(l, "at_leaf", frames), 1);
    assert_string_equal(frames[0].name, "outer");
    assert_string_equal(frames[0].system_name, "outer");
    assert_null(frames[0].file);
    assert_int_equal(frames[0].line, 0);
    assert_false(cpprof__symbolizer.knows_inlines(l->symbolizer, l->index));
}

/* Load a library that is made, ask about it, unload it. */
static inline void
check_library(const char *name, void (*check)(struct loaded *))
{
    struct loaded l;

    load(&l, name, "at_leaf");
    symbolize(&l, false);
    check(&l);
    unload(&l);
}

__attribute__((unused)) static void
build_id_of(struct loaded *l)
{
    assert_int_equal(
        cpprof__build_id_of_memory(l->mapping.start - l->mapping.offset,
                                   l->build_id, NULL),
        CPPROF_OK);
}

#endif
