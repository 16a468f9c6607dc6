/* SPDX-License-Identifier: MIT */
#include "page/web/page.h"

#include <stddef.h>

extern const char cpprof__web_page_css[], cpprof__web_state_js[],
    cpprof__web_flame_js[], cpprof__web_tables_js[], cpprof__web_texts_js[],
    cpprof__web_page_js[];

#define SCRIPT "text/javascript; charset=utf-8"

const struct cpprof__web_file cpprof__web_files[] = {
    {"page.css", "text/css; charset=utf-8", cpprof__web_page_css},
    {"state.js", SCRIPT, cpprof__web_state_js},
    {"flame.js", SCRIPT, cpprof__web_flame_js},
    {"tables.js", SCRIPT, cpprof__web_tables_js},
    {"texts.js", SCRIPT, cpprof__web_texts_js},
    {"page.js", SCRIPT, cpprof__web_page_js},
    {NULL, NULL, NULL},
};
