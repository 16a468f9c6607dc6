/* SPDX-License-Identifier: MIT */
#include "symbolize/warn.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

#define LONGEST_WARNING 2048

enum cpprof_status
cpprof__symbolize_check(const struct pprof_symbolize_options *options,
                        struct cpprof_error *error)
{
    if (!options || options->size == sizeof *options)
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_INVALID, 0,
                        "symbolize options of %zu bytes, not %zu",
                        options->size, sizeof *options);
}

void
cpprof__symbolize_warn(const struct pprof_symbolize_options *options,
                       const char *format, ...)
{
    char text[LONGEST_WARNING];
    va_list args;

    if (!options || !options->warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    options->warn(options->ctx, text);
}
