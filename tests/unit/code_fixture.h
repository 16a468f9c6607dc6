/* SPDX-License-Identifier: MIT */
/*
 * A folder with a binary, its source, and programs that say what is in it: for
 * reports that show code. The library of names is here, too, so that none that
 * may be installed answers instead.
 *
 * fixture_stack() puts locations at 0x1000, 0x1010, ...; to the binary they are
 * 0, 0x10, ..., as the mapping begins at 0x1000.
 */
#ifndef TESTS_CODE_FIXTURE_H
#define TESTS_CODE_FIXTURE_H

#include "object/symbolizer.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char code_folder[] = "/tmp/cpprof-code-XXXXXX";
static bool code_no_library;

static inline const char *
code_path(const char *name)
{
    static char path[2][96];
    static unsigned turn;

    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", code_folder, name);
    return path[turn];
}

static inline bool
code_write(const char *name, mode_t mode, const void *data, size_t n)
{
    FILE *file = fopen(code_path(name), "w");
    bool written = file && fwrite(data, 1, n, file) == n;

    return file && fclose(file) == 0 && written &&
           chmod(code_path(name), mode) == 0;
}

static inline bool
code_script(const char *name, const char *text)
{
    return code_write(name, 0755, text, strlen(text));
}

/* One part, of code, at 0. */
static inline bool
code_binary(void)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr part;
    } elf = {
        {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                     ELFDATA2LSB, EV_CURRENT},
         .e_type = ET_DYN,
         .e_version = EV_CURRENT,
         .e_phoff = sizeof elf.head,
         .e_ehsize = sizeof elf.head,
         .e_phentsize = sizeof elf.part,
         .e_phnum = 1},
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_filesz = 0x4000,
         .p_memsz = 0x4000,
         .p_align = 4096},
    };

    return code_write("prog", 0755, &elf, sizeof elf);
}

/* leaf is 0 to 0x10, main from there; "cold" is inlined into main at 0x1e. */
#define CODE_OBJDUMP                                                           \
    "#!/bin/sh\n"                                                              \
    "case $1 in --version) echo GNU objdump; exit;; esac\n"                    \
    "cat <<'END'\n"                                                            \
    "0000000000000000 <leaf>:\nleaf():\n/src/./file.c:10\n"                    \
    "  0:\tpush <&>\n  8:\tret\n"                                              \
    "0000000000000010 <main>:\nmain():\n/src/./file.c:11\n"                    \
    "  10:\tcall\tleaf\n  18:\tnop\n  1e:\tmov\n  26:\tret\n"                  \
    "END\n"

static inline int
code_make(void **state)
{
    char source[512] = "";
    int i;

    (void)state;
    for (i = 1; i <= 60; i++)
        snprintf(source + strlen(source), sizeof source - strlen(source),
                 i == 11 ? "\t <%d>\n" : "%d\n", i);
    return mkdtemp(code_folder) && code_binary() &&
                   code_write("file.c", 0644, source, strlen(source)) &&
                   code_script("objdump", CODE_OBJDUMP) &&
                   code_script("nm", "#!/bin/sh\n"
                                     "echo '0000000000000000 T leaf'\n"
                                     "echo '0000000000000010 T main'\n"
                                     "echo '0000000000000030 T end'\n")
               ? 0
               : -1;
}

static inline int
code_remove(void **state)
{
    static const char *const names[] = {"prog", "file.c", "objdump", "nm"};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        unlink(code_path(names[i]));
    return rmdir(code_folder);
}

/* --------------------------------------------------------- the library --- */

static inline struct cpprof__symbolizer *
code_symbolizer(const struct cpprof__symbolizer_options *options)
{
    (void)options;
    return malloc(1);
}

static inline size_t
code_add_mapping(struct cpprof__symbolizer *s,
                 const struct cpprof__symbolizer_mapping *mapping)
{
    (void)s;
    (void)mapping;
    return 0;
}

/* The instruction at 0x18 has no line, that at 0x1e is of cold, too. */
static inline size_t
code_resolve(struct cpprof__symbolizer *s, size_t mapping, uint64_t pc,
             struct cpprof__frame *frames, size_t max)
{
#define FRAME(text, at)                                                        \
    {                                                                          \
        .name = text, .system_name = text, .file = "/src/./file.c", .line = at \
    }
    static const struct cpprof__frame leaf = FRAME("leaf", 10),
                                      start = FRAME("main", 11),
                                      cold = FRAME("cold", 3);
    size_t n = 0;

    (void)s;
    (void)mapping;
    (void)max;
    if (pc == 0x1e)
        frames[n++] = cold;
    frames[n++] = pc < 0x10 ? leaf : start;
    if (pc == 0x18)
        frames[0].line = 0;
    return n;
}

static inline void
code_symbolizer_free(struct cpprof__symbolizer *s)
{
    free(s);
}

static inline void
code_turn_to_code(struct cpprof__symbolizer *s, uint64_t n_bytes)
{
    (void)s;
    (void)n_bytes;
}

const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void)
{
    static const struct cpprof__symbolizer_ops ops = {
        .abi = CPPROF__SYMBOLIZER_ABI,
        .make = code_symbolizer,
        .add_mapping = code_add_mapping,
        .resolve = code_resolve,
        .turn_to_code = code_turn_to_code,
        .free = code_symbolizer_free,
    };

    return code_no_library ? NULL : &ops;
}

#endif
