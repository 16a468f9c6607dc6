/* SPDX-License-Identifier: MIT */
#include "cli/messages.h"

#include "cli/hide_password.h"
#include "cli/terminal.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* In front of messages. */
static const char *prefix = "cpprof: ";

static void
print_line(const char *format, va_list args)
{
    char whole[2048], text[1024], *c;

    vsnprintf(whole, sizeof whole, format, args);
    cpprof__hide_passwords(whole, text, sizeof text);
    for (c = text; *c; c++) /* one line, even if a file name has line breaks */
        if ((unsigned char)*c < ' ')
            *c = '?';
    cpprof__progress_hide();
    fprintf(stderr, "%s%s%s%s\n", cpprof__color(STDERR_FILENO, "31"), prefix,
            text, cpprof__color(STDERR_FILENO, ""));
}

void
cpprof__cli_prefix(const char *text)
{
    prefix = text;
}

int
cpprof__cli_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
    return CPPROF__EXIT_ERROR;
}

void
cpprof__cli_warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
}
