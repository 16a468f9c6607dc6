/* SPDX-License-Identifier: MIT */
/*
 * Gives names to a profile that has none: from binaries, or from where the
 * profile came; and demangles them. Source: internal/symbolizer/symbolizer.go
 * Symbolize.
 */
#include "cli/report/report.h"

#include "cli/messages.h"

#include <cpprof/pprof/symbolize.h>

#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------- words ---- */

/* Is the word of n bytes that text? */
static bool
is(const char *word, size_t n, const char *text)
{
    return strlen(text) == n && strncasecmp(text, word, n) == 0;
}

/* demangle=full and its like, of which all but the default are meant for names
 * that are demangled already, too. */
static bool
parse_demangle(struct cpprof__symbolize *s, const char *word, size_t n)
{
    static const struct {
        const char *word;
        enum pprof_demangle mode;
    } modes[] = {{"full", PPROF_DEMANGLE_FULL},
                 {"none", PPROF_DEMANGLE_NONE},
                 {"templates", PPROF_DEMANGLE_TEMPLATES}};
    const size_t n_prefix = strlen("demangle=");
    size_t i;

    if (n > n_prefix && is(word, n_prefix, "demangle=")) {
        word += n_prefix;
        n -= n_prefix;
    }
    for (i = 0; i < sizeof modes / sizeof *modes; i++)
        if (is(word, n, modes[i].word)) {
            s->demangle = modes[i].mode;
            s->force = true;
            return true;
        }
    return is(word, n, "default");
}

/* Parse one part; false: it is unknown. */
static bool
parse_part(struct cpprof__symbolize *s, const char *word, size_t n)
{
    bool local = is(word, n, "local"), fast = is(word, n, "fastlocal");
    bool remote = is(word, n, "remote");

    if (local || fast || remote) {
        s->no_local = remote;
        s->no_remote = !remote;
        s->fast |= fast;
    } else if (is(word, n, "none") || is(word, n, "no")) {
        s->none = true;
    } else if (is(word, n, "force")) {
        s->force = true;
    } else {
        return n == 0 || parse_demangle(s, word, n);
    }
    return true;
}

void
cpprof__parse_symbolize(struct cpprof__symbolize *s, const char *text)
{
    const char *part = text;

    while (part && !s->none) {
        size_t n = strcspn(part, ":");

        if (!parse_part(s, part, n)) {
            cpprof__cli_warn("ignoring unrecognized symbolization option: %s",
                             text);
            cpprof__cli_warn("expecting -symbolize=[local|fastlocal|remote|"
                             "none][:force][:demangle=[none|full|templates|"
                             "default]");
        }
        part = part[n] ? part + n + 1 : NULL;
    }
}

/* ------------------------------------------------------------- names ---- */

enum cpprof_status
cpprof__find_binaries(struct pprof_profile *profile, struct cpprof_error *error)
{
    struct pprof_symbolize_options options = {
        .size = sizeof options,
        .warn = cpprof__cli_warn_once,
    };

    return pprof_find_binaries(profile, NULL, &options, error);
}

enum cpprof_status
cpprof__symbolize(struct pprof_profile *profile,
                  const struct cpprof__symbolize *s,
                  const struct cpprof__origins *origins,
                  struct cpprof_error *error)
{
    struct pprof_symbolize_options options = {
        .size = sizeof options,
        .flags = (s->force ? PPROF_SYMBOLIZE_FORCE : 0) |
                 (s->fast ? PPROF_SYMBOLIZE_FAST : 0) |
                 (s->lines ? PPROF_SYMBOLIZE_LINES : 0),
        .warn = cpprof__cli_warn_once,
        .binaries = (const char *const *)s->binaries.at,
        .n_binaries = (size_t)s->binaries.n,
        .fetch = cpprof__debuginfod_is_on() ? cpprof__debuginfod_fetch : NULL,
    };
    enum cpprof_status status = CPPROF_OK;

    if (s->none)
        return CPPROF_OK;
    if (!s->no_local)
        status = pprof_symbolize(profile, &options, error);
    if (status == CPPROF_OK && !s->no_remote)
        status = cpprof__origins_symbolize(origins, profile, s->force, error);
    if (status == CPPROF_OK)
        status = pprof_demangle(profile, s->demangle,
                                s->force ? PPROF_DEMANGLE_AGAIN : 0, error);
    return status;
}
