/* SPDX-License-Identifier: MIT */
/*
 * Reading JSON that others have written: a cursor that goes over the text once,
 * without a copy of it. What is wrong makes it bad, and a bad one is at its
 * end: look at `bad` when all is done. Source: RFC 8259.
 */
#ifndef CLI_WEB_JSON_H
#define CLI_WEB_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct cpprof__json {
    const char *at, *end;
    bool bad;
};

/* The first character of the next value, which is not taken: one of {["tfn, a
 * digit or -; 0 at the end. */
char
cpprof__json_peek(struct cpprof__json *json);

/*
 * Go to the next member of an object, '{', or element of an array, '['. *n
 * counts them and begins with 0. False behind the last one, which is left.
 */
bool
cpprof__json_next(struct cpprof__json *json, char open, size_t *n);

/* Take a string; a member's name is one with a colon behind it. To be freed;
 * NULL: bad, or out of memory, which counts as bad. */
char *
cpprof__json_string(struct cpprof__json *json);
char *
cpprof__json_name(struct cpprof__json *json);

/* Take any value: its text is [*from, json->at). */
void
cpprof__json_skip(struct cpprof__json *json, const char **from);

#endif
