/* SPDX-License-Identifier: MIT */
/*
 * A row a line, as far as its text lets it. Topics part the table; what a topic
 * says besides its flags stands among them. Values go where offsets in struct
 * cpprof__report_flags say.
 *
 * A word of a group ("lines") is a flag of the command line and a value of the
 * variable that the group is called after ("granularity").
 */
#include "cli/report/flag_table.h"

#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) .offset = offsetof(struct cpprof__report_flags, member)
#define KIND(of)   .kind = CPPROF__FLAG_##of
#define SHELL      .in_shell = true

#define TOPIC(word, summary, intro)                                            \
    {                                                                          \
        .name = word, KIND(TOPIC), .argument = summary, .text = intro          \
    }
#define TEXT(lines)                                                            \
    {                                                                          \
        .name = "", KIND(TEXT), .text = lines                                  \
    }
#define FORMAT(word, made, after, shown_as, shown_by, help)                    \
    {                                                                          \
        .name = #word, KIND(GIVEN), .text = help,                              \
        .format = &(const struct cpprof__report_format)                        \
        {                                                                      \
            PPROF_REPORT_##made, CPPROF__USE_##after, shown_as, shown_by       \
        }                                                                      \
    }
#define SEARCH(word, made, after, help)                                        \
    {                                                                          \
        .name = #word, KIND(STRING), AT(options.symbol), .argument = "=RE",    \
        .text = help, .format = &(const struct cpprof__report_format)          \
        {                                                                      \
            PPROF_REPORT_##made, CPPROF__USE_##after, NULL, NULL               \
        }                                                                      \
    }
#define WORD(word, of, help)                                                   \
    {                                                                          \
        .name = #word, KIND(GIVEN), .group = of, .text = help                  \
    }
#define CHOICE(word, help)                                                     \
    {                                                                          \
        .name = #word, KIND(CHOICE), AT(word), SHELL, .argument = "=WORD",     \
        .text = help                                                           \
    }
#define OPTION(of, word, value, can_be, help)                                  \
    {                                                                          \
        .name = #word, KIND(of), AT(options.word), SHELL, .argument = value,   \
        .words = can_be, .text = help                                          \
    }
#define BITS(of, word, bits, help)                                             \
    {                                                                          \
        .name = #word, KIND(of), AT(options.flags), SHELL,                     \
        .mask = PPROF_REPORT_##bits, .text = help                              \
    }
/* These two are flags of the command line and no variables of the shell. */
#define FLAG(of, word, member, value, can_be, help)                            \
    CPPROF__FLAG(of, #word, struct cpprof__report_flags, member, value,        \
                 can_be, help)
#define MATCH                                                                  \
    "A regular expression, found anywhere in the name of a function, in its\n" \
    "source file or in the file of its mapping.\n"
#define TAGS                                                                   \
    "A regular expression over values, or KEY=expression; or a range, as in\n" \
    "1kb, 1kb:10kb, KEY=32mb:. Several are parted by commas.\n"

const struct cpprof__flag cpprof__report_flag_table[] = {
    TOPIC("formats", "what can be printed", "FORMAT is one of\n\n"),
    FORMAT(top, TOP, TABLE, NULL, NULL,
           "A line for each function, the largest first"),
    FORMAT(text, TOP, TABLE, NULL, NULL, "The same as top"),
    FORMAT(tree, TREE, TABLE, NULL, NULL,
           "Each function between its callers and callees"),
    SEARCH(peek, PEEK, PEEK,
           "Matching functions between their callers and callees"),
    SEARCH(list, LIST, LIST, "The source of matching functions, with values"),
    SEARCH(disasm, DISASM, LIST_FILE,
           "Instructions of matching functions, with values"),
    SEARCH(weblist, WEBLIST, LIST,
           "Source and instructions of them, in a browser"),
    FORMAT(traces, TRACES, NOTHING, NULL, NULL,
           "Every sample: its labels, value and stack"),
    FORMAT(tags, TAGS, TAGS, NULL, NULL,
           "The labels, and what the samples of each add up to"),
    FORMAT(comments, COMMENTS, NOTHING, NULL, NULL,
           "The comments of the profile"),
    FORMAT(flamegraph, FLAMEGRAPH, GRAPH, NULL, NULL,
           "A flame graph: a page of HTML to zoom and to search"),
    FORMAT(collapsed, COLLAPSED, GRAPH, NULL, NULL,
           "A line for each stack: frames;of;it VALUE"),
    FORMAT(json, JSON, GRAPH, NULL, NULL, "Stacks and their values as JSON"),
    FORMAT(raw, RAW, NOTHING, NULL, NULL,
           "All that the filters leave of the profile, as text"),
    FORMAT(proto, PROTO, NOTHING, NULL, NULL,
           "What the filters leave, as a compressed profile"),
    FORMAT(topproto, TOPPROTO, NOTHING, NULL, NULL,
           "The table of top as a compressed profile"),
    FORMAT(dot, DOT, GRAPH, NULL, NULL,
           "The graph of calls, in the language of Graphviz"),
    FORMAT(svg, DOT, GRAPH, "svg", NULL, "The graph as an SVG picture to zoom"),
    FORMAT(png, DOT, GRAPH, "png", NULL, "The graph as a PNG picture"),
    FORMAT(gif, DOT, GRAPH, "gif", NULL, "The graph as a GIF picture"),
    FORMAT(pdf, DOT, GRAPH, "pdf", NULL, "The graph as PDF"),
    FORMAT(ps, DOT, GRAPH, "ps", NULL, "The graph as PostScript"),
    FORMAT(web, DOT, VIEWER, "svg", "web",
           "The graph as SVG, shown by a browser"),
    FORMAT(gv, DOT, VIEWER, "ps", "gv", "The graph as PostScript, shown by gv"),
    FORMAT(evince, DOT, VIEWER, "pdf", "evince",
           "The graph as PDF, shown by evince"),
    FORMAT(eog, DOT, VIEWER, "svg", "eog", "The graph as SVG, shown by eog"),
    FORMAT(callgrind, CALLGRIND, GRAPH, NULL, NULL,
           "The graph of calls, in the format of KCachegrind"),
    FORMAT(kcachegrind, CALLGRIND, VIEWER, NULL, "kcachegrind",
           "The graph of calls, shown by KCachegrind"),
    TEXT("\n"),
    {.name = "output",
     KIND(STRING),
     AT(output),
     SHELL,
     .argument = "=FILE",
     .words = ":files",
     .text = "Write reports into this file\n"
             "Profiles never go to a terminal, but into profile001.pb.gz.\n"},
    FLAG(STRING, o, output, "=FILE", ":files", "The same as -output\n"),
    FLAG(STRING, http, http, "=HOST:PORT", NULL,
         "Show all reports in a browser, at this address\n"
         "No host: this machine; no port: any that is free. `cpprof http` is "
         "the same.\n"),
    FLAG(BOOL, no_browser, no_browser, NULL, NULL,
         "With -http: start no browser\n"),
    TEXT("\nWithout a format the shell starts: cpprof help shell.\n"),

    TOPIC(
        "sources", "where profiles come from",
        "  FILE                  a profile of any kind that pprof reads\n"
        "  URL                   of a server that answers with one\n"
        "  FOLDER                every profile in it, but not in its folders\n"
        "  -                     standard input\n"
        "\n"
        "Several are added up. One that cannot be read is left out, with a\n"
        "warning, as long as there are others. The first of several may be\n"
        "the program, or its build id. Flags may stand before and behind;\n"
        "files whose names begin with a dash come behind \"--\".\n"
        "\n"),
    FLAG(STRING, by, by, "=WORD", "file process label:",
         "Label the samples of each source with its process\n"
         "The label is \"process\": of -by=file the name of the source, of "
         "-by=process\n"
         "that of its program. Sources that have it keep theirs. For "
         "-tagroot=process\n"
         "and -tagfocus, or to merge. -by=label:KEY,... keeps the labels of "
         "these keys\n"
         "and no others; a source without one has it from a folder KEY=VALUE "
         "of its path.\n"),
    FLAG(BOOL, keep_going, keep_going, NULL, NULL,
         "Leave out sources of other sample types, and name them\n"
         "Others than those of the first one. Without it only what all have "
         "is added up.\n"),
    FLAG(INT, seconds, fetch.seconds, "=N", NULL,
         "How long a server is to measure\n"),
    FLAG(INT, timeout, fetch.timeout, "=N", NULL,
         "How many seconds to wait for a server\n"),
    FLAG(STRING, tls_ca, fetch.tls_ca, "=FILE", ":files",
         "A PEM file with authorities to trust\n"),
    FLAG(STRING, tls_cert, fetch.tls_cert, "=FILE", ":files",
         "A PEM file with the client's certificate\n"),
    FLAG(STRING, tls_key, fetch.tls_key, "=FILE", ":files",
         "A PEM file with the key of -tls_cert\n"),
    FLAG(STRING, add_comment, add_comment, "=TEXT", NULL,
         "A line to add to the comments of the profile\n"),

    TOPIC("comparing", "two profiles", ""),
    FLAG(LIST, base, bases, "=FILE", ":files",
         "A profile to subtract; several are added up\n"),
    FLAG(LIST, diff_base, diff_bases, "=FILE", ":files",
         "A profile to subtract; percentages are of its total\n"),
    {.name = "tagbase",
     KIND(STRING),
     AT(tagbase),
     SHELL,
     .argument = "=EXPR",
     .text = "Subtract samples with such labels from those of -tagfocus\n"
             "So two times, threads or requests of one profile are "
             "compared.\n" TAGS},
    {.name = "normalize",
     KIND(BOOL),
     AT(normalize),
     SHELL,
     .text = "Scale the profile to the total of its base first\n"},
    BITS(BITS, drop_negative, DROP_NEGATIVE,
         "Leave out negative values\n"
         "They come from a profile that was subtracted.\n"),

    TOPIC("lines", "what a line of a report is", ""),
    /* ORDER: enum pprof_report_granularity */
    WORD(functions, "granularity",
         "One line or node for each function (default)\n"
         "Functions of one name in two files are one.\n"),
    WORD(filefunctions, "granularity",
         "One line or node for each function of a file\n"
         "Functions of one name in two files are two.\n"),
    WORD(files, "granularity", "One line or node for each source file\n"),
    WORD(lines, "granularity", "One line or node for each line of source\n"),
    WORD(addresses, "granularity",
         "One line or node for each address\n"
         "Names are shown with the address before them.\n"),
    CHOICE(granularity, "What a line is, by one of these words\n"),
    BITS(BITS, noinlines, NO_INLINES,
         "Leave out inlined functions\n"
         "Their values go to the function that they are part of.\n"),
    BITS(BITS, showcolumns, COLUMNS, "Columns behind line numbers\n"),
    OPTION(STRING, trim_path, "=DIR:...", ":files",
           "What to cut off the front of source files\n"
           "Folders, parted by colons.\n"),
    OPTION(STRING, source_path, "=DIR:...", ":files",
           "Folders in which source files are looked for\n"
           "Parted by colons.\n"),
    BITS(BITS, fold_recursion, FOLD_RECURSION,
         "Calls of a function by itself are one box\n"
         "For flamegraph.\n"),
    BITS(BITS, intel_syntax, INTEL_SYNTAX,
         "Instructions in Intel's syntax\n"
         "For disasm and weblist.\n"),

    TOPIC("values", "what is counted", ""),
    OPTION(STRING, sample_index, "=N|NAME",
           "cpu samples inuse_space inuse_objects alloc_space alloc_objects "
           "contentions delay",
           "The sample type to report, by name or number\n"
           "Samples have several values; 0 is the first.\n"),
    WORD(total_delay, "sample_index", "The sample type delay\n"),
    WORD(mean_delay, "sample_index",
         "The sample type delay, divided by the first one\n"),
    WORD(contentions, "sample_index", "The sample type contentions\n"),
    WORD(inuse_space, "sample_index", "The sample type inuse_space\n"),
    WORD(inuse_objects, "sample_index", "The sample type inuse_objects\n"),
    WORD(alloc_space, "sample_index", "The sample type alloc_space\n"),
    WORD(alloc_objects, "sample_index", "The sample type alloc_objects\n"),
    BITS(BITS, mean, MEAN,
         "Divide by the first sample type\n"
         "So bytes become bytes per object, and delay becomes delay per "
         "event.\n"),
    OPTION(DOUBLE, divide_by, "=X", NULL,
           "Divide every value by this number\n"
           "As by the runs or the processors that a profile is of.\n"),
    OPTION(STRING, unit, "=UNIT", "minimum auto ns us ms s B kB MB GB",
           "The unit of values\n"
           "minimum: the smallest that a value of the report needs; auto: for "
           "each value\n"
           "its own; or seconds, ms, megabytes, kB and the like.\n"),

    TOPIC("size", "how much is shown, and in which order", ""),
    WORD(flat, "sort",
         "Sort by own value (default)\n"
         "That is the value of a function without what it called.\n"),
    WORD(cum, "sort",
         "Sort by cumulative value\n"
         "That is the value of a function with all that it called.\n"),
    CHOICE(sort, "The order, by one of these words\n"),
    OPTION(INT, nodecount, "=N", NULL,
           "Show at most this many lines or nodes\n"
           "-1 leaves the number to the report. A dotted edge of a graph goes "
           "through\n"
           "nodes that were left out.\n"),
    OPTION(DOUBLE, nodefraction, "=X", NULL,
           "Leave out functions below this part of the total (0.005)\n"),
    OPTION(DOUBLE, edgefraction, "=X", NULL,
           "Leave out calls below this part of the total (0.001)\n"),
    BITS(UNBITS, trim, NO_TRIM,
         "Leave out what is small (default; or -trim=false)\n"
         "When false, nodecount, nodefraction and edgefraction do not "
         "matter.\n"),
    BITS(BITS, call_tree, CALL_TREE,
         "A function once for each way to it\n"
         "Its callers part it in a graph; else it is one node.\n"),
    BITS(BITS, compact_labels, COMPACT_LABELS, "A short heading\n"),
    BITS(BITS, relative_percentages, RELATIVE,
         "Percentages of what the filters leave\n"
         "Else they are of the whole profile, to be compared with each "
         "other.\n"),

    TOPIC("filters", "parts of a profile",
          "Regular expressions (RE2, found anywhere) over the names of\n"
          "functions, files and mappings:\n"
          "\n"),
    OPTION(STRING, focus, "=RE", NULL,
           "Only samples with a frame that matches\n" MATCH),
    OPTION(STRING, ignore, "=RE", NULL,
           "No samples with a frame that matches\n" MATCH),
    OPTION(STRING, hide, "=RE", NULL,
           "Leave out frames that match\n"
           "Their samples stay, and count for the other frames.\n" MATCH),
    OPTION(STRING, show, "=RE", NULL, "Only frames that match\n" MATCH),
    OPTION(STRING, show_from, "=RE", NULL,
           "Leave out all above the highest frame that matches\n"
           "Samples without such a frame are left out whole.\n" MATCH),
    OPTION(STRING, prune_from, "=RE", NULL,
           "Leave out the lowest frame that matches, and all below\n" MATCH),
    OPTION(STRING, tagfocus, "=EXPR", NULL,
           "Only samples with such labels: RE, KEY=RE, 16kb:4mb\n" TAGS),
    OPTION(STRING, tagignore, "=EXPR", NULL,
           "No samples with such labels\n" TAGS),
    OPTION(STRING, tagshow, "=RE", NULL, "Only labels whose key matches\n"),
    OPTION(STRING, taghide, "=RE", NULL,
           "Leave out labels whose key matches\n"),
    OPTION(STRING, tagroot, "=KEYS", NULL,
           "Make frames of these labels, at the root\n"
           "Keys, parted by commas; the first one is the new root.\n"),
    OPTION(STRING, tagleaf, "=KEYS", NULL,
           "Make frames of these labels, at the leaf\n"
           "Keys, parted by commas; the last one is the new leaf.\n"),
    FLAG(BOOL, all_frames, all_frames, NULL, NULL,
         "Show frames that the profile says to drop\n"),

    TOPIC("names", "symbols, binaries and C++ names", ""),
    FLAG(STRING, symbolize, symbolize_text, "=HOW",
         "none local fastlocal remote force demangle=none demangle=full "
         "demangle=templates demangle=default",
         "Where names come from\n"
         "none, local, fastlocal (functions only), remote; force: also where "
         "there are\n"
         "some; demangle=none, full, templates or default: parts of C++ "
         "names. Parted by\n"
         "colons. Binaries are found by PPROF_BINARY_PATH, too.\n"),
    FLAG(FILES, binary, symbolize.binaries, "=FILE", ":files",
         "A binary, or its debug file, to take names from\n"
         "It is for the mappings of its build id, and a profile that has none "
         "of it is\n"
         "refused. May be given several times.\n"),
    FLAG(MAYBE, debuginfod, symbolize.debuginfod, "[=URL]", NULL,
         "Fetch debug information that is missing here\n"
         "From that server, or those of DEBUGINFOD_URLS, which are asked "
         "without the flag,\n"
         "too, unless it is false.\n"),
    FLAG(STRING, buildid, build_id, "=ID", NULL,
         "The build id of the program, not that of the profile\n"),
    FLAG(STRING, tools, options.tools, "=PATH", ":files",
         "Where objdump, nm and addr2line are\n"
         "A folder, or objdump:FOLDER,nm:FOLDER.\n"),

    TOPIC(
        "shell", "commands instead of flags",
        "`cpprof FILE` reads a profile once and then commands from the\n"
        "terminal, or from standard input:\n"
        "\n"
        "  top 20 parse -idle -cum    20 lines; only samples with \"parse\",\n"
        "                             none with \"idle\"; by cumulative value\n"
        "  top20                      the same number\n"
        "  tree >calls.txt            into a file\n"
        "  traces | less              to a program; the blank before | "
        "matters\n"
        "  focus=parse                an option, for all reports that follow\n"
        "  lines                      one of the choices of an option\n"
        "  :                          no focus, ignore, hide, tagfocus, "
        "tagignore\n"
        "  inuse_space, mean_delay    a sample type of the profile, or its "
        "mean\n"
        "  o, help, help top, quit\n"
        "\n"
        "Tab completes commands, options and functions; Ctrl-R searches "
        "what was\n"
        "typed before; Ctrl-C ends a report, or forgets the line.\n"),
    TOPIC("environment", "variables that matter",
          "  PPROF_BINARY_PATH     where binaries are looked for\n"
          "  PPROF_TOOLS           where objdump and nm are; as -tools\n"
          "  PPROF_TMPDIR          where fetched profiles are kept\n"
          "  NO_COLOR              if set, no colours on the terminal\n"
          "  XDG_STATE_HOME        the shell keeps its history in "
          "cpprof/history\n"
          "                        there, or in ~/.local/state\n"),
    {0},
};

_Static_assert(sizeof cpprof__report_flag_table /
                       sizeof *cpprof__report_flag_table <=
                   CPPROF__MAX_REPORT_FLAGS,
               "arrays with a place for each row are too short");

const struct cpprof__flag *
cpprof__report_flag(const char *name)
{
    return cpprof__find_flag(cpprof__report_flag_table, name, strlen(name));
}

static int
by_name(const void *a, const void *b)
{
    return strcmp((*(const struct cpprof__flag *const *)a)->name,
                  (*(const struct cpprof__flag *const *)b)->name);
}

const struct cpprof__flag *
cpprof__report_flag_by_name(size_t i)
{
    static const struct cpprof__flag *sorted[CPPROF__MAX_REPORT_FLAGS];
    static size_t n;
    const struct cpprof__flag *flag = cpprof__report_flag_table;

    if (n == 0) {
        for (; flag->name; flag++)
            if (!cpprof__flag_is_text(flag))
                sorted[n++] = flag;
        qsort(sorted, n, sizeof *sorted, by_name);
    }
    return i < n ? sorted[i] : NULL;
}

const struct cpprof__flag *
cpprof__report_choice(const char *group, size_t i)
{
    const struct cpprof__flag *flag = cpprof__report_flag_table;

    for (; flag->name; flag++)
        if (flag->group && strcmp(flag->group, group) == 0 && i-- == 0)
            return flag;
    return NULL;
}
