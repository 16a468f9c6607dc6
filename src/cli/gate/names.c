/* SPDX-License-Identifier: MIT */
/*
 * What a function is called in both sides, whatever the compiler made of it:
 * clones, parts and copies count as the function that they come from.
 */
#include "cli/gate/gate.h"

#include <ctype.h>
#include <string.h>

/* What compilers put behind a name, with a number behind some of them. */
static const char *const suffixes[] = {
    ".constprop", ".isra",  ".part", ".cold",     ".lto_priv", ".localalias",
    ".llvm",      ".clone", ".hot",  ".unlikely", ".__uniq",   ".specialized"};
#define N_SUFFIXES (sizeof suffixes / sizeof *suffixes)

/* Does text go on with one of them and end, or go on with a point? */
static bool
is_suffix(const char *text)
{
    size_t i, n;

    for (i = 0; i < N_SUFFIXES; i++) {
        n = strlen(suffixes[i]);
        if (strncmp(text, suffixes[i], n) == 0 &&
            (!text[n] || text[n] == '.' || text[n] == ']' || text[n] == ' '))
            return true;
    }
    return false;
}

void
cpprof__gate_plain_name(const char *name, char *out, size_t size)
{
    const char *clone = strstr(name, " [clone ");
    size_t n = clone && clone > name ? (size_t)(clone - name) : strlen(name), i;

    for (i = 1; i < n; i++)
        if (name[i] == '.' && is_suffix(name + i)) {
            n = i;
            break;
        }
    snprintf(out, size, "%.*s", (int)n, name);
}

static bool
ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The length of the namespace that a name begins with: what stands before the
 * last "::" outside of <> and (). */
static size_t
namespace_length(const char *name)
{
    size_t i, n = 0;
    int depth = 0;

    for (i = 0; name[i]; i++) {
        depth += name[i] == '<' || name[i] == '(';
        depth -= name[i] == '>' || name[i] == ')';
        if (!depth && i && name[i] == ':' && name[i + 1] == ':')
            n = i;
    }
    return n;
}

void
cpprof__gate_package(const char *name, const char *source, const char *mapping,
                     char *out, size_t size)
{
    size_t n = namespace_length(name);

    if (ends_in(source, ".go")) {
        const char *last = strrchr(name, '/');
        const char *dot = strchr(last ? last : name, '.');

        snprintf(out, size, "%.*s", dot ? (int)(dot - name) : (int)strlen(name),
                 name);
    } else if (ends_in(source, ".lua") || ends_in(source, ".py")) {
        snprintf(out, size, "%s", source);
    } else if (n) {
        snprintf(out, size, "%.*s", (int)n, name);
    } else {
        snprintf(out, size, "%s", *mapping ? base_name(mapping) : "[unknown]");
    }
}
