/* SPDX-License-Identifier: MIT */
/* Preloaded: a resolver that waits for a name server that never answers. */
#include <netdb.h>
#include <unistd.h>

__attribute__((visibility("default"))) int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **found)
{
    (void)name;
    (void)service;
    (void)hints;
    (void)found;
    for (;;)
        pause();
}
