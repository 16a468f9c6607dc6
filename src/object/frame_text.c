/* SPDX-License-Identifier: MIT */
/* Source: Go runtime/traceback.go (traceback1). */
#include "object/frame_text.h"

#include <inttypes.h>
#include <string.h>

/* The length of a function's name without its parameter list: readers take the
 * text in the last parentheses for values. */
static size_t
name_without_parameters(const char *name)
{
    size_t n = strlen(name), i = n;
    int depth = 0;

    while (i > 0 && name[i - 1] != ')')
        i--;
    while (i > 0) {
        char c = name[--i];

        depth += c == ')';
        depth -= c == '(';
        if (!depth)
            break;
    }
    /* "(anonymous namespace)::f", "operator()" */
    if (!i || name[i] != '(' || strchr(name + i, ':') ||
        (i >= 8 && !strncmp(name + i - 8, "operator", 8)))
        return n;
    return i;
}

static void
put(struct cpprof__buffer *out, const char *text)
{
    cpprof__buffer_append(out, text, strlen(text));
}

static void
put_location(struct cpprof__buffer *out, const struct cpprof__frame *frame,
             uint64_t pc)
{
    uint64_t entry = frame ? frame->entry : 0;

    put(out, "\t");
    put(out, frame && frame->file ? frame->file : "??");
    cpprof__buffer_printf(out, ":%" PRId64 " +0x%" PRIx64 "\n",
                          frame ? frame->line : 0,
                          entry && entry <= pc ? pc - entry : 0);
}

void
cpprof__frame_print(struct cpprof__buffer *out,
                    const struct cpprof__frame *frame, uint64_t pc)
{
    cpprof__buffer_append(out, frame->name,
                          name_without_parameters(frame->name));
    put(out, "(...)\n");
    put_location(out, frame, pc);
}

void
cpprof__frame_print_nameless(struct cpprof__buffer *out, uint64_t pc)
{
    cpprof__buffer_printf(out, CPPROF__NAMELESS "%" PRIx64 ")\n", pc);
    put_location(out, NULL, 0);
}

void
cpprof__frame_print_creator(struct cpprof__buffer *out,
                            const struct cpprof__frame *frame, uint64_t pc)
{
    put(out, CPPROF__CREATED_BY);
    if (frame)
        cpprof__buffer_append(out, frame->name,
                              name_without_parameters(frame->name));
    else
        cpprof__buffer_printf(out, "0x%" PRIx64, pc);
    put(out, "\n");
    put_location(out, frame, pc);
}
