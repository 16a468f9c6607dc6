/* SPDX-License-Identifier: MIT */
/*
 * Symbols and instructions of a binary, from binutils. nm and objdump are run,
 * or LLVM's where they are installed, as the reference does. Their output is
 * read as untrusted text. It is kept, because results point into it. Source:
 * internal/binutils/binutils.go, disasm.go.
 */
#ifndef REPORT_BINUTILS_H
#define REPORT_BINUTILS_H

#include "base/array.h"
#include "base/buffer.h"
#include "profile/filter/re2.h"
#include "profile/filter/regexp.h"
#include <cpprof/status.h>

/* ----------------------------------------------------------- symbols ---- */

/* From start up to end, which is the last byte before the next symbol. */
struct cpprof__object_symbol {
    uint64_t start, end;
    size_t names;   /* offset in text: each name terminated */
    size_t n_names; /* at least 1 */
};

/* Zero bytes is a valid empty table. */
struct cpprof__object_symbols {
    CPPROF__ARRAY(struct cpprof__object_symbol) at; /* by start */
    struct cpprof__buffer text;
};

/*
 * Add the symbols of the binary at path that match: by a name, mangled or
 * demangled, which is then the only one of the symbol; or that cover address,
 * if that is not 0.
 */
enum cpprof_status
cpprof__object_symbols_add(struct cpprof__object_symbols *symbols,
                           const char *tools, const char *path,
                           struct cpprof__regexp *matching, uint64_t address,
                           struct cpprof_error *error);
void
cpprof__object_symbols_free(struct cpprof__object_symbols *symbols);

/* ------------------------------------------------------ instructions ---- */

struct cpprof__instruction {
    uint64_t address;
    struct cpprof__text text;
    struct cpprof__text function, file; /* empty where they are not known */
    int64_t line;
};

/* Zero bytes is a valid, empty one. */
struct cpprof__disassembly {
    CPPROF__ARRAY(struct cpprof__instruction) at;
    struct cpprof__buffer output; /* all slices are of it */
};

/* The program, found at the first use. Zero bytes is a valid one. */
struct cpprof__objdump {
    struct cpprof__buffer path; /* terminated */
    bool is_found, is_llvm;
};

void
cpprof__objdump_free(struct cpprof__objdump *objdump);

struct cpprof__disassemble {
    struct cpprof__objdump *objdump; /* never NULL */
    const char *tools;               /* the option -tools, or NULL */
    const char *path;
    uint64_t begin, end;
    bool intel_syntax;
};

/* Errors: CPPROF_SYSTEM (no objdump, or it failed), CPPROF_LIMIT,
 *         CPPROF_NOMEM. */
enum cpprof_status
cpprof__disassemble(struct cpprof__disassembly *d,
                    const struct cpprof__disassemble *what,
                    struct cpprof_error *error);
void
cpprof__disassembly_free(struct cpprof__disassembly *d);

/* ---------------------------------------------------------- programs ---- */

/* The programs are run without a shell, and neither for ever nor for any amount
 * of output. */

/*
 * Find the first of several programs, of which each does: in the folders that
 * the option -tools, "nm:DIR,DIR", gives for tool `of` or for all, else on
 * PATH. The names end with NULL. Appends its path, terminated; false when there
 * is none (or no memory: then path->failed).
 */
bool
cpprof__tool_find(const char *tools, const char *of, const char *const *names,
                  struct cpprof__buffer *path);

struct cpprof__tool_run {
    const char *const *words; /* argv; the first is the path */
    size_t most_bytes;        /* of output */
    int timeout_s;
};

/*
 * Run it and append what it prints on its standard output. Its messages are
 * dropped.
 *
 * Errors: CPPROF_SYSTEM "[WORDS]: exit status 1", or what else failed;
 *         CPPROF_LIMIT it took too long or printed too much; CPPROF_NOMEM.
 */
enum cpprof_status
cpprof__tool_run(const struct cpprof__tool_run *run, struct cpprof__buffer *out,
                 struct cpprof_error *error);

/* A file name that no program takes for an option or a list of options, made
 * of a terminated one: appended, terminated. */
void
cpprof__tool_file(const char *path, struct cpprof__buffer *out);

#endif
