/* SPDX-License-Identifier: MIT */
/*
 * libcurl, loaded when the first URL is to be fetched: with its dependencies it
 * is some thirty libraries, which reports of files do not need.
 */
#ifndef CLI_FETCH_CURL_H
#define CLI_FETCH_CURL_H

/* Options that all versions know, not those that took their place in 7.85. */
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

/* X(result, name after curl_, parameters): the functions that are called. */
#define CPPROF__CURL_MAP(X)                                                    \
    X(CURLcode, global_init, (long))                                           \
    X(void, free, (void *))                                                    \
    X(CURLU *, url, (void))                                                    \
    X(void, url_cleanup, (CURLU *))                                            \
    X(CURLUcode, url_get, (const CURLU *, CURLUPart, char **, unsigned))       \
    X(CURLUcode, url_set, (CURLU *, CURLUPart, const char *, unsigned))        \
    X(char *, easy_escape, (CURL *, const char *, int))                        \
    X(char *, easy_unescape, (CURL *, const char *, int, int *))               \
    X(CURL *, easy_init, (void))                                               \
    X(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                        \
    X(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                         \
    X(CURLcode, easy_perform, (CURL *))                                        \
    X(CURLcode, easy_pause, (CURL *, int))                                     \
    X(const char *, easy_strerror, (CURLcode))                                 \
    X(void, easy_cleanup, (CURL *))                                            \
    X(CURLM *, multi_init, (void))                                             \
    X(CURLMcode, multi_add_handle, (CURLM *, CURL *))                          \
    X(CURLMcode, multi_remove_handle, (CURLM *, CURL *))                       \
    X(CURLMcode, multi_perform, (CURLM *, int *))                              \
    X(CURLMcode, multi_poll,                                                   \
      (CURLM *, struct curl_waitfd *, unsigned, int, int *))                   \
    X(CURLMsg *, multi_info_read, (CURLM *, int *))                            \
    X(CURLMcode, multi_cleanup, (CURLM *))                                     \
    X(struct curl_slist *, slist_append, (struct curl_slist *, const char *))  \
    X(void, slist_free_all, (struct curl_slist *))

struct cpprof__curl {
#define X(result, name, parameters) result(*name) parameters;
    CPPROF__CURL_MAP(X)
#undef X
};

/*
 * The functions; NULL when there is no libcurl, then *why is a line about it.
 * It stays loaded.
 *
 * Safety: one thread.
 */
const struct cpprof__curl *
cpprof__curl_load(const char **why);

#endif
