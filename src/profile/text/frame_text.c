/* SPDX-License-Identifier: MIT */
#include "profile/text/frame_text.h"

#include "profile/model/path.h"

static void
append_text(struct cpprof__buffer *out, const char *text, size_t n,
            char semicolon)
{
    uint8_t *to;
    size_t i;

    if (!cpprof__buffer_reserve(out, n))
        return;
    to = out->data + out->n;
    for (i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c < ' ' || c == 0x7f)
            c = ' ';
        to[i] = c == ';' ? (unsigned char)semicolon : c;
    }
    out->n += n;
}

void
cpprof__append_clean(struct cpprof__buffer *out, const struct pprof_profile *p,
                     uint32_t string, char semicolon)
{
    append_text(out, cpprof__strings_text(&p->strings, string),
                cpprof__strings_n(&p->strings, string), semicolon);
}

void
cpprof__append_base(struct cpprof__buffer *out, const struct pprof_profile *p,
                    uint32_t file, char semicolon)
{
    size_t n;
    const char *base =
        cpprof__path_base(cpprof__strings_text(&p->strings, file),
                          cpprof__strings_n(&p->strings, file), &n);

    append_text(out, base, n, semicolon);
}
