/* SPDX-License-Identifier: MIT */
/*
 * Names from the server that a profile came from: a list of addresses is
 * posted, "0xADDRESS NAME" lines come back. Source: internal/symbolz.
 */
#include "cli/fetch/fetch.h"

#include "base/status.h"

#include "cli/fetch/request.h"
#include "cli/messages.h"
#include "cli/terminal.h"

#include <cpprof/pprof/change.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Add the signed offset; false when the sum is no address. */
static bool
adjust(uint64_t address, int64_t offset, uint64_t *sum)
{
    *sum = address + (uint64_t)offset;
    return offset < 0 ? *sum < address : *sum >= address;
}

/* ---------------------------------------------------------- question ---- */

/* Longest "0x0123456789abcdef+". */
#define ADDRESS_BYTES 20

static bool
is_asked(const struct pprof_location *l, size_t mapping)
{
    return l->mapping == mapping && l->address && !l->n_lines;
}

/* "addr+addr", to be freed; "" when there are none, NULL without memory. */
static char *
question(const struct pprof_profile *p, size_t mapping, int64_t offset)
{
    const struct pprof_location *locations = pprof_locations(p);
    size_t n = pprof_location_count(p), n_asked = 0, used = 0, i;
    uint64_t address;
    char *text;

    for (i = 0; i < n; i++)
        n_asked += is_asked(&locations[i], mapping);
    text = malloc(n_asked * ADDRESS_BYTES + 1);
    if (!text)
        return NULL;
    for (i = 0; i < n; i++)
        if (is_asked(&locations[i], mapping) &&
            adjust(locations[i].address, offset, &address))
            used += (size_t)sprintf(text + used, "%s%#llx", used ? "+" : "",
                                    (unsigned long long)address);
    text[used] = 0;
    return text;
}

/* ------------------------------------------------------------ answer ---- */

struct symbols {
    struct pprof_symbol *at;
    size_t n;
};

/* "0xADDRESS NAME" anywhere in a line, which is terminated; else false. */
static bool
parse_line(char *line, uint64_t *address, char **name)
{
    char *at, *end;
    size_t n;

    for (at = strstr(line, "0x"); at; at = strstr(at + 1, "0x")) {
        n = strspn(at + 2, "0123456789abcdefABCDEF");
        end = at + 2 + n;
        /* The end of the line counts as a blank. */
        if (!n || n > 16 || (*end && !isspace((unsigned char)*end)))
            continue;
        *address = strtoull(at, NULL, 16);
        *name = end + strspn(end, " \t\f\r\v");
        return true;
    }
    return false;
}

/* The last of equal addresses counts, so it comes first. */
static int
compare(const void *a, const void *b)
{
    const struct pprof_symbol *x = a, *y = b;

    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->name > y->name ? -1 : x->name < y->name;
}

/* The lines of a body, which ends with a zero byte; names stay in it. A last
 * line without an end may be cut off, and is left out. */
static bool
parse_answer(char *body, int64_t offset, struct symbols *s)
{
    size_t n_lines = 0, kept = 0, i;
    char *line, *end;

    for (line = body; (end = strchr(line, '\n')); line = end + 1)
        n_lines++;
    s->n = 0;
    s->at = malloc((n_lines ? n_lines : 1) * sizeof *s->at);
    if (!s->at)
        return false;
    for (line = body; (end = strchr(line, '\n')); line = end + 1) {
        struct pprof_symbol *symbol = &s->at[s->n];
        uint64_t address;
        char *name;

        *end = 0;
        if (!parse_line(line, &address, &name) ||
            !adjust(address, (int64_t)(0 - (uint64_t)offset), &symbol->address))
            continue;
        symbol->name = name;
        s->n++;
    }
    qsort(s->at, s->n, sizeof *s->at, compare);
    for (i = 0; i < s->n; i++)
        if (i == 0 || s->at[i].address != s->at[kept - 1].address)
            s->at[kept++] = s->at[i];
    s->n = kept;
    return true;
}

/* ------------------------------------------------------------ asking ---- */

/* One request and its symbols, whose names are in r. */
static enum cpprof_status
post(const struct cpprof__url *url, const char *text, int64_t offset,
     const struct cpprof__fetch_options *options, struct cpprof__request *r,
     struct symbols *symbols, struct cpprof_error *error)
{
    const struct cpprof__curl *curl;
    enum cpprof_status status;
    const char *why;

    curl = cpprof__curl_load(&why);
    if (!curl)
        return cpprof__fail_nomem(error);
    status = cpprof__request_begin(r, curl, url, options, text, error);
    if (status != CPPROF_OK)
        return status;
    status = cpprof__request_result(r, curl->easy_perform(r->easy), url, error);
    if (status == CPPROF_OK && r->body &&
        !parse_answer(r->body, offset, symbols))
        status = cpprof__fail_nomem(error);
    return status;
}

/* Find the server that a mapping came from; NULL if there is none. */
static const struct cpprof__origin *
find(const struct cpprof__origins *r, const struct pprof_profile *p,
     const struct pprof_mapping *m)
{
    const char *file = pprof_text(p, m->file, NULL);
    const char *build_id = pprof_text(p, m->build_id, NULL);
    size_t i;

    for (i = 0; i < r->mappings.n; i++)
        if (strcmp(r->mappings.at[i].key, file) == 0 ||
            (*build_id && strcmp(r->mappings.at[i].key, build_id) == 0))
            return &r->mappings.at[i];
    return NULL;
}

/* Ask the server of a mapping. Only a lack of memory is a failure; others are
 * reported. */
static enum cpprof_status
symbolize_mapping(const struct cpprof__origins *origins,
                  struct pprof_profile *p, size_t mapping,
                  const struct cpprof__fetch_options *options,
                  struct cpprof_error *error)
{
    const struct pprof_mapping *m = &pprof_mappings(p)[mapping];
    const struct cpprof__origin *from = find(origins, p, m);
    int64_t offset = from ? (int64_t)(from->start - m->start) : 0;
    char *server = from ? cpprof__symbol_url(from->url) : NULL, *text = NULL;
    struct symbols symbols = {NULL, 0};
    struct cpprof__request r = {0};
    struct cpprof__url url = {0};
    enum cpprof_status status = CPPROF_OK;

    if (!from)
        return CPPROF_OK;
    if (!server)
        return cpprof__fail_nomem(error);
    cpprof__progress("asking %s for names", server);
    text = question(p, mapping, offset);
    if (!text ||
        cpprof__source_url(server, options, &url) == CPPROF__SOURCE_NOMEM)
        status = cpprof__fail_nomem(error);
    else if (*text && url.text)
        status = post(&url, text, offset, options, &r, &symbols, error);
    if (status == CPPROF_OK)
        status = pprof_set_symbols(p, mapping, symbols.at, symbols.n, error);
    else if (status != CPPROF_NOMEM)
        cpprof__cli_warn("http post %s: %s", url.shown, error->text);
    cpprof__progress_end();
    free(symbols.at);
    free(text);
    free(server);
    cpprof__request_free(&r);
    cpprof__url_free(&url);
    return status == CPPROF_NOMEM ? status : CPPROF_OK;
}

enum cpprof_status
cpprof__origins_symbolize(const struct cpprof__origins *r,
                          struct pprof_profile *p, bool force,
                          struct cpprof_error *error)
{
    /* The -seconds of the profile do not count for this request. */
    struct cpprof__fetch_options plain = {.seconds = 0};
    size_t n = pprof_mapping_count(p), i;
    enum cpprof_status status = CPPROF_OK;

    if (r->options)
        plain = *r->options;
    plain.seconds = 0;
    for (i = 0; r->mappings.n && i < n && status == CPPROF_OK; i++) {
        uint32_t flags = pprof_mappings(p)[i].flags;

        if ((force || !(flags & PPROF_HAS_FUNCTIONS)) &&
            !pprof_is_unsymbolizable(p, i))
            status = symbolize_mapping(r, p, i, &plain, error);
    }
    return status;
}
