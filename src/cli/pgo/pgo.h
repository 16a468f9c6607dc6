/* SPDX-License-Identifier: MIT */
/*
 * From a profile to what a compiler takes, in four steps:
 *
 *   counts.c   samples: how often each address was a leaf, and from where each
 *              function was called, by the builds of the program
 *   code.c     the instructions of the functions that were seen, as blocks
 *   flow.c     how often each block ran: what was sampled, smoothed so that
 *              what enters a block leaves it
 *   tree.c     the same by function, line and inlined call, as compilers know
 *              them
 *
 * Without branch records (LBR) a sample says where time went, not how often a
 * block ran. A block's samples divided by its instructions say how often, up to
 * a factor that is the same for all and noise that is not.
 */
#ifndef CLI_PGO_H
#define CLI_PGO_H

#include "base/array.h"
#include "base/buffer.h"
#include "profile/model/strings.h"
#include "symbolize/image.h"
#include "symbolize/lookup.h"

#include <cpprof/pprof/profile.h>

/* ------------------------------------------------------------ counts ---- */

/* One of the files that the program was built as. */
struct cpprof__pgo_build {
    char *path;     /* where it is, or its file of debug information; NULL: it
                     * was not found */
    char *name;     /* what the profile calls it */
    char *build_id; /* or "" */
    char *why;      /* what is wrong with the file that is there, or NULL */
    struct cpprof__image image;
    size_t number; /* of the lookup */
    char *code;    /* the file that has the code; NULL: path is of debug
                    * information, and there is no other */
    uint64_t n_samples;
};

/* An address of a build that was the leaf of so many samples. */
struct cpprof__pgo_leaf {
    uint32_t build;
    uint64_t address;
    double n;
};

/* A call that stood in so many stacks; the callee by where it begins. */
struct cpprof__pgo_call {
    uint32_t build;
    uint64_t site;
    uint32_t callee; /* of names */
    double n;
};

/* A function that was in a stack, or the part of one that the compiler moved
 * away from it: what one symbol covers. */
struct cpprof__pgo_routine {
    uint32_t build;
    uint64_t start, limit;
    uint32_t name; /* as the source has it: without ".cold" and the like */
    bool is_whole; /* it begins where the function does */
    double n;      /* samples in it */
    uint32_t file; /* of names; 0: unknown */
    int64_t line;  /* of its declaration, 0: unknown */
};

struct cpprof__pgo_counts {
    struct cpprof__strings names;
    struct cpprof__lookup lookup;
    CPPROF__ARRAY(struct cpprof__pgo_build) builds;
    CPPROF__ARRAY(struct cpprof__pgo_leaf) leaves; /* by build, address */
    CPPROF__ARRAY(struct cpprof__pgo_call) calls;  /* by build, site, callee */
    CPPROF__ARRAY(struct cpprof__pgo_routine) routines; /* by build, start */
    /* Samples, the leaves of which are ... */
    double n_samples; /* all */
    double n_inside;  /* in a build that was found */
    double n_named;   /* of those, in a function with a name */
    double n_lines;   /* of those, with lines of it and of its declaration */
    double n_line_0;  /* of n_named, on no line of a known function */
    double n_discriminators; /* of n_lines, with a discriminator */
    double seconds;          /* of the profile; 0: unknown */
    double rate_hz;          /* 0: unknown */
    bool lacks_split; /* lines are in .dwo files that are not here; told */
    /* The file outside of the program with most samples, or 0. */
    uint32_t other;
    double n_other;
};

/* What is asked for. */
struct cpprof__pgo_request {
    struct pprof_profile *profile;
    const char *const *binaries; /* of the command line */
    size_t n_binaries;
};

/*
 * Count the samples of a CPU profile. What is missing is said on stderr, why
 * there is nothing in *error.
 */
enum cpprof_status
cpprof__pgo_count(struct cpprof__pgo_counts *counts,
                  const struct cpprof__pgo_request *request,
                  struct cpprof_error *error);

void
cpprof__pgo_counts_free(struct cpprof__pgo_counts *counts);

/* -------------------------------------------------------------- code ---- */

enum cpprof__pgo_kind {
    CPPROF__PGO_PLAIN,
    CPPROF__PGO_NOP,
    CPPROF__PGO_CALL,
    CPPROF__PGO_BRANCH,   /* may go on behind itself */
    CPPROF__PGO_JUMP,     /* goes to target */
    CPPROF__PGO_INDIRECT, /* jumps to what a register says */
    CPPROF__PGO_END,      /* returns, or ends the program */
};

struct cpprof__pgo_instruction {
    uint64_t address;
    uint64_t target; /* of BRANCH and JUMP; 0: unknown */
    enum cpprof__pgo_kind kind;
    uint32_t block;
};

struct cpprof__pgo_block {
    uint32_t first, n;  /* instructions */
    double samples;     /* of its instructions */
    double weight;      /* instructions that are not nops */
    double count;       /* result of flow.c: how often, in samples of an
                         * instruction */
    uint32_t dominator; /* result; of the first block, itself */
    uint32_t depth;     /* in the tree of dominators */
};

struct cpprof__pgo_edge {
    uint32_t from, to; /* UINT32_MAX: the routine's caller */
    double count;
};

#define CPPROF__PGO_OUTSIDE UINT32_MAX

struct cpprof__pgo_code {
    CPPROF__ARRAY(struct cpprof__pgo_instruction) instructions;
    CPPROF__ARRAY(struct cpprof__pgo_block) blocks;
    CPPROF__ARRAY(struct cpprof__pgo_edge) edges;
};

/* The instructions of a stretch of a file, as objdump prints them. */
struct cpprof__pgo_listing {
    size_t tool; /* the first objdump to try */
    struct cpprof__buffer text;
    const char *path;
    uint64_t start, limit;
    size_t at; /* where the last routine ended in text */
};

/* The code of a routine, of those of a build in their order. *failed: there is
 * no memory. False when there is no code; *error then says why. */
bool
cpprof__pgo_code_read(struct cpprof__pgo_code *code,
                      struct cpprof__pgo_listing *listing,
                      const struct cpprof__pgo_counts *counts, size_t routine,
                      struct cpprof_error *error);
void
cpprof__pgo_listing_free(struct cpprof__pgo_listing *listing);
void
cpprof__pgo_code_free(struct cpprof__pgo_code *code);

/* -------------------------------------------------------------- flow ---- */

/* Set count of all blocks from their samples and weights; false when out of
 * memory. */
bool
cpprof__pgo_flow(struct cpprof__pgo_code *code);

/* Set the dominators of all blocks. */
bool
cpprof__pgo_dominators(struct cpprof__pgo_code *code);

/* Does every way to b lead through a? */
bool
cpprof__pgo_dominates(const struct cpprof__pgo_code *code, uint32_t a,
                      uint32_t b);

/* -------------------------------------------------------------- tree ---- */

/* A position in a function: a line, relative to its declaration, and which of
 * the blocks of that line. */
struct cpprof__pgo_position {
    uint32_t node;
    uint32_t line;
    uint32_t discriminator;
    uint32_t name; /* of an inlined callee, or the target of a call; else 0 */
};

/* A function, or a call that was inlined into one. */
struct cpprof__pgo_node {
    struct cpprof__pgo_position position; /* node: its caller; NONE */
    double total;
    double head;
};

struct cpprof__pgo_line {
    struct cpprof__pgo_position position;
    double count;
};

#define CPPROF__PGO_NONE UINT32_MAX

struct cpprof__pgo_tree {
    struct cpprof__table nodes;   /* of struct cpprof__pgo_node */
    struct cpprof__table lines;   /* of struct cpprof__pgo_line */
    struct cpprof__table targets; /* the same */
};

enum cpprof_status
cpprof__pgo_tree_make(struct cpprof__pgo_tree *tree,
                      struct cpprof__pgo_counts *counts,
                      struct cpprof_error *error);
void
cpprof__pgo_tree_free(struct cpprof__pgo_tree *tree);

/* ------------------------------------------------------------- output ---- */

/* Append the text that clang's -fprofile-sample-use takes: *n_functions of
 * them, and *n_unreadable were left out, by themselves or as inlined calls,
 * because it could not read their names. False when out of memory. */
bool
cpprof__pgo_clang(struct cpprof__pgo_tree *tree,
                  const struct cpprof__pgo_counts *counts,
                  struct cpprof__buffer *out, size_t *n_functions,
                  size_t *n_unreadable);

/* Append what is to be said of the profile; returns false when it is not good
 * enough. */
bool
cpprof__pgo_check(const struct cpprof__pgo_counts *counts,
                  struct cpprof__buffer *out);

#endif
