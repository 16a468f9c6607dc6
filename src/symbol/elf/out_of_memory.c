/* SPDX-License-Identifier: MIT */
#include "symbol/elf/out_of_memory.h"

#include <setjmp.h>
#include <stdlib.h>

static __thread jmp_buf *way_out;

void
cpprof__out_of_memory(void)
{
    if (way_out)
        longjmp(*way_out, 1);
    abort(); /* a Dwarf is read outside cpprof__without_exit(): a bug here */
}

bool
cpprof__without_exit(void (*function)(void *arg), void *arg)
{
    jmp_buf *volatile before = way_out;
    jmp_buf here;
    volatile bool returned = false;

    if (setjmp(here) == 0) {
        way_out = &here;
        function(arg);
        returned = true;
    }
    way_out = before;
    return returned;
}
