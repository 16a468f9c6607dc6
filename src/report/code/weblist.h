/* SPDX-License-Identifier: MIT */
/*
 * What -weblist shows: lines of source, and for each the instructions that were
 * made of it, with the values of both. weblist.c finds the functions that are
 * asked for, weblist_code.c their instructions, weblist_page.c writes the page.
 */
#ifndef REPORT_WEBLIST_H
#define REPORT_WEBLIST_H

#include "base/array.h"
#include "profile/model/strings.h"
#include "report/code/binutils.h"
#include "report/code/source.h"
#include "report/report.h"

/* An address with values. */
struct cpprof__site {
    uint64_t address;
    uint32_t location;
    bool wanted; /* a function at it is asked for */
    int64_t flat, cum;
};

struct cpprof__code {
    uint64_t address;        /* in the process */
    uint64_t object_address; /* in the binary */
    uint64_t length;         /* bytes up to the next one */
    size_t text, n_text;     /* in texts; empty where there is no binary */
    uint32_t file;           /* of the innermost function */
    int64_t line;
    int64_t flat, cum;
};

/* A place that an inlined function is called from. */
struct cpprof__call_site {
    uint32_t file;
    int64_t line;
};

/* An instruction under the line of a function that is asked for. */
struct cpprof__shown_code {
    uint32_t file;
    uint32_t function;
    int64_t line;
    bool is_nowhere; /* no file or no line: only the function tells it apart */
    size_t code;
    size_t first_call, n_calls; /* what is inlined, the outermost first */
};

struct cpprof__weblist {
    struct cpprof__report *r;
    struct cpprof__regexp *matching;
    uint64_t address; /* that is asked for, or 0 */

    CPPROF__ARRAY(struct cpprof__site) sites; /* by address */
    struct cpprof__strings wanted;            /* functions that are asked for */
    uint32_t *pretty; /* by system name: a name, or CPPROF__NO_STRING */

    struct cpprof__strings names; /* of functions and files below */
    CPPROF__ARRAY(struct cpprof__code) codes;
    CPPROF__ARRAY(struct cpprof__shown_code) shown; /* by file name, line */
    CPPROF__ARRAY(struct cpprof__call_site) calls;
    struct cpprof__buffer texts;
    struct cpprof__source source;
    bool failed; /* out of memory */
};

/* Find the instructions around all sites that are wanted. */
enum cpprof_status
cpprof__weblist_code(struct cpprof__weblist *w);

/* Write the page. */
enum cpprof_status
cpprof__weblist_page(struct cpprof__weblist *w);

#endif
