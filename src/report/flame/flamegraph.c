/* SPDX-License-Identifier: MIT */
/*
 * -flamegraph: one HTML file that shows stacks as boxes on their callers, with
 * all that it needs inside. Boxes below a tenth of -nodefraction are left out,
 * so that the file of any profile is small; -trim=false keeps all.
 *
 * In a comparison a box is as wide as what it had before and has now together,
 * and its colour tells which of them is more.
 */
#include "report/flame/stacks.h"

#include "base/status.h"
#include "page/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Tunable: the smallest part of the whole that gets a box, a tenth of the usual
 * -nodefraction. 0.0005 is 1 pixel of 2000. Less makes larger files. */
#define PART_OF_NODEFRACTION 0.1
/* Tunable: the most boxes. Deep recursion has a box for each call, and this
 * bounds the file at a few megabytes. The deepest boxes are left out. */
#define MAX_BOXES 65536

/* The page around the data, which is JSON in a <script> that is not run, as
 * page/page.h tells. Style and script are inside, and nothing refers to another
 * address. Names are inserted as text, never as HTML. */
static const char *const page_begin[] = {
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
    "<meta name=\"generator\" content=\"cpprof\">\n"
    "<meta http-equiv=\"Content-Security-Policy\"\n"
    " content=\"default-src 'none'; script-src 'unsafe-inline';\n"
    " style-src 'unsafe-inline'\">\n"
    "<title>flame graph</title>\n"
    "<style>\n",
    cpprof__flamegraph_css,
    "</style>\n"
    "</head>\n"
    "<body>\n",
    cpprof__flamegraph_html,
    "<script id=\"data\" type=\"application/json\">\n",
    NULL,
};

static const char *const page_end[] = {
    "</script>\n"
    "<script>\n",
    cpprof__flamegraph_js,
    "flameGraph.show(JSON.parse("
    "document.getElementById('data').textContent));\n"
    "</script>\n"
    "</body>\n"
    "</html>\n",
    NULL,
};

struct flame {
    struct cpprof__report *r;
    struct cpprof__graph g;
    struct cpprof__stack_tree tree;
    uint32_t *name; /* by node: its number in "names", + 1 */
    uint32_t n_names;
};

static struct cpprof__buffer *
out_of(struct flame *f)
{
    return &f->r->sink.buffer;
}

static void
print_page(struct flame *f, const char *const *lines)
{
    for (; *lines; lines++)
        cpprof__buffer_append(out_of(f), *lines, strlen(*lines));
}

/* ------------------------------------------------------------- units ---- */

static void
print_unit(struct flame *f, const char *to, bool *any)
{
    const char *from = f->r->sample_unit;
    double scaled;
    const char *unit;

    /* Enough digits that rounding does not show. */
    unit = cpprof__scale((int64_t)1 << 62, from, to, &scaled);
    if (strcmp(unit, to) != 0 && *any)
        return;
    cpprof__buffer_printf(out_of(f), *any ? ",[" : "[");
    cpprof__json_text(out_of(f), unit, strlen(unit));
    cpprof__buffer_printf(out_of(f), ",%.17g]", scaled / 0x1p62);
    *any = true;
}

/* The units that a value may be printed in, small ones first. */
static void
print_units(struct flame *f)
{
    static const char *const all[] = {"B",  "kB", "MB", "GB", "TB",  "PB",
                                      "ns", "us", "ms", "s",  "hrs", NULL};
    const char *wanted = f->r->output_unit;
    bool any = false;
    size_t i;

    cpprof__buffer_printf(out_of(f), ",\"units\":[");
    if (strcmp(wanted, "minimum") != 0 && strcmp(wanted, "auto") != 0)
        print_unit(f, wanted, &any);
    for (i = 0; !any && all[i]; i++) {
        if (!cpprof__units_match(f->r->sample_unit, all[i]))
            continue;
        for (; all[i] && cpprof__units_match(f->r->sample_unit, all[i]); i++)
            print_unit(f, all[i], &any);
        break;
    }
    if (!any)
        print_unit(f, f->r->sample_unit, &any);
    cpprof__buffer_printf(out_of(f), "],\"divide_by\":%.17g",
                          f->r->options->divide_by);
}

/* -------------------------------------------------------------- head ---- */

/* The lines of a table's heading that tell of the profile. */
static void
print_heading(struct flame *f)
{
    struct cpprof__report *r = f->r;
    const char *at, *end, *comma = "";

    cpprof__profile_heading(r);
    cpprof__buffer_append(&r->out, "", 1);
    out_of(f)->failed |= r->out.failed;
    cpprof__buffer_printf(out_of(f), ",\"lines\":[");
    for (at = r->out.failed ? "" : (char *)r->out.data; *at; at = end) {
        end = strchrnul(at, '\n');
        cpprof__buffer_printf(out_of(f), "%s", comma);
        cpprof__json_text(out_of(f), at, (size_t)(end - at));
        comma = ",";
        end += *end != 0;
    }
    cpprof__buffer_printf(out_of(f), "]");
}

static void
print_title(struct flame *f)
{
    const struct pprof_profile *p = f->r->p;
    uint32_t file = p->mappings.n ? p->mappings.at[0].file : 0;
    uint32_t type = p->sample_types.at[f->r->value].type;
    const struct cpprof__strings *strings = &p->strings;
    struct cpprof__buffer title = {0};
    const char *name = cpprof__strings_text(strings, file);

    cpprof__buffer_printf(&title, "%s%s%s", basename(name), file ? " " : "",
                          cpprof__strings_text(strings, type));
    cpprof__buffer_printf(out_of(f), "{\"title\":");
    cpprof__json_text(out_of(f), title.n ? (char *)title.data : "", title.n);
    out_of(f)->failed |= title.failed;
    cpprof__buffer_free(&title);
}

/* ------------------------------------------------------------- boxes ---- */

static void
print_name(struct flame *f, const char *text, size_t n)
{
    cpprof__buffer_printf(out_of(f), f->n_names++ ? ",\n" : "\n");
    cpprof__json_text(out_of(f), text, n);
}

/* Each name once, in the order of the boxes; the first is of the root. */
static void
print_names(struct flame *f)
{
    size_t i;

    cpprof__buffer_printf(out_of(f), ",\n\"names\":[");
    print_name(f, "root", 4);
    for (i = 1; i < f->tree.boxes.n; i++) {
        uint32_t node = f->tree.boxes.at[i].node;
        struct cpprof__buffer name = {0};

        if (f->name[node])
            continue;
        f->name[node] = f->n_names;
        cpprof__stacks_name(&f->g, &f->g.nodes.at[node], &name);
        print_name(f, name.n ? (char *)name.data : "", name.n);
        out_of(f)->failed |= name.failed;
        cpprof__buffer_free(&name);
        cpprof__sink_mind(&f->r->sink);
    }
    cpprof__buffer_printf(out_of(f), "]");
}

/* A box above the one that is printed. */
struct level {
    uint32_t next, end; /* its children that are still to be printed */
};

/* From the root on, each box before its children. */
static bool
print_boxes(struct flame *f)
{
    CPPROF__ARRAY(struct level) way = {0};
    bool ok = true;

    cpprof__buffer_printf(out_of(f), ",\n\"boxes\":[");
    ok = CPPROF__ARRAY_ROOM(&way, 1);
    if (ok)
        way.at[way.n++] = (struct level){0, 1};
    while (ok && way.n) {
        struct level *top = &way.at[way.n - 1];
        const struct cpprof__box *b;

        if (top->next == top->end) {
            way.n--;
            continue;
        }
        b = &f->tree.boxes.at[top->next];
        /* Sums may exceed printf's integers, and the page counts in doubles. */
        cpprof__buffer_printf(
            out_of(f), "%s%u,%d,%u,%.17g,%.17g", top->next ? "," : "\n",
            top->next ? f->name[b->node] : 0, top->next && b->is_inline,
            b->n_children, (double)b->positive, (double)b->negative);
        cpprof__sink_mind(&f->r->sink);
        top->next++;
        ok = CPPROF__ARRAY_ROOM(&way, 1);
        if (ok)
            way.at[way.n++] =
                (struct level){b->first_child, b->first_child + b->n_children};
    }
    CPPROF__ARRAY_FREE(&way);
    cpprof__buffer_printf(out_of(f), "]}\n");
    return ok;
}

static bool
print(struct flame *f)
{
    print_page(f, page_begin);
    print_title(f);
    print_heading(f);
    cpprof__buffer_printf(
        out_of(f), ",\"total\":%" PRId64 ",\"diff\":%s,\"cut\":%s", f->r->total,
        f->tree.boxes.at[0].negative ? "true" : "false",
        f->tree.is_cut ? "true" : "false");
    print_units(f);
    print_names(f);
    if (!print_boxes(f))
        return false;
    print_page(f, page_end);
    return true;
}

enum cpprof_status
cpprof__flamegraph(struct cpprof__report *r)
{
    struct flame f = {.r = r};
    struct cpprof__stack_cut cut = {
        r->options->nodefraction * PART_OF_NODEFRACTION, MAX_BOXES};
    enum cpprof_status status = cpprof__stacks_graph(&f.g, r);

    if (r->options->flags & PPROF_REPORT_NO_TRIM)
        cut = (struct cpprof__stack_cut){0, UINT32_MAX - 1};
    if (status == CPPROF_OK)
        status = cpprof__stack_tree_make(&f.tree, &f.g, &cut, r->error);
    f.name = calloc(f.g.nodes.n + 1, sizeof *f.name);
    if (status == CPPROF_OK && (!f.name || !print(&f)))
        status = cpprof__fail_nomem(r->error);
    cpprof__stack_tree_free(&f.tree);
    cpprof__graph_free(&f.g);
    free(f.name);
    return status;
}
