/* SPDX-License-Identifier: MIT */
/*
 * Graphviz draws an SVG of a fixed size. Its <svg> tag is replaced by one that
 * fills the window, and the drawing is put into a group that a script moves:
 * drag, wheel, + and -, 0 for all of it.
 */
#include "cli/report/graphviz.h"

#include <string.h>

static const char opening[] =
    "<svg width=\"100%\" height=\"100%\" "
    "xmlns=\"http://www.w3.org/2000/svg\" "
    "xmlns:xlink=\"http://www.w3.org/1999/xlink\">\n"
    "<script type=\"text/ecmascript\"><![CDATA[\n"
    "addEventListener('load', function () {\n"
    "  var root = document.documentElement;\n"
    "  var view = document.getElementById('viewport');\n"
    "  var box = view.getBBox(), k, x, y, drag = null;\n"
    "  function show() {\n"
    "    view.setAttribute('transform',\n"
    "      'translate(' + x + ',' + y + ') scale(' + k + ')');\n"
    "  }\n"
    "  function whole() {\n"
    "    k = Math.min(innerWidth / box.width, innerHeight / box.height, 1);\n"
    "    x = (innerWidth - box.width * k) / 2 - box.x * k;\n"
    "    y = -box.y * k;\n"
    "    show();\n"
    "  }\n"
    "  function enlarge(factor, px, py) {\n"
    "    x = px - (px - x) * factor;\n"
    "    y = py - (py - y) * factor;\n"
    "    k *= factor;\n"
    "    show();\n"
    "  }\n"
    "  root.addEventListener('wheel', function (e) {\n"
    "    enlarge(Math.pow(1.0015, -e.deltaY), e.clientX, e.clientY);\n"
    "    e.preventDefault();\n"
    "  }, {passive: false});\n"
    "  root.addEventListener('pointerdown', function (e) {\n"
    "    drag = [e.clientX - x, e.clientY - y];\n"
    "  });\n"
    "  addEventListener('pointerup', function () { drag = null; });\n"
    "  root.addEventListener('pointermove', function (e) {\n"
    "    if (!drag) return;\n"
    "    x = e.clientX - drag[0];\n"
    "    y = e.clientY - drag[1];\n"
    "    show();\n"
    "    e.preventDefault();\n"
    "  });\n"
    "  addEventListener('keydown', function (e) {\n"
    "    var f = {'+': 1.25, '=': 1.25, '-': 0.8}[e.key];\n"
    "    if (f) enlarge(f, innerWidth / 2, innerHeight / 2);\n"
    "    else if (e.key === '0' || e.key === 'Escape') whole();\n"
    "  });\n"
    "  root.style.touchAction = 'none';\n"
    "  whole();\n"
    "});\n"
    "]]></script>\n"
    "<g id=\"viewport\">\n";
static const char closing[] = "</g>\n";

static int
put(const struct cpprof_writer *to, const char *text, size_t n)
{
    return to->write(to->ctx, text, n);
}

int
cpprof__write_svg(const char *svg, size_t n, const struct cpprof_writer *to)
{
    const char *tag = n ? memmem(svg, n, "<svg", 4) : NULL;
    const char *end = svg + n, *body, *last;
    int failure;

    body = tag ? memchr(tag, '>', (size_t)(end - tag)) : NULL;
    last = body ? memmem(body, (size_t)(end - body), "</svg>", 6) : NULL;
    if (!last)
        return put(to, svg, n);
    body++;
    failure = put(to, svg, (size_t)(tag - svg));
    if (!failure)
        failure = put(to, opening, sizeof opening - 1);
    if (!failure)
        failure = put(to, body, (size_t)(last - body));
    if (!failure)
        failure = put(to, closing, sizeof closing - 1);
    return failure ? failure : put(to, last, (size_t)(end - last));
}
