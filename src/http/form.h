/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a request: those of a form in its body, then those behind
 * the '?' of its address. Nothing is copied or decoded before it is looked at.
 *
 * Source: Go net/http (Request.FormValue), net/url (ParseQuery), strconv
 * (ParseInt). A form of parts (multipart/form-data) is not looked at.
 */
#ifndef HTTP_FORM_H
#define HTTP_FORM_H

#include <cpprof/http.h>

/* n bytes as they came, with their escapes, all of which are valid. */
struct cpprof__form_value {
    const char *at;
    size_t n; /* 0: empty, or not there at all, which are the same to Go */
};

/* The first of that name. */
struct cpprof__form_value
cpprof__form_value(const struct cpprof_http_request *request, const char *name);

/* Is it that text, decoded? */
bool
cpprof__form_is(struct cpprof__form_value value, const char *text);

/*
 * Go's ParseInt(value, 10, 64): false when it is no number, *number then 0, or
 * one that is too large, *number then the largest or the smallest there is.
 */
bool
cpprof__form_int(struct cpprof__form_value value, int64_t *number);

/* Go's `n, _ := strconv.Atoi(FormValue(name))`. */
int64_t
cpprof__form_number(const struct cpprof_http_request *request,
                    const char *name);

#endif
