/* SPDX-License-Identifier: MIT */
/* UTF-8 as RFC 3629 has it: nothing longer than needed, no surrogates. */
#include "base/utf8.h"

size_t
cpprof__utf8_next(const char *text, size_t n, uint32_t *rune)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*text;
    size_t length, i;
    uint32_t c;

    *rune = first;
    if (first < 0x80)
        return 1;
    length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > n)
        return 0;
    c = first & (0xff >> (length + 1));
    for (i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (text[i] & 0x3f);
    }
    *rune = c;
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    return length;
}
