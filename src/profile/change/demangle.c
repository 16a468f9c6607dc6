/* SPDX-License-Identifier: MIT */
/*
 * Names for readers: a mangled name is demangled, and both that and a name
 * that looks like C++ lose their parameters and template arguments, so that
 * lines of a report stay short and instances of a template fall together.
 *
 * libiberty does the parsing, through the functions that call back with pieces
 * of text and do not allocate. A few hundred bytes can ask for gigabytes, so
 * the output is cut off by a jump out of the callback; longer names than
 * libiberty's own limit stay mangled.
 *
 * Source: internal/symbolizer/symbolizer.go Demangle.
 */
#include "base/buffer.h"
#include "base/status.h"
#include "profile/change/change.h"
#include "profile/model/check.h"
#include "profile/model/model.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* Longest mangled name, and longest text made of one. The first bounds
 * libiberty's use of the stack, 256 bytes for each. */
#define LONGEST_INPUT  1024
#define LONGEST_OUTPUT (64 * 1024)

/* ---------------------------------------------------------- libiberty ---- */

struct job {
    struct cpprof__buffer *out;
    jmp_buf too_long;
};

static void
take(const char *text, size_t n, void *ctx)
{
    struct job *job = ctx;

    cpprof__buffer_append(job->out, text, n);
    if (job->out->failed || job->out->n > LONGEST_OUTPUT)
        longjmp(job->too_long, 1);
}

enum language {
    UNKNOWN,
    CXX,
    RUST,
};

/* The language that a name is mangled in; its demangled text is put into
 * out, which is empty. */
static enum language
demangle(const char *name, bool params, struct cpprof__buffer *out)
{
    int options = params ? DMGL_PARAMS | DMGL_ANSI : 0;
    struct job job = {.out = out};

    if (name[0] != '_' || strlen(name) > LONGEST_INPUT || setjmp(job.too_long))
        return UNKNOWN;
    if (rust_demangle_callback(name, DMGL_PARAMS, take, &job))
        return RUST;
    if (!out->failed)
        out->n = 0;
    return cplus_demangle_v3_callback(name, options, take, &job) ? CXX
                                                                 : UNKNOWN;
}

/* -------------------------------------------------- template arguments ---- */

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* How long is "operator" and its symbol, if that has an angle bracket? */
static size_t
operator_length(const char *text, bool in_word)
{
    static const char *const symbols[] = {
        "<=>", "<<=", "<<", "<=", "<", ">>=", ">>", ">=", ">", "->*", "->"};
    size_t i, n = strlen("operator");

    if (in_word || strncmp(text, "operator", n) != 0)
        return 0;
    for (i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (strncmp(text + n, symbols[i], strlen(symbols[i])) == 0)
            return n + strlen(symbols[i]);
    return 0;
}

/* The end of the bracketed part that begins at text, or NULL. Angle brackets
 * count only outside parentheses, because inside they may be comparisons. */
static const char *
matching(const char *text)
{
    unsigned angles = 0, others = 0;

    for (; *text; text++) {
        size_t skip = operator_length(text, is_word(text[-1]));

        if (skip)
            text += skip - 1;
        else if (*text == '(' || *text == '[' || *text == '{')
            others++;
        else if (*text == ')' || *text == ']' || *text == '}')
            others -= others > 0;
        else if (!others && *text == '<')
            angles++;
        else if (!others && *text == '>' && text[-1] != '-' && --angles == 0)
            return text + 1;
    }
    return NULL;
}

/* Take the template arguments out of a terminated demangled name. */
static void
strip_templates(struct cpprof__buffer *name)
{
    char *text = (char *)name->data, *out = text;
    const char *in = text;

    while (*in) {
        size_t skip = operator_length(in, in > text && is_word(in[-1]));
        const char *behind = NULL;

        if (*in == '<' && in > text)
            behind = matching(in);
        if (behind) {
            in = behind;
            /* "operator< <int>" */
            if (out > text && out[-1] == ' ')
                out--;
            continue;
        }
        skip += !skip;
        memmove(out, in, skip);
        out += skip;
        in += skip;
    }
    *out = 0;
    name->n = (size_t)(out - text);
}

/* ------------------------------------------------ names in plain text ---- */

/* Not Java's "class.<init>", nor Go's "foo.(*Bar[...]).Method". */
static bool
looks_like_cxx(const char *name)
{
    if (strstr(name, ".<") || strstr(name, "])."))
        return false;
    return strpbrk(name, "<>[]") || strstr(name, "::");
}

/* Remove what is between the outermost brackets. Stop at a closing bracket that
 * was never opened. */
static void
remove_between(char *name, char open, char close)
{
    char *to = name, *first = NULL;
    const char *at;
    size_t nesting = 0;

    for (at = name; *at; at++) {
        if (*at == close && nesting == 0)
            break; /* closes what was never opened: the rest stays */
        if (*at == open && nesting++ == 0)
            first = to;
        *to++ = *at;
        if (*at == close && --nesting == 0)
            to = first;
    }
    memmove(to, at, strlen(at) + 1);
}

/* ----------------------------------------------------------- profiles ---- */

/* Append the display form of a system name to out, terminated. */
static void
simplify(const char *system_name, enum pprof_demangle mode,
         struct cpprof__buffer *out)
{
    bool params = mode == PPROF_DEMANGLE_FULL;
    bool templates = mode != PPROF_DEMANGLE_SHORT;
    enum language language = demangle(system_name, params, out);

    if (!out->failed && language == UNKNOWN)
        out->n = 0;
    if (language == UNKNOWN)
        cpprof__buffer_append(out, system_name, strlen(system_name));
    cpprof__buffer_append(out, "", 1);
    if (out->failed)
        return;
    if (language == CXX && !templates)
        strip_templates(out);
    if (language != UNKNOWN || params || !looks_like_cxx(system_name))
        return;
    remove_between((char *)out->data, '(', ')');
    if (!templates)
        remove_between((char *)out->data, '<', '>');
}

bool
cpprof__demangled(const char *name, enum pprof_demangle mode,
                  struct cpprof__buffer *out)
{
    bool params = mode == PPROF_DEMANGLE_FULL;
    enum language language = demangle(name, params, out);
    const char *clone;

    if (language == UNKNOWN || out->failed) {
        out->n = 0;
        return false;
    }
    cpprof__buffer_append(out, "", 1);
    if (out->failed)
        return false;
    if (language == CXX && mode == PPROF_DEMANGLE_SHORT)
        strip_templates(out);
    clone = strstr((char *)out->data, " [clone ");
    out->n =
        clone ? (size_t)(clone - (char *)out->data) : strlen((char *)out->data);
    return true;
}

static enum cpprof_status
name_function(struct pprof_profile *p, struct pprof_function *f,
              enum pprof_demangle mode, struct cpprof_error *error)
{
    size_t n = cpprof__strings_n(&p->strings, f->system_name);
    struct cpprof__buffer out = {0};
    uint32_t name;

    /* No compiler makes a name with a zero byte, which would end it here. */
    if (strlen(cpprof__strings_text(&p->strings, f->system_name)) != n) {
        f->name = f->system_name;
        return CPPROF_OK;
    }
    simplify(cpprof__strings_text(&p->strings, f->system_name), mode, &out);
    name = out.failed ? CPPROF__NO_STRING
                      : cpprof__strings_add_text(&p->strings, (char *)out.data);
    cpprof__buffer_free(&out);
    if (name == CPPROF__NO_STRING)
        return cpprof__fail_nomem(error);
    f->name = name;
    return CPPROF_OK;
}

enum cpprof_status
pprof_demangle(struct pprof_profile *p, enum pprof_demangle mode,
               uint32_t flags, struct cpprof_error *error)
{
    CPPROF__NEED(error, p);

    enum cpprof_status status = CPPROF_OK;
    size_t i;

    if ((unsigned)mode > PPROF_DEMANGLE_NONE || flags & ~PPROF_DEMANGLE_AGAIN)
        return cpprof__fail(error, CPPROF_INVALID, 0,
                            "unknown mode %d or flags %#x", (int)mode, flags);
    for (i = 0; i < p->functions.n && status == CPPROF_OK; i++) {
        struct pprof_function *f = &p->functions.at[i];

        if (flags & PPROF_DEMANGLE_AGAIN && f->name && f->system_name)
            f->name = f->system_name;
        if (mode == PPROF_DEMANGLE_NONE ||
            (f->name && f->name != f->system_name))
            continue;
        status = name_function(p, f, mode, error);
    }
    cpprof__debug_check(p);
    return status;
}
