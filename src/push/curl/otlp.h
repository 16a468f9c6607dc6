/* SPDX-License-Identifier: MIT */
/* Profiles as servers take them, and what a collector answers: parts of the
 * plug-in. */
#ifndef PUSH_CURL_OTLP_H
#define PUSH_CURL_OTLP_H

#include "push/plugin.h"

#include <stdbool.h>

/* See plugin.h. */
bool
cpprof__push_parts(const struct cpprof__push_piece *profile, unsigned flags,
                   bool (*use)(void *ctx,
                               const struct cpprof__push_piece *part),
                   void *ctx);
bool
cpprof__push_otlp(const struct cpprof__push_piece *part, const char *resource,
                  bool (*use)(void *ctx,
                              const struct cpprof__push_piece *request),
                  void *ctx);

/*
 * What the n bytes of an answer say: of ExportProfilesServiceResponse how many
 * profiles were rejected and why, of google.rpc.Status the message. They
 * replace reply->text.
 */
void
cpprof__push_otlp_reply(const uint8_t *data, size_t n,
                        struct cpprof__push_reply *reply);

/* Make text what the reply says: of a longer one than there is room for the
 * begin and the end, since servers repeat what they were asked, which is long,
 * before they say why not. */
void
cpprof__push_reply_text(const char *text, size_t n,
                        struct cpprof__push_reply *reply);

#endif
