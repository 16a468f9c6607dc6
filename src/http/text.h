/* SPDX-License-Identifier: MIT */
/*
 * Text for pages and addresses, escaped as Go escapes it.
 *
 * Source: Go html (EscapeString), net/url (URL.String).
 */
#ifndef HTTP_TEXT_H
#define HTTP_TEXT_H

#include "base/buffer.h"

/* For the text of a page, and attributes in quotes of either kind. */
void
cpprof__text_html(struct cpprof__buffer *b, const char *text);

/* The path of an address, absolute or relative to a page's. */
void
cpprof__text_path(struct cpprof__buffer *b, const char *path);

void
cpprof__text_add(struct cpprof__buffer *b, const char *text);

#endif
