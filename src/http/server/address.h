/* SPDX-License-Identifier: MIT */
/*
 * Where a server listens: "127.0.0.1:6060", "[::1]:6060", "localhost:6060",
 * ":6060", "unix:/path". Names are not looked up: a resolver may load anything
 * into the program.
 */
#ifndef HTTP_SERVER_ADDRESS_H
#define HTTP_SERVER_ADDRESS_H

#include <cpprof/status.h>

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/un.h>

struct cpprof__http_address {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_un local;
    };
    socklen_t n;
    bool is_localhost; /* ::1 will do where there is no 127.0.0.1 */
    bool is_wildcard;  /* ":6060" */
};

/* Errors: CPPROF_INVALID. */
enum cpprof_status
cpprof__http_address_parse(const char *text,
                           struct cpprof__http_address *address,
                           struct cpprof_error *error);

/* Can only this machine reach it? */
bool
cpprof__http_address_is_here(const struct cpprof__http_address *address);

/*
 * A socket that listens there, non-blocking and closed on exec; *address is
 * then where it truly is.
 *
 * Errors: CPPROF_SYSTEM.
 */
enum cpprof_status
cpprof__http_address_listen(struct cpprof__http_address *address,
                            const char *text, int *fd,
                            struct cpprof_error *error);

/* The text of it, as snprintf() returns its length. */
int
cpprof__http_address_text(const struct cpprof__http_address *address,
                          char *text, size_t n);

#endif
