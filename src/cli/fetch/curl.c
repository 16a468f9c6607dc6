/* SPDX-License-Identifier: MIT */
#include "cli/fetch/curl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

const struct cpprof__curl *
cpprof__curl_load(const char **why)
{
    /* Two libraries with the same functions: built with OpenSSL, as Debian
     * installs it, or with GnuTLS. */
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    static struct cpprof__curl curl;
    static bool loaded;
    void *library = NULL;
    size_t i;

    if (loaded)
        return &curl;
    for (i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    *why = "fetching URLs needs libcurl.so.4; in Debian, install libcurl4";
    if (!library)
        return NULL;
    *why = "libcurl.so.4 is too old for fetching URLs";
#define X(result, name, parameters)                                            \
    curl.name = (result(*) parameters)dlsym(library, "curl_" #name);           \
    if (!curl.name)                                                            \
        return NULL;
    CPPROF__CURL_MAP(X)
#undef X
    *why = "libcurl.so.4 does not start";
    loaded = curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    return loaded ? &curl : NULL;
}
