/* SPDX-License-Identifier: MIT */
#include "base/status.h"

#include <cpprof/version.h>

#include <stdarg.h>
#include <stdio.h>

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
fill(struct cpprof_error *error, struct cpprof_error what, const char *format,
     va_list args)
{
    char *at;

    if (!error)
        return;
    *error = what;
    vsnprintf(error->text, sizeof error->text, format, args);
    for (at = error->text; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '?';
}

enum cpprof_status
cpprof__fail(struct cpprof_error *error, enum cpprof_status status, int sys,
             const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fill(error, (struct cpprof_error){.status = status, .sys = sys}, format,
         args);
    va_end(args);
    return status;
}

enum cpprof_status
cpprof__fail_at(struct cpprof_error *error, uint64_t offset, const char *format,
                ...)
{
    va_list args;

    va_start(args, format);
    fill(error,
         (struct cpprof_error){.status = CPPROF_BAD_DATA, .offset = offset},
         format, args);
    va_end(args);
    return CPPROF_BAD_DATA;
}

enum cpprof_status
cpprof__fail_nomem(struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_NOMEM, 0, "out of memory");
}

enum cpprof_status
cpprof__fail_null(struct cpprof_error *error, const char *call)
{
    return cpprof__fail(error, CPPROF_INVALID, 0, "%s: an argument is NULL",
                        call);
}
