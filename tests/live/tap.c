/* SPDX-License-Identifier: MIT */
/*
 * TAP output. A check prints one line, and both values when it fails; the plan
 * is printed at the end.
 */
#include "tap.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_checks;
static int n_failed;
static FILE *tried; /* what a try prints; NULL: standard output */

static FILE *
output(void)
{
    return tried ? tried : stdout;
}

bool
check(bool ok, const char *name)
{
    fprintf(output(), "%s %d - %s\n", ok ? "ok" : "not ok", ++n_checks, name);
    n_failed += !ok;
    fflush(output());
    return ok;
}

bool
check_equal(int64_t got, int64_t want, const char *name)
{
    if (!check(got == want, name))
        note("got %lld, want %lld", (long long)got, (long long)want);
    return got == want;
}

bool
check_at_least(double got, double least, const char *name)
{
    if (!check(got >= least, name))
        note("got %g, want at least %g", got, least);
    return got >= least;
}

bool
check_at_most(double got, double most, const char *name)
{
    if (!check(got <= most, name))
        note("got %g, want at most %g", got, most);
    return got <= most;
}

bool
check_near(double got, double want, double tolerance, const char *name)
{
    bool ok = fabs(got - want) <= tolerance;

    if (!check(ok, name))
        note("got %g, want %g within %g", got, want, tolerance);
    return ok;
}

bool
check_text(const char *got, const char *want, const char *name)
{
    bool ok = got && strcmp(got, want) == 0;

    if (!check(ok, name))
        note("got \"%s\", want \"%s\"", got ? got : "(null)", want);
    return ok;
}

bool
check_has(const char *text, const char *part, const char *name)
{
    bool ok = text && strstr(text, part);

    if (!check(ok, name))
        note("got \"%s\", want \"%s\" in it", text ? text : "(null)", part);
    return ok;
}

void
check_skip(const char *name, const char *why)
{
    fprintf(output(), "ok %d - %s # SKIP %s\n", ++n_checks, name, why);
    fflush(output());
}

bool
check_skip_asan(const char *name, const char *why)
{
#ifdef __SANITIZE_ADDRESS__
    check_skip(name, why);
    return true;
#else
    (void)name;
    (void)why;
    return false;
#endif
}

/* TAP knows lines: each of the text gets its own "# ". */
static void
print_comment(const char *text)
{
    const char *line = text;

    while (*line) {
        size_t n = strcspn(line, "\n");

        fprintf(output(), "# %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    fflush(output());
}

void
note(const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_comment(text);
}

void
bail(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("Bail out! %s\n", text);
    fflush(stdout);
    exit(99);
}

/* Did all of its checks hold? Its lines, from malloc. */
static bool
try_once(void (*run)(unsigned length), unsigned length, char **lines)
{
    int failed = n_failed;
    size_t n;

    tried = open_memstream(lines, &n);
    if (!tried)
        bail("out of memory");
    run(length);
    fclose(tried);
    tried = NULL;
    return n_failed == failed;
}

void
check_tries(unsigned tries, void (*run)(unsigned length))
{
    int checks = n_checks, failed = n_failed;
    unsigned i = 0;
    char *lines;

    while (!try_once(run, 1u << i, &lines) && ++i < tries) {
        print_comment(lines);
        free(lines);
        n_checks = checks;
        n_failed = failed;
    }
    fputs(lines, stdout);
    fflush(stdout);
    free(lines);
}

int
check_done(void)
{
    if (n_checks == 0)
        bail("no check was made");
    printf("1..%d\n", n_checks);
    return n_failed != 0;
}

int
check_skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    return 0;
}
