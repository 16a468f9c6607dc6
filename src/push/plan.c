/* SPDX-License-Identifier: MIT */
/*
 * What is to be sent, where, and how often: checks the options of
 * cpprof_push_start() and copies them into a plan that does not point into the
 * caller's memory.
 *
 * Invariants: what a plan shows of its URL has no password in it; every text
 * that becomes part of a header or of a query is one line.
 */
#include "push/plan.h"

#include "base/options.h"
#include "base/status.h"
#include "base/text.h"
#include "collect/process/environment.h"
#include "collect/runtime/proc.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Defaults. A queue of 16 MiB is the profiles of some minutes; 360 files are
 * an hour. */
#define INTERVAL_SECONDS 10u
#define QUEUE_BYTES      (16u << 20)
#define KEEP             360u

#define INTERVAL_MAX 3600u

static const char *const letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static enum cpprof_status
wrong(struct cpprof_error *error, const char *what)
{
    return cpprof__fail(error, CPPROF_INVALID, 0, "push: %s", what);
}

/* Headers are made of them. */
static bool
is_one_line(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static bool
copy(char *to, size_t n, const char *from)
{
    if (!from)
        from = "";
    if (strlen(from) >= n || !is_one_line(from))
        return false;
    strcpy(to, from);
    return true;
}

/* ---- where ------------------------------------------------------------ */

/* Is the letter behind a percent sign in text? */
static bool
has_letter(const char *text, char letter)
{
    for (; *text; text++)
        if (text[0] == '%' && *++text == letter)
            return true;
        else if (!*text)
            break;
    return false;
}

static enum cpprof_status
take_pattern(const char *path, struct cpprof__push_plan *plan,
             struct cpprof_error *error)
{
    static const char usual[] = "%k.%p.%t.pb.gz";
    size_t n = strlen(path), room = sizeof plan->pattern;
    bool is_folder = !has_letter(path, 'k') || !has_letter(path, 't');

    if (n + sizeof usual + 1 > room)
        return wrong(error, "the path is too long");
    snprintf(plan->pattern, room, "%s%s%s", path,
             is_folder && path[n - 1] != '/' ? "/" : "",
             is_folder ? usual : "");
    if (is_folder ? has_letter(path, 't')
                  : !has_letter(strrchr(plan->pattern, '/'), 't'))
        return wrong(error, "%t has its place in the name of a file, beside "
                            "%k; not pushing");
    snprintf(plan->shown, sizeof plan->shown, "%.255s", plan->pattern);
    return CPPROF_OK;
}

static size_t
scheme_length(const char *url)
{
    if (!strncasecmp(url, "http://", 7))
        return 7;
    return strncasecmp(url, "https://", 8) ? 0 : 8;
}

/* Everything between the scheme and the last @ before the path is secret. */
static void
hide_credentials(const char *url, size_t n_scheme, char *shown, size_t n)
{
    const char *host = url + n_scheme;
    size_t n_authority = strcspn(host, "/");
    const char *at = memrchr(host, '@', n_authority);

    snprintf(shown, n, "%.*s%s", (int)n_scheme, url, at ? at + 1 : host);
}

/* Does the password contain a '/', which would begin the path? Then the
 * displayed URL would contain a part of it. */
static bool
has_bare_password(const char *authority)
{
    size_t n = strcspn(authority, "/");

    return !memchr(authority, '@', n) && strchr(authority + n, '@');
}

/* An address of IPv6 is in brackets, and a port is a number up to 65535: any
 * other would be tried for ever. */
static bool
is_host(const char *authority)
{
    size_t n = strcspn(authority, "/");
    const char *at = memrchr(authority, '@', n),
               *host = at ? at + 1 : authority;
    char port[8];
    uint32_t number;

    n -= (size_t)(host - authority);
    if (!n || *host == ':')
        return false;
    if (*host == '[') {
        at = memchr(host, ']', n);
        if (!at || (at[1] && !strchr(":/", at[1])))
            return false;
        n -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    at = memchr(host, ':', n);
    if (!at || at + 1 == host + n)
        return true;
    return snprintf(port, sizeof port, "%.*s", (int)(host + n - at - 1),
                    at + 1) < (int)sizeof port &&
           cpprof__parse_count(port, 65535, &number);
}

/* What a URL begins with that says the protocol, and what stands behind its
 * path then; those of Pyroscope have queries. ORDER: enum cpprof_push_protocol
 */
static const struct {
    const char *begin, *path;
} protocols[] = {
    {"push+", ""},
    {"ingest+", ""},
    {"otlp+", "/v1development/profiles"},
    {"pprof+", "/v1/pprof"},
    {"parca+", "/api/profiles/writeraw"},
};
#define N_PROTOCOLS (sizeof protocols / sizeof *protocols)

/* Take what the URL says of the protocol; the rest of it. */
static const char *
take_protocol(const char *url, struct cpprof__push_plan *plan)
{
    size_t i, n;

    for (i = 0; i < N_PROTOCOLS; i++) {
        n = strlen(protocols[i].begin);
        if (strncasecmp(url, protocols[i].begin, n) == 0) {
            plan->protocol = (enum cpprof_push_protocol)i;
            return url + n;
        }
    }
    return url;
}

/* Unless it is there already. */
static bool
append_path(struct cpprof__push_plan *plan)
{
    const char *path = protocols[plan->protocol].path;
    size_t n = strlen(plan->url), n_path = strlen(path);

    if (n > n_path && !strcmp(plan->url + n - n_path, path))
        return true;
    return snprintf(plan->url + n, sizeof plan->url - n, "%s", path) <
           (int)(sizeof plan->url - n);
}

static enum cpprof_status
take_url(const char *url, struct cpprof__push_plan *plan,
         struct cpprof_error *error)
{
    enum cpprof_push_protocol given = plan->protocol;
    size_t n_scheme, n;

    url = take_protocol(url, plan);
    if (given && given != plan->protocol)
        return wrong(error, "the URL says another protocol than "
                            "push-protocol; not pushing");
    n_scheme = scheme_length(url);
    n = strlen(url);

    if (!n_scheme || !url[n_scheme] || url[n_scheme] == '/' ||
        strpbrk(url, "?# "))
        return wrong(error, "that is no http:// or https:// URL without a "
                            "query, and no absolute path; not pushing");
    if (has_bare_password(url + n_scheme))
        return wrong(error, "a / in the user or password of a URL is written "
                            "%2F, and an @ in its path %40; not pushing");
    if (!is_host(url + n_scheme))
        return wrong(error, "that URL has no HOST, HOST:PORT or [IPv6]:PORT; "
                            "not pushing");
    if (!copy(plan->url, sizeof plan->url, url))
        return wrong(error, "the URL is too long; not pushing");
    while (plan->url[n - 1] == '/')
        plan->url[--n] = 0;
    if (!append_path(plan))
        return wrong(error, "the URL is too long; not pushing");
    hide_credentials(plan->url, n_scheme, plan->shown, sizeof plan->shown);
    return CPPROF_OK;
}

/* ---- names ------------------------------------------------------------ */

static bool
is_name_character(char c)
{
    return c && (strchr(letters, c) || strchr("0123456789-./_:@", c));
}

bool
cpprof__push_expand(const char *given, char *text, size_t n)
{
    char name[256], *c;

    cpprof__proc_name(name, sizeof name);
    for (c = name; *c; c++)
        *c = is_name_character(*c) ? *c : '_';
    return cpprof__environment_expand(given, *name ? name : "unknown", text, n);
}

static enum cpprof_status
take_name(const char *given, struct cpprof__push_plan *plan,
          struct cpprof_error *error)
{
    const char *c;

    plan->is_named = given && *given;
    if (!cpprof__push_expand(plan->is_named ? given : "%e", plan->name,
                             sizeof plan->name))
        return wrong(error, "push-name is too long; not pushing");
    for (c = plan->name; *c; c++)
        if (!is_name_character(*c))
            return wrong(error, "push-name has other characters than letters, "
                                "digits and -./_:@; not pushing");
    return CPPROF_OK;
}

bool
cpprof__push_next_label(const char **labels, struct cpprof__push_label *label)
{
    const char *text = *labels;

    if (!*text)
        return false;
    label->name = text;
    label->n_name = strcspn(text, "=,");
    text += label->n_name;
    text += *text == '=';
    label->value = text;
    label->n_value = strcspn(text, ",");
    text += label->n_value;
    *labels = text + (*text == ',');
    return true;
}

/* "__name__" and "service_name" are ours. */
static bool
is_label(const struct cpprof__push_label *label, bool may_have_dots)
{
    static const char service[] = "service_name";
    const char *name = label->name;
    size_t i;

    if (!label->n_name || !label->n_value || !strncmp(name, "__", 2) ||
        (label->n_name == sizeof service - 1 &&
         !memcmp(name, service, label->n_name)))
        return false;
    for (i = 0; i < label->n_name; i++)
        if (!strchr(letters, name[i]) && name[i] != '_' &&
            (name[i] != '.' || !may_have_dots) &&
            (!i || !strchr("0123456789", name[i])))
            return false;
    return !memchr(label->value, '}', label->n_value);
}

static bool
is_in(const char *labels, const struct cpprof__push_label *label)
{
    struct cpprof__push_label other;

    while (cpprof__push_next_label(&labels, &other) &&
           other.name != label->name)
        if (other.n_name == label->n_name &&
            !memcmp(other.name, label->name, label->n_name))
            return true;
    return false;
}

/* Servers want UTF-8. False: they do not fit, or are not of one line. */
static bool
copy_labels(const char *given, char *labels, size_t n)
{
    struct cpprof__buffer clean = {0};
    bool fits = cpprof__push_expand(given, labels, n) && is_one_line(labels);

    cpprof__put_utf8(&clean, labels, strlen(labels) + 1);
    fits = fits && !clean.failed && clean.n <= n;
    if (fits)
        memcpy(labels, clean.data, clean.n);
    cpprof__buffer_free(&clean);
    return fits;
}

static enum cpprof_status
take_labels(const char *given, struct cpprof__push_plan *plan,
            struct cpprof_error *error)
{
    const char *rest = plan->labels;
    struct cpprof__push_label label;

    if (!given || !*given)
        return CPPROF_OK;
    if (!copy_labels(given, plan->labels, sizeof plan->labels))
        return wrong(error, "all push-label are 1023 bytes of one line at "
                            "most; not pushing");
    while (cpprof__push_next_label(&rest, &label))
        if (!is_label(&label, plan->protocol == CPPROF_PUSH_OTLP) ||
            is_in(plan->labels, &label))
            return cpprof__fail(error, CPPROF_INVALID, 0,
                                "push: push-label=%.*s is no label, or its "
                                "name is taken; not pushing",
                                (int)(label.n_name + 1 + label.n_value),
                                label.name);
    return CPPROF_OK;
}

/* ---- all -------------------------------------------------------------- */

static enum cpprof_status
take_credentials(const struct cpprof_push_options *given,
                 struct cpprof__push_plan *plan, struct cpprof_error *error)
{
    if (!copy(plan->user, sizeof plan->user, given->user) ||
        !copy(plan->password, sizeof plan->password, given->password) ||
        !copy(plan->token, sizeof plan->token, given->token) ||
        !copy(plan->token_file, sizeof plan->token_file, given->token_file) ||
        !copy(plan->tenant, sizeof plan->tenant, given->tenant))
        return wrong(error, "a credential is too long, or not of one line; "
                            "not pushing");
    return CPPROF_OK;
}

static enum cpprof_status
take_numbers(const struct cpprof_push_options *given,
             struct cpprof__push_plan *plan, struct cpprof_error *error)
{
    const uint32_t all = (1u << CPPROF__PUSH_KINDS) - 1;

    if (given->kinds & ~all || given->interval_seconds > INTERVAL_MAX ||
        given->budget_ppm > 1000000)
        return wrong(error, "an option is outside its range; not pushing");
    plan->kinds = given->kinds ? given->kinds : all & ~CPPROF_PUSH_WALL;
    plan->interval_s =
        given->interval_seconds ? given->interval_seconds : INTERVAL_SECONDS;
    plan->every_s =
        given->every_seconds ? given->every_seconds : plan->interval_s;
    if (plan->every_s < plan->interval_s || plan->every_s > INTERVAL_MAX)
        return wrong(error, "push-every is no less than push-interval; not "
                            "pushing");
    plan->queue_bytes = given->queue_bytes ? given->queue_bytes : QUEUE_BYTES;
    plan->keep = given->keep ? given->keep : KEEP;
    plan->budget_ppm = given->budget_ppm;
    plan->report = given->report;
    plan->ctx = given->ctx;
    return CPPROF_OK;
}

/* A server does not accept the text forms. */
static enum cpprof_status
take_options(const struct cpprof_push_options *given,
             struct cpprof__push_plan *plan, struct cpprof_error *error)
{
    enum cpprof_status status =
        cpprof__options(&plan->cpu, sizeof plan->cpu, given->cpu,
                        "struct cpprof_cpu_options", error);

    if (status == CPPROF_OK)
        status = cpprof__options(&plan->wall, sizeof plan->wall, given->wall,
                                 "struct cpprof_wall_options", error);
    if (status == CPPROF_OK)
        status = cpprof__options(&plan->profiles, sizeof plan->profiles,
                                 given->profiles,
                                 "struct cpprof_profile_options", error);
    if (status != CPPROF_OK)
        return status;
    if (plan->cpu.flags & CPPROF_FLAG_LEGACY ||
        plan->wall.flags & (CPPROF_FLAG_COLLAPSED | CPPROF_FLAG_FGPROF) ||
        plan->profiles.flags & CPPROF_FLAG_LEGACY || plan->profiles.debug)
        return wrong(error, "only protobuf is pushed; not pushing");
    return CPPROF_OK;
}

enum cpprof_status
cpprof__push_plan_make(const char *url,
                       const struct cpprof_push_options *options,
                       struct cpprof__push_plan *plan,
                       struct cpprof_error *error)
{
    struct cpprof_push_options given = {.size = sizeof given};
    enum cpprof_status status;

    memset(plan, 0, sizeof *plan);
    plan->cpu.size = sizeof plan->cpu;
    plan->wall.size = sizeof plan->wall;
    plan->profiles.size = sizeof plan->profiles;
    status = cpprof__options(&given, sizeof given, options,
                             "struct cpprof_push_options", error);
    if (!strncmp(url, "file:///", 8))
        url += 7;
    plan->protocol = given.protocol;
    if (status == CPPROF_OK && (unsigned)given.protocol >= N_PROTOCOLS)
        status = wrong(error, "an option is outside its range; not pushing");
    if (status == CPPROF_OK)
        status = *url == '/' ? take_pattern(url, plan, error)
                             : take_url(url, plan, error);
    if (status == CPPROF_OK)
        status = take_name(given.name, plan, error);
    if (status == CPPROF_OK)
        status = take_labels(given.labels, plan, error);
    if (status == CPPROF_OK)
        status = take_credentials(&given, plan, error);
    if (status == CPPROF_OK)
        status = take_numbers(&given, plan, error);
    return status == CPPROF_OK ? take_options(&given, plan, error) : status;
}
