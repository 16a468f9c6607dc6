/* SPDX-License-Identifier: MIT */
#include "base/status.h"

#include <cpprof/version.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint32_t
cpprof_version(void)
{
    return CPPROF_VERSION_NUMBER;
}

const char *
cpprof_status_name(enum cpprof_status status)
{
    switch (status) {
#define X(name, value, text)                                                   \
    case CPPROF_##name:                                                        \
        return #name;
        CPPROF_STATUS_MAP(X)
#undef X
    }
    return "UNKNOWN";
}

const char *
cpprof_status_text(enum cpprof_status status)
{
    switch (status) {
#define X(name, value, text)                                                   \
    case CPPROF_##name:                                                        \
        return text;
        CPPROF_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

/* The text stays one line, whatever a file name contains. */
static void
one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            *text = '?';
}

enum cpprof_status
cpprof__fail(struct cpprof_error *error, enum cpprof_status status, int sys,
             const char *format, ...)
{
    va_list args;

    if (!error)
        return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    error->sys = sys;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    one_line(error->text);
    return status;
}

enum cpprof_status
cpprof__fail_at(struct cpprof_error *error, uint64_t offset, const char *format,
                ...)
{
    va_list args;

    if (!error)
        return CPPROF_BAD_DATA;
    memset(error, 0, sizeof *error);
    error->status = CPPROF_BAD_DATA;
    error->offset = offset;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    one_line(error->text);
    return CPPROF_BAD_DATA;
}

enum cpprof_status
cpprof__fail_nomem(struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_NOMEM, 0, "out of memory");
}
