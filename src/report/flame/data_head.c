/* SPDX-License-Identifier: MIT */
/*
 * What every page is told of a profile before its figures: a title, the lines
 * of a heading, the total, and the units that a page may print values in.
 */
#include "report/flame/boxes.h"

#include "profile/model/unit.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------- units ---- */

static void
print_unit(struct cpprof__report *r, struct cpprof__buffer *out, const char *to,
           bool *any)
{
    const char *from = r->sample_unit;
    double scaled;
    const char *unit;

    /* Enough digits that rounding does not show. */
    unit = cpprof__scale((int64_t)1 << 62, from, to, &scaled);
    if (strcmp(unit, to) != 0 && *any)
        return;
    cpprof__buffer_printf(out, *any ? ",[" : "[");
    cpprof__json_text(out, unit, strlen(unit));
    cpprof__buffer_printf(out, ",%.17g]", scaled / 0x1p62);
    *any = true;
}

/* The units that a value may be printed in, small ones first. */
static void
print_units(struct cpprof__report *r, struct cpprof__buffer *out)
{
    static const char *const all[] = {"B",  "kB", "MB", "GB", "TB",  "PB",
                                      "ns", "us", "ms", "s",  "hrs", NULL};
    const char *wanted = r->output_unit;
    bool any = false;
    size_t i;

    cpprof__buffer_printf(out, ",\"units\":[");
    if (strcmp(wanted, "minimum") != 0 && strcmp(wanted, "auto") != 0)
        print_unit(r, out, wanted, &any);
    for (i = 0; !any && all[i]; i++) {
        if (!cpprof__units_match(r->sample_unit, all[i]))
            continue;
        for (; all[i] && cpprof__units_match(r->sample_unit, all[i]); i++)
            print_unit(r, out, all[i], &any);
        break;
    }
    if (!any)
        print_unit(r, out, r->sample_unit, &any);
    cpprof__buffer_printf(out, "],\"divide_by\":%.17g", r->options->divide_by);
}

/* -------------------------------------------------------------- head ---- */

/* The lines of a table's heading that tell of the profile. */
static void
print_heading(struct cpprof__report *r, struct cpprof__buffer *out)
{
    const char *at, *end, *comma = "";
    size_t before = r->out.n;

    cpprof__profile_heading(r);
    cpprof__buffer_append(&r->out, "", 1);
    out->failed |= r->out.failed;
    cpprof__buffer_printf(out, ",\"lines\":[");
    at = r->out.failed ? "" : (char *)r->out.data + before;
    for (; *at; at = end) {
        end = strchrnul(at, '\n');
        cpprof__buffer_printf(out, "%s", comma);
        cpprof__json_text(out, at, (size_t)(end - at));
        comma = ",";
        end += *end != 0;
    }
    if (!r->out.failed)
        r->out.n = before;
    cpprof__buffer_printf(out, "]");
}

static void
print_title(struct cpprof__report *r, struct cpprof__buffer *out)
{
    const struct pprof_profile *p = r->p;
    uint32_t file = p->mappings.n ? p->mappings.at[0].file : 0;
    uint32_t type = p->sample_types.at[r->value].type;
    const struct cpprof__strings *strings = &p->strings;
    struct cpprof__buffer title = {0};
    const char *name = cpprof__strings_text(strings, file);

    cpprof__buffer_printf(&title, "%s%s%s", basename(name), file ? " " : "",
                          cpprof__strings_text(strings, type));
    cpprof__buffer_printf(out, "{\"title\":");
    cpprof__json_text(out, title.n ? (char *)title.data : "", title.n);
    out->failed |= title.failed;
    cpprof__buffer_free(&title);
}

void
cpprof__print_data_head(struct cpprof__report *r, struct cpprof__buffer *out)
{
    print_title(r, out);
    print_heading(r, out);
    cpprof__buffer_printf(out, ",\"total\":%" PRId64, r->total);
    print_units(r, out);
}
