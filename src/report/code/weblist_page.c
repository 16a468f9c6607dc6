/* SPDX-License-Identifier: MIT */
/*
 * The page of -weblist: one HTML file that needs nothing else. A click on a
 * line of source shows its instructions. All names and lines are escaped.
 * Source: internal/report/source.go print, functions, printFunctionSourceLine.
 */
#include "report/code/weblist.h"

#include "base/status.h"
#include "profile/model/path.h"

#include <inttypes.h>
#include <string.h>

/* Lines of a function that are nearer than this are shown as one piece, with
 * so many lines around it. */
#define JOIN_LINES 20
#define AROUND     5
/* Columns of an instruction or an inlined line. */
#define WIDTH 80

static const char head[] =
    "\n<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"UTF-8\">\n"
    "<title>Pprof listing</title>\n"
    "<style type=\"text/css\">\n"
    "h1 { font-size: 1.5em; }\n"
    ".legend { font-size: 1.25em; }\n"
    ".line, .nop, .unimportant { color: #aaaaaa; }\n"
    ".inlinesrc { color: #000066; }\n"
    ".livesrc { cursor: pointer; }\n"
    ".livesrc:hover { background-color: #eeeeee; }\n"
    ".asm { color: #008800; display: none; }\n"
    ".open { display: block; }\n"
    "</style>\n"
    "<script type=\"text/javascript\">\n"
    "function pprof_toggle_asm(event) {\n"
    "  const asm = event.target.nextSibling;\n"
    "  if (asm && asm.classList && asm.classList.contains('asm')) {\n"
    "    asm.classList.toggle('open');\n"
    "    event.preventDefault();\n"
    "  }\n"
    "}\n"
    "</script>\n"
    "</head>\n<body>\n\n";

/* ------------------------------------------------------------- escaping -- */

static void
escape(struct cpprof__buffer *out, const char *text, size_t n)
{
    static const struct {
        char c;
        const char *as;
    } special[] = {{'&', "&amp;"}, {'<', "&lt;"},   {'>', "&gt;"},
                   {'"', "&#34;"}, {'\'', "&#39;"}, {0, "\xef\xbf\xbd"}};
    size_t i, k;

    for (i = 0; i < n; i++) {
        for (k = 0; k < 6 && special[k].c != text[i]; k++)
            continue;
        if (k < 6)
            cpprof__buffer_append(out, special[k].as, strlen(special[k].as));
        else
            cpprof__buffer_append(out, text + i, 1);
    }
}

/* Indented text, tabs as blanks, filled up to WIDTH columns. */
static void
print_padded(struct cpprof__buffer *out, size_t indent, const char *text,
             size_t n)
{
    size_t column = indent, i;

    cpprof__buffer_printf(out, "%*s", (int)indent, "");
    for (i = 0; i < n; i++) {
        column += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (text[i] != '\t') {
            escape(out, text + i, 1);
            continue;
        }
        cpprof__buffer_append(out, " ", 1);
        for (; column % 8; column++)
            cpprof__buffer_append(out, " ", 1);
    }
    for (; column < WIDTH; column++)
        cpprof__buffer_append(out, " ", 1);
}

/* -------------------------------------------------------- instructions -- */

static void
print_base(struct cpprof__weblist *w, uint32_t file)
{
    size_t n = cpprof__strings_n(&w->names, file);
    const char *base =
        cpprof__path_base(cpprof__strings_text(&w->names, file), n, &n);

    escape(&w->r->out, base, n);
}

/* The line that an inlined function is called from. */
static void
print_call(struct cpprof__weblist *w, const struct cpprof__call_site *c,
           size_t indent)
{
    struct cpprof__buffer *out = &w->r->out;
    size_t n = 0;
    const char *line = cpprof__source_line(
        &w->source, cpprof__strings_text(&w->names, c->file),
        cpprof__strings_n(&w->names, c->file), c->line, &n);

    while (line && n && strchr(" \t\r\v\f", *line)) {
        line++;
        n--;
    }
    while (line && n && strchr(" \t\r\v\f", line[n - 1]))
        n--;
    cpprof__buffer_printf(out, " %8s %10s %10s %8s  <span class=inlinesrc>", "",
                          "", "", "");
    print_padded(out, indent, line ? line : "", line ? n : 0);
    cpprof__buffer_printf(out, "</span> <span class=unimportant>");
    print_base(w, c->file);
    cpprof__buffer_printf(out, ":%" PRId64 "</span>\n", c->line);
}

static void
print_code(struct cpprof__weblist *w, const struct cpprof__code *c,
           size_t indent)
{
    struct cpprof__buffer *out = &w->r->out;
    char flat[CPPROF__LABEL_TEXT], cum[CPPROF__LABEL_TEXT];

    cpprof__value_or_dot(w->r, c->flat, flat);
    cpprof__value_or_dot(w->r, c->cum, cum);
    cpprof__buffer_printf(out, " %8s %10s %10s %8" PRIx64 ": ", "", flat, cum,
                          c->object_address);
    print_padded(out, indent, (char *)w->texts.data + c->text, c->n_text);
    cpprof__buffer_printf(out, " <span class=unimportant>");
    if (c->file) {
        print_base(w, c->file);
        cpprof__buffer_printf(out, ":%" PRId64, c->line);
    }
    cpprof__buffer_printf(out, "</span>\n");
}

/* The calls of an instruction that are not those of the one before; how many
 * it has in common with that is shown by leaving them out. */
static void
print_calls(struct cpprof__weblist *w, const struct cpprof__shown_code *s,
            const struct cpprof__shown_code *before, size_t indent)
{
    size_t i, n_same = before ? before->n_calls : 0;

    for (i = 0; i < s->n_calls; i++) {
        const struct cpprof__call_site *c = &w->calls.at[s->first_call + i];
        const struct cpprof__call_site *b =
            i < n_same ? &w->calls.at[before->first_call + i] : NULL;

        if (b && b->file == c->file && b->line == c->line)
            continue;
        n_same = 0;
        print_call(w, c, indent + 4 + 4 * i);
    }
}

/* The instructions of a line: shown from first up to end. */
static void
print_codes(struct cpprof__weblist *w, size_t first, size_t end, size_t indent)
{
    const struct cpprof__shown_code *shown = w->shown.at;
    size_t i;

    cpprof__buffer_printf(&w->r->out, "<span class=asm>");
    for (i = first; i < end; i++) {
        const struct cpprof__code *c = &w->codes.at[shown[i].code], *b;

        b = i > first ? &w->codes.at[shown[i - 1].code] : NULL;
        if (b && c->address != b->address + b->length)
            cpprof__buffer_printf(&w->r->out, " %8s %27s\xe2\x8b\xae\n", "",
                                  "");
        print_calls(w, &shown[i], b ? &shown[i - 1] : NULL, indent);
        if (c->n_text)
            print_code(w, c, indent + 4 + 4 * shown[i].n_calls);
    }
    cpprof__buffer_printf(&w->r->out, "</span>");
}

/* --------------------------------------------------------------- lines -- */

struct piece {
    size_t first, end; /* of what is shown */
    int64_t begin_line, end_line;
    uint32_t name;
    int64_t flat, cum;
};

/* How many instructions are shown under the line of the one at `first`. Where
 * there is no line, each function has its own. */
static size_t
line_length(const struct cpprof__weblist *w, size_t first)
{
    const struct cpprof__shown_code *s = w->shown.at;
    size_t i;

    for (i = first + 1; i < w->shown.n; i++)
        if (s[i].file != s[first].file || s[i].line != s[first].line ||
            (s[i].is_nowhere && s[i].function != s[first].function))
            break;
    return i - first;
}

static void
sum(const struct cpprof__weblist *w, size_t first, size_t end, int64_t *flat,
    int64_t *cum)
{
    for (; first < end; first++) {
        const struct cpprof__code *c = &w->codes.at[w->shown.at[first].code];

        *flat = cpprof__add(*flat, c->flat);
        *cum = cpprof__add(*cum, c->cum);
    }
}

static void
print_line(struct cpprof__weblist *w, int64_t line, struct cpprof__text text,
           size_t first, size_t end)
{
    struct cpprof__buffer *out = &w->r->out;
    char flat_text[CPPROF__LABEL_TEXT], cum_text[CPPROF__LABEL_TEXT];
    int64_t flat = 0, cum = 0;
    bool live = false;    /* it has calls or instructions to unfold */
    size_t i, indent = 0; /* columns of the white space at its front */
    const char *class;

    for (i = 0; i < text.n && strchr(" \t", text.at[i]) && text.at[i]; i++)
        indent = text.at[i] == ' ' ? indent + 1 : (indent / 8 + 1) * 8;
    for (i = first; i < end; i++)
        live |=
            w->shown.at[i].n_calls || w->codes.at[w->shown.at[i].code].n_text;
    class = first == end ? "nop" : live ? "livesrc" : "deadsrc";
    sum(w, first, end, &flat, &cum);
    cpprof__value_or_dot(w->r, flat, flat_text);
    cpprof__value_or_dot(w->r, cum, cum_text);
    cpprof__buffer_printf(out,
                          "<span class=line> %6" PRId64 "</span> "
                          "<span class=%s>  %10s %10s %8s  ",
                          line, class, flat_text, cum_text, "");
    escape(out, text.at, text.n);
    cpprof__buffer_printf(out, " </span>");
    if (live)
        print_codes(w, first, end, indent);
    cpprof__buffer_append(out, "\n", 1);
}

/* The text of a line, or what stands for it. */
static bool
line_text(struct cpprof__weblist *w, uint32_t file, int64_t line, bool has_code,
          struct cpprof__text *text)
{
    static const char none[] = "<instructions with unknown line numbers>";

    text->at =
        cpprof__source_line(&w->source, cpprof__strings_text(&w->names, file),
                            cpprof__strings_n(&w->names, file), line, &text->n);
    if (text->at)
        return true;
    text->at = line ? "???" : none;
    text->n = strlen(text->at);
    return has_code;
}

static void
print_piece(struct cpprof__weblist *w, const struct piece *p)
{
    uint32_t file = w->shown.at[p->first].file;
    struct cpprof__buffer *out = &w->r->out;
    size_t at = p->first, end;
    struct cpprof__text text;
    int64_t line;

    cpprof__buffer_printf(out, "<h2>");
    escape(out, cpprof__strings_text(&w->names, p->name),
           cpprof__strings_n(&w->names, p->name));
    cpprof__buffer_printf(out, "</h2><p class=\"filename\">");
    escape(out, cpprof__strings_text(&w->names, file),
           cpprof__strings_n(&w->names, file));
    cpprof__buffer_printf(out,
                          "</p>\n<pre%s>\n"
                          "  Total:  ",
                          w->r->view ? ""
                                     : " onClick=\"pprof_toggle_asm(event)\"");
    cpprof__print_sums(w->r, p->flat, p->cum);
    cpprof__buffer_printf(out, "\n");
    for (line = p->begin_line; line < p->end_line; line++) {
        end = at;
        if (at < p->end && w->shown.at[at].line == line)
            end = at + line_length(w, at);
        if (line_text(w, file, line, end > at, &text))
            print_line(w, line, text, at, end);
        at = end;
    }
    cpprof__buffer_printf(out, "</pre>\n");
}

/* -------------------------------------------------------------- pieces -- */

/* The lines of one function from `first` on that are near to each other. */
static struct piece
take_piece(const struct cpprof__weblist *w, size_t first)
{
    const struct cpprof__shown_code *s = w->shown.at;
    struct piece p = {
        .first = first, .name = s[first].function, .begin_line = s[first].line};
    size_t i = first;

    do {
        p.end_line = cpprof__add(s[i].line, 1);
        i += line_length(w, i);
    } while (i < w->shown.n && s[i].file == s[first].file &&
             s[i].line - p.end_line < JOIN_LINES && s[i].function == p.name);
    p.end = i;
    sum(w, first, i, &p.flat, &p.cum);
    return p;
}

/* Pieces of a file share the lines between them. */
static void
print_pieces(struct cpprof__weblist *w)
{
    struct piece p, next;
    bool more = w->shown.n > 0, same_file;

    if (more)
        p = take_piece(w, 0);
    for (same_file = false; more; p = next) {
        if (!same_file && p.begin_line > 1)
            p.begin_line = p.begin_line > AROUND ? p.begin_line - AROUND : 1;
        more = p.end < w->shown.n;
        if (more)
            next = take_piece(w, p.end);
        same_file =
            more && w->shown.at[p.end].file == w->shown.at[p.first].file;
        if (same_file) {
            int64_t half = (next.begin_line - p.end_line) / 2;

            half = half > AROUND ? AROUND : half;
            p.end_line += half;
            next.begin_line -= half;
        } else {
            p.end_line = cpprof__add(p.end_line, AROUND);
        }
        if (p.cum)
            print_piece(w, &p);
    }
}

static void
print_legend(struct cpprof__weblist *w)
{
    struct cpprof__buffer page = w->r->out, labels;
    char total[CPPROF__LABEL_TEXT];
    size_t i, k;

    w->r->out = (struct cpprof__buffer){0};
    cpprof__profile_heading(w->r);
    labels = w->r->out;
    w->r->out = page;
    w->r->out.failed |= labels.failed;
    cpprof__buffer_printf(&w->r->out, "<div class=\"legend\">");
    for (i = 0; i < labels.n; i = k + 1) {
        for (k = i; k < labels.n && labels.data[k] != '\n'; k++)
            ;
        escape(&w->r->out, (char *)labels.data + i, k - i);
        if (k + 1 < labels.n)
            cpprof__buffer_printf(&w->r->out, "<br>\n");
    }
    cpprof__format_value(w->r, w->r->total, total);
    cpprof__buffer_printf(&w->r->out, "<br>Total: %s</div>", total);
    cpprof__buffer_free(&labels);
}

enum cpprof_status
cpprof__weblist_page(struct cpprof__weblist *w)
{
    /* A view has its own script and style. */
    cpprof__buffer_append(&w->r->out, head, w->r->view ? 0 : sizeof head - 1);
    print_legend(w);
    print_pieces(w);
    cpprof__buffer_printf(&w->r->out, "\n</body>\n</html>\n");
    return w->source.failed ? cpprof__fail_nomem(w->r->error) : CPPROF_OK;
}
