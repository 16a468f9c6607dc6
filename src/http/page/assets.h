/* SPDX-License-Identifier: MIT */
/* The files of this folder, as strings. */
#ifndef HTTP_PAGE_ASSETS_H
#define HTTP_PAGE_ASSETS_H

extern const char cpprof__page_css[];
extern const char cpprof__page_js[];
extern const char cpprof__profile_js[];

#endif
