/* SPDX-License-Identifier: MIT */
/*
 * Functions, files and lines of addresses, from what `addr2line -aif` prints:
 * for each address a line "0x..." and then two lines for each function, the
 * innermost first. Source: internal/binutils/addr2liner.go.
 */
#include "report/binutils.h"

#include "base/status.h"
#include "report/tool.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define MOST_BYTES ((size_t)256 << 20)
#define TIMEOUT_S  300

static struct cpprof__slice
next_line(const char **at, const char *end)
{
    const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));

    stop = stop ? stop : end;
    *at = stop < end ? stop + 1 : end;
    return (struct cpprof__slice){line, (size_t)(stop - line)};
}

static bool
is_address(struct cpprof__slice line)
{
    return line.n > 2 && line.at[0] == '0' && line.at[1] == 'x';
}

/* "file:line", "file:line (discriminator 2)", "??:0", "??:?" */
static void
parse_place(struct cpprof__slice text, struct cpprof__frame *frame)
{
    size_t k = text.n, i;

    for (i = 0; i + 2 < text.n; i++)
        if (memcmp(text.at + i, " (d", 3) == 0)
            text.n = i;
    for (k = text.n; k && text.at[k - 1] != ':'; k--)
        ;
    frame->line = 0;
    for (i = k; i < text.n && isdigit((unsigned char)text.at[i]); i++)
        if (frame->line < INT32_MAX)
            frame->line = frame->line * 10 + (text.at[i] - '0');
    frame->file = (struct cpprof__slice){text.at, k ? k - 1 : text.n};
    if (frame->file.n == 2 && memcmp(text.at, "??", 2) == 0)
        frame->file.n = 0;
}

static bool
parse(struct cpprof__places *p)
{
    const char *at = (char *)p->output.data, *end = at + p->output.n;
    struct cpprof__slice line;
    struct cpprof__frame frame, *slot;
    size_t *first;

    while (at < end) {
        line = next_line(&at, end);
        if (is_address(line)) {
            first = CPPROF__ARRAY_ADD(&p->first);
            if (!first)
                return false;
            *first = p->at.n;
            continue;
        }
        frame.function = line;
        if (line.n == 2 && memcmp(line.at, "??", 2) == 0)
            frame.function.n = 0;
        if (at < end)
            parse_place(next_line(&at, end), &frame);
        if (!frame.function.n && !frame.file.n)
            continue;
        slot = CPPROF__ARRAY_ADD(&p->at);
        if (!slot)
            return false;
        *slot = frame;
    }
    return true;
}

enum cpprof_status
cpprof__places_find(struct cpprof__places *p, const char *tools,
                    const char *path, const uint64_t *addresses, size_t n,
                    struct cpprof_error *error)
{
    static const char *const names[] = {"addr2line", NULL};
    struct cpprof__buffer tool = {0}, file = {0}, input = {0};
    enum cpprof_status status = CPPROF_OK;
    size_t i;

    for (i = 0; i < n; i++)
        cpprof__buffer_printf(&input, "%" PRIx64 "\n", addresses[i]);
    cpprof__tool_file(path, &file);
    if (!cpprof__tool_find(tools, "addr2line", names, &tool) && !tool.failed)
        status = cpprof__fail(error, CPPROF_SYSTEM, 0,
                              "no addr2line tool available");
    if (status == CPPROF_OK && (tool.failed || file.failed || input.failed))
        status = cpprof__fail_nomem(error);
    if (status == CPPROF_OK) {
        const char *words[] = {(char *)tool.data, "-aif", "-e",
                               (char *)file.data, NULL};
        struct cpprof__tool_run run = {words, &input, MOST_BYTES, TIMEOUT_S};

        status = cpprof__tool_run(&run, &p->output, error);
    }
    if (status == CPPROF_OK && !parse(p))
        status = cpprof__fail_nomem(error);
    cpprof__buffer_free(&tool);
    cpprof__buffer_free(&file);
    cpprof__buffer_free(&input);
    return status;
}

const struct cpprof__frame *
cpprof__places_of(const struct cpprof__places *p, size_t i, size_t *n)
{
    size_t first, end;

    *n = 0;
    if (i >= p->first.n)
        return NULL;
    first = p->first.at[i];
    end = i + 1 < p->first.n ? p->first.at[i + 1] : p->at.n;
    *n = end - first;
    return p->at.at + first;
}

void
cpprof__places_free(struct cpprof__places *p)
{
    CPPROF__ARRAY_FREE(&p->at);
    CPPROF__ARRAY_FREE(&p->first);
    cpprof__buffer_free(&p->output);
}
