/* SPDX-License-Identifier: MIT */
/*
 * Where debug information may lie, in the order in which GDB looks: by build
 * id under the debug root, by the name in .gnu_debuglink (checked by its CRC),
 * in the file that dwz made for several, and in .gnu_debugdata inside the
 * image. What is not on this machine is asked for, if there is who brings it:
 * nothing here goes to the network.
 *
 * A file counts only if it is the one that was meant: its build id or its CRC
 * must agree.
 */
#include "symbol/elf/debug_file.h"

#include "symbol/elf/way_out.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *cpprof__debug_root = "/usr/lib/debug";

bool
cpprof__debug_file_open_by_id(struct cpprof__elf_file *debug,
                              const char *build_id, enum cpprof__elf_use use)
{
    char path[PATH_MAX];

    if (strlen(build_id) < 4)
        return false;
    snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug",
             cpprof__debug_root, build_id, build_id + 2);
    return cpprof__elf_open(debug, path, build_id, use);
}

/* Has the file at path this checksum? */
static bool
has_crc(const char *path, uint32_t wanted)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint32_t crc = 0;
    char bytes[16384];
    ssize_t n;

    if (fd < 0)
        return false;
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        crc = libdeflate_crc32(crc, bytes, (size_t)n);
    close(fd);
    return crc == wanted;
}

/* What .gnu_debuglink of an image says. */
struct link {
    const struct cpprof__elf_file *image;
    const char *name;
    GElf_Word crc;
    enum cpprof__elf_use use;
};

/* The file at path, if it is the one that was meant. */
static bool
open_linked(struct cpprof__elf_file *debug, const struct link *link,
            const char *path)
{
    struct cpprof__elf_file file = {.wanted = debug->wanted};
    const char *id = link->image->build_id;

    if (!cpprof__elf_open(&file, path, id, link->use))
        return false;
    /* An image that is stripped itself is of no use. */
    if ((cpprof__elf_has_section(&file, ".symtab") ||
         cpprof__elf_has_dwarf(&file)) &&
        (*id || has_crc(path, link->crc))) {
        *debug = file;
        return true;
    }
    cpprof__elf_close(&file);
    return false;
}

/* The directory of path, symbolic links resolved: debug files lie beside the
 * real file. */
static bool
directory_of(const char *path, char directory[PATH_MAX])
{
    char *slash;

    if (!realpath(path, directory))
        snprintf(directory, PATH_MAX, "%s", path);
    slash = strrchr(directory, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

static bool
open_by_link(struct cpprof__elf_file *debug, const struct link *link,
             const char *image_path)
{
    static const struct {
        bool rooted;
        const char *below;
    } candidates[] = {{false, ""}, {false, "/.debug"}, {true, ""}};
    char directory[PATH_MAX];
    char path[3 * PATH_MAX];
    size_t i;

    if (!directory_of(image_path, directory))
        return false;
    for (i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        snprintf(path, sizeof path, "%s%s%s/%s",
                 candidates[i].rooted ? cpprof__debug_root : "", directory,
                 candidates[i].below, link->name);
        if (open_linked(debug, link, path))
            return true;
    }
    return false;
}

bool
cpprof__debug_file_open(struct cpprof__elf_file *debug,
                        const struct cpprof__elf_file *image, const char *path,
                        enum cpprof__elf_use use)
{
    struct link link = {.image = image, .use = use};

    if (cpprof__debug_file_open_by_id(debug, image->build_id, use))
        return true;
    link.name = dwelf_elf_gnu_debuglink(image->elf, &link.crc);
    return link.name && *link.name && open_by_link(debug, &link, path);
}

bool
cpprof__debug_file_fetch(struct cpprof__elf_file *debug,
                         const struct cpprof__fetcher *fetcher,
                         const char *build_id, enum cpprof__elf_use use)
{
    char path[PATH_MAX];

    return *build_id && fetcher->debug_file &&
           fetcher->debug_file(fetcher->ctx, build_id, path, sizeof path) &&
           cpprof__elf_open(debug, path, build_id, use);
}

/* Where dwz's shared file may be: as named, if that is absolute; beside the
 * file that names it; by build id. */
static bool
open_shared(struct cpprof__elf_file *shared, const char *from, const char *name,
            const char *build_id)
{
    char directory[PATH_MAX];
    char path[2 * PATH_MAX];

    if (name[0] == '/' &&
        cpprof__elf_open(shared, name, build_id, CPPROF__ELF_DWARF))
        return true;
    if (name[0] != '/' && from && directory_of(from, directory)) {
        snprintf(path, sizeof path, "%s/%s", directory, name);
        if (cpprof__elf_open(shared, path, build_id, CPPROF__ELF_DWARF))
            return true;
    }
    return cpprof__debug_file_open_by_id(shared, build_id, CPPROF__ELF_DWARF);
}

const char *
cpprof__debug_file_open_shared(struct cpprof__elf_file *shared,
                               const struct cpprof__elf_file *file,
                               const struct cpprof__fetcher *fetcher)
{
    char build_id[CPPROF_BUILD_ID_MAX];
    const Elf_Data *link = file->shared_link;
    const char *name = link ? link->d_buf : NULL;
    size_t n = name ? strnlen(name, link->d_size) + 1 : 0;

    if (!name || n >= link->d_size)
        return NULL;
    cpprof__build_id_text(build_id, name + n, link->d_size - n);
    if (!open_shared(shared, file->path, name, build_id) &&
        !cpprof__debug_file_fetch(shared, fetcher, build_id, CPPROF__ELF_DWARF))
        return name;
    if (!shared->dwarf) {
        cpprof__elf_close(shared);
        return name;
    }
    dwarf_setalt(file->dwarf, shared->dwarf);
    return NULL;
}

static int
copy_to_memory_file(const Elf_Data *packed)
{
    int fd = memfd_create("cpprof-debugdata", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < packed->d_size) {
        ssize_t n = write(fd, (const char *)packed->d_buf + done,
                          packed->d_size - done);

        if (n <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)n;
    }
    return fd;
}

/* libdw unpacks what is xz as a whole file, but only from a descriptor. It goes
 * on without it where the one block that it unpacks to has no more room. */
bool
cpprof__debug_file_open_mini(struct cpprof__elf_file *mini,
                             const struct cpprof__elf_file *image,
                             bool *is_too_large)
{
    struct cpprof__elf_file file = {0};
    GElf_Shdr header;
    Elf_Scn *section = NULL;
    Elf_Data *packed;
    void *before;
    int fd;

    if (image->elf)
        section = cpprof__elf_section(image, ".gnu_debugdata", &header);
    packed = section ? elf_rawdata(section, NULL) : NULL;
    *is_too_large = packed && packed->d_size > CPPROF__MINI_BYTES;
    if (!packed || !packed->d_buf || *is_too_large)
        return false;
    fd = copy_to_memory_file(packed);
    if (fd < 0)
        return false;
    /* Nobody else knows of what it unpacks. */
    before = cpprof__stay(CPPROF__MINI_BYTES);
    file.elf = dwelf_elf_begin(fd);
    *is_too_large = cpprof__stay_end(before);
    if (file.elf && elf_kind(file.elf) == ELF_K_ELF)
        *mini = file;
    else
        cpprof__elf_close(&file);
    close(fd);
    return mini->elf != NULL;
}
