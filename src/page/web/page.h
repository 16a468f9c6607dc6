/* SPDX-License-Identifier: MIT */
/*
 * The page of `cpprof http`: one document for all views, and what it loads:
 * all style as one file, and all scripts as another. Plain JavaScript, as it
 * stands in this folder and in src/page; docs/web.md tells what the page asks
 * the server for.
 */
#ifndef PAGE_WEB_PAGE_H
#define PAGE_WEB_PAGE_H

#include "page/page.h"

extern const char cpprof__web_page_html[];
extern const struct cpprof__page_file cpprof__web_files[];

#endif
