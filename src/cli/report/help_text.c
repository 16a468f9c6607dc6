/* SPDX-License-Identifier: MIT */
/*
 * What the commands and options of the shell are, and the flags that only the
 * command line has. The first line of a text stands in lists;
 * tests/e2e/completions.py checks that every flag has one.
 */
#include "cli/report/help.h"

const struct cpprof__help_command_text cpprof__help_commands[] = {
    {"callgrind", CPPROF__USE_GRAPH,
     "The graph of calls, in the format of KCachegrind"},
    {"collapsed", CPPROF__USE_GRAPH,
     "A line for each stack: frames parted by semicolons, and a value"},
    {"comments", CPPROF__USE_NOTHING, "The comments of the profile"},
    {"disasm", CPPROF__USE_LIST_FILE,
     "Instructions of matching functions, with their values"},
    {"dot", CPPROF__USE_GRAPH,
     "The graph of calls, in the language of Graphviz"},
    {"eog", CPPROF__USE_VIEWER, "The graph as SVG, shown by eog"},
    {"evince", CPPROF__USE_VIEWER, "The graph as PDF, shown by evince"},
    {"flamegraph", CPPROF__USE_GRAPH,
     "A flame graph: a page of HTML to zoom and to search"},
    {"gif", CPPROF__USE_GRAPH, "The graph as a GIF picture"},
    {"gv", CPPROF__USE_VIEWER, "The graph as PostScript, shown by gv"},
    {"json", CPPROF__USE_GRAPH, "Stacks and their values as JSON"},
    {"kcachegrind", CPPROF__USE_VIEWER,
     "The graph of calls, shown by KCachegrind"},
    {"list", CPPROF__USE_LIST,
     "The source of matching functions, with values at its lines"},
    {"pdf", CPPROF__USE_GRAPH, "The graph as PDF"},
    {"peek", CPPROF__USE_PEEK,
     "Matching functions between their callers and callees"},
    {"png", CPPROF__USE_GRAPH, "The graph as a PNG picture"},
    {"proto", CPPROF__USE_NOTHING,
     "What the filters leave, as a compressed profile"},
    {"ps", CPPROF__USE_GRAPH, "The graph as PostScript"},
    {"raw", CPPROF__USE_NOTHING,
     "All that the filters leave of the profile, as text"},
    {"svg", CPPROF__USE_GRAPH, "The graph as an SVG picture to zoom"},
    {"tags", CPPROF__USE_TAGS,
     "The labels, and what the samples of each add up to"},
    {"text", CPPROF__USE_TABLE, "The same as top"},
    {"top", CPPROF__USE_TABLE, "A line for each function, the largest first"},
    {"topproto", CPPROF__USE_NOTHING,
     "The table of top as a compressed profile"},
    {"traces", CPPROF__USE_NOTHING,
     "Every sample: its labels, value and stack"},
    {"tree", CPPROF__USE_TABLE,
     "Each function between its callers and callees"},
    {"web", CPPROF__USE_VIEWER, "The graph as SVG, shown by a browser"},
    {"weblist", CPPROF__USE_LIST,
     "Source and instructions of matching functions, in a browser"},
    {NULL, CPPROF__USE_NOTHING, NULL},
};

#define MATCH                                                                  \
    "A regular expression, found anywhere in the name of a function, in its\n" \
    "source file or in the file of its mapping.\n"
#define TAGS                                                                   \
    "A regular expression over values, or KEY=expression; or a range, as in\n" \
    "1kb, 1kb:10kb, KEY=32mb:. Several are parted by commas.\n"

const struct cpprof__help_option_text cpprof__help_options[] = {
    {"addresses", "One line or node for each address\n"
                  "Names are shown with the address before them.\n"},
    {"call_tree", "A function once for each way to it\n"
                  "Its callers part it in a graph; else it is one node.\n"},
    {"compact_labels", "A short heading\n"},
    {"cum", "Sort by cumulative value\n"
            "That is the value of a function with all that it called.\n"},
    {"divide_by", "Divide every value by this number\n"
                  "As by the runs or the processors that a profile is of.\n"},
    {"drop_negative", "Leave out negative values\n"
                      "They come from a profile that was subtracted.\n"},
    {"edgefraction", "Leave out calls below this part of the total\n"},
    {"filefunctions", "One line or node for each function of a file\n"
                      "Functions of one name in two files are two.\n"},
    {"files", "One line or node for each source file\n"},
    {"flat", "Sort by own value\n"
             "That is the value of a function without what it called.\n"},
    {"focus", "Only samples with a frame that matches\n" MATCH},
    {"functions", "One line or node for each function (default)\n"
                  "Functions of one name in two files are one.\n"},
    {"hide", "Leave out frames that match\n"
             "Their samples stay, and count for the other frames.\n" MATCH},
    {"ignore", "No samples with a frame that matches\n" MATCH},
    {"intel_syntax", "Instructions in Intel's syntax\n"
                     "For disasm and weblist.\n"},
    {"lines", "One line or node for each line of source\n"},
    {"mean",
     "Divide by the first sample type\n"
     "So bytes become bytes per object, and delay becomes delay per event.\n"},
    {"nodecount", "Show at most this many lines or nodes\n"
                  "-1 leaves the number to the report. A dotted edge of a "
                  "graph goes through\n"
                  "nodes that were left out.\n"},
    {"nodefraction", "Leave out functions below this part of the total\n"},
    {"noinlines", "Leave out inlined functions\n"
                  "Their values go to the function that they are part of.\n"},
    {"normalize", "Scale the profile to the total of its base first\n"},
    {"output", "Write reports into this file\n"},
    {"prune_from",
     "Leave out the lowest frame that matches, and all below it\n" MATCH},
    {"relative_percentages",
     "Percentages of what the filters leave\n"
     "Else they are of the whole profile, to be compared with each other.\n"},
    {"sample_index", "The sample type to report, by name or number\n"
                     "Samples have several values; 0 is the first.\n"},
    {"show", "Only frames that match\n" MATCH},
    {"show_from", "Leave out all above the highest frame that matches\n"
                  "Samples without such a frame are left out whole.\n" MATCH},
    {"showcolumns", "Columns behind line numbers\n"},
    {"source_path", "Folders in which source files are looked for\n"
                    "Parted by colons.\n"},
    {"tagfocus", "Only samples with such labels\n" TAGS},
    {"taghide", "Leave out labels whose key matches\n"},
    {"tagignore", "No samples with such labels\n" TAGS},
    {"tagleaf", "Make frames of these labels, at the leaf\n"
                "Keys, parted by commas; the last one is the new leaf.\n"},
    {"tagroot", "Make frames of these labels, at the root\n"
                "Keys, parted by commas; the first one is the new root.\n"},
    {"tagshow", "Only labels whose key matches\n"},
    {"trim",
     "Leave out what is small\n"
     "When false, nodecount, nodefraction and edgefraction do not matter.\n"},
    {"trim_path", "What to cut off the front of source files\n"
                  "Folders, parted by colons.\n"},
    {"unit", "The unit of values\n"
             "minimum: the smallest that a value of the report needs; auto: "
             "for each value\n"
             "its own; or seconds, ms, megabytes, kB and the like.\n"},
    {NULL, NULL},
};

const struct cpprof__help_option_text cpprof__help_flags[] = {
    {"add_comment", "A line to add to the comments of the profile\n"},
    {"all_frames", "Show frames that the profile says to drop\n"},
    {"alloc_objects", "The sample type alloc_objects\n"},
    {"alloc_space", "The sample type alloc_space\n"},
    {"base", "A profile to subtract; several are added up\n"},
    {"buildid",
     "The build id of the program, instead of the one in the profile\n"},
    {"contentions", "The sample type contentions\n"},
    {"diff_base", "A profile to subtract; percentages are of its total\n"},
    {"granularity", "What a line is: functions, filefunctions, files, lines or "
                    "addresses\n"},
    {"http", "A web page with all reports; it is not there yet\n"},
    {"inuse_objects", "The sample type inuse_objects\n"},
    {"inuse_space", "The sample type inuse_space\n"},
    {"mean_delay", "The sample type delay, divided by the first one\n"},
    {"no_browser", "With -http: start no browser\n"},
    {"seconds", "How long a server is to measure\n"},
    {"sort", "By flat or by cum\n"},
    {"symbolize",
     "Where names come from\n"
     "none, local, fastlocal (functions only), remote; force: also where there "
     "are\n"
     "some; demangle=none, full, templates or default. Parted by colons.\n"},
    {"timeout", "How many seconds to wait for a server\n"},
    {"tls_ca", "A PEM file with authorities to trust\n"},
    {"tls_cert", "A PEM file with the client's certificate\n"},
    {"tls_key", "A PEM file with the key of -tls_cert\n"},
    {"tools", "Where objdump, nm and addr2line are\n"
              "A folder, or objdump:FOLDER,nm:FOLDER.\n"},
    {"total_delay", "The sample type delay\n"},
    {NULL, NULL},
};
