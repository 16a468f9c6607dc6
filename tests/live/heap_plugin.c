/* SPDX-License-Identifier: MIT */
/*
 * A library that allocates: when it is loaded, when it is asked to, when it is
 * unloaded or the program has ended, by malloc and by C++'s names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default"), noinline))

void *
new_one(size_t n) __asm__("_Znwm");
void
delete_one(void *block) __asm__("_ZdlPv");

void *
plugin_malloc(size_t n);
void
plugin_free(void *block);
void *
plugin_new(size_t n);
void
plugin_delete(void *block);

static void *at_start;

__attribute__((constructor)) static void
load(void)
{
    at_start = malloc(100);
}

__attribute__((destructor)) static void
unload(void)
{
    void *volatile more = malloc(1000);

    more = realloc(more, 100000);
    if (!more || !at_start)
        _exit(3);
    free(more);
    free(at_start);
}

PUBLIC void *
plugin_malloc(size_t n)
{
    return malloc(n);
}

PUBLIC void
plugin_free(void *block)
{
    free(block);
}

PUBLIC void *
plugin_new(size_t n)
{
    return new_one(n);
}

PUBLIC void
plugin_delete(void *block)
{
    delete_one(block);
}
