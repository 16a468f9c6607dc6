/* SPDX-License-Identifier: MIT */
/*
 * Is a profile good enough? A line for each thing that can be wrong with one,
 * with what to do about it:
 *
 *     ok    samples: 12034, 58 s at 250 Hz
 *     weak  hot functions: ...
 *     bad   lines: ...
 */
#include "cli/pgo/pgo.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Fewer samples are noise; a guess: 1 834 gained what instrumentation did with
 * sqlite, and less was not tried. */
#define FEW_SAMPLES    500
#define ENOUGH_SAMPLES 3000
/* A function of so many samples has blocks that can be told apart. */
#define COVERED_SAMPLES 20

enum verdict { OK, WEAK, BAD };

struct checker {
    const struct cpprof__pgo_counts *counts;
    struct cpprof__buffer *out;
    bool is_good;
};

static void
say(struct checker *c, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
say(struct checker *c, enum verdict verdict, const char *format, ...)
{
    static const char *const words[] = {"ok    ", "weak  ", "bad   "};
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cpprof__buffer_printf(c->out, "%s%s\n", words[verdict], text);
    c->is_good &= verdict != BAD;
}

static double
percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void
check_samples(struct checker *c)
{
    double n = c->counts->n_samples;
    char when[128] = "";

    if (c->counts->seconds > 0 && c->counts->rate_hz > 0)
        snprintf(when, sizeof when, ", %.0f s at %.0f Hz", c->counts->seconds,
                 c->counts->rate_hz);
    if (n < ENOUGH_SAMPLES)
        say(c, n < FEW_SAMPLES ? BAD : WEAK,
            "samples: %.0f%s; %d are enough: record %.0f times as long, at a "
            "higher rate (-F 1000), or give more profiles",
            n, when, ENOUGH_SAMPLES, ENOUGH_SAMPLES / (n > 1 ? n : 1) + 1);
    else
        say(c, OK, "samples: %.0f%s", n, when);
}

static void
check_program(struct checker *c)
{
    double share = percent(c->counts->n_inside, c->counts->n_samples);

    if (share < 50)
        say(c, WEAK,
            "program: %.1f%% of the samples are in it; the rest is in other "
            "files, which this build does not make faster",
            share);
    else
        say(c, OK, "program: %.1f%% of the samples are in it", share);
}

static void
check_lines(struct checker *c)
{
    const struct cpprof__pgo_counts *n = c->counts;
    double share = percent(n->n_lines, n->n_inside - n->n_line_0);
    char line_0[96] = "";

    if (n->n_line_0 > 0)
        snprintf(line_0, sizeof line_0,
                 "; %.1f%% are on line 0, which compilers give to code of none",
                 percent(n->n_line_0, n->n_inside));
    if (share < 90)
        say(c, share < 50 ? BAD : WEAK,
            "lines: %.1f%% of the program's samples have a line and a function "
            "with a declaration; %s%s",
            share,
            n->lacks_split ? "the .dwo files are missing"
                           : "build all of it with -gline-tables-only "
                             "-fdebug-info-for-profiling",
            line_0);
    else
        say(c, OK, "lines: %.1f%% of the program's samples have them%s", share,
            line_0);
    if (n->n_discriminators <= 0)
        say(c, WEAK,
            "discriminators: none, so blocks of one line are not told apart; "
            "build with -fdebug-info-for-profiling");
    else
        say(c, OK, "discriminators: in %.1f%% of the program's samples",
            percent(n->n_discriminators, n->n_inside));
}

static void
check_functions(struct checker *c)
{
    const struct cpprof__pgo_counts *n = c->counts;
    double covered = 0, all = 0, share;
    size_t n_covered = 0, i;

    for (i = 0; i < n->routines.n; i++) {
        all += n->routines.at[i].n;
        if (n->routines.at[i].n < COVERED_SAMPLES)
            continue;
        covered += n->routines.at[i].n;
        n_covered++;
    }
    share = percent(covered, all);
    if (share < 70)
        say(c, WEAK,
            "hot functions: %zu have %d samples or more, %.1f%% of all; record "
            "longer, or give more profiles, until these are 70%%",
            n_covered, COVERED_SAMPLES, share);
    else
        say(c, OK, "hot functions: %zu have %d samples or more, %.1f%% of all",
            n_covered, COVERED_SAMPLES, share);
}

/* ------------------------------------------------------------- stale ---- */

static void
check_builds(struct checker *c)
{
    const struct cpprof__pgo_counts *n = c->counts;
    double found = 0, all = 0;
    size_t n_found = 0, i;

    for (i = 0; i < n->builds.n; i++) {
        all += (double)n->builds.at[i].n_samples;
        if (n->builds.at[i].path) {
            found += (double)n->builds.at[i].n_samples;
            n_found++;
        }
    }
    if (found < all)
        say(c, percent(found, all) < 50 ? BAD : WEAK,
            "builds: %zu of %zu are here, with %.1f%% of the program's "
            "samples; say where the others are with -binary=FILE or "
            "PPROF_BINARY_PATH",
            n_found, n->builds.n, percent(found, all));
    else
        say(c, OK, "builds: %zu, all here", n_found);
}

/* Did the source of a routine change after its build? -1: it is not here. */
static int
is_changed(const struct cpprof__pgo_counts *n,
           const struct cpprof__pgo_routine *r)
{
    const char *path = n->builds.at[r->build].path;
    const char *file = cpprof__strings_text(&n->names, r->file);
    struct stat built, source;

    if (!*file || stat(file, &source) != 0 || !path || stat(path, &built) != 0)
        return -1;
    return source.st_mtime > built.st_mtime;
}

static void
check_sources(struct checker *c)
{
    const struct cpprof__pgo_counts *n = c->counts;
    double changed = 0, here = 0, all = 0;
    size_t i;

    for (i = 0; i < n->routines.n; i++) {
        const struct cpprof__pgo_routine *r = &n->routines.at[i];
        int answer = is_changed(n, r);

        all += r->n;
        here += answer >= 0 ? r->n : 0;
        changed += answer > 0 ? r->n : 0;
    }
    if (here <= 0)
        say(c, OK, "sources: not here, so nothing is known of their changes");
    else if (percent(changed, here) > 20)
        say(c, WEAK,
            "sources: %.1f%% of the samples are in files that changed after "
            "the build; functions whose lines moved against their first line "
            "lose their counts: record the next build soon",
            percent(changed, here));
    else
        say(c, OK,
            "sources: %.1f%% of the samples are in files that changed after "
            "the build",
            percent(changed, here));
}

bool
cpprof__pgo_check(const struct cpprof__pgo_counts *counts,
                  struct cpprof__buffer *out)
{
    struct checker c = {counts, out, true};

    check_samples(&c);
    check_program(&c);
    check_lines(&c);
    check_functions(&c);
    check_builds(&c);
    check_sources(&c);
    return c.is_good;
}
