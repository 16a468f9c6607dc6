/* SPDX-License-Identifier: MIT */
/*
 * What a function is called in both sides, whatever the compiler made of it:
 * clones, parts and copies count as the function that they come from.
 */
#include "cli/gate/gate.h"

#include "base/text.h"

#include <ctype.h>
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

/* Is there "operator" as a word? What follows is no namespace, and its < and >
 * are no brackets. */
static bool
is_operator(const char *name, size_t i)
{
    return strncmp(name + i, "operator", 8) == 0 &&
           (!i || name[i - 1] == ':' || name[i - 1] == ' ') &&
           !isalnum((unsigned char)name[i + 8]) && name[i + 8] != '_';
}

/* The namespace that a name is in: what stands before its last "::" outside of
 * <> and (), and behind the type that a template returns. Its length; 0: it is
 * in none. */
static size_t
find_namespace(const char *name, const char **space)
{
    size_t i, n = 0, word = 0;
    bool has_arguments = false; /* what follows them is no type: " const" */
    int depth = 0;

    *space = name;
    for (i = 0; name[i] && (depth || !is_operator(name, i)); i++) {
        if (!depth && name[i] == ' ' && !has_arguments)
            word = i + 1;
        if (!depth && name[i] == '(' && i > word && name[i - 1] != ':')
            has_arguments = true;
        depth += name[i] == '<' || name[i] == '(';
        depth -= name[i] == '>' || name[i] == ')';
        if (!depth && i && name[i] == ':' && name[i + 1] == ':') {
            *space = name + word;
            n = i - word;
        }
    }
    return n;
}

size_t
cpprof__gate_package(const char *name, const char *source, const char *mapping,
                     const char **package)
{
    const char *slash = strrchr(name, '/');
    const char *dot = strchr(slash ? slash : name, '.');
    size_t n;

    *package = name;
    if (ends_in(source, ".go"))
        return dot ? (size_t)(dot - name) : strlen(name);
    if (has_own_names(source)) {
        *package = source;
    } else if ((n = find_namespace(name, package))) {
        return n;
    } else {
        slash = strrchr(mapping, '/');
        *package = slash ? slash + 1 : *mapping ? mapping : "[unknown]";
    }
    return strlen(*package);
}
