/* SPDX-License-Identifier: MIT */
/*
 * The GNU build id of an ELF image: from the PT_NOTE segments, or the SHT_NOTE
 * sections where there is none; 32 and 64 bit, either byte order.
 */
#ifndef OBJECT_BUILD_ID_H
#define OBJECT_BUILD_ID_H

#include <cpprof/object.h>
#include <stddef.h>
#include <stdint.h>

/* The n bytes of an id as text. */
void
cpprof__build_id_text(char text[CPPROF_BUILD_ID_MAX], const void *id, size_t n);

/*
 * Reads n bytes at an offset of the image into data: how many could be read.
 * The image is a file, or one that is loaded (then the note's p_vaddr is used
 * instead of its p_offset).
 */
struct cpprof__elf_source {
    size_t (*read)(void *ctx, uint64_t offset, void *data, size_t n);
    void *ctx;
    int loaded;
};

/*
 * Errors: CPPROF_BAD_DATA "malformed ELF binary" or
 *         "no NT_GNU_BUILD_ID found in ELF binary" (Go's texts).
 */
enum cpprof_status
cpprof__build_id_read(const struct cpprof__elf_source *source,
                      char text[CPPROF_BUILD_ID_MAX],
                      struct cpprof_error *error);

/*
 * Of an image loaded at address of this process; memory is read through the
 * kernel, so an image that goes away meanwhile is an error and not a fault.
 */
enum cpprof_status
cpprof__build_id_of_memory(uintptr_t address, char text[CPPROF_BUILD_ID_MAX],
                           struct cpprof_error *error);

#endif
