/* SPDX-License-Identifier: MIT */
/*
 * Symbols, from the lines that `nm -n` prints: of a library that was stripped,
 * as distributions ship them, those that it exports are left. And instructions,
 * from what `objdump --disassemble --line-numbers` prints:
 *
 *     0000000000401126 <main>:
 *     main():
 *     /src/main.c:3 (discriminator 2)
 *       401126:       push   %rbp
 *
 * Function, file and line hold until the next line that says otherwise, or one
 * that is none of these. The lines are told apart as the reference's regular
 * expressions do, which are quoted below.
 */
#include "report/code/binutils.h"

#include "base/status.h"
#include "profile/change/change.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bounds that the largest binaries stay below; a line of nm is some 80 bytes.
 */
#define NM_BYTES          ((size_t)512 << 20)
#define NM_TIMEOUT_S      120
#define OBJDUMP_BYTES     ((size_t)256 << 20)
#define OBJDUMP_TIMEOUT_S 300

/* ----------------------------------------------------------------- lines -- */

static struct cpprof__text
trim(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    while (at < end && isspace((unsigned char)end[-1]))
        end--;
    return (struct cpprof__text){at, (size_t)(end - at)};
}

/* The hexadecimal digits of a match, which something else follows; false when
 * they do not fit. */
static bool
hex(struct cpprof__text digits, uint64_t *value)
{
    errno = 0;
    *value = strtoull(digits.at, NULL, 16);
    return !errno;
}

/* Take the next line, without the blanks at its ends; false at the end. */
static bool
next_line(struct cpprof__text *rest, struct cpprof__text *line)
{
    const char *end, *line_end;

    if (!rest->n)
        return false;
    end = rest->at + rest->n;
    line_end = memchr(rest->at, '\n', rest->n);
    *line = trim(rest->at, line_end ? line_end : end);
    rest->at = line_end ? line_end + 1 : end;
    rest->n = (size_t)(end - rest->at);
    return true;
}

/* --------------------------------------------------------------- symbols -- */

struct reader {
    struct cpprof__object_symbols *symbols;
    struct cpprof__regexp *matching;
    uint64_t address;
    CPPROF__ARRAY(struct cpprof__text) names; /* of the group */
    struct cpprof__buffer name;               /* for demangling */
    uint64_t start;                           /* of the group */
    bool failed;
};

static bool
add_name(struct cpprof__object_symbols *s, const void *name, size_t n)
{
    cpprof__buffer_append(&s->text, name, n);
    cpprof__buffer_append(&s->text, "", 1);
    return !s->text.failed;
}

/* A symbol from the group's start to `end`, whose names follow. */
static void
add_symbol(struct reader *r, uint64_t end, size_t n_names)
{
    struct cpprof__object_symbol *s = CPPROF__ARRAY_ADD(&r->symbols->at);

    if (s)
        *s = (struct cpprof__object_symbol){r->start, end, r->symbols->text.n,
                                            n_names};
    else
        r->failed = true;
}

/* Does it match demangled in any way? The text is in r->name then. */
static bool
matches_demangled(struct reader *r, struct cpprof__text name)
{
    static const enum pprof_demangle modes[] = {
        PPROF_DEMANGLE_FULL, PPROF_DEMANGLE_TEMPLATES, PPROF_DEMANGLE_SHORT};
    struct cpprof__buffer mangled = {0};
    bool found = false;
    size_t i;

    if (!name.n || *name.at != '_')
        return false;
    cpprof__buffer_append(&mangled, name.at, name.n);
    cpprof__buffer_append(&mangled, "", 1);
    r->failed |= mangled.failed;
    for (i = 0; i < 3 && !found && !r->failed; i++) {
        r->name.n = 0;
        if (!cpprof__demangled((char *)mangled.data, modes[i], &r->name))
            break;
        r->failed |= r->name.failed;
        found = !r->failed && cpprof__regexp_matches(
                                  r->matching, (char *)r->name.data, r->name.n);
    }
    cpprof__buffer_free(&mangled);
    return found;
}

/* All names when the address is in it, else the first that matches. */
static void
end_group(struct reader *r, uint64_t end)
{
    size_t i;

    if (r->names.n && r->address && r->address >= r->start &&
        r->address <= end) {
        add_symbol(r, end, r->names.n);
        for (i = 0; i < r->names.n; i++)
            r->failed |=
                !add_name(r->symbols, r->names.at[i].at, r->names.at[i].n);
        return;
    }
    for (i = 0; i < r->names.n && !r->failed; i++) {
        struct cpprof__text name = r->names.at[i];

        if (!cpprof__regexp_matches(r->matching, name.at, name.n)) {
            if (!matches_demangled(r, name))
                continue;
            name = (struct cpprof__text){(char *)r->name.data, r->name.n};
        }
        add_symbol(r, end, 1);
        r->failed |= !add_name(r->symbols, name.at, name.n);
        return;
    }
}

static void
add_symbol_line(struct reader *r, struct cpprof__text line)
{
    /* "0000000000401126 T main" */
    static struct cpprof__pattern pattern = {"^([[:xdigit:]]+)\\s.\\s(.+)",
                                             NULL};
    struct cpprof__text *slot, found[3];
    uint64_t address;

    if (!cpprof__pattern_find(&pattern, line, found, 3, &r->failed) ||
        !hex(found[1], &address))
        return;
    if (address != r->start) {
        end_group(r, address - 1);
        r->names.n = 0;
        r->start = address;
    }
    slot = CPPROF__ARRAY_ADD(&r->names);
    if (slot)
        *slot = trim(found[2].at, found[2].at + found[2].n);
    else
        r->failed = true;
}

static enum cpprof_status
run_nm(const char *tools, const char *path, const char *which,
       struct cpprof__buffer *out, struct cpprof_error *error)
{
    static const char *const names[] = {"llvm-nm", "nm", NULL};
    struct cpprof__buffer nm = {0}, file = {0};
    enum cpprof_status status = CPPROF_OK;

    if (!cpprof__tool_find(tools, "nm", names, &nm) && !nm.failed)
        status = cpprof__fail(error, CPPROF_SYSTEM, 0,
                              "cannot read symbols: no nm tool available");
    cpprof__tool_file(path, &file);
    if (status == CPPROF_OK && (nm.failed || file.failed))
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK) {
        const char *words[] = {(char *)nm.data, which, (char *)file.data, NULL};
        struct cpprof__tool_run run = {words, NM_BYTES, NM_TIMEOUT_S};

        status = cpprof__tool_run(&run, out, error);
    }
    cpprof__buffer_free(&nm);
    cpprof__buffer_free(&file);
    return status;
}

enum cpprof_status
cpprof__object_symbols_add(struct cpprof__object_symbols *symbols,
                           const char *tools, const char *path,
                           struct cpprof__regexp *matching, uint64_t address,
                           struct cpprof_error *error)
{
    struct reader r = {
        .symbols = symbols, .matching = matching, .address = address};
    struct cpprof__buffer out = {0};
    enum cpprof_status status = run_nm(tools, path, "-n", &out, error);
    struct cpprof__text rest, line;

    if (status == CPPROF_OK && !out.n)
        status = run_nm(tools, path, "-nD", &out, error);
    rest = (struct cpprof__text){(char *)out.data, out.n};
    while (status == CPPROF_OK && !r.failed && next_line(&rest, &line))
        add_symbol_line(&r, line);
    if (status == CPPROF_OK)
        end_group(&r, UINT64_MAX);
    if (status == CPPROF_OK && r.failed)
        status = cpprof__fail_nomem(error);
    CPPROF__ARRAY_FREE(&r.names);
    cpprof__buffer_free(&r.name);
    cpprof__buffer_free(&out);
    return status;
}

void
cpprof__object_symbols_free(struct cpprof__object_symbols *symbols)
{
    CPPROF__ARRAY_FREE(&symbols->at);
    cpprof__buffer_free(&symbols->text);
}

/* ---------------------------------------------------------- instructions -- */

/* The function, file and line that hold for the next instruction. */
struct where {
    struct cpprof__text function, file;
    int64_t line;
};

static bool
is_instruction(struct cpprof__text line, struct cpprof__instruction *i,
               bool *failed)
{
    static struct cpprof__pattern pattern = {"^([[:xdigit:]]+):\\s+(.*)", NULL};
    struct cpprof__text found[3];

    if (!cpprof__pattern_find(&pattern, line, found, 3, failed) ||
        !hex(found[1], &i->address))
        return false;
    i->text = found[2];
    return true;
}

/* A line number of more than 32 bits says nothing. */
static bool
is_location(struct cpprof__text line, struct where *where, bool *failed)
{
    static struct cpprof__pattern pattern = {"^;?\\s?(.*):(\\d+)", NULL};
    struct cpprof__text found[3];
    uint64_t number;

    if (!cpprof__pattern_find(&pattern, line, found, 3, failed))
        return false;
    number = strtoull(found[2].at, NULL, 10);
    if (number <= UINT32_MAX) {
        where->file = found[1];
        where->line = (int64_t)number;
    }
    return true;
}

/* Digits in front are no address where no blank follows them: the B of
 * "Box<int>::spin(int):". */
static bool
is_function(struct cpprof__text line, struct where *where, bool *failed)
{
    static struct cpprof__pattern plain = {"^;?\\s?(\\S.*)\\(\\):", NULL};
    static struct cpprof__pattern any = {"^(?:[[:xdigit:]]+\\s)?(.*):", NULL};
    struct cpprof__text found[2];

    if (!cpprof__pattern_find(&plain, line, found, 2, failed) &&
        !cpprof__pattern_find(&any, line, found, 2, failed))
        return false;
    where->function = found[1];
    return true;
}

static bool
add_line(struct cpprof__disassembly *d, struct cpprof__text line,
         struct where *where)
{
    struct cpprof__instruction i, *slot;
    bool failed = false;

    if (!is_instruction(line, &i, &failed)) {
        if (!is_location(line, where, &failed) &&
            !is_function(line, where, &failed))
            *where = (struct where){{"", 0}, {"", 0}, 0};
        return !failed;
    }
    i.function = where->function;
    i.file = where->file;
    i.line = where->line;
    slot = CPPROF__ARRAY_ADD(&d->at);
    if (slot)
        *slot = i;
    return slot != NULL;
}

/* --------------------------------------------------------------- running -- */

/* Which program it is, from what it says; false when it is none that can be
 * used. LLVM's before 8 takes other options. */
static enum cpprof_status
ask_version(struct cpprof__objdump *objdump)
{
    const char *words[] = {(char *)objdump->path.data, "--version", NULL};
    struct cpprof__tool_run run = {words, 64 << 10, 10};
    struct cpprof__buffer out = {0};
    enum cpprof_status status = cpprof__tool_run(&run, &out, NULL);
    const char *llvm;

    if (status == CPPROF_OK)
        cpprof__buffer_append(&out, "", 1);
    if (out.failed)
        status = CPPROF_NOMEM;
    if (status == CPPROF_OK) {
        llvm = strstr((char *)out.data, "LLVM version ");
        objdump->is_llvm = llvm && atoi(llvm + strlen("LLVM version ")) >= 8;
        objdump->is_found =
            objdump->is_llvm || strstr((char *)out.data, "GNU objdump");
    }
    cpprof__buffer_free(&out);
    return status;
}

/* Find the program, if that was not done yet. */
static enum cpprof_status
find(struct cpprof__objdump *objdump, const char *tools,
     struct cpprof_error *error)
{
    static const char *const names[] = {"llvm-objdump", "objdump", NULL};
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < 2 && !objdump->is_found && status != CPPROF_NOMEM; i++) {
        objdump->path.n = 0;
        if (cpprof__tool_find(tools, "objdump", names + i, &objdump->path))
            status = ask_version(objdump);
        else if (objdump->path.failed)
            status = CPPROF_NOMEM;
    }
    if (status == CPPROF_NOMEM)
        return cpprof__fail_nomem(error);
    return objdump->is_found
               ? CPPROF_OK
               : cpprof__fail(error, CPPROF_SYSTEM, 0,
                              "cannot disasm: no objdump tool available");
}

static enum cpprof_status
run(struct cpprof__disassembly *d, const struct cpprof__disassemble *what,
    const char *file, struct cpprof_error *error)
{
    const char *words[12] = {(char *)what->objdump->path.data, "--disassemble",
                             "--demangle", "--no-show-raw-insn",
                             "--line-numbers"};
    struct cpprof__tool_run run = {words, OBJDUMP_BYTES, OBJDUMP_TIMEOUT_S};
    char begin[64], end[64];
    size_t n = 5;

    snprintf(begin, sizeof begin, "--start-address=%#" PRIx64, what->begin);
    snprintf(end, sizeof end, "--stop-address=%#" PRIx64, what->end);
    words[n++] = begin;
    words[n++] = end;
    if (what->intel_syntax && what->objdump->is_llvm) {
        words[n++] = "--x86-asm-syntax=intel";
    } else if (what->intel_syntax) {
        words[n++] = "-M";
        words[n++] = "intel";
    }
    words[n++] = file;
    return cpprof__tool_run(&run, &d->output, error);
}

enum cpprof_status
cpprof__disassemble(struct cpprof__disassembly *d,
                    const struct cpprof__disassemble *what,
                    struct cpprof_error *error)
{
    struct where where = {{"", 0}, {"", 0}, 0};
    struct cpprof__text rest, line;
    struct cpprof__buffer file = {0};
    enum cpprof_status status = find(what->objdump, what->tools, error);

    if (status != CPPROF_OK)
        return status;
    cpprof__tool_file(what->path, &file);
    if (file.failed)
        status = cpprof__fail_nomem(error);
    else
        status = run(d, what, (char *)file.data, error);
    rest = (struct cpprof__text){(char *)d->output.data, d->output.n};
    while (status == CPPROF_OK && next_line(&rest, &line))
        if (!add_line(d, line, &where))
            status = cpprof__fail_nomem(error);
    cpprof__buffer_free(&file);
    return status;
}

void
cpprof__disassembly_free(struct cpprof__disassembly *d)
{
    CPPROF__ARRAY_FREE(&d->at);
    cpprof__buffer_free(&d->output);
}

void
cpprof__objdump_free(struct cpprof__objdump *objdump)
{
    cpprof__buffer_free(&objdump->path);
    memset(objdump, 0, sizeof *objdump);
}
