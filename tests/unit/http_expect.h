/* SPDX-License-Identifier: MIT */
/* What is expected of an answer: its status, its headers, its body. */
#ifndef TESTS_HTTP_EXPECT_H
#define TESTS_HTTP_EXPECT_H

#include "http_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PLAIN "Content-Type: text/plain; charset=utf-8\n"
#define BYTES "Content-Type: application/octet-stream\n"
#define HTML  "Content-Type: text/html; charset=utf-8\n"
#define SAFE  "X-Content-Type-Options: nosniff\n"
#define PPROF "X-Go-Pprof: 1\n"
#define FILE_NAME(name)                                                        \
    "Content-Disposition: attachment; filename=\"" name "\"\n"

static inline void
expect_head(int status, const char *headers)
{
    assert_int_equal(reply.n_begins, 1);
    assert_int_equal(reply.status, status);
    assert_string_equal(reply.headers, headers);
    if (reply.said_bytes >= 0)
        assert_int_equal(reply.said_bytes, reply.n_body);
}

static inline void
expect(const char *address, int status, const char *headers, const char *body)
{
    assert_int_equal(get(address), CPPROF_OK);
    expect_head(status, headers);
    assert_string_equal(reply.body, body);
}

static inline void
expect_error(const char *address, int status, const char *body)
{
    expect(address, status, PLAIN SAFE PPROF, body);
}

static inline void
expect_profile(const char *address, const char *headers)
{
    assert_int_equal(get(address), CPPROF_OK);
    expect_head(200, headers);
    assert_true(reply.n_body > 20);
    assert_memory_equal(reply.body, "\x1f\x8b", 2);
}

#endif
