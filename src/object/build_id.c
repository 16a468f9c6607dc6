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

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
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
#define ID_MAX ((CPPROF__BUILD_ID_TEXT - 1) / 2)

void
cpprof__build_id_text(char text[CPPROF__BUILD_ID_TEXT], const void *id,
                      size_t n)
{
    size_t i;

    text[0] = 0;
    for (i = 0; i < n && i < ID_MAX; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)id)[i]);
}

/* Where a field is, and how wide. */
struct field {
    uint8_t at;
    uint8_t n;
};

#define FIELD(type, field)                                                     \
    {                                                                          \
        offsetof(type, field), sizeof(((type *)0)->field)                      \
    }

/* A run of notes, as a program or section header has it. */
struct header_layout {
    size_t n_bytes; /* of one header: what e_phentsize must be */
    struct field type;
    struct field offset;
    struct field address;
    struct field size;
    struct field align;
};

/* One of the two classes of ELF. */
struct layout {
    size_t n_bytes;
    struct field phoff, phentsize, phnum;
    struct field shoff, shentsize, shnum;
    struct header_layout program, section;
};

#define LAYOUT(E, P, S)                                                        \
    {                                                                          \
        sizeof(E), FIELD(E, e_phoff), FIELD(E, e_phentsize),                   \
            FIELD(E, e_phnum), FIELD(E, e_shoff), FIELD(E, e_shentsize),       \
            FIELD(E, e_shnum),                                                 \
            {sizeof(P),         FIELD(P, p_type),   FIELD(P, p_offset),        \
             FIELD(P, p_vaddr), FIELD(P, p_filesz), FIELD(P, p_align)},        \
            {sizeof(S),         FIELD(S, sh_type), FIELD(S, sh_offset),        \
             FIELD(S, sh_addr), FIELD(S, sh_size), FIELD(S, sh_addralign)},    \
    }

static const struct layout layout32 =
    LAYOUT(Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr);
static const struct layout layout64 =
    LAYOUT(Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr);

struct image {
    const struct cpprof__elf_source *source;
    const struct layout *layout;
    bool big_endian;
    bool bad;         /* something could not be read or makes no sense */
    unsigned n_reads; /* left of the budget */
    uint64_t bias;    /* of a loaded image: address of its first byte */
    uint64_t n_file;  /* of a loaded image: file bytes that bias maps */
    uint8_t id[ID_MAX];
    size_t n_id; /* 0: not found yet */
};

/* A table of headers, or one run of notes. */
struct table {
    uint64_t offset;
    uint64_t n;
};

static bool
read_exactly(struct image *image, uint64_t offset, void *data, size_t n)
{
    const struct cpprof__elf_source *source = image->source;

    if (image->n_reads && offset <= UINT64_MAX - n) {
        image->n_reads--;
        if (source->read(source->ctx, offset, data, n) == n)
            return true;
    }
    image->bad = true;
    return false;
}

static uint64_t
get(const struct image *image, const uint8_t *from, struct field field)
{
    uint64_t v = 0;
    size_t i;

    for (i = 0; i < field.n; i++) {
        size_t at = image->big_endian ? i : field.n - 1u - i;

        v = v << 8 | from[field.at + at];
    }
    return v;
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
    static const struct field n_name = {0, 4}, n_desc = {4, 4}, type = {8, 4};
    uint8_t head[16];
    uint64_t desc_at, n;

    if (!read_exactly(image, notes->offset, head, sizeof head))
        return false;
    desc_at = align_up(12 + get(image, head, n_name), align);
    n = get(image, head, n_desc);
    if (desc_at > notes->n || n > notes->n - desc_at) {
        image->bad = true;
        return false;
    }
    if (get(image, head, n_name) == 4 && memcmp(head + 12, "GNU", 4) == 0 &&
        get(image, head, type) == NT_GNU_BUILD_ID && n) {
        n = n < ID_MAX ? n : ID_MAX;
        if (read_exactly(image, notes->offset + desc_at, image->id, n))
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

/* Look into the notes that one header describes. */
static void
visit_header(struct image *image, const struct header_layout *h,
             const uint8_t *header)
{
    struct table notes = {get(image, header, h->offset),
                          get(image, header, h->size)};

    if (image->source->loaded)
        notes.offset = get(image, header, h->address) - image->bias;
    read_notes(image, notes, get(image, header, h->align));
}

static void
scan(struct image *image, const struct header_layout *h, struct table table,
     uint64_t wanted)
{
    uint8_t header[sizeof(Elf64_Shdr)];

    for (; table.n && !image->n_id; table.n--) {
        if (!read_exactly(image, table.offset, header, h->n_bytes))
            return;
        if (get(image, header, h->type) == wanted)
            visit_header(image, h, header);
        table.offset += h->n_bytes;
    }
}

/* Where a loaded image begins in its own addresses: its first segment holds
 * the ELF header, and is the one whose file offset is 0. */
static void
find_bias(struct image *image, struct table table)
{
    const struct header_layout *h = &image->layout->program;
    uint8_t header[sizeof(Elf64_Phdr)];

    for (; table.n; table.n--, table.offset += h->n_bytes) {
        if (!read_exactly(image, table.offset, header, h->n_bytes))
            return;
        if (get(image, header, h->type) != PT_LOAD ||
            get(image, header, h->offset) != 0)
            continue;
        image->bias = get(image, header, h->address);
        image->n_file = get(image, header, h->size);
        return;
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

static void
search(struct image *image, const uint8_t *e)
{
    const struct layout *l = image->layout;
    struct table program = {get(image, e, l->phoff), get(image, e, l->phnum)};
    struct table section = {get(image, e, l->shoff), get(image, e, l->shnum)};

    if (program.n && get(image, e, l->phentsize) == l->program.n_bytes) {
        if (image->source->loaded)
            find_bias(image, program);
        scan(image, &l->program, program, PT_NOTE);
    } else if (program.n) {
        image->bad = true;
    }
    if (image->n_id || !section.n)
        return;
    if (image->source->loaded && !is_loaded(image, section, l->section.n_bytes))
        return;
    if (get(image, e, l->shentsize) == l->section.n_bytes)
        scan(image, &l->section, section, SHT_NOTE);
    else
        image->bad = true;
}

static bool
read_ident(struct image *image, uint8_t *e)
{
    if (!read_exactly(image, 0, e, EI_NIDENT) ||
        memcmp(e, ELFMAG, SELFMAG) != 0)
        return false;
    if (e[EI_CLASS] != ELFCLASS32 && e[EI_CLASS] != ELFCLASS64)
        return false;
    if (e[EI_DATA] != ELFDATA2LSB && e[EI_DATA] != ELFDATA2MSB)
        return false;
    image->layout = e[EI_CLASS] == ELFCLASS32 ? &layout32 : &layout64;
    image->big_endian = e[EI_DATA] == ELFDATA2MSB;
    return read_exactly(image, 0, e, image->layout->n_bytes);
}

enum cpprof_status
cpprof__build_id_read(const struct cpprof__elf_source *source,
                      char text[CPPROF__BUILD_ID_TEXT],
                      struct cpprof_error *error)
{
    struct image image = {.source = source, .n_reads = READS_MAX};
    uint8_t e[sizeof(Elf64_Ehdr)];

    if (!read_ident(&image, e))
        return cpprof__fail(error, CPPROF_BAD_DATA, 0, "malformed ELF binary");
    search(&image, e);
    if (!image.n_id)
        return cpprof__fail(error, CPPROF_BAD_DATA, 0,
                            image.bad
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

static size_t
read_file(void *ctx, uint64_t offset, void *data, size_t n)
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
cpprof__build_id_of_file(const char *path, char text[CPPROF__BUILD_ID_TEXT],
                         struct cpprof_error *error)
{
    int fd = open_regular(path);
    struct cpprof__elf_source source = {read_file, &fd, 0};
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
cpprof__build_id_of_memory(uintptr_t address, char text[CPPROF__BUILD_ID_TEXT],
                           struct cpprof_error *error)
{
    struct loaded image = {.base = address};
    struct cpprof__elf_source source = {read_memory, &image, 1};

    image.n = copy_memory(address, image.first, sizeof image.first);
    return cpprof__build_id_read(&source, text, error);
}
