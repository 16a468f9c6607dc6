/* SPDX-License-Identifier: MIT */
/* A program that writes a heap profile to nowhere, with the malloc that it is
 * linked with, and says on standard output how that went. */
#include <cpprof/heap.h>

#include <stdio.h>

static int
drop(void *ctx, const void *data, size_t n)
{
    return 0;
}

int
main(void)
{
    struct cpprof_writer writer = {sizeof writer, drop, NULL, NULL};
    struct cpprof_error error = {0};

    if (cpprof_heap_write(&writer, NULL, &error))
        printf("%d %s\n", (int)error.status, error.text);
    else
        printf("0 written\n");
    return 0;
}
