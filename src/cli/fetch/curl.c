/* SPDX-License-Identifier: MIT */
#include "cli/fetch/curl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

/* Two libraries with the same functions: built with OpenSSL, as Debian installs
 * it, or with GnuTLS. */
static void *
open_library(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    size_t i;

    for (i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool
find_all(void *library, struct cpprof__curl *curl)
{
#define X(result, name, parameters)                                            \
    curl->name = (result(*) parameters)dlsym(library, "curl_" #name);          \
    if (!curl->name)                                                           \
        return false;
    CPPROF__CURL_MAP(X)
#undef X
    return true;
}

const struct cpprof__curl *
cpprof__curl_load(const char **why)
{
    static struct cpprof__curl curl;
    static bool loaded;
    void *library;

    if (loaded)
        return &curl;
    library = open_library();
    *why = "fetching URLs needs libcurl.so.4; in Debian, install libcurl4";
    if (!library)
        return NULL;
    *why = "libcurl.so.4 is too old for fetching URLs";
    if (!find_all(library, &curl))
        return NULL;
    *why = "libcurl.so.4 does not start";
    loaded = curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    return loaded ? &curl : NULL;
}
