/* SPDX-License-Identifier: MIT */
/*
 * What a function is called in both sides, whatever the compiler made of it:
 * clones, parts and copies count as the function that they come from.
 */
#include "cli/gate/gate.h"

#include "base/text.h"

#include <string.h>

static bool
ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* Is it the file of a language whose compiler makes no copies of functions, or
 * of scripts? There main.part is a name that somebody chose. */
static bool
has_own_names(const char *source)
{
    return ends_in(source, ".go") || ends_in(source, ".lua") ||
           ends_in(source, ".py");
}

size_t
cpprof__gate_plain_length(const char *name, const char *source)
{
    const char *clone = strstr(name, " [clone ");
    const char *unit = strstr(name, ".__uniq.");
    size_t n = strlen(name);

    if (has_own_names(source))
        return n;
    if (clone && clone > name)
        n = (size_t)(clone - name);
    if (unit && unit > name && unit < name + n)
        n = (size_t)(unit - name);
    return cpprof__symbol_source_length(name, n);
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

size_t
cpprof__gate_package(const char *name, const char *source, const char *mapping,
                     const char **package)
{
    const char *slash = strrchr(name, '/');
    const char *dot = strchr(slash ? slash : name, '.');
    size_t n = namespace_length(name);

    *package = name;
    if (ends_in(source, ".go"))
        return dot ? (size_t)(dot - name) : strlen(name);
    if (has_own_names(source)) {
        *package = source;
    } else if (n) {
        return n;
    } else {
        slash = strrchr(mapping, '/');
        *package = slash ? slash + 1 : *mapping ? mapping : "[unknown]";
    }
    return strlen(*package);
}
