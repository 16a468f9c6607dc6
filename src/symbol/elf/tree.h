/* SPDX-License-Identifier: MIT */
/*
 * tsearch(), tfind() and tdestroy() as libc has them, with memory of our own:
 * libdw finds units and abbreviations by them, and libc's nodes come from the
 * program's malloc. A tree of one kind is none of the other.
 */
#ifndef SYMBOL_ELF_TREE_H
#define SYMBOL_ELF_TREE_H

typedef int
cpprof__tree_compare(const void *a, const void *b);

/* A pointer to the node of this key, whose first word is the key; NULL: there
 * is none, or no memory to add it. */
void *
cpprof__tree_search(const void *key, void **root,
                    cpprof__tree_compare *compare);
void *
cpprof__tree_find(const void *key, void *const *root,
                  cpprof__tree_compare *compare);

void
cpprof__tree_destroy(void *root, void (*free_key)(void *key));

#endif
