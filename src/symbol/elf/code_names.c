/* SPDX-License-Identifier: MIT */
/*
 * Names of functions without a symbol that other code tells for sure: the entry
 * point and main, and what the resolvers of indirect functions choose between
 * (memcpy for each processor).
 *
 * A resolver is exported under the name of its function, and loads the address
 * of each of its choices relative to the program counter. Such an address
 * counts only where a function begins, so addresses of data say nothing.
 */
#include "symbol/elf/code_names.h"

#include "own/sort.h"
#include "symbol/elf/array.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a resolver that are read. */
#define LONGEST_RESOLVER 1024

void
cpprof__code_names_free(struct cpprof__code_names *names)
{
    CPPROF__ARRAY_FREE(&names->choices);
    memset(names, 0, sizeof *names);
}

static bool
get_head(const struct cpprof__frame_table *table, GElf_Ehdr *head)
{
    return table->file && gelf_getehdr(table->file->elf, head) &&
           head->e_machine == EM_X86_64;
}

/* What glibc's code at the entry point puts into rdi, which is main: "lea
 * main(%rip), %rdi" or "mov $main, %rdi". 0: it is another code. */
static uint64_t
main_of(const uint8_t *code, size_t n, uint64_t address)
{
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
    /* xor %ebp,%ebp; mov %rdx,%r9; pop %rsi; mov %rsp,%rdx; and $-16,%rsp;
     * push %rax; push %rsp */
    static const uint8_t begin[] = {0x31, 0xed, 0x49, 0x89, 0xd1,
                                    0x5e, 0x48, 0x89, 0xe2, 0x48,
                                    0x83, 0xe4, 0xf0, 0x50, 0x54};
    size_t i = n >= 64 && !memcmp(code, landing, 4) ? 4 : 0;
    int32_t value;

    if (n < 64 || memcmp(code + i, begin, sizeof begin) != 0)
        return 0;
    for (i += sizeof begin; i + 7 <= 64; i++) {
        memcpy(&value, code + i + 3, sizeof value);
        if (!memcmp(code + i, "\x48\x8d\x3d", 3))
            return address + i + 7 + (uint64_t)(int64_t)value;
        if (!memcmp(code + i, "\x48\xc7\xc7", 3))
            return (uint64_t)(uint32_t)value;
    }
    return 0;
}

/* "_start" or "main", if that is what starts at address. */
static const char *
start_name(const struct cpprof__frame_table *table, const GElf_Ehdr *head,
           uint64_t address)
{
    size_t n;
    const uint8_t *code =
        head->e_entry ? cpprof__frame_table_code(table, head->e_entry, &n)
                      : NULL;
    uint64_t main = code ? main_of(code, n, head->e_entry) : 0;

    if (!main)
        return NULL;
    return address == head->e_entry ? "_start"
           : address == main        ? "main"
                                    : NULL;
}

/* ------------------------------------------------- indirect functions ---- */

/* Add what a resolver loads: lea distance(%rip), REGISTER. */
static void
add_choices(struct cpprof__code_names *names,
            const struct cpprof__frame_table *table,
            const struct cpprof__resolver *resolver)
{
    size_t n, i;
    const uint8_t *code = cpprof__frame_table_code(table, resolver->start, &n);

    if (!code)
        return;
    if (n > resolver->size)
        n = resolver->size;
    for (i = 0; i + 7 <= n && i < LONGEST_RESOLVER; i++) {
        int32_t distance;

        if ((code[i] & 0xfb) != 0x48 || code[i + 1] != 0x8d ||
            (code[i + 2] & 0xc7) != 0x05 ||
            !CPPROF__BOUNDED_ROOM(&names->choices))
            continue;
        memcpy(&distance, code + i + 3, sizeof distance);
        names->choices.at[names->choices.n++] = (struct cpprof__choice){
            resolver->start + i + 7 + (uint64_t)(int64_t)distance,
            resolver->start};
    }
}

static int
compare_choices(const void *a, const void *b)
{
    const struct cpprof__choice *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->resolver > y->resolver) - (x->resolver < y->resolver);
}

static void
find_choices(struct cpprof__code_names *names,
             const struct cpprof__frame_table *table,
             struct cpprof__symbols *symbols)
{
    size_t i;

    names->has_choices = true;
    for (i = 0; i < symbols->resolvers.n; i++)
        add_choices(names, table, &symbols->resolvers.at[i]);
    if (names->choices.n)
        cpprof__sort(names->choices.at, names->choices.n,
                     sizeof *names->choices.at, compare_choices);
}

/* Of several functions that share code (memcpy, memmove) the one with the
 * shortest name, then the first. */
static const char *
choice_name(const struct cpprof__code_names *names,
            struct cpprof__symbols *symbols, uint64_t address)
{
    const struct cpprof__choice *all = names->choices.at;
    size_t lo = 0, hi = names->choices.n;
    const char *best = NULL;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (all[mid].start < address)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < names->choices.n && all[lo].start == address; lo++) {
        const char *name = cpprof__symbols_at(symbols, all[lo].resolver, true);

        if (name && (!best || strlen(name) < strlen(best) ||
                     (strlen(name) == strlen(best) && strcmp(name, best) < 0)))
            best = name;
    }
    return best;
}

const char *
cpprof__code_name(struct cpprof__code_names *names,
                  const struct cpprof__frame_table *table,
                  struct cpprof__symbols *symbols, uint64_t address,
                  bool *is_sure)
{
    GElf_Ehdr head;
    const char *name;

    if (!get_head(table, &head))
        return NULL;
    name = start_name(table, &head, address);
    *is_sure = name != NULL;
    if (name)
        return name;
    if (!names->has_choices)
        find_choices(names, table, symbols);
    return choice_name(names, symbols, address);
}
