/* SPDX-License-Identifier: MIT */
/*
 * The page at /debug/pprof/: Go's, byte for byte, with cpprof's additions
 * sorted in by name, and a link to the page for people.
 *
 * Source: Go net/http/pprof (Index).
 */
#include "collect/runtime/exempt.h"
#include "http/call.h"
#include "http/text.h"
#include "own/memory.h"
#include "own/sort.h"

#include <cpprof/profiles.h>

#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name;
    const char *description;
    size_t count;
};

/* Left out where the program has a profile of that name. ORDER: by name. */
static const struct entry additions[] = {
    {"offcpu",
     "Where threads wait: wall time without that of running threads. You can "
     "specify the duration in the seconds GET parameter.",
     0},
    {"wall",
     "Wall time of all threads, whether they run or wait. You can specify the "
     "duration in the seconds GET parameter.",
     0},
};
#define N_ADDITIONS (sizeof additions / sizeof *additions)

static const struct entry fixed[] = {
    {"cmdline", "The command line invocation of the current program", 0},
    {"profile",
     "CPU profile. You can specify the duration in the seconds GET parameter. "
     "After you get the profile file, use the go tool pprof command to "
     "investigate the profile.",
     0},
    {"trace",
     "Not available: there is no execution trace of a native program. The "
     "profiles wall and offcpu show where its threads wait.",
     0},
};
#define N_FIXED (sizeof fixed / sizeof *fixed)

/* The predefined profiles. */
static const struct entry described[] = {
    {"allocs", "A sampling of all past memory allocations", 0},
    {"block", "Stack traces that led to blocking on synchronization primitives",
     0},
    {"goroutine", "Stack traces of all current goroutines", 0},
    {"heap",
     "A sampling of memory allocations of live objects. You can specify the "
     "gc GET parameter to run GC before taking the heap sample.",
     0},
    {"heapleak",
     "Memory that no pointer leads to any more. Looking for it takes more than "
     "a second if there is any.",
     0},
    {"mutex", "Stack traces of holders of contended mutexes", 0},
    {"threadcreate", "Stack traces that led to the creation of new OS threads",
     0},
    {"threadleak",
     "Threads that can never go on: deadlocks, and waits for a thread that has "
     "ended. With debug=2 as sentences, and with suspicions.",
     0},
};

static const char head[] = "<html>\n"
                           "<head>\n"
                           "<title>/debug/pprof/</title>\n"
                           "<style>\n"
                           ".profile-name{\n"
                           "\tdisplay:inline-block;\n"
                           "\twidth:6rem;\n"
                           "}\n"
                           "</style>\n"
                           "</head>\n"
                           "<body>\n"
                           "/debug/pprof/<br>\n"
                           "<br>\n"
                           "Types of profiles available:\n"
                           "<table>\n"
                           "<thead><td>Count</td><td>Profile</td></thead>\n";

static const char middle[] =
    "</table>\n"
    "<a href=\"goroutine?debug=2\">full goroutine stack dump</a>\n"
    "<br>\n"
    "<a href=\"ui\">flame graphs in the browser</a>\n"
    "<br>\n"
    "<p>\n"
    "Profile Descriptions:\n"
    "<ul>\n";

static const char tail[] = "</ul>\n"
                           "</p>\n"
                           "</body>\n"
                           "</html>";

static const char *
description_of(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof described / sizeof *described; i++)
        if (strcmp(described[i].name, name) == 0)
            return described[i].description;
    return "";
}

static int
by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* All there is, sorted; NULL: no memory. */
static struct entry *
entries(size_t *n)
{
    size_t there = cpprof_profile_list(NULL, 0), i;
    struct cpprof_profile **profiles = cpprof__calloc(there, sizeof *profiles);
    struct entry *all =
        cpprof__calloc(there + N_FIXED + N_ADDITIONS, sizeof *all);

    if (!profiles || !all) {
        cpprof__free(profiles);
        cpprof__free(all);
        return NULL;
    }
    *n = cpprof_profile_list(profiles, there);
    *n = *n < there ? *n : there; /* one was made meanwhile */
    for (i = 0; i < *n; i++) {
        const char *name = cpprof_profile_name(profiles[i]);

        all[i] = (struct entry){name, description_of(name),
                                cpprof_profile_count(profiles[i])};
    }
    cpprof__free(profiles);
    memcpy(all + *n, fixed, sizeof fixed);
    *n += N_FIXED;
    for (i = 0; i < N_ADDITIONS; i++)
        if (!cpprof_profile_lookup(additions[i].name))
            all[(*n)++] = additions[i];
    cpprof__sort(all, *n, sizeof *all, by_name);
    return all;
}

static void
add_record(struct cpprof__buffer *b, const struct entry *entry)
{
    cpprof__buffer_printf(b, "<tr><td>%zu</td><td><a href='", entry->count);
    cpprof__text_path(b, entry->name);
    cpprof__text_add(b, "?debug=1'>");
    cpprof__text_html(b, entry->name);
    cpprof__text_add(b, "</a></td></tr>\n");
}

static void
add_description(struct cpprof__buffer *b, const struct entry *entry)
{
    cpprof__text_add(b, "<li><div class=profile-name>");
    cpprof__text_html(b, entry->name);
    cpprof__text_add(b, ": </div> ");
    cpprof__text_html(b, entry->description);
    cpprof__text_add(b, "</li>\n");
}

void
cpprof__http_index(struct cpprof__call *call)
{
    struct cpprof__buffer page = {0};
    size_t n = 0, i;
    struct entry *all;
    CPPROF__EXEMPT;

    all = entries(&n);
    cpprof__text_add(&page, head);
    for (i = 0; i < n; i++)
        add_record(&page, &all[i]);
    cpprof__text_add(&page, middle);
    for (i = 0; i < n; i++)
        add_description(&page, &all[i]);
    cpprof__text_add(&page, tail);
    if (!all || page.failed)
        cpprof__answer_error(&call->answer, 500, "out of memory");
    else
        cpprof__answer_text(&call->answer, CPPROF__HTML, page.data, page.n);
    cpprof__buffer_free(&page);
    cpprof__free(all);
}
