/* SPDX-License-Identifier: MIT */
/*
 * The blocks of a routine, from what objdump prints of it: GNU's or LLVM's, of
 * x86-64 and aarch64.
 *
 *       401126:       jne    401136 <main+0x10>
 *
 * A block begins where the routine does, where a jump goes, and behind a jump.
 * Where an indirect jump goes is in a table that is not read: it is taken to go
 * to all blocks of the routine that nothing else leads to. Calls do not end
 * blocks.
 */
#include "cli/pgo/pgo.h"

#include "base/status.h"
#include "cli/terminal.h"
#include "report/code/binutils.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A run of objdump is for routines that lie no further apart than this, and for
 * no more code than that. */
#define MOST_GAP   ((uint64_t)64 << 10)
#define MOST_CODE  ((uint64_t)4 << 20)
#define MOST_BYTES ((size_t)512 << 20)
#define TIMEOUT_S  120

/* ------------------------------------------------------------ running ---- */

/* Where the code to be listed with a routine ends. */
static uint64_t
stretch_end(const struct cpprof__pgo_counts *c, size_t routine)
{
    const struct cpprof__pgo_routine *r = &c->routines.at[routine];
    uint64_t end = r->limit;

    for (r++; r < c->routines.at + c->routines.n && r->build == r[-1].build &&
              r->start < end + MOST_GAP &&
              r->limit < c->routines.at[routine].start + MOST_CODE;
         r++)
        end = r->limit > end ? r->limit : end;
    return end;
}

/* Run that objdump. */
static enum cpprof_status
run_tool(struct cpprof__pgo_listing *l, const char *tool, const char *file,
         struct cpprof_error *error)
{
    char start[64], stop[64];
    const char *words[] = {tool, "-d", "--no-show-raw-insn", start, stop,
                           file, NULL};
    struct cpprof__tool_run what = {words, MOST_BYTES, TIMEOUT_S};
    enum cpprof_status status;

    snprintf(start, sizeof start, "--start-address=0x%" PRIx64, l->start);
    snprintf(stop, sizeof stop, "--stop-address=0x%" PRIx64, l->limit);
    l->text.n = 0;
    l->at = 0;
    status = cpprof__tool_run(&what, &l->text, error);
    if (status == CPPROF_OK)
        cpprof__buffer_append(&l->text, "", 1);
    return l->text.failed ? cpprof__fail_nomem(error) : status;
}

/* Run the first objdump that knows the machine of the file: LLVM's knows all,
 * GNU's often its own alone. Later calls begin with that one. */
static enum cpprof_status
run(struct cpprof__pgo_listing *l, struct cpprof_error *error)
{
    static const char *const names[][2] = {{"llvm-objdump", NULL},
                                           {"objdump", NULL},
                                           {"aarch64-linux-gnu-objdump", NULL},
                                           {"x86_64-linux-gnu-objdump", NULL}};
    struct cpprof__buffer file = {0}, tool = {0};
    enum cpprof_status status = cpprof__fail(
        error, CPPROF_SYSTEM, 0, "no objdump: install binutils or llvm");
    size_t i;

    cpprof__tool_file(l->path, &file);
    for (i = l->tool; i < sizeof names / sizeof *names; i++) {
        tool.n = 0;
        if (!cpprof__tool_find(NULL, "objdump", names[i], &tool))
            continue;
        if (file.failed || tool.failed) {
            status = cpprof__fail_nomem(error);
            break;
        }
        cpprof__progress("reading the code of %s with %s", l->path,
                         names[i][0]);
        status = run_tool(l, (char *)tool.data, (char *)file.data, error);
        if (status == CPPROF_NOMEM || status == CPPROF_LIMIT)
            break;
        if (status == CPPROF_OK && strstr((char *)l->text.data, ":\t")) {
            l->tool = i;
            break;
        }
    }
    cpprof__progress_end();
    cpprof__buffer_free(&file);
    cpprof__buffer_free(&tool);
    return status;
}

void
cpprof__pgo_listing_free(struct cpprof__pgo_listing *l)
{
    cpprof__buffer_free(&l->text);
}

/* ----------------------------------------------------------- reading ---- */

static bool
is_word(const char *text, size_t n, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == n && memcmp(*words, text, n) == 0)
            return true;
    return false;
}

static bool
begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The mnemonic without what may stand in front of it. */
static const char *
mnemonic_of(const char *text)
{
    static const char *const prefixes[] = {"bnd",    "notrack", "repz",   "rep",
                                           "repnz",  "lock",    "data16", "cs",
                                           "{evex}", NULL};
    size_t n;

    for (;;) {
        text += strspn(text, " \t");
        n = strcspn(text, " \t\n");
        if (!n || !is_word(text, n, prefixes))
            return text;
        text += n;
    }
}

/* The address that a jump names: the last operand, in hex; before it may be an
 * immediate one ("tbz w0, #3, 401136"), behind it a comment. */
static uint64_t
target_of(const char *operands)
{
    size_t n = strcspn(operands, "<\n");
    const char *at = operands + n, *comment = memmem(operands, n, "//", 2);
    char *end;
    uint64_t value;

    at = comment ? comment : at;

    while (at > operands && isspace((unsigned char)at[-1]))
        at--;
    while (at > operands && isxdigit((unsigned char)at[-1]))
        at--;
    if (at > operands + 1 && at[-1] == 'x' && at[-2] == '0')
        at -= 2;
    value = strtoull(at, &end, 16);
    return end > at ? value : 0;
}

static enum cpprof__pgo_kind
kind_of(const char *mnemonic, size_t n)
{
    static const char *const ends[] = {"ret",  "retq", "hlt",   "ud2",   "retl",
                                       "eret", "udf",  "retaa", "retab", NULL};
    static const char *const calls[] = {"call", "callq", "bl", "blr", NULL};
    static const char *const nops[] = {"nop",  "nopw", "nopl", "endbr64",
                                       "xchg", "int3", "bti",  NULL};
    static const char *const branches[] = {"cbz", "cbnz", "tbz", "tbnz", NULL};

    if (is_word(mnemonic, n, ends))
        return CPPROF__PGO_END;
    if (is_word(mnemonic, n, calls))
        return CPPROF__PGO_CALL;
    if (is_word(mnemonic, n, nops))
        return CPPROF__PGO_NOP;
    if (is_word(mnemonic, n, branches) || begins(mnemonic, "b.") ||
        begins(mnemonic, "loop"))
        return CPPROF__PGO_BRANCH;
    if (begins(mnemonic, "jmp") || (n == 1 && *mnemonic == 'b'))
        return CPPROF__PGO_JUMP;
    if (n == 2 && begins(mnemonic, "br"))
        return CPPROF__PGO_INDIRECT;
    return *mnemonic == 'j' ? CPPROF__PGO_BRANCH : CPPROF__PGO_PLAIN;
}

/* Is it "xchg %ax,%ax", which does nothing? */
static bool
is_exchange_of_nothing(const char *operands)
{
    size_t n;

    operands += strspn(operands, " \t");
    n = strcspn(operands, ",");
    return operands[n] == ',' && strncmp(operands, operands + n + 1, n) == 0;
}

/* Read a line: "address: text". False when it is none. */
static bool
read_line(const char *line, struct cpprof__pgo_instruction *i)
{
    const char *mnemonic;
    char *end;
    size_t n;

    line += strspn(line, " \t");
    i->address = strtoull(line, &end, 16);
    if (end == line || *end != ':')
        return false;
    mnemonic = mnemonic_of(end + 1);
    n = strcspn(mnemonic, " \t\n");
    i->target = 0;
    i->block = 0;
    i->kind = n ? kind_of(mnemonic, n) : CPPROF__PGO_NOP;
    if (i->kind == CPPROF__PGO_NOP && begins(mnemonic, "xchg") &&
        !is_exchange_of_nothing(mnemonic + n))
        i->kind = CPPROF__PGO_PLAIN;
    if (i->kind == CPPROF__PGO_JUMP || i->kind == CPPROF__PGO_BRANCH) {
        mnemonic += n;
        n = strcspn(mnemonic, "\n");
        if (memchr(mnemonic, '*', n))
            i->kind = CPPROF__PGO_INDIRECT;
        else
            i->target = target_of(mnemonic);
    }
    return true;
}

static bool
read_instructions(struct cpprof__pgo_code *code, struct cpprof__pgo_listing *l,
                  const struct cpprof__pgo_routine *r)
{
    const char *text = (char *)l->text.data, *line = text + l->at;

    while (*line) {
        struct cpprof__pgo_instruction i, *slot;
        const char *next = strchr(line, '\n');

        if (read_line(line, &i) && i.address >= r->start) {
            if (i.address >= r->limit)
                break;
            slot = CPPROF__ARRAY_ADD(&code->instructions);
            if (!slot)
                return false;
            *slot = i;
        }
        line = next ? next + 1 : line + strlen(line);
    }
    l->at = (size_t)(line - text);
    return true;
}

/* ------------------------------------------------------------ blocks ---- */

/* The instruction at an address, or the number of all. */
static size_t
find_instruction(const struct cpprof__pgo_code *code, uint64_t address)
{
    size_t low = 0, high = code->instructions.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (code->instructions.at[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < code->instructions.n &&
                   code->instructions.at[low].address == address
               ? low
               : code->instructions.n;
}

static bool
ends_block(enum cpprof__pgo_kind kind)
{
    return kind >= CPPROF__PGO_BRANCH;
}

static bool
make_blocks(struct cpprof__pgo_code *code)
{
    struct cpprof__pgo_instruction *in = code->instructions.at;
    size_t n = code->instructions.n, i, to;
    bool *leads = calloc(n + 1, 1);

    if (!leads)
        return false;
    leads[0] = true;
    for (i = 0; i < n; i++) {
        to = in[i].target ? find_instruction(code, in[i].target) : n;
        leads[to] = true;
        if (ends_block(in[i].kind))
            leads[i + 1] = true;
    }
    for (i = 0; i < n; i++) {
        struct cpprof__pgo_block *b;

        if (leads[i] && !CPPROF__ARRAY_ROOM(&code->blocks, 1))
            break;
        if (leads[i])
            code->blocks.at[code->blocks.n++] =
                (struct cpprof__pgo_block){.first = (uint32_t)i};
        b = &code->blocks.at[code->blocks.n - 1];
        b->n++;
        b->weight += in[i].kind != CPPROF__PGO_NOP;
        in[i].block = (uint32_t)(code->blocks.n - 1);
    }
    free(leads);
    return i == n;
}

static bool
add_edge(struct cpprof__pgo_code *code, uint32_t from, uint32_t to)
{
    struct cpprof__pgo_edge *e = CPPROF__ARRAY_ADD(&code->edges);

    if (e)
        *e = (struct cpprof__pgo_edge){from, to, 0};
    return e != NULL;
}

/* The edges out of a block; *is_indirect: it may go anywhere. */
static bool
add_edges_of(struct cpprof__pgo_code *code, uint32_t block, bool *is_indirect)
{
    const struct cpprof__pgo_block *b = &code->blocks.at[block];
    const struct cpprof__pgo_instruction *last =
        &code->instructions.at[b->first + b->n - 1];
    size_t n = code->instructions.n;
    size_t to = last->target ? find_instruction(code, last->target) : n;
    bool falls = last->kind < CPPROF__PGO_JUMP && block + 1 < code->blocks.n;
    bool ok = true;

    *is_indirect = last->kind == CPPROF__PGO_INDIRECT;
    if (falls)
        ok = add_edge(code, block, block + 1);
    if (to < n)
        return ok && add_edge(code, block, code->instructions.at[to].block);
    if (!falls || last->target)
        ok = ok && add_edge(code, block, CPPROF__PGO_OUTSIDE);
    return ok;
}

/* What nothing leads to is where indirect jumps go, or, where there are none,
 * what the unwinder enters. */
static bool
add_other_edges(struct cpprof__pgo_code *code, const bool *is_indirect,
                size_t n_indirect)
{
    size_t n = code->blocks.n, n_edges = code->edges.n, i, k;
    bool *is_reached = calloc(n + 1, 1), ok = is_reached;

    for (i = 0; ok && i < n_edges; i++)
        if (code->edges.at[i].to != CPPROF__PGO_OUTSIDE)
            is_reached[code->edges.at[i].to] = true;
    ok = ok && add_edge(code, CPPROF__PGO_OUTSIDE, 0);
    for (i = 1; ok && i < n; i++) {
        if (is_reached[i])
            continue;
        if (!n_indirect)
            ok = add_edge(code, CPPROF__PGO_OUTSIDE, (uint32_t)i);
        for (k = 0; ok && n_indirect && k < n; k++)
            if (is_indirect[k])
                ok = add_edge(code, (uint32_t)k, (uint32_t)i);
    }
    free(is_reached);
    return ok;
}

/* So many edges of indirect jumps are the most: a table is not as large. */
#define MOST_INDIRECT 64

static bool
make_edges(struct cpprof__pgo_code *code)
{
    size_t n = code->blocks.n, n_indirect = 0, i;
    bool *is_indirect = calloc(n + 1, 1), ok = is_indirect;

    for (i = 0; ok && i < n; i++) {
        ok = add_edges_of(code, (uint32_t)i, &is_indirect[i]);
        if (n_indirect >= MOST_INDIRECT)
            is_indirect[i] = false;
        n_indirect += is_indirect[i];
    }
    ok = ok && add_other_edges(code, is_indirect, n_indirect);
    free(is_indirect);
    return ok;
}

/* The samples of a routine, to its blocks. */
static void
add_samples(struct cpprof__pgo_code *code, const struct cpprof__pgo_counts *c,
            const struct cpprof__pgo_routine *r)
{
    size_t low = 0, high = c->leaves.n, k = 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cpprof__pgo_leaf *leaf = &c->leaves.at[middle];

        if (leaf->build < r->build ||
            (leaf->build == r->build && leaf->address < r->start))
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < c->leaves.n && c->leaves.at[low].build == r->build &&
           c->leaves.at[low].address < r->limit;
         low++) {
        while (k + 1 < code->instructions.n &&
               code->instructions.at[k + 1].address <=
                   c->leaves.at[low].address)
            k++;
        code->blocks.at[code->instructions.at[k].block].samples +=
            c->leaves.at[low].n;
    }
}

bool
cpprof__pgo_code_read(struct cpprof__pgo_code *code,
                      struct cpprof__pgo_listing *l,
                      const struct cpprof__pgo_counts *counts, size_t routine,
                      struct cpprof_error *error)
{
    const struct cpprof__pgo_routine *r = &counts->routines.at[routine];
    const struct cpprof__pgo_build *b = &counts->builds.at[r->build];

    code->instructions.n = code->blocks.n = code->edges.n = 0;
    if (l->path != b->code || r->start < l->start || r->limit > l->limit) {
        l->path = b->code;
        l->start = r->start;
        l->limit = stretch_end(counts, routine);
        if (run(l, error) != CPPROF_OK) {
            l->path = NULL;
            return false;
        }
    }
    if (!read_instructions(code, l, r)) {
        cpprof__fail_nomem(error);
        return false;
    }
    if (!code->instructions.n) {
        cpprof__fail(error, CPPROF_BAD_DATA, 0,
                     "objdump shows no code at 0x%" PRIx64 " of %s", r->start,
                     b->code);
        return false;
    }
    if (!make_blocks(code) || !make_edges(code)) {
        cpprof__fail_nomem(error);
        return false;
    }
    add_samples(code, counts, r);
    return true;
}

void
cpprof__pgo_code_free(struct cpprof__pgo_code *code)
{
    CPPROF__ARRAY_FREE(&code->instructions);
    CPPROF__ARRAY_FREE(&code->blocks);
    CPPROF__ARRAY_FREE(&code->edges);
}
