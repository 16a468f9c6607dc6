/* SPDX-License-Identifier: MIT */
/*
 * /debug/pprof/ui: the page for people. Its text about the program is made
 * here. Its scripts, style and elements are the files of this folder and of
 * src/page, compiled in. Its forms work without scripts, too.
 *
 * Names come from the program and may contain anything. They are escaped here,
 * or inserted by the script as text of an element. The page contains no inline
 * script, so that its policy can forbid all of them.
 */
#include "page/page.h"
#include "collect/runtime/exempt.h"
#include "http/call.h"
#include "http/text.h"
#include "own/memory.h"

#include <cpprof/profiles.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The files that the page loads. */
extern const struct cpprof__page_file cpprof__page_files[];

#define POLICY                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; "                \
    "connect-src 'self'; base-uri 'none'; form-action 'self'; "                \
    "frame-ancestors 'none'"

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
    "<link rel=\"stylesheet\" href=\"ui/base.css\">\n"
    "<link rel=\"stylesheet\" href=\"ui/single.css\">\n"
    "<link rel=\"stylesheet\" href=\"ui/page.css\">\n"
    "<script src=\"ui/text.js\" defer></script>\n"
    "<script src=\"ui/flame.js\" defer></script>\n"
    "<script src=\"ui/single.js\" defer></script>\n"
    "<script src=\"ui/profile.js\" defer></script>\n"
    "<script src=\"ui/page.js\" defer></script>\n";

static const char links[] =
    "<a href=\"goroutine?debug=2\">stacks of all threads</a>\n"
    "<a href=\"cmdline\">command line</a>\n"
    "<a href=\"./\">index</a></div>\n"
    "<table id=\"profiles\">\n"
    "<tr><th>count</th><th>profile</th><th>seconds</th><th></th></tr>\n";

static const char middle[] =
    "</table>\n"
    "<div id=\"work\"><progress id=\"progress\" hidden></progress>\n"
    "<span id=\"state\" role=\"status\"></span>\n"
    "<button id=\"stop\" hidden>stop</button></div>\n"
    "<noscript><p>Without JavaScript the buttons give files; cpprof and go "
    "tool pprof show them.</p></noscript>\n"
    "<section id=\"result\" hidden>\n"
    "<div id=\"what\"><select id=\"type\" aria-label=\"value\"></select>\n"
    "<button id=\"again\" title=\"take the same profile once more\">"
    "again</button>\n"
    "<button id=\"compare\" title=\"take it once more, and show what has "
    "changed since the first\">again, as a difference</button>\n"
    "<a id=\"save\">save the profile</a> "
    "<span id=\"when\" class=\"dim\"></span></div>\n";

static const char tail[] =
    "<table id=\"top\"><thead><tr>\n"
    "<th><button id=\"by-flat\">flat</button></th><th>%</th>\n"
    "<th><button id=\"by-cum\">with callees</button></th><th>%</th>\n"
    "<th></th></tr></thead><tbody></tbody></table>\n"
    "</section>\n"
    "</body>\n"
    "</html>\n";

/* The profiles over time. One is left out, as in the index, if the program has
 * a profile of that name. */
static const struct {
    const char *name, *label;
} timed[] = {
    {"profile", "CPU"},
    {"wall", "wall time of all threads"},
    {"offcpu", "where threads wait"},
};

static void
add_title(struct cpprof__buffer *b)
{
    cpprof__text_add(b, "<title>");
    cpprof__text_html(b, program_invocation_short_name);
    cpprof__text_add(b, "</title>\n</head>\n<body>\n"
                        "<div id=\"head\"><b id=\"program\">");
    cpprof__text_html(b, program_invocation_short_name);
    cpprof__buffer_printf(b, "</b> <span class=\"dim\">pid %d</span>\n",
                          (int)getpid());
}

static void
add_form(struct cpprof__buffer *b, const char *name)
{
    cpprof__text_add(b, "<form action=\"");
    cpprof__text_path(b, name);
    cpprof__text_add(b, "\" data-name=\"");
    cpprof__text_html(b, name);
    cpprof__text_add(b,
                     "\"><input name=\"seconds\" type=\"number\" min=\"1\" ");
}

static void
add_timed(struct cpprof__buffer *b, const char *name, const char *label)
{
    cpprof__text_add(b, "<tr><td></td><td>");
    cpprof__text_html(b, label);
    cpprof__text_add(b, "</td><td>");
    add_form(b, name);
    cpprof__text_add(b, "value=\"5\" required aria-label=\"seconds\"> "
                        "<button>capture</button></form></td><td></td></tr>\n");
}

static void
add_profile(struct cpprof__buffer *b, const struct cpprof_profile *profile)
{
    const char *name = cpprof_profile_name(profile);

    cpprof__buffer_printf(b, "<tr><td class=\"n\">%zu</td><td>",
                          cpprof_profile_count(profile));
    cpprof__text_html(b, name);
    cpprof__text_add(b, "</td><td>");
    add_form(b, name);
    cpprof__text_add(b, "placeholder=\"all\" title=\"only what changes in so "
                        "many seconds\" aria-label=\"seconds\"> "
                        "<button>show</button></form></td>"
                        "<td><a href=\"");
    cpprof__text_path(b, name);
    cpprof__text_add(b, "?debug=1\">text</a></td></tr>\n");
}

/* False: no memory. */
static bool
add_profiles(struct cpprof__buffer *b)
{
    size_t room = cpprof_profile_list(NULL, 0), n, i;
    struct cpprof_profile **profiles =
        cpprof__calloc(room + 1, sizeof *profiles);

    if (!profiles)
        return false;
    n = cpprof_profile_list(profiles, room);
    n = n < room ? n : room; /* one was made meanwhile */
    for (i = 0; i < n; i++)
        add_profile(b, profiles[i]);
    cpprof__free(profiles);
    return true;
}

static bool
add_page(struct cpprof__buffer *b)
{
    size_t i;

    cpprof__text_add(b, head);
    add_title(b);
    cpprof__text_add(b, links);
    for (i = 0; i < sizeof timed / sizeof *timed; i++)
        if (!cpprof_profile_lookup(timed[i].name))
            add_timed(b, timed[i].name, timed[i].label);
    if (!add_profiles(b))
        return false;
    cpprof__text_add(b, middle);
    cpprof__text_add(b, cpprof__flamegraph_html);
    cpprof__text_add(b, tail);
    return !b->failed;
}

static void
answer(struct cpprof__call *call, const char *content_type, bool is_packed,
       const void *data, size_t n)
{
    const struct cpprof__answer_head whole = {
        .status = 200,
        .is_packed = is_packed,
        .policy = POLICY,
        .content_type = content_type,
        .n_body = (int64_t)n,
    };

    cpprof__answer_begin(&call->answer, &whole);
    cpprof__answer_write(&call->answer, data, n);
}

void
cpprof__http_page(struct cpprof__call *call)
{
    struct cpprof__buffer page = {0};
    CPPROF__EXEMPT;

    if (add_page(&page))
        answer(call, CPPROF__HTML, false, page.data, page.n);
    else
        cpprof__answer_error(&call->answer, 500, "out of memory");
    cpprof__buffer_free(&page);
}

void
cpprof__http_page_file(struct cpprof__call *call)
{
    const struct cpprof__page_file *file = cpprof__page_files;

    while (file->name && strcmp(file->name, call->name + strlen("ui/")) != 0)
        file++;
    if (file->name)
        answer(call, file->type, true, file->data, file->n);
}
