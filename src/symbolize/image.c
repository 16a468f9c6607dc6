/* SPDX-License-Identifier: MIT */
/*
 * The headers of an ELF file: type, loadable segments, build id
 * (object/elf_header.h).
 *
 * The file is not trusted: more program headers than any real image has are
 * refused. Only regular files are opened, because
 * opening a device or a pipe may block or have effects.
 */
#include "symbolize/image.h"

#include "base/status.h"
#include "object/elf_header.h"
#include "own/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Program headers that are read; the largest known images have some 20. */
#define LOADS_MAX 1024

/* Those, the ELF header in three steps, and none besides. */
#define READS_MAX (LOADS_MAX + 3)

struct file {
    struct cpprof__elf_reader reader;
    int fd;
    const char *path;
};

/* A field of a header, by its name in both classes. */
#define FIELD(file, header, kind, field)                                       \
    CPPROF__ELF_FIELD(&(file)->reader, header, kind, field)

static enum cpprof_status
fail_malformed(const struct file *file, struct cpprof_error *error)
{
    return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                        "error reading ELF file %s: malformed", file->path);
}

static void
take_header(struct cpprof__image *image, const struct file *file,
            const uint8_t *header)
{
    struct cpprof__load load = {
        .offset = FIELD(file, header, Phdr, p_offset),
        .address = FIELD(file, header, Phdr, p_vaddr),
        .file_bytes = FIELD(file, header, Phdr, p_filesz),
        .memory_bytes = FIELD(file, header, Phdr, p_memsz),
        .executable = FIELD(file, header, Phdr, p_flags) & PF_X,
    };

    if (FIELD(file, header, Phdr, p_type) == PT_LOAD)
        image->loads[image->n_loads++] = load;
}

static enum cpprof_status
read_loads(struct cpprof__image *image, struct file *file, const uint8_t *head,
           struct cpprof_error *error)
{
    uint64_t at = FIELD(file, head, Ehdr, e_phoff);
    uint64_t n = FIELD(file, head, Ehdr, e_phnum);
    size_t n_bytes = CPPROF__ELF_BYTES(&file->reader, Phdr);
    uint8_t header[sizeof(Elf64_Phdr)];

    if (n == 0)
        return CPPROF_OK;
    if (n > LOADS_MAX || FIELD(file, head, Ehdr, e_phentsize) != n_bytes)
        return fail_malformed(file, error);
    image->loads = cpprof__calloc(n, sizeof *image->loads);
    if (!image->loads)
        return cpprof__fail_nomem(error);
    for (; n > 0; n--, at += n_bytes) {
        if (!cpprof__elf_read(&file->reader, at, header, n_bytes))
            return fail_malformed(file, error);
        take_header(image, file, header);
    }
    return CPPROF_OK;
}

static enum cpprof_status
read_headers(struct cpprof__image *image, struct file *file,
             struct cpprof_error *error)
{
    uint8_t head[sizeof(Elf64_Ehdr)];

    if (!cpprof__elf_read(&file->reader, 0, head, SELFMAG))
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "error reading magic number from %s: EOF",
                            file->path);
    if (memcmp(head, ELFMAG, SELFMAG) != 0)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "unrecognized binary format: %s", file->path);
    if (!cpprof__elf_read(&file->reader, 0, head, EI_NIDENT))
        return fail_malformed(file, error);
    file->reader.is_64 = head[EI_CLASS] == ELFCLASS64;
    file->reader.is_big_endian = head[EI_DATA] == ELFDATA2MSB;
    if (!cpprof__elf_read(&file->reader, 0, head,
                          CPPROF__ELF_BYTES(&file->reader, Ehdr)))
        return fail_malformed(file, error);
    image->type = (uint16_t)FIELD(file, head, Ehdr, e_type);
    return read_loads(image, file, head, error);
}

/* Opening anything but a plain file may do things, or wait. */
static enum cpprof_status
open_regular(struct file *file, struct cpprof_error *error)
{
    struct stat st;

    if (stat(file->path, &st) < 0)
        return cpprof__fail(
            error, CPPROF_SYSTEM, errno, "stat %s: %s", file->path,
            errno == ENOENT ? "no such file or directory" : strerror(errno));
    if (!S_ISREG(st.st_mode))
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            "unrecognized binary format: %s", file->path);
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return file->fd < 0 ? cpprof__fail(error, CPPROF_SYSTEM, errno,
                                       "error opening %s: %m", file->path)
                        : CPPROF_OK;
}

enum cpprof_status
cpprof__image_open(struct cpprof__image *image, const char *path,
                   struct cpprof_error *error)
{
    struct file file = {.fd = -1, .path = path};
    struct cpprof__elf_source source = {cpprof__elf_read_file, &file.fd, 0};
    struct cpprof__image opened = {0};
    enum cpprof_status status = open_regular(&file, error);

    if (status != CPPROF_OK)
        return status;
    file.reader =
        (struct cpprof__elf_reader){.source = &source, .n_reads = READS_MAX};
    status = read_headers(&opened, &file, error);
    /* Without one it is an image all the same. */
    if (status == CPPROF_OK &&
        cpprof__build_id_read(&source, opened.build_id, NULL) != CPPROF_OK)
        opened.build_id[0] = 0;
    close(file.fd);
    if (status != CPPROF_OK) {
        cpprof__image_close(&opened);
        return status;
    }
    *image = opened;
    return CPPROF_OK;
}

void
cpprof__image_close(struct cpprof__image *image)
{
    cpprof__free(image->loads);
    memset(image, 0, sizeof *image);
}

/* Sections that are not loaded: .symtab, .debug_info and their like. type: of
 * those, such alone; 0: all. */
static uint64_t
symbol_bytes(struct file *file, uint32_t type)
{
    uint8_t head[sizeof(Elf64_Ehdr)], section[sizeof(Elf64_Shdr)];
    uint64_t at, n, sum = 0;

    if (!cpprof__elf_read(&file->reader, 0, head, EI_NIDENT) ||
        memcmp(head, ELFMAG, SELFMAG) != 0)
        return 0;
    file->reader.is_64 = head[EI_CLASS] == ELFCLASS64;
    file->reader.is_big_endian = head[EI_DATA] == ELFDATA2MSB;
    if (!cpprof__elf_read(&file->reader, 0, head,
                          CPPROF__ELF_BYTES(&file->reader, Ehdr)))
        return 0;
    at = FIELD(file, head, Ehdr, e_shoff);
    for (n = FIELD(file, head, Ehdr, e_shnum);
         n > 0 && cpprof__elf_read(&file->reader, at, section,
                                   CPPROF__ELF_BYTES(&file->reader, Shdr));
         n--, at += FIELD(file, head, Ehdr, e_shentsize))
        if (!(FIELD(file, section, Shdr, sh_flags) & SHF_ALLOC) &&
            FIELD(file, section, Shdr, sh_type) != SHT_NOBITS &&
            (!type || FIELD(file, section, Shdr, sh_type) == type))
            sum += FIELD(file, section, Shdr, sh_size);
    return sum;
}

static uint64_t
symbol_bytes_of(const char *path, uint32_t type)
{
    struct file file = {.fd = -1, .path = path};
    struct cpprof__elf_source source = {cpprof__elf_read_file, &file.fd, 0};
    struct cpprof_error none;
    uint64_t n = 0;

    if (open_regular(&file, &none) != CPPROF_OK)
        return 0;
    file.reader =
        (struct cpprof__elf_reader){.source = &source, .n_reads = READS_MAX};
    n = symbol_bytes(&file, type);
    close(file.fd);
    return n;
}

uint64_t
cpprof__image_symbol_bytes(const char *path)
{
    return symbol_bytes_of(path, 0);
}

bool
cpprof__image_has_symbols(const char *path)
{
    return symbol_bytes_of(path, SHT_SYMTAB);
}
