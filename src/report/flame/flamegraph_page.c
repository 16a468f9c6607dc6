/* SPDX-License-Identifier: MIT */
/*
 * The HTML page around the boxes of a flame graph. Style and script are inside,
 * and nothing refers to another address. Names are inserted as text, never as
 * HTML.
 */
#include "report/flame/flamegraph.h"

#include "page/page.h"

#include <stddef.h>

const char *const cpprof__flamegraph_begin[] = {
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

const char *const cpprof__flamegraph_end[] = {
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
