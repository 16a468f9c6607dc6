/* SPDX-License-Identifier: MIT */
/*
 * What the shell's commands and options are. The short texts are those that
 * users know from the reference (internal/driver/commands.go), so that its
 * documentation and its help fit; tests/e2e/shell.py compares them.
 */
#include "help.h"

const struct cpprof__help_command_words cpprof__help_commands[] = {
    {"callgrind", CPPROF__USE_GRAPH, "Outputs a graph in callgrind format"},
    {"collapsed", CPPROF__USE_GRAPH, "Outputs a line per stack"},
    {"comments", CPPROF__USE_NOTHING, "Output all profile comments"},
    {"disasm", CPPROF__USE_LIST_FILE,
     "Output assembly listings annotated with samples"},
    {"dot", CPPROF__USE_GRAPH, "Outputs a graph in DOT format"},
    {"eog", CPPROF__USE_VIEWER, "Visualize graph through eog"},
    {"evince", CPPROF__USE_VIEWER, "Visualize graph through evince"},
    {"flamegraph", CPPROF__USE_GRAPH, "Outputs a flame graph as an HTML page"},
    {"gif", CPPROF__USE_GRAPH, "Outputs a graph image in GIF format"},
    {"gv", CPPROF__USE_VIEWER, "Visualize graph through gv"},
    {"json", CPPROF__USE_GRAPH, "Outputs stacks in JSON format"},
    {"kcachegrind", CPPROF__USE_VIEWER, "Visualize report in KCachegrind"},
    {"list", CPPROF__USE_LIST,
     "Output annotated source for functions matching regexp"},
    {"pdf", CPPROF__USE_GRAPH, "Outputs a graph in PDF format"},
    {"peek", CPPROF__USE_PEEK,
     "Output callers/callees of functions matching regexp"},
    {"png", CPPROF__USE_GRAPH, "Outputs a graph image in PNG format"},
    {"proto", CPPROF__USE_NOTHING,
     "Outputs the profile in compressed protobuf format"},
    {"ps", CPPROF__USE_GRAPH, "Outputs a graph in PS format"},
    {"raw", CPPROF__USE_NOTHING,
     "Outputs a text representation of the raw profile"},
    {"svg", CPPROF__USE_GRAPH, "Outputs a graph in SVG format"},
    {"tags", CPPROF__USE_TAGS, "Outputs all tags in the profile"},
    {"text", CPPROF__USE_TABLE, "Outputs top entries in text form"},
    {"top", CPPROF__USE_TABLE, "Outputs top entries in text form"},
    {"topproto", CPPROF__USE_NOTHING,
     "Outputs top entries in compressed protobuf format"},
    {"traces", CPPROF__USE_NOTHING, "Outputs all profile samples in text form"},
    {"tree", CPPROF__USE_TABLE, "Outputs a text rendering of call graph"},
    {"web", CPPROF__USE_VIEWER, "Visualize graph through web browser"},
    {"weblist", CPPROF__USE_LIST, "Display annotated source in a web browser"},
    {NULL, CPPROF__USE_NOTHING, NULL},
};

#define MATCHING "Matching includes the function name, filename or object name."
#define TAG_EXAMPLES                                                           \
    "Use name=value syntax to limit the matching to a specific tag.\n"         \
    "Numeric tag filter examples: 1kb, 1kb:10kb, memory=32mb:\n"               \
    "String tag filter examples: foo, foo.*bar, mytag=foo.*bar\n"

const struct cpprof__help_option_words cpprof__help_options[] = {
    {"addresses", "Aggregate at the address level.\n"
                  "Includes functions' addresses in the output.\n"},
    {"call_tree", "Create a context-sensitive call tree\n"
                  "Treat locations reached through different paths as "
                  "separate.\n"},
    {"compact_labels", "Show minimal headers"},
    {"cum", "Sort entries based on cumulative weight\n"},
    {"divide_by", "Ratio to divide all samples before visualization\n"
                  "Divide all samples values by a constant, eg the number of "
                  "processors or jobs.\n"},
    {"drop_negative", "Ignore negative differences\n"
                      "Do not show any locations with values <0.\n"},
    {"edgefraction", "Hide edges below <f>*total"},
    {"filefunctions", "Aggregate at the function level.\n"
                      "Takes into account the filename where the function was "
                      "defined.\n"},
    {"files", "Aggregate at the file level."},
    {"flat", "Sort entries based on own weight\n"},
    {"focus",
     "Restricts to samples going through a node matching regexp\n"
     "Discard samples that do not include a node matching this regexp.\n" //
     MATCHING "\n"},
    {"functions", "Aggregate at the function level.\n"
                  "Ignores the filename where the function was defined.\n"},
    {"hide", "Skips nodes matching regexp\n"
             "Discard nodes that match this location.\n"
             "Other nodes from samples that include this location will be "
             "shown.\n" //
     MATCHING "\n"},
    {"ignore",
     "Skips paths going through any nodes matching regexp\n"
     "If set, discard samples that include a node matching this regexp.\n" //
     MATCHING "\n"},
    {"intel_syntax", "Show assembly in Intel syntax\n"
                     "Only applicable to commands `disasm` and `weblist`\n"},
    {"lines", "Aggregate at the source code line level."},
    {"mean", "Average sample value over first value (count)\n"
             "For memory profiles, report average memory per allocation.\n"
             "For time-based profiles, report average time per event.\n"},
    {"nodecount", "Max number of nodes to show\n"
                  "Uses heuristics to limit the number of locations to be "
                  "displayed.\n"
                  "On graphs, dotted edges represent paths through nodes that "
                  "have been removed.\n"},
    {"nodefraction", "Hide nodes below <f>*total"},
    {"noinlines", "Ignore inlines.\n"
                  "Attributes inlined functions to their first out-of-line "
                  "caller.\n"},
    {"normalize", "Scales profile based on the base profile.\n"},
    {"output", "Output filename for file-based outputs\n"},
    {"prune_from",
     "Drops any functions below the matched frame.\n"
     "If set, any frames matching the specified regexp and any frames\n"
     "below it will be dropped from each sample.\n"},
    {"relative_percentages",
     "Show percentages relative to focused subgraph\n"
     "If unset, percentages are relative to full graph before focusing\n"
     "to facilitate comparison with original graph.\n"},
    {"sample_index",
     "Sample value to report (0-based index or name)\n"
     "Profiles contain multiple values per sample.\n"
     "Use sample_index=i to select the ith value (starting at 0).\n"},
    {"show", "Only show nodes matching regexp\n"
             "If set, only show nodes that match this location.\n" //
     MATCHING "\n"},
    {"show_from", "Drops functions above the highest matched frame.\n"
                  "If set, all frames above the highest match are dropped from "
                  "every sample.\n" //
     MATCHING "\n"},
    {"showcolumns", "Show column numbers at the source code line level.\n"},
    {"source_path", "Search path for source files"},
    {"tagfocus", "Restricts to samples with tags in range or matched by "
                 "regexp\n" //
     TAG_EXAMPLES},
    {"taghide", "Skip tags matching this regexp\n"
                "Discard tags that match this regexp\n"},
    {"tagignore", "Discard samples with tags in range or matched by regexp\n" //
     TAG_EXAMPLES},
    {"tagleaf", "Adds pseudo stack frames for labels key/value pairs at the "
                "callstack leaf.\n"
                "A comma-separated list of label keys.\n"
                "The last key creates frames at the new leaf.\n"},
    {"tagroot", "Adds pseudo stack frames for labels key/value pairs at the "
                "callstack root.\n"
                "A comma-separated list of label keys.\n"
                "The first key creates frames at the new root.\n"},
    {"tagshow", "Only consider tags matching this regexp\n"
                "Discard tags that do not match this regexp\n"},
    {"trim", "Honor nodefraction/edgefraction/nodecount defaults\n"
             "Set to false to get the full profile, without any trimming.\n"},
    {"trim_path", "Path to trim from source paths before search"},
    {"unit", "Measurement units to display\n"
             "Scale the sample values to this unit.\n"
             "For time-based profiles, use seconds, milliseconds, "
             "nanoseconds, etc.\n"
             "For memory profiles, use megabytes, kilobytes, bytes, etc.\n"
             "Using auto will scale each value independently to the most "
             "natural unit.\n"},
    {NULL, NULL},
};
