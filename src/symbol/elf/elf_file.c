/* SPDX-License-Identifier: MIT */
/*
 * ELF files opened for libelf and libdw: the file is mapped, its build id is
 * compared with the one that is wanted, and sections that nobody needs are
 * hidden before libdw sees them, because libdw unpacks every section that it
 * knows. The others are unpacked here (unpack.h).
 *
 * .debug_info, most of the bytes, is unpacked as far as the wanted addresses
 * need it: deflate can be stopped, but not begun, anywhere. The units of these
 * addresses are then copied, and the room, which has its pages, is used for the
 * other sections. Tables of lines, which only we read, are unpacked when the
 * first of them is asked for.
 *
 * Invariants: no descriptor stays open; debug information that would unpack to
 * more than LARGEST_UNPACKED is left alone, so that a hostile file cannot take
 * all memory.
 */
#include "symbol/elf/elf_file.h"

#include "own/memory.h"
#include "own/sort.h"
#include "symbol/elf/way_out.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Program headers that are looked at; a real image has a dozen. */
#define MOST_SEGMENTS 1024

/* Debug information that is unpacked at most, of one file; the functions of
 * one that has more are named by its symbol table. Debian's packages of debug
 * information are all packed, threefold; the largest unpack to this. */
#define LARGEST_UNPACKED (1ull << 30)

struct image {
    const char *bytes;
    size_t n;
};

static size_t
read_image(void *ctx, uint64_t offset, void *data, size_t n)
{
    const struct image *image = ctx;

    if (offset > image->n || n > image->n - offset)
        return 0;
    memcpy(data, image->bytes + offset, n);
    return n;
}

/* As everywhere: libdw finds none that is not padded. */
static void
read_build_id(struct cpprof__elf_file *file)
{
    struct image image = {0};
    const struct cpprof__elf_source source = {read_image, &image, 0};

    image.bytes = elf_rawfile(file->elf, &image.n);
    if (!image.bytes ||
        cpprof__build_id_read(&source, file->build_id, NULL) != CPPROF_OK)
        file->build_id[0] = 0;
}

void
cpprof__elf_close(struct cpprof__elf_file *file)
{
    bool before = cpprof__within_begin();
    size_t i;

    dwarf_end(file->dwarf);
    elf_end(file->elf);
    cpprof__within_end(before);
    for (i = 0; i < file->n_unpacked; i++)
        cpprof__free(file->unpacked[i]);
    cpprof__free(file->unpacked);
    cpprof__free(file->segments);
    cpprof__needed_free(&file->needed);
    cpprof__free(file->copy);
    cpprof__free(file->path);
    memset(file, 0, sizeof *file);
}

static void
read_segments(struct cpprof__elf_file *file)
{
    size_t n, i;

    if (elf_getphdrnum(file->elf, &n) != 0 || n == 0 || n > MOST_SEGMENTS)
        return;
    file->segments = cpprof__calloc(n, sizeof *file->segments);
    for (i = 0; file->segments && i < n; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(file->elf, (int)i, &header) &&
            header.p_type == PT_LOAD)
            file->segments[file->n_segments++] = (struct cpprof__segment){
                header.p_offset, header.p_vaddr, header.p_filesz};
    }
}

static int
by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* What is not in the image is in no unit of it. */
static void
find_wanted(const struct cpprof__elf_file *file, struct cpprof__wanted *wanted)
{
    size_t n = wanted->n, i;

    wanted->n = 0;
    for (i = 0; i < n; i++)
        if (!wanted->are_offsets)
            wanted->at[wanted->n++] = wanted->at[i];
        else if (cpprof__elf_address(file, wanted->at[i],
                                     &wanted->at[wanted->n]))
            wanted->n++;
    wanted->are_offsets = false;
    cpprof__sort(wanted->at, wanted->n, sizeof *wanted->at, by_address);
}

/* elf_version() is a setting of the process that libelf wants made. */
static bool
is_elf(Elf *elf)
{
    return elf && elf_kind(elf) == ELF_K_ELF;
}

static struct cpprof__file_state
state_of(const struct stat *info)
{
    return (struct cpprof__file_state){info->st_dev, info->st_ino,
                                       info->st_size, info->st_mtim};
}

bool
cpprof__elf_is_current(const struct cpprof__elf_file *file)
{
    const struct cpprof__file_state *was = &file->state;
    struct cpprof__file_state is;
    struct stat info;

    if (!file->elf || !file->path)
        return true;
    if (stat(file->path, &info) != 0)
        return false;
    is = state_of(&info);
    return is.dev == was->dev && is.inode == was->inode &&
           is.n_bytes == was->n_bytes &&
           is.modified.tv_sec == was->modified.tv_sec &&
           is.modified.tv_nsec == was->modified.tv_nsec;
}

/* What is wanted of a file, as one argument for cpprof__without_exit(). */
struct opening {
    struct cpprof__elf_file file;
    const char *build_id;
    enum cpprof__elf_use use;
    int fd;
    bool is_open;
};

static bool
open_fd(struct cpprof__elf_file *file, int fd, const char *build_id)
{
    struct stat info;
    void *before;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    file->state = state_of(&info);
    elf_version(EV_CURRENT);
    before = cpprof__stay(SIZE_MAX); /* nobody else knows of the mapping */
    file->elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
    cpprof__stay_end(before);
    if (!is_elf(file->elf))
        return false;
    read_build_id(file);
    read_segments(file);
    return !*build_id || strcmp(build_id, file->build_id) == 0;
}

/* The name of a section of debug information, and its header; or NULL. */
static const char *
debug_name(const struct cpprof__elf_file *file, size_t names, Elf_Scn *section,
           GElf_Shdr *header)
{
    const char *name = gelf_getshdr(section, header)
                           ? elf_strptr(file->elf, names, header->sh_name)
                           : NULL;

    return name && (!strncmp(name, ".debug_", 7) ||
                    !strncmp(name, ".zdebug_", 8))
               ? name
               : NULL;
}

/* Sections that libdw would unpack without need. */
static bool
is_unused(const char *name)
{
    static const char *const names[] = {
        "loc",   "loclists",     "macro",        "macinfo",
        "frame", "gnu_pubnames", "gnu_pubtypes", "aranges",
        "names", "pubnames",     "pubtypes"};
    size_t i;

    name += strcspn(name, "_");
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (*name && strcmp(name + 1, names[i]) == 0)
            return true;
    return false;
}

/* What a section takes in memory once libdw has unpacked it; 0: it is read
 * where it is mapped. */
static uint64_t
unpacked_bytes(Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
    ssize_t n;
    GElf_Chdr packed;

    if (header->sh_flags & SHF_COMPRESSED)
        return gelf_getchdr(section, &packed) ? packed.ch_size : 0;
    if (strncmp(name, ".zdebug", 7) != 0)
        return 0;
    n = dwelf_scn_gnu_compressed_size(section);
    return n > 0 ? (uint64_t)n : 0;
}

/* Room that stays as long as the file is open. */
static void *
take_room(struct cpprof__elf_file *file, uint64_t n)
{
    struct cpprof__spare *spare = &file->spare;
    void *room = spare->at;

    n += -n & 15;
    if (n <= spare->n) {
        spare->at += n;
        spare->n -= n;
        return room;
    }
    room = cpprof__room_for(n);
    if (room) {
        file->unpacked[file->n_unpacked++] = room;
        file->n_unpacked_bytes += n;
    }
    return room;
}

/* libelf takes these bytes for a section that never was packed. */
static void
replace(Elf_Scn *section, GElf_Shdr *header, void *bytes, uint64_t n)
{
    Elf_Data *data = elf_getdata(section, NULL);
    Elf_Data *raw = elf_rawdata(section, NULL);

    data->d_buf = raw->d_buf = bytes;
    data->d_size = raw->d_size = n;
    header->sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
    header->sh_size = n;
    gelf_update_shdr(section, header);
}

/* Unpack the first n bytes of a section and have libelf take it for one that
 * never was packed. Where this is not possible libdw unpacks it. False: there
 * is no memory; libdw would do without the section, and read address 0 for what
 * others say of it. */
static bool
unpack(struct cpprof__elf_file *file, struct libdeflate_decompressor *reader,
       Elf_Scn *section, GElf_Shdr *header, uint64_t n)
{
    Elf_Data *data = elf_getdata(section, NULL);
    Elf_Data *raw = elf_rawdata(section, NULL);
    struct cpprof__packed packed;
    uint64_t room;
    void *bytes;

    if (!data || !raw)
        return false;
    if (!cpprof__is_packed(file->elf, section, &packed))
        return true;
    room = cpprof__unpacked_room(&packed, n);
    bytes = take_room(file, room);
    if (bytes && cpprof__unpack(reader, &packed, bytes, room))
        replace(section, header, bytes, room == packed.n_unpacked ? room : n);
    return bytes;
}

/* What is in a section, whether it is packed or not. */
struct content {
    struct cpprof__packed packed;
    const void *bytes; /* NULL: packed */
    uint64_t n;        /* unpacked */
};

static bool
look_into(const struct cpprof__elf_file *file, Elf_Scn *section,
          const GElf_Shdr *header, struct content *content)
{
    Elf_Data *raw = section ? elf_rawdata(section, NULL) : NULL;

    *content = (struct content){0};
    if (!raw || !elf_getdata(section, NULL))
        return false;
    if (cpprof__is_packed(file->elf, section, &content->packed)) {
        content->n = content->packed.n_unpacked;
        return true;
    }
    content->bytes = raw->d_buf;
    content->n = raw->d_size;
    return raw->d_buf && !(header->sh_flags & SHF_COMPRESSED);
}

/* The first n bytes of it at least, in memory of the file's; NULL: they cannot
 * be had. What a packed section leaves behind is room for others. */
static const void *
first_bytes(struct cpprof__elf_file *file,
            struct libdeflate_decompressor *reader,
            const struct content *content, uint64_t n)
{
    uint64_t room = cpprof__unpacked_room(&content->packed, n);
    void *bytes;

    if (content->bytes)
        return content->bytes;
    bytes = take_room(file, room);
    if (!bytes)
        return NULL;
    file->spare = (struct cpprof__spare){bytes, room};
    return cpprof__unpack(reader, &content->packed, bytes, room) ? bytes : NULL;
}

/* The needed units of .debug_info take its place. Where this is not possible it
 * is unpacked as the others are. */
static void
unpack_needed(struct cpprof__elf_file *file,
              struct libdeflate_decompressor *reader,
              struct cpprof__picked *picked)
{
    uint64_t n = file->needed.n_bytes + CPPROF__UNIT_HEAD;
    struct content info;
    GElf_Shdr header;
    Elf_Scn *section = cpprof__elf_section(file, ".debug_info", &header);
    const void *bytes;

    picked->n_abbrev = UINT64_MAX;
    if (!file->needed.units.n || !look_into(file, section, &header, &info))
        return;
    bytes = first_bytes(file, reader, &info, n);
    if (!bytes || !cpprof__needed_pick(&file->needed, bytes,
                                       n < info.n ? n : info.n, picked))
        return;
    file->unpacked[file->n_unpacked++] = picked->info;
    file->n_unpacked_bytes += picked->n_info;
    file->is_partial = true;
    replace(section, &header, picked->info, picked->n_info);
}

/* libdw only wants to know how long .debug_line is. False: it is small, or not
 * ours to unpack. */
static bool
put_off(struct cpprof__elf_file *file, Elf_Scn *section, GElf_Shdr *header)
{
    struct cpprof__packed packed;
    void *bytes;

    if (!elf_getdata(section, NULL) ||
        !cpprof__is_packed(file->elf, section, &packed) ||
        packed.n_unpacked < CPPROF__LEAST_PARTIAL ||
        !(bytes = take_room(file, packed.n_unpacked)))
        return false;
    file->late_lines =
        (struct cpprof__late_lines){.packed = packed, .bytes = bytes};
    replace(section, header, bytes, packed.n_unpacked);
    return true;
}

/* Which units the wanted addresses need, which is asked where there is much of
 * .debug_info and units refer to no other section of units. */
static void
find_needed(struct cpprof__elf_file *file,
            struct libdeflate_decompressor *reader)
{
    struct content info, aranges;
    GElf_Shdr header;
    Elf_Scn *section = cpprof__elf_section(file, ".debug_info", &header);
    void *room = NULL;

    if (!file->wanted || !file->wanted->n ||
        !look_into(file, section, &header, &info) ||
        info.n < CPPROF__LEAST_PARTIAL ||
        cpprof__elf_has_section(file, ".debug_types") ||
        cpprof__elf_has_section(file, ".gnu_debugaltlink"))
        return;
    section = cpprof__elf_section(file, ".debug_aranges", &header);
    if (!look_into(file, section, &header, &aranges) || aranges.n > info.n)
        return;
    if (!aranges.bytes && (room = cpprof__room_for(aranges.n)) &&
        cpprof__unpack(reader, &aranges.packed, room, aranges.n))
        aranges.bytes = room;
    if (aranges.bytes)
        cpprof__needed_find(aranges.bytes, aranges.n, file->wanted,
                            &file->needed);
    if (file->needed.n_bytes > info.n)
        file->needed.n_bytes = info.n;
    cpprof__free(room);
}

static bool
unpack_all(struct cpprof__elf_file *file,
           struct libdeflate_decompressor *reader)
{
    Elf_Scn *section = NULL;
    struct cpprof__picked picked;
    GElf_Shdr header;
    bool has_memory = true;
    size_t n, names;

    if (elf_getshdrnum(file->elf, &n) == 0 &&
        elf_getshdrstrndx(file->elf, &names) == 0)
        file->unpacked = cpprof__calloc(n + 1, sizeof *file->unpacked);
    if (file->unpacked)
        unpack_needed(file, reader, &picked);
    while (has_memory && file->unpacked &&
           (section = elf_nextscn(file->elf, section))) {
        const char *name = debug_name(file, names, section, &header);
        bool is_abbrev = name && !strcmp(name, ".debug_abbrev");

        if (name && header.sh_type != SHT_NOBITS &&
            header.sh_flags & SHF_COMPRESSED &&
            (strcmp(name, ".debug_line") != 0 ||
             !put_off(file, section, &header)))
            has_memory = unpack(file, reader, section, &header,
                                is_abbrev ? picked.n_abbrev : UINT64_MAX);
    }
    return has_memory && file->unpacked;
}

/* What may be unpacked under a limit on memory. libdw goes on without a section
 * for which there is no memory, and then reads address 0. */
static uint64_t
room(int resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) ? UINT64_MAX : limit.rlim_cur / 8;
}

/*
 * Hide the sections that are not used from libdw, which unpacks all that it
 * knows at once. False when the others would take too much memory.
 */
static bool
prepare_dwarf(const struct cpprof__elf_file *file)
{
    Elf_Scn *section = NULL;
    uint64_t n_bytes = 0;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(file->elf, &names) != 0)
        return false;
    while ((section = elf_nextscn(file->elf, section))) {
        const char *name = debug_name(file, names, section, &header);

        if (!name)
            continue;
        if (is_unused(name)) {
            header.sh_type = SHT_NOBITS;
            gelf_update_shdr(section, &header);
        } else {
            n_bytes += unpacked_bytes(section, &header, name);
        }
    }
    return n_bytes <= LARGEST_UNPACKED && n_bytes <= room(RLIMIT_DATA) &&
           n_bytes <= room(RLIMIT_AS);
}

/* Hide from libdw the name of the file that dwz moved things into: it would
 * open that by itself, of whatever build it is. */
static void
take_shared_link(struct cpprof__elf_file *file)
{
    GElf_Shdr header;
    Elf_Scn *section = cpprof__elf_section(file, ".gnu_debugaltlink", &header);

    file->shared_link = section ? elf_rawdata(section, NULL) : NULL;
    if (!file->shared_link)
        return;
    header.sh_type = SHT_NOBITS;
    gelf_update_shdr(section, &header);
}

/* False: libdw would read what is not there. */
static bool
unpack_dwarf(struct cpprof__elf_file *file)
{
    struct libdeflate_decompressor *reader = libdeflate_alloc_decompressor();
    bool is_ready = false;

    if (reader) {
        find_needed(file, reader);
        take_shared_link(file);
        is_ready = prepare_dwarf(file) && unpack_all(file, reader);
    }
    libdeflate_free_decompressor(reader);
    return is_ready;
}

/* Is a section left that is packed otherwise than by zlib, as by zstd, which
 * older libelf do not know? libdw goes on without it. */
static bool
has_unknown_packing(const struct cpprof__elf_file *file)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    GElf_Chdr packed;
    size_t names;

    if (elf_getshdrstrndx(file->elf, &names) != 0)
        return false;
    while ((section = elf_nextscn(file->elf, section)))
        if (debug_name(file, names, section, &header) &&
            header.sh_type != SHT_NOBITS && header.sh_flags & SHF_COMPRESSED &&
            gelf_getchdr(section, &packed) &&
            packed.ch_type != ELFCOMPRESS_ZLIB)
            return true;
    return false;
}

void
cpprof__elf_open_dwarf(struct cpprof__elf_file *file)
{
    if (!file->elf || file->dwarf || file->unpacked) /* libdw refused it */
        return;
    if (!cpprof__elf_has_dwarf(file) || !unpack_dwarf(file))
        return;
    file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    file->is_packed = has_unknown_packing(file);
    if (file->is_packed) {
        dwarf_end(file->dwarf);
        file->dwarf = NULL;
    }
    if (file->dwarf)
        dwarf_new_oom_handler(file->dwarf, cpprof__out_of_memory);
}

static void
open_it(void *arg)
{
    struct opening *o = arg;

    if (!o->file.path || !open_fd(&o->file, o->fd, o->build_id))
        return;
    if (o->file.wanted)
        find_wanted(&o->file, o->file.wanted);
    /* While the descriptor is open: libdw looks up where the file lies, since
     * split units are searched beside it. */
    if (o->use == CPPROF__ELF_DWARF)
        cpprof__elf_open_dwarf(&o->file);
    o->is_open = elf_cntl(o->file.elf, ELF_C_FDREAD) == 0;
}

bool
cpprof__elf_open(struct cpprof__elf_file *file, const char *path,
                 const char *build_id, enum cpprof__elf_use use)
{
    struct opening o = {{.wanted = file->wanted}, build_id, use, -1, false};
    bool returned;

    o.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (o.fd < 0)
        return false;
    o.file.path = cpprof__strdup(path);
    returned = cpprof__without_exit(open_it, &o);
    close(o.fd);
    if (o.is_open)
        *file = o.file;
    else
        cpprof__elf_close(&o.file);
    if (!returned)
        cpprof__out_of_memory();
    return o.is_open;
}

bool
cpprof__elf_open_memory(struct cpprof__elf_file *file, void *image, size_t n)
{
    struct cpprof__elf_file opened = {.copy = image};
    bool before = cpprof__within_begin();

    elf_version(EV_CURRENT);
    opened.elf = elf_memory(image, n);
    cpprof__within_end(before);
    if (!is_elf(opened.elf)) {
        cpprof__elf_close(&opened);
        return false;
    }
    read_build_id(&opened);
    read_segments(&opened);
    *file = opened;
    return true;
}

Elf_Scn *
cpprof__elf_section(const struct cpprof__elf_file *file, const char *name,
                    GElf_Shdr *header)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (elf_getshdrstrndx(file->elf, &names) != 0)
        return NULL;
    while ((section = elf_nextscn(file->elf, section))) {
        const char *text;

        if (!gelf_getshdr(section, header))
            continue;
        text = elf_strptr(file->elf, names, header->sh_name);
        if (text && strcmp(text, name) == 0)
            return header->sh_type == SHT_NOBITS ? NULL : section;
    }
    return NULL;
}

bool
cpprof__elf_has_section(const struct cpprof__elf_file *file, const char *name)
{
    GElf_Shdr header;

    return file->elf && cpprof__elf_section(file, name, &header);
}

bool
cpprof__elf_address(const struct cpprof__elf_file *file, uint64_t offset,
                    uint64_t *address)
{
    size_t i;

    for (i = 0; i < file->n_segments; i++) {
        const struct cpprof__segment *segment = &file->segments[i];

        if (offset >= segment->offset &&
            offset - segment->offset < segment->n_bytes) {
            *address = offset - segment->offset + segment->address;
            return true;
        }
    }
    return false;
}

static void
add_code_sections(const struct cpprof__elf_file *file,
                  struct cpprof__ranges *code)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    while ((section = elf_nextscn(file->elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR &&
            header.sh_flags & SHF_ALLOC &&
            header.sh_size <= UINT64_MAX - header.sh_addr)
            cpprof__ranges_add(
                code, (struct cpprof__range){header.sh_addr,
                                             header.sh_addr + header.sh_size,
                                             (uint32_t)elf_ndxscn(section), 0});
}

static void
add_code_segments(const struct cpprof__elf_file *file,
                  struct cpprof__ranges *code)
{
    size_t n = 0;
    size_t i;

    if (elf_getphdrnum(file->elf, &n) != 0)
        return;
    for (i = 0; i < n && i < MOST_SEGMENTS; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(file->elf, (int)i, &header) &&
            header.p_type == PT_LOAD && header.p_flags & PF_X &&
            header.p_memsz <= UINT64_MAX - header.p_vaddr)
            cpprof__ranges_add(
                code, (struct cpprof__range){header.p_vaddr,
                                             header.p_vaddr + header.p_memsz,
                                             UINT32_MAX, 0});
    }
}

void
cpprof__elf_code(const struct cpprof__elf_file *file,
                 struct cpprof__ranges *code)
{
    add_code_sections(file, code);
    if (!code->n)
        add_code_segments(file, code);
    cpprof__ranges_seal(code);
}
