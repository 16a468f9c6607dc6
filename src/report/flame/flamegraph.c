/* SPDX-License-Identifier: MIT */
/*
 * -flamegraph: one HTML file that shows stacks as boxes on their callers, with
 * all that it needs inside. Boxes below a tenth of -nodefraction are left out,
 * so that the file of any profile is small; -trim=false keeps all.
 *
 * In a comparison a box is as wide as what it had before and has now together,
 * and its colour tells which of them is more.
 */
#include "report/flame/boxes.h"

#include "page/page.h"

#include <string.h>

/* Tunable: the smallest part of the whole that gets a box, a tenth of the usual
 * -nodefraction. 0.0005 is 1 pixel of 2000. Less makes larger files. */
#define PART_OF_NODEFRACTION 0.1
/* Tunable: the most boxes. Deep recursion has a box for each call, and this
 * bounds the file at a few megabytes. The deepest boxes are left out. */
#define MAX_BOXES 65536

/* The page around the data, which is JSON in a <script> that is not run, as
 * page/page.h tells. Style and scripts are inside, the policy lets only these
 * work, and nothing refers to another address. Names are inserted as text,
 * never as HTML. */
static const char *const page_begin[] = {
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
    "<meta name=\"generator\" content=\"cpprof\">\n"
    "<meta http-equiv=\"Content-Security-Policy\"\n"
    " content=\"default-src 'none'; base-uri 'none';\n"
    " script-src ",
    cpprof__text_js_hash,
    " ",
    cpprof__flame_js_hash,
    " ",
    cpprof__single_js_hash,
    ";\n style-src ",
    cpprof__base_css_hash,
    " ",
    cpprof__single_css_hash,
    "\">\n"
    "<title>flame graph</title>\n"
    "<style>",
    cpprof__base_css,
    "</style>\n"
    "<style>",
    cpprof__single_css,
    "</style>\n"
    "</head>\n"
    "<body class=\"one\">\n",
    cpprof__flamegraph_html,
    "<script id=\"data\" type=\"application/json\">\n",
    NULL,
};

static const char *const page_end[] = {
    "</script>\n"
    "<script>",
    cpprof__text_js,
    "</script>\n"
    "<script>",
    cpprof__flame_js,
    "</script>\n"
    "<script>",
    cpprof__single_js,
    "</script>\n"
    "</body>\n"
    "</html>\n",
    NULL,
};

static void
print_page(struct cpprof__report *r, const char *const *lines)
{
    for (; *lines; lines++)
        cpprof__buffer_append(&r->sink.buffer, *lines, strlen(*lines));
}

enum cpprof_status
cpprof__flamegraph(struct cpprof__report *r)
{
    struct cpprof__stack_cut cut = {.fraction = r->options->nodefraction *
                                                PART_OF_NODEFRACTION,
                                    .max_boxes = MAX_BOXES};
    enum cpprof_status status;

    if (r->options->flags & PPROF_REPORT_NO_TRIM)
        cut = (struct cpprof__stack_cut){.max_boxes = UINT32_MAX - 1};
    print_page(r, page_begin);
    status = cpprof__print_boxes(r, cut);
    if (status == CPPROF_OK)
        print_page(r, page_end);
    return status;
}
