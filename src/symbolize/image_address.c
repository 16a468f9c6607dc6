/* SPDX-License-Identifier: MIT */
/*
 * Converts an address of a process to one of an image. The rule: an address is
 * as far behind the start of its mapping as its byte is behind the mapped
 * offset of the file, and the PT_LOAD header that has this byte gives its
 * address in the image. The rest handles exceptions: several headers may share
 * a page, profilers join neighbouring mappings or know none, and a kernel lies
 * elsewhere than its file says.
 *
 * Source: internal/elfexec/elfexec.go GetBase, ProgramHeadersForMapping,
 * HeaderForFileOffset; internal/binutils/binutils.go findProgramHeader.
 */
#include "symbolize/image.h"

#include "base/status.h"

#include <elf.h>
#include <inttypes.h>

#define PAGE_BYTES 4096

/* Upper half of the addresses: a kernel. */
#define KERNEL_START ((uint64_t)1 << 63)

/* Where a kernel of PowerPC lies, which its mappings may have as offset. */
#define PPC64_START 0xc000000000000000u

/* The part that code is in. */
static const struct cpprof__load *
text_of(const struct cpprof__image *image)
{
    size_t i;

    for (i = 0; i < image->n_loads; i++)
        if (image->loads[i].executable)
            return &image->loads[i];
    return NULL;
}

/* A mapping made up by a tool that knew none: addresses are the image's. */
static bool
is_everything(const struct cpprof__mapped_range *range)
{
    return range->start == 0 && range->offset == 0 &&
           (range->limit == 0 || range->limit == UINT64_MAX);
}

/* Has the mapping bytes of that part? */
static bool
overlaps(const struct cpprof__load *load,
         const struct cpprof__mapped_range *range)
{
    uint64_t limit = range->offset + (range->limit - range->start);
    uint64_t load_limit = load->offset + load->memory_bytes;
    uint64_t in_page = load->address % PAGE_BYTES;
    uint64_t first = load->offset > in_page ? load->offset - in_page : 0;

    if (load->file_bytes == 0 || range->offset >= load_limit ||
        load->offset >= limit || range->offset < first)
        return false;
    /* Less than a page of the part's end, and a page or more behind it: the
     * mapping is that of the next part. */
    return !(range->offset > load->offset &&
             load_limit < range->offset + PAGE_BYTES &&
             limit >= load_limit + PAGE_BYTES);
}

/* The part that the mapping has at pc: the only one of the mapping, or the one
 * that has this byte of the file. NULL for none, or for several. */
static const struct cpprof__load *
load_at(const struct cpprof__image *image,
        const struct cpprof__mapped_range *range, uint64_t pc)
{
    const struct cpprof__load *found = NULL, *any = NULL;
    uint64_t offset = pc - range->start + range->offset;
    size_t i, n = 0, n_found = 0;

    for (i = 0; i < image->n_loads; i++) {
        const struct cpprof__load *load = &image->loads[i];

        if (!overlaps(load, range))
            continue;
        any = load;
        n++;
        if (offset >= load->offset &&
            offset - load->offset < load->memory_bytes) {
            found = load;
            n_found++;
        }
    }
    if (n == 1)
        return any;
    return n_found == 1 ? found : NULL;
}

/* What to subtract, if the mapping is one of a kernel. */
static bool
kernel_base(const struct cpprof__load *load,
            const struct cpprof__mapped_range *range, uint64_t *base)
{
    if (load->address == range->start - range->offset) {
        *base = range->offset;
        return true;
    }
    if (range->start >= load->address && range->limit > range->start &&
        (range->offset == 0 || range->offset == PPC64_START ||
         range->offset == range->start)) {
        *base = range->start - load->address;
        return true;
    }
    return false;
}

/* What to subtract, with the part known, or NULL; false when there is no rule
 * for such a mapping of such an image. */
static bool
find_base(const struct cpprof__image *image, const struct cpprof__load *load,
          const struct cpprof__mapped_range *range, uint64_t *base)
{
    bool is_user = range->start > 0 && range->start < KERNEL_START;

    *base = range->start - range->offset;
    if (load)
        *base += load->offset - load->address;
    switch (image->type) {
    case ET_EXEC:
        if (!load || is_everything(range))
            *base = 0;
        else if (range->start == 0 && range->limit)
            *base = 0 - load->address;
        else
            return is_user || kernel_base(load, range, base);
        return true;
    case ET_DYN:
        if (is_everything(range))
            *base = 0;
        else if (load && range->start >= KERNEL_START)
            kernel_base(load, range, base);
        return true;
    case ET_REL:
        *base = is_everything(range) ? 0 : range->start;
        return range->offset == 0;
    default:
        return false;
    }
}

enum cpprof_status
cpprof__image_fits(const struct cpprof__image *image, const char *path,
                   const struct cpprof__mapped_range *range,
                   struct cpprof_error *error)
{
    uint64_t base;

    if (find_base(image, text_of(image), range, &base))
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "error reading ELF file %s: could not identify base",
                        path);
}

/*
 * A file of debug information may not say any more where its parts were in the
 * file. A mapping of code begins with the page that the code begins in.
 */
static bool
address_without_offsets(const struct cpprof__image *image,
                        const struct cpprof__mapped_range *range, uint64_t pc,
                        uint64_t *address)
{
    const struct cpprof__load *first = image->n_loads ? image->loads : NULL;
    const struct cpprof__load *load = text_of(image);

    if (!load || load->file_bytes)
        return false;
    if (range->offset == 0)
        load = first;
    *address = pc - range->start + load->address - load->address % PAGE_BYTES;
    return true;
}

bool
cpprof__image_address(const struct cpprof__image *image,
                      const struct cpprof__mapped_range *range, uint64_t pc,
                      uint64_t *address)
{
    const struct cpprof__load *load = text_of(image);
    uint64_t base;

    if (image->n_loads && range->start < range->limit &&
        range->limit < KERNEL_START) {
        load = load_at(image, range, pc);
        if (!load)
            return address_without_offsets(image, range, pc, address);
    }
    if (!find_base(image, load, range, &base))
        return false;
    *address = pc - base;
    return true;
}
