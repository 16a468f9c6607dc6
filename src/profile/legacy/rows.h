/* SPDX-License-Identifier: MIT */
/*
 * What the readers of text formats have in common: a header, then rows of
 * numbers and the addresses of a stack, then sections of which one is the
 * memory map.
 *
 * A reader may find out late that a file has another format. So it fills a
 * profile of its own, which replaces the caller's only on success.
 */
#ifndef PROFILE_LEGACY_ROWS_H
#define PROFILE_LEGACY_ROWS_H

#include "profile/legacy/legacy.h"
#include "profile/legacy/lines.h"
#include "profile/model/make.h"

struct cpprof__rows {
    struct cpprof__legacy_lines lines;
    struct cpprof__text line; /* read last; empty before and behind them */
    struct pprof_profile *p;
    struct cpprof__maker maker;            /* its failure ends the reading */
    struct cpprof__legacy_addresses stack; /* of the next sample, leaf first */
    CPPROF__ARRAY(uint32_t) frames;
};

/* Sets *recognized, to false even late; see cpprof__legacy_reader. */
typedef enum cpprof_status
cpprof__rows_reader(struct cpprof__rows *rows, bool *recognized,
                    struct cpprof_error *error);

/* Read all of a file with one reader. */
enum cpprof_status
cpprof__read_rows(cpprof__rows_reader *reader, struct cpprof__text data,
                  struct pprof_profile *p, bool *recognized,
                  struct cpprof_error *error);

/* Read the next line into rows->line; false behind the last, or when memory
 * ran out. */
bool
cpprof__rows_next(struct cpprof__rows *rows);

/* Append the "0x..." addresses of a text to the stack; `line` is for the error
 * "malformed sample: LINE: failed to parse as hex 64-bit number: WORD". */
enum cpprof_status
cpprof__rows_stack(struct cpprof__rows *rows, struct cpprof__text text,
                   struct cpprof__text line, struct cpprof_error *error);

/* What addresses a stack holds: a return address is one behind the call. */
enum cpprof__stack_kind {
    CPPROF__STACK_EXACT,  /* instructions, all of them */
    CPPROF__STACK_CALLER, /* return addresses, but the leaf is exact */
    CPPROF__STACK_RETURN, /* return addresses, all of them */
};

/* A sample of the stack, which is empty then, and a value for each type. */
void
cpprof__rows_sample(struct cpprof__rows *rows, enum cpprof__stack_kind kind,
                    const int64_t *values);

/* Read the sections from rows->line on, and give locations their mappings. */
enum cpprof_status
cpprof__rows_end(struct cpprof__rows *rows, struct cpprof_error *error);

#endif
