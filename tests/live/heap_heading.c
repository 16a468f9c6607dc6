/* SPDX-License-Identifier: MIT */
#include "heap_heading.h"

#include "tap.h"

#include <cpprof/heap.h>

#include <stdio.h>
#include <string.h>

static char text[512];
static size_t n_text;

static int
keep_head(void *ctx, const void *data, size_t n)
{
    if (n > sizeof text - 1 - n_text)
        n = sizeof text - 1 - n_text;
    memcpy(text + n_text, data, n);
    n_text += n;
    return 0;
}

struct heap_heading
heap_heading(void)
{
    struct cpprof_writer writer = {sizeof writer, keep_head, NULL, NULL};
    struct cpprof_heap_options options = {.size = sizeof options, .debug = 1};
    struct cpprof_error error = {0};
    struct heap_heading h;

    options.symbolize = CPPROF_SYMBOLIZE_NONE;
    n_text = 0;
    memset(text, 0, sizeof text);
    if (cpprof_heap_write(&writer, &options, &error))
        bail("%s", error.text);
    if (sscanf(text, "heap profile: %lld: %lld [%lld: %lld]", &h.inuse_objects,
               &h.inuse_bytes, &h.alloc_objects, &h.alloc_bytes) != 4)
        bail("no heap profile: %.60s", text);
    return h;
}
