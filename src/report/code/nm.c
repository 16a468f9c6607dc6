/* SPDX-License-Identifier: MIT */
/*
 * The symbols of a binary, from the lines that `nm -n` prints. Of a library
 * that was stripped, as distributions ship them, those that it exports are
 * left.
 */
#include "report/code/binutils.h"

#include "base/status.h"
#include "profile/change/demangle.h"
#include "report/code/tool.h"

#include <ctype.h>
#include <string.h>

/* Of the largest binaries; a line of nm is some 80 bytes. */
#define MOST_BYTES ((size_t)512 << 20)
#define TIMEOUT_S  120

struct reader {
    struct cpprof__object_symbols *symbols;
    struct cpprof__regexp *matching;
    uint64_t address;
    CPPROF__ARRAY(struct cpprof__slice) names; /* of the group */
    struct cpprof__buffer name;                /* for demangling */
    uint64_t start;                            /* of the group */
    bool failed;
};

/* "0000000000401126 T main"; false for other lines. */
static bool
parse(const char *line, const char *end, uint64_t *address,
      struct cpprof__slice *name)
{
    uint64_t v = 0;
    const char *at;

    while (line < end && isspace((unsigned char)*line))
        line++;
    while (line < end && isspace((unsigned char)end[-1]))
        end--;
    for (at = line; at < end && isxdigit((unsigned char)*at); at++) {
        int digit = tolower((unsigned char)*at);

        if (v >> 60)
            return false;
        v = v << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    if (at == line || end - at < 4 || !isspace((unsigned char)at[0]) ||
        !isspace((unsigned char)at[2]))
        return false;
    *address = v;
    at += 3;
    while (at < end && isspace((unsigned char)*at))
        at++;
    *name = (struct cpprof__slice){at, (size_t)(end - at)};
    return true;
}

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
matches_demangled(struct reader *r, struct cpprof__slice name)
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
        struct cpprof__slice name = r->names.at[i];

        if (!cpprof__regexp_matches(r->matching, name.at, name.n)) {
            if (!matches_demangled(r, name))
                continue;
            name = (struct cpprof__slice){(char *)r->name.data, r->name.n};
        }
        add_symbol(r, end, 1);
        r->failed |= !add_name(r->symbols, name.at, name.n);
        return;
    }
}

static void
add_line(struct reader *r, const char *line, const char *end)
{
    struct cpprof__slice name, *slot;
    uint64_t address;

    if (!parse(line, end, &address, &name))
        return;
    if (address != r->start) {
        end_group(r, address - 1);
        r->names.n = 0;
        r->start = address;
    }
    slot = CPPROF__ARRAY_ADD(&r->names);
    if (slot)
        *slot = name;
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
        struct cpprof__tool_run run = {words, NULL, MOST_BYTES, TIMEOUT_S};

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
    const char *at, *end;

    if (status == CPPROF_OK && !out.n)
        status = run_nm(tools, path, "-nD", &out, error);
    at = (char *)out.data;
    end = at + out.n;
    while (status == CPPROF_OK && at < end && !r.failed) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));

        line_end = line_end ? line_end : end;
        add_line(&r, at, line_end);
        at = line_end + 1;
    }
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
