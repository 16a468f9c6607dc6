/* SPDX-License-Identifier: MIT */
/*
 * What must be known of an ELF file before anything heavy is loaded: is it one,
 * which build id has it, and where is an address of a process in it?
 *
 * The file is not trusted: its headers are read by bounded reads, a few
 * thousand of them at most.
 *
 * Source: System V gABI, chapters 4 and 5; internal/elfexec, internal/binutils.
 */
#ifndef SYMBOLIZE_IMAGE_H
#define SYMBOLIZE_IMAGE_H

#include "object/build_id.h"

#include <stdbool.h>

/* PT_LOAD. */
struct cpprof__load {
    uint64_t offset;
    uint64_t address;
    uint64_t file_bytes; /* 0 where a file of debug information has lost it */
    uint64_t memory_bytes;
    bool executable;
};

/* Zero bytes is a valid image of nothing. */
struct cpprof__image {
    uint16_t type; /* ET_* */
    struct cpprof__load *loads;
    size_t n_loads;
    char build_id[CPPROF_BUILD_ID_MAX]; /* "": none */
};

/* Where a process had an image. */
struct cpprof__mapped_range {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
};

/*
 * Read the headers of the regular file at path.
 *
 * Errors: CPPROF_SYSTEM, CPPROF_BAD_DATA, CPPROF_NOMEM; the text is the
 *         reference's, where it has one.
 */
enum cpprof_status
cpprof__image_open(struct cpprof__image *image, const char *path,
                   struct cpprof_error *error);
void
cpprof__image_close(struct cpprof__image *image);

/* How many bytes of the file at path are for nobody but who looks for names and
 * lines? 0 where it cannot be read. */
uint64_t
cpprof__image_symbol_bytes(const char *path);
/* Has it a table of symbols that is not the loader's? */
bool
cpprof__image_has_symbols(const char *path);

/* Could an image have been at that range at all? CPPROF_BAD_DATA if not. */
enum cpprof_status
cpprof__image_fits(const struct cpprof__image *image, const char *path,
                   const struct cpprof__mapped_range *range,
                   struct cpprof_error *error);

/* From an address of the process to one of the image; false when no part of
 * the image was there. */
bool
cpprof__image_address(const struct cpprof__image *image,
                      const struct cpprof__mapped_range *range, uint64_t pc,
                      uint64_t *address);

#endif
