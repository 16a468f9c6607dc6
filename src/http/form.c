/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a request: found in the form and in the query by scanning
 * them, decoded character by character while they are compared. There is no
 * table and no copy.
 */
#include "http/form.h"

#include "base/text.h"

#include <string.h>
#include <strings.h>

/* ---- escapes ---------------------------------------------------------- */

/* The next byte, decoded; -1 at the end, -2 for a bad escape. */
static int
next(struct cpprof__form_value *v)
{
    char c;

    if (!v->n)
        return -1;
    c = *v->at++;
    v->n--;
    if (c == '+')
        return ' ';
    if (c != '%')
        return (unsigned char)c;
    if (v->n < 2 || cpprof__digit(v->at[0]) > 15 ||
        cpprof__digit(v->at[1]) > 15)
        return -2;
    v->at += 2;
    v->n -= 2;
    return (int)(cpprof__digit(v->at[-2]) << 4 | cpprof__digit(v->at[-1]));
}

static bool
is_good(struct cpprof__form_value v)
{
    int c;

    do
        c = next(&v);
    while (c >= 0);
    return c == -1;
}

bool
cpprof__form_is(struct cpprof__form_value value, const char *text)
{
    int c;

    while ((c = next(&value)) >= 0)
        if (c != (unsigned char)*text++ || !c)
            return false;
    return c == -1 && !*text;
}

/* ---- pairs ------------------------------------------------------------ */

/* Cut off what lies before the next c: all, where there is none. */
static struct cpprof__form_value
cut(struct cpprof__form_value *rest, char c)
{
    struct cpprof__form_value before = *rest;
    const char *end = rest->n ? memchr(rest->at, c, rest->n) : NULL;

    if (!end) {
        *rest = (struct cpprof__form_value){NULL, 0};
        return before;
    }
    before.n = (size_t)(end - before.at);
    rest->at = end + 1;
    rest->n -= before.n + 1;
    return before;
}

/* A pair with a semicolon in it, or a bad escape, is as if it were not there.
 */
static bool
find(struct cpprof__form_value form, const char *name,
     struct cpprof__form_value *value)
{
    while (form.n) {
        struct cpprof__form_value pair = cut(&form, '&'), key;

        if (!pair.n || memchr(pair.at, ';', pair.n))
            continue;
        key = cut(&pair, '=');
        if (!cpprof__form_is(key, name) || !is_good(pair))
            continue;
        *value = pair;
        return true;
    }
    return false;
}

static bool
has_form(const struct cpprof_http_request *request)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = request->content_type, *method = request->method;

    if (!type || !request->body)
        return false;
    if (strcmp(method, "POST") != 0 && strcmp(method, "PUT") != 0 &&
        strcmp(method, "PATCH") != 0)
        return false;
    type += strspn(type, " \t");
    if (strncasecmp(type, form, sizeof form - 1) != 0)
        return false;
    type += sizeof form - 1;
    type += strspn(type, " \t");
    return !*type || *type == ';';
}

struct cpprof__form_value
cpprof__form_value(const struct cpprof_http_request *request, const char *name)
{
    const struct cpprof__form_value body = {request->body, request->n_body};
    const char *query = request->query ? request->query : "";
    struct cpprof__form_value value = {NULL, 0};

    if (!has_form(request) || !find(body, name, &value))
        find((struct cpprof__form_value){query, strlen(query)}, name, &value);
    return value;
}

/* ---- numbers ---------------------------------------------------------- */

/* The digits of a number up to max, or max when there are more of them. */
static bool
digits(struct cpprof__form_value value, int c, uint64_t max, uint64_t *sum)
{
    bool fits = true;

    *sum = 0;
    do {
        if (c < '0' || c > '9') {
            *sum = 0;
            return false;
        }
        fits &= *sum <= (max - (uint64_t)(c - '0')) / 10;
        *sum = fits ? *sum * 10 + (uint64_t)(c - '0') : max;
    } while ((c = next(&value)) >= 0);
    return fits;
}

bool
cpprof__form_int(struct cpprof__form_value value, int64_t *number)
{
    int c = next(&value);
    bool is_negative = c == '-', fits;
    uint64_t sum;

    if (c == '-' || c == '+')
        c = next(&value);
    fits = digits(value, c, (uint64_t)INT64_MAX + is_negative, &sum);
    *number = (int64_t)(is_negative ? 0 - sum : sum);
    return fits;
}

int64_t
cpprof__form_number(const struct cpprof_http_request *request, const char *name)
{
    int64_t number;

    cpprof__form_int(cpprof__form_value(request, name), &number);
    return number;
}
