/* SPDX-License-Identifier: MIT */
/*
 * What the preloaded library calls of others is bound when it is first used,
 * all of it and to what the loader would have found, so that no call of ours in
 * a handler or a hook enters the loader; and before that it is not, because
 * each program would pay for it at its start. bound used, bound idle
 */
#include "tap.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct library {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions;
    const ElfW(Verneed) * needed;
    const ElfW(Rela) * slots;
    size_t n_slots;
} library;

static const struct link_map *
find_library(void)
{
    const struct link_map *m = dlopen(NULL, RTLD_LAZY);

    while (m && !strstr(m->l_name, "libcpprof.so"))
        m = m->l_next;
    return m;
}

static void
read_library(const struct link_map *m)
{
    const ElfW(Dyn) * d;

    for (d = m->l_ld; d->d_tag != DT_NULL; d++) {
        ElfW(Addr) value = d->d_un.d_ptr; /* relocated by the loader or not */
        const void *at =
            (const void *)(value < m->l_addr ? value + m->l_addr : value);

        if (d->d_tag == DT_SYMTAB)
            library.symbols = at;
        else if (d->d_tag == DT_STRTAB)
            library.strings = at;
        else if (d->d_tag == DT_VERSYM)
            library.versions = at;
        else if (d->d_tag == DT_VERNEED)
            library.needed = at;
        else if (d->d_tag == DT_JMPREL)
            library.slots = at;
        else if (d->d_tag == DT_PLTRELSZ)
            library.n_slots = d->d_un.d_val / sizeof *library.slots;
    }
}

static const char *
version_of(uint32_t symbol)
{
    unsigned number = library.versions[symbol] & 0x7fff, i;
    const char *v = (const char *)library.needed;

    for (; number > VER_NDX_GLOBAL; v += ((const ElfW(Verneed) *)v)->vn_next) {
        const ElfW(Verneed) *need = (const ElfW(Verneed) *)v;
        const char *a = v + need->vn_aux;

        for (i = 0; i < need->vn_cnt; i++) {
            const ElfW(Vernaux) *of = (const ElfW(Vernaux) *)a;

            if (of->vna_other == number)
                return library.strings + of->vna_name;
            a += of->vna_next;
        }
        if (!need->vn_next)
            break;
    }
    return NULL;
}

static bool
is_bound(const struct link_map *m, const ElfW(Rela) * slot, bool has_to)
{
    uint32_t symbol = (uint32_t)ELF64_R_SYM(slot->r_info);
    const char *name = library.strings + library.symbols[symbol].st_name;
    const char *version = version_of(symbol);
    void *wanted = version ? dlvsym(RTLD_DEFAULT, name, version)
                           : dlsym(RTLD_DEFAULT, name);
    void *found = *(void **)(m->l_addr + slot->r_offset);

    if (found != wanted && has_to)
        printf("# %s@%s: %p, dlsym() says %p\n", name, version ? version : "",
               found, wanted);
    return found == wanted;
}

int
main(int argc, char **argv)
{
    const struct link_map *m = find_library();
    bool is_used = argc > 1 && !strcmp(argv[1], "used");
    size_t n_bound = 0, n_slots, i;

    if (!check(m, "the library is preloaded"))
        return check_done();
    read_library(m);
    n_slots = library.n_slots;
    for (i = 0; i < n_slots; i++)
        n_bound += is_bound(m, &library.slots[i], is_used);
    check_at_least((double)n_slots, 50, "it calls others through slots");
    if (is_used)
        check_equal((int64_t)n_bound, (int64_t)n_slots,
                    "all are bound when it is used, as the loader would");
    else
        check_at_most((double)n_bound, (double)n_slots / 4,
                      "few are bound while nothing is asked for");
    return check_done();
}
