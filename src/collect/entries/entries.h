/* SPDX-License-Identifier: MIT */
/*
 * The entries of modules: the words by which a module calls functions of others
 * (its global offset table, and pointers that the loader filled in). They, and
 * the symbols that the loader fills them in from, are pointed at other
 * functions, and back.
 *
 * No code is changed. An entry changes only from the function that it has to
 * lead to, or from its own stub of lazy binding. What a program has copied
 * elsewhere it keeps, and it may be called at any time: so what entries are
 * pointed at stays for as long as the process.
 *
 * A program may have protected its memory. So the kernel is asked before
 * anything is read or written, and pages that the loader has protected are as
 * protected afterwards. What may not be written otherwise stays as it is.
 */
#ifndef COLLECT_ENTRIES_H
#define COLLECT_ENTRIES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Of one name. */
struct cpprof__change {
    const char *name;
    const void *from, *to;    /* one is NULL: nothing changes */
    bool is_only;             /* `from` is the only definition: an entry that is
                                 not bound yet changes, too */
    const ElfW(Sym) * symbol; /* of `from` or `to`: what is bound later follows
                                 it; NULL: it stays as it is */
};

struct cpprof__changes {
    struct cpprof__change *of; /* of different names */
    unsigned n;                /* at most CPPROF__CHANGES_MAX */
    /* Called in the first look at the loader's list; or NULL. */
    void (*before)(struct cpprof__changes *changes);
    /* Of the last walk: modules that were ever loaded; and whether there is
     * something that is protected otherwise than by the loader. */
    uint64_t n_adds;
    bool is_kept;
};

#define CPPROF__CHANGES_MAX 254

/*
 * Look at all modules that are there. One thread at a time; it waits for nobody
 * but for who loads or unloads, at most so long as a list is changed. Does not
 * allocate.
 *
 * False: a module was not ready, or a fork was under way; look again soon.
 */
bool
cpprof__entries_change(struct cpprof__changes *changes);

#endif
