/* SPDX-License-Identifier: MIT */
/*
 * The page of `cpprof http`: one document for all views, with all of its style
 * and its script inside, so that a browser asks once. Plain JavaScript, as it
 * stands in this folder and in src/page; docs/web.md tells what the page asks
 * the server for. The end of the document holds the data that are shown first.
 */
#ifndef PAGE_WEB_PAGE_H
#define PAGE_WEB_PAGE_H

#include <stddef.h>
#include <stdint.h>

struct cpprof__web_page {
    /* The beginning of a gzip member (cpprof__gzip_rest()): all that stands
     * before the data. Then what it is when it is unpacked. */
    const unsigned char *head;
    size_t n_head;
    size_t n_plain;
    uint32_t crc;
    const char *style_hash, *script_hash; /* for its policy */
    const char *rest;                     /* what follows the data */
};

extern const struct cpprof__web_page cpprof__web_page;

#endif
