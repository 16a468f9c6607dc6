/* SPDX-License-Identifier: MIT */
/*
 * Finds NT_GNU_BUILD_ID without libelf: the library that is loaded into other
 * people's programs needs it for every mapping. Files are not trusted. Each
 * header and each note is one bounded read, and each image has a budget of
 * reads, so that no file can keep us busy.
 *
 * Source: System V gABI, chapters 4 and 5; Go runtime/pprof elf.go. The order
 * is ours: PT_NOTE first, because strip and sstrip leave it and because it is
 * in memory, then SHT_NOTE, which is all that relocatable files have.
 */
#include "object/build_id.h"

#include "base/status.h"
#include "object/elf_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Headers and notes read from one image: the largest known have some hundred.
 * More costs time on a hostile file (about 1 us each), less finds nothing in
 * an image with very many sections. */
#define READS_MAX 20000

/* Longest id that is kept, in bytes; SHA-1 has 20. */
#define ID_MAX ((CPPROF_BUILD_ID_MAX - 1) / 2)

void
cpprof__build_id_text(char text[CPPROF_BUILD_ID_MAX], const void *id, size_t n)
{
    size_t i;

    text[0] = 0;
    for (i = 0; i < n && i < ID_MAX; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)id)[i]);
}

struct image {
    struct cpprof__elf_reader reader;
    bool is_loaded;  /* in memory, not in a file */
    uint64_t bias;   /* of a loaded image: address of its first byte */
    uint64_t n_file; /* of a loaded image: file bytes that bias maps */
    uint8_t id[ID_MAX];
    size_t n_id; /* 0: not found yet */
};

/* A table of headers, or one run of notes. */
struct table {
    uint64_t offset;
    uint64_t n;
};

/* What a program or section header says. */
struct header {
    uint64_t type, offset, address, n_bytes, align;
};

bool
cpprof__elf_read(struct cpprof__elf_reader *r, uint64_t offset, void *data,
                 size_t n)
{
    if (r->n_reads && offset <= UINT64_MAX - n) {
        r->n_reads--;
        if (r->source->read(r->source->ctx, offset, data, n) == n)
            return true;
    }
    r->bad = true;
    return false;
}

static bool
read_program(struct cpprof__elf_reader *r, uint64_t at, struct header *h)
{
    uint8_t raw[sizeof(Elf64_Phdr)];

    if (!cpprof__elf_read(r, at, raw, CPPROF__ELF_BYTES(r, Phdr)))
        return false;
    *h = (struct header){.type = CPPROF__ELF_FIELD(r, raw, Phdr, p_type),
                         .offset = CPPROF__ELF_FIELD(r, raw, Phdr, p_offset),
                         .address = CPPROF__ELF_FIELD(r, raw, Phdr, p_vaddr),
                         .n_bytes = CPPROF__ELF_FIELD(r, raw, Phdr, p_filesz),
                         .align = CPPROF__ELF_FIELD(r, raw, Phdr, p_align)};
    return true;
}

static bool
read_section(struct cpprof__elf_reader *r, uint64_t at, struct header *h)
{
    uint8_t raw[sizeof(Elf64_Shdr)];

    if (!cpprof__elf_read(r, at, raw, CPPROF__ELF_BYTES(r, Shdr)))
        return false;
    *h =
        (struct header){.type = CPPROF__ELF_FIELD(r, raw, Shdr, sh_type),
                        .offset = CPPROF__ELF_FIELD(r, raw, Shdr, sh_offset),
                        .address = CPPROF__ELF_FIELD(r, raw, Shdr, sh_addr),
                        .n_bytes = CPPROF__ELF_FIELD(r, raw, Shdr, sh_size),
                        .align = CPPROF__ELF_FIELD(r, raw, Shdr, sh_addralign)};
    return true;
}

static uint64_t
align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/* Take one note off the front; false when it is the id, or no note. */
static bool
read_note(struct image *image, struct table *notes, uint64_t align)
{
    struct cpprof__elf_reader *r = &image->reader;
    uint64_t n_name, desc_at, n;
    uint8_t head[16];

    if (!cpprof__elf_read(r, notes->offset, head, sizeof head))
        return false;
    n_name = CPPROF__ELF_FIELD(r, head, Nhdr, n_namesz);
    desc_at = align_up(12 + n_name, align);
    n = CPPROF__ELF_FIELD(r, head, Nhdr, n_descsz);
    if (desc_at > notes->n || n > notes->n - desc_at) {
        r->bad = true;
        return false;
    }
    if (n_name == 4 && memcmp(head + 12, "GNU", 4) == 0 &&
        CPPROF__ELF_FIELD(r, head, Nhdr, n_type) == NT_GNU_BUILD_ID && n) {
        n = n < ID_MAX ? n : ID_MAX;
        if (cpprof__elf_read(r, notes->offset + desc_at, image->id, n))
            image->n_id = n;
        return false;
    }
    n = align_up(desc_at + n, align);
    n = n < notes->n ? n : notes->n; /* the last one may lack its padding */
    notes->offset += n;
    notes->n -= n;
    return true;
}

static void
read_notes(struct image *image, struct table notes, uint64_t align)
{
    /* Ours is at least 12 bytes of head and 4 of name. */
    while (notes.n >= 16)
        if (!read_note(image, &notes, align == 8 ? 8 : 4))
            return;
}

/* Look into the notes that the headers of one type describe. */
static void
scan(struct image *image, struct table table, bool is_section)
{
    size_t n_bytes = is_section ? CPPROF__ELF_BYTES(&image->reader, Shdr)
                                : CPPROF__ELF_BYTES(&image->reader, Phdr);
    struct header h;

    for (; table.n && !image->n_id; table.n--, table.offset += n_bytes) {
        if (!(is_section ? read_section : read_program)(&image->reader,
                                                        table.offset, &h))
            return;
        if (h.type != (is_section ? SHT_NOTE : PT_NOTE))
            continue;
        if (image->is_loaded)
            h.offset = h.address - image->bias;
        read_notes(image, (struct table){h.offset, h.n_bytes}, h.align);
    }
}

/* Where a loaded image begins in its own addresses: its first segment holds
 * the ELF header, and is the one whose file offset is 0. */
static void
find_bias(struct image *image, struct table table)
{
    struct header h;

    for (; table.n; table.n--) {
        if (!read_program(&image->reader, table.offset, &h))
            return;
        if (h.type == PT_LOAD && h.offset == 0) {
            image->bias = h.address;
            image->n_file = h.n_bytes;
            return;
        }
        table.offset += CPPROF__ELF_BYTES(&image->reader, Phdr);
    }
}

/* Section headers are seldom loaded. Bytes at their place in memory are
 * something else and must not be interpreted. */
static bool
is_loaded(const struct image *image, struct table table, size_t n_bytes)
{
    return table.n <= image->n_file / n_bytes &&
           table.offset <= image->n_file - table.n * n_bytes;
}

/* e: the ELF header. */
static void
search(struct image *image, const uint8_t *e)
{
    struct cpprof__elf_reader *r = &image->reader;
    struct table program = {CPPROF__ELF_FIELD(r, e, Ehdr, e_phoff),
                            CPPROF__ELF_FIELD(r, e, Ehdr, e_phnum)};
    struct table section = {CPPROF__ELF_FIELD(r, e, Ehdr, e_shoff),
                            CPPROF__ELF_FIELD(r, e, Ehdr, e_shnum)};
    size_t n_bytes = CPPROF__ELF_BYTES(r, Shdr);

    if (program.n && CPPROF__ELF_FIELD(r, e, Ehdr, e_phentsize) ==
                         CPPROF__ELF_BYTES(r, Phdr)) {
        if (image->is_loaded)
            find_bias(image, program);
        scan(image, program, false);
    } else if (program.n) {
        r->bad = true;
    }
    if (image->n_id || !section.n)
        return;
    if (image->is_loaded && !is_loaded(image, section, n_bytes))
        return;
    if (CPPROF__ELF_FIELD(r, e, Ehdr, e_shentsize) == n_bytes)
        scan(image, section, true);
    else
        r->bad = true;
}

static bool
read_ident(struct cpprof__elf_reader *r, uint8_t *e)
{
    if (!cpprof__elf_read(r, 0, e, EI_NIDENT) ||
        memcmp(e, ELFMAG, SELFMAG) != 0)
        return false;
    if (e[EI_CLASS] != ELFCLASS32 && e[EI_CLASS] != ELFCLASS64)
        return false;
    if (e[EI_DATA] != ELFDATA2LSB && e[EI_DATA] != ELFDATA2MSB)
        return false;
    r->is_64 = e[EI_CLASS] == ELFCLASS64;
    r->is_big_endian = e[EI_DATA] == ELFDATA2MSB;
    return cpprof__elf_read(r, 0, e, CPPROF__ELF_BYTES(r, Ehdr));
}

enum cpprof_status
cpprof__build_id_read(const struct cpprof__elf_source *source,
                      char text[CPPROF_BUILD_ID_MAX],
                      struct cpprof_error *error)
{
    struct image image = {.reader = {.source = source, .n_reads = READS_MAX},
                          .is_loaded = source->loaded};
    uint8_t e[sizeof(Elf64_Ehdr)];

    if (!read_ident(&image.reader, e))
        return cpprof__fail(error, CPPROF_BAD_DATA, 0, "malformed ELF binary");
    search(&image, e);
    if (!image.n_id)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            image.reader.bad
                                ? "malformed ELF binary"
                                : "no NT_GNU_BUILD_ID found in ELF binary");
    cpprof__build_id_text(text, image.id, image.n_id);
    return CPPROF_OK;
}

/* Reads of a file go on after a signal and stop at its end. */
static size_t
read_fully(int fd, uint64_t offset, uint8_t *data, size_t n)
{
    size_t done = 0;

    while (done < n && offset + done <= INT64_MAX) {
        ssize_t got = pread(fd, data + done, n - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

size_t
cpprof__elf_read_file(void *ctx, uint64_t offset, void *data, size_t n)
{
    return read_fully(*(int *)ctx, offset, data, n);
}

/* Only a regular file is opened: a mapped device may do things when it is. */
static int
open_regular(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = ENOEXEC;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

enum cpprof_status
cpprof_build_id_of_file(const char *path, char *text,
                        struct cpprof_error *error)
{
    CPPROF__NEED(error, path && text);

    int fd = open_regular(path);
    struct cpprof__elf_source source = {cpprof__elf_read_file, &fd, 0};
    enum cpprof_status status;

    if (fd < 0)
        return cpprof__fail(error, CPPROF_SYSTEM, errno, "%s: %m", path);
    status = cpprof__build_id_read(&source, text, error);
    close(fd);
    return status;
}

/* The fallback where process_vm_readv is filtered (old container profiles). */
static size_t
read_proc_mem(uintptr_t address, void *data, size_t n)
{
    /* That of the process is gone with its main thread. */
    int fd = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
    size_t done;

    if (fd < 0) /* before Linux 3.17 */
        fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    done = read_fully(fd, address, data, n);
    close(fd);
    return done;
}

/* A loaded image, and what its first bytes are: the headers and the notes of
 * most images lie in there, and one read is cheaper than a dozen. */
struct loaded {
    uintptr_t base;
    size_t n;
    uint8_t first[1024];
};

static size_t
copy_memory(uintptr_t address, void *data, size_t n)
{
    struct iovec local = {data, n};
    struct iovec remote = {(void *)address, n};
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

    if (got < 0 && (errno == ENOSYS || errno == EPERM))
        return read_proc_mem(address, data, n);
    return got < 0 ? 0 : (size_t)got;
}

static size_t
read_memory(void *ctx, uint64_t offset, void *data, size_t n)
{
    const struct loaded *image = ctx;

    if (offset >= image->n || n > image->n - offset)
        return copy_memory(image->base + (uintptr_t)offset, data, n);
    memcpy(data, image->first + offset, n);
    return n;
}

enum cpprof_status
cpprof__build_id_of_memory(uintptr_t address, char text[CPPROF_BUILD_ID_MAX],
                           struct cpprof_error *error)
{
    struct loaded image = {.base = address};
    struct cpprof__elf_source source = {read_memory, &image, 1};

    image.n = copy_memory(address, image.first, sizeof image.first);
    return cpprof__build_id_read(&source, text, error);
}
