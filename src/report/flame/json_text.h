/* SPDX-License-Identifier: MIT */
/* Text in JSON. Source: RFC 8259, section 7. */
#ifndef REPORT_JSON_TEXT_H
#define REPORT_JSON_TEXT_H

#include "base/buffer.h"

/*
 * Append a string with its quotes. Bytes that are not UTF-8 become U+FFFD.
 * What means something in HTML, or ends a line of JavaScript, is escaped, so
 * that the text may stand inside of a page's <script>.
 */
void
cpprof__json_text(struct cpprof__buffer *out, const char *text, size_t n);

#endif
