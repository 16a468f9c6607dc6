/* SPDX-License-Identifier: MIT */
/*
 * The page of `cpprof http`: one document for all views, and the files that it
 * loads. Plain JavaScript, as it stands in this folder; docs/web.md tells what
 * the page asks the server for.
 */
#ifndef PAGE_WEB_PAGE_H
#define PAGE_WEB_PAGE_H

extern const char cpprof__web_page_html[];

struct cpprof__web_file {
    const char *name, *type, *text;
};

/* The last one has no name. */
extern const struct cpprof__web_file cpprof__web_files[];

#endif
