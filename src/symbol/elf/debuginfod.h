/* SPDX-License-Identifier: MIT */
/*
 * Debug files from the servers of $DEBUGINFOD_URLS: only for a user who asked,
 * since a server that does not answer holds the profile up for up to 90 s a
 * file (DEBUGINFOD_TIMEOUT). Nothing else in the plug-in goes to the network:
 * libdwfl, which asks the servers by itself, is not used.
 */
#ifndef SYMBOL_DEBUGINFOD_H
#define SYMBOL_DEBUGINFOD_H

#include "symbol/elf/elf_file.h"

/* Fetch and open; false when the library, the servers or the file is missing.
 */
bool
cpprof__debuginfod_open(struct cpprof__elf_file *debug, const char *build_id,
                        enum cpprof__elf_use use);

#endif
