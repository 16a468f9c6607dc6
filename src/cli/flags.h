/* SPDX-License-Identifier: MIT */
/*
 * Command-line flags in the syntax of Go's package flag. A command has one
 * table of them: it is used to parse words, to print help, and to complete
 * words in shells.
 */
#ifndef CLI_FLAGS_H
#define CLI_FLAGS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum cpprof__flag_kind {
    CPPROF__FLAG_BOOL,   /* bool; -x, -x=false */
    CPPROF__FLAG_BITS,   /* bool, kept as `mask` of a uint32_t */
    CPPROF__FLAG_UNBITS, /* the same inverted: false sets the bits */
    CPPROF__FLAG_MAYBE,  /* const char *; -x is "", -x=v, -x=false is NULL */
    CPPROF__FLAG_GIVEN,  /* bool, kept in given[] alone */
    CPPROF__FLAG_INT,    /* int */
    CPPROF__FLAG_DOUBLE, /* double */
    CPPROF__FLAG_STRING, /* const char *, a part of argv */
    CPPROF__FLAG_LIST,   /* struct cpprof__flag_list: given several times */
    CPPROF__FLAG_FILES,  /* the same; an empty one is refused */
    CPPROF__FLAG_CHOICE, /* the same: the name of a flag of its group */
    /* Rows that are text and no flag: */
    CPPROF__FLAG_TOPIC, /* name, argument: a summary; begins a part of help */
    CPPROF__FLAG_TEXT,  /* text as it is */
};

/* Parts of argv, without empty ones. The array is to be freed. */
struct cpprof__flag_list {
    char **at;
    int n;
};

/* A row of a table, which ends with {0}. */
struct cpprof__flag {
    const char *name;
    enum cpprof__flag_kind kind;
    size_t offset; /* where the value is, in the struct that flags are parsed
                      into */
    uint32_t mask; /* of BITS and UNBITS */
    const char *argument; /* for help, with the character in front: "=FILE" */
    const char *words; /* words that the value can be, separated by blanks; or
                          ":files"; NULL: unknown */
    const char
        *text; /* the text of help, in lines; the first is the short help */

    /* Only rows of reports have these. */
    const char *group; /* the CHOICE that this word belongs to, or NULL */
    bool in_shell;     /* it is also a variable of the shell */
    const struct cpprof__report_format *format; /* that it chooses, or NULL */
};

/* A row whose value goes into a member of a struct. */
#define CPPROF__FLAG(of, word, type, member, value, can_be, help)              \
    {                                                                          \
        .name = word, .kind = CPPROF__FLAG_##of,                               \
        .offset = offsetof(type, member), .argument = value, .words = can_be,  \
        .text = help                                                           \
    }

static inline bool
cpprof__flag_is_text(const struct cpprof__flag *flag)
{
    return flag->kind >= CPPROF__FLAG_TOPIC;
}

/* Does the flag take no value from the next word? */
static inline bool
cpprof__flag_is_bool(const struct cpprof__flag *flag)
{
    return flag->kind <= CPPROF__FLAG_GIVEN;
}

/* The flag whose name is the n bytes at name, or NULL. */
static inline const struct cpprof__flag *
cpprof__find_flag(const struct cpprof__flag *row, const char *name, size_t n)
{
    for (; row->name; row++)
        if (!cpprof__flag_is_text(row) && strlen(row->name) == n &&
            memcmp(row->name, name, n) == 0)
            return row;
    return NULL;
}

/* Set a flag of a kind that cpprof__flag_is_bool(). */
static inline void
cpprof__set_bool_flag(const struct cpprof__flag *flag, void *into, bool value)
{
    char *at = (char *)into + flag->offset;

    if (flag->kind == CPPROF__FLAG_BOOL)
        *(bool *)at = value;
    else if (flag->kind != CPPROF__FLAG_GIVEN &&
             value == (flag->kind == CPPROF__FLAG_BITS))
        *(uint32_t *)at |= flag->mask;
    else if (flag->kind != CPPROF__FLAG_GIVEN)
        *(uint32_t *)at &= ~flag->mask;
}

/* Is text one of n words, as compare() sees them? The first six mean true. */
static inline bool
cpprof__parse_bool(const char *text, const char *const *words, size_t n,
                   int (*compare)(const char *, const char *), bool *value)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (compare(text, words[i]) == 0) {
            *value = i < 6;
            return true;
        }
    return false;
}

/* A number with or without a sign, as strtol() reads it in that base. False
 * with errno: ERANGE if it is too large, else EINVAL. */
static inline bool
cpprof__parse_int(const char *text, int base, int32_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    long n;

    errno = 0;
    n = strtol(text, &end, base);
    if (*digits < '0' || *digits > '9' || *end)
        errno = EINVAL;
    else if (n < INT32_MIN || n > INT32_MAX)
        errno = ERANGE;
    if (errno)
        return false;
    *value = (int32_t)n;
    return true;
}

static inline bool
cpprof__parse_double(const char *text, double *value)
{
    char *end;
    double d = strtod(text, &end);

    if (!*text || *end)
        return false;
    *value = d;
    return true;
}

/* A command line and its table. */
struct cpprof__flags {
    const struct cpprof__flag *table;
    void *into;
    bool *given; /* a place for each row of the table: was it given, as true or
                  * with a value? NULL: nobody asks */
    bool help;   /* result: -h or -help was given */
};

/*
 * Parse argv[1], ... as Go's package flag does: -x, --x, -x=v, -x v. The first
 * word that is no flag ends the flags, and so does "--". *n_used is the index
 * of the first word after them.
 *
 * Returns false after printing what is wrong.
 */
bool
cpprof__cli_flags(int argc, char **argv, struct cpprof__flags *flags,
                  int *n_used);

/*
 * The same for commands whose words may stand anywhere: flags are taken from
 * among them, until "--". A lone "-" is a word. The words are moved to argv[1],
 * ..., argv[*n_words].
 */
bool
cpprof__cli_flags_among_words(int argc, char **argv,
                              struct cpprof__flags *flags, int *n_words);

/* Print a row as help does. Of a text of several lines only the first, unless
 * `whole`. */
void
cpprof__print_flag(const struct cpprof__flag *flag, const char *dash,
                   bool whole);

/* The same of the rows from `row` to the next topic or the end. Formats of
 * reports, which are words, too, stand without a dash. */
void
cpprof__print_flags(const struct cpprof__flag *row, bool whole);

#endif
