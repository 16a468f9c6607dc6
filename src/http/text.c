/* SPDX-License-Identifier: MIT */
#include "http/text.h"

#include <string.h>

void
cpprof__text_add(struct cpprof__buffer *b, const char *text)
{
    cpprof__buffer_append(b, text, strlen(text));
}

static const char *
entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '\'':
        return "&#39;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&#34;";
    default:
        return NULL;
    }
}

void
cpprof__text_html(struct cpprof__buffer *b, const char *text)
{
    for (; *text; text++) {
        const char *escaped = entity(*text);

        if (escaped)
            cpprof__text_add(b, escaped);
        else
            cpprof__buffer_append(b, text, 1);
    }
}

static bool
stands_for_itself(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || (c && strchr("-_.~$&+,/:;=@", c));
}

/* A colon before the first '/' would make the start a scheme. */
static bool
needs_dot(const char *path)
{
    size_t n = strcspn(path, ":/");

    return path[n] == ':';
}

void
cpprof__text_path(struct cpprof__buffer *b, const char *path)
{
    if (strcmp(path, "*") == 0) {
        cpprof__text_add(b, path);
        return;
    }
    if (needs_dot(path))
        cpprof__text_add(b, "./");
    for (; *path; path++)
        if (stands_for_itself(*path))
            cpprof__buffer_append(b, path, 1);
        else
            cpprof__buffer_printf(b, "%%%02X", (unsigned char)*path);
}
