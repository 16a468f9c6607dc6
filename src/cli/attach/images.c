/* SPDX-License-Identifier: MIT */
/*
 * The code that a process has mapped: its files, read through /proc/PID/root or
 * /proc/PID/map_files, so that they are those of its mount namespace. All of it
 * is read before a thread is stopped.
 *
 * A file lies here as it does on disk, and not by its segments: frame tables
 * refer to code by distance, and code is read only to find a few bytes in it.
 * It is read into memory and never mapped, because whoever makes a mapped file
 * shorter ends who reads it. What the loader does not use, as debug
 * information, stays out. The files are not trusted: each offset is held
 * against the length.
 */
#include "cli/attach/attach.h"

#include <cpprof/object.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The functions of libc in which a thread may hold what pthread_create() takes,
 * or is where it would end differently: malloc, lists of stacks, fork, exit,
 * and those by which stacks and arenas come and go. A thread that waits in
 * pthread_join() holds nothing; its end has no name (stack.c). */
static const char *const unsafe_names[] = {"malloc",
                                           "free",
                                           "calloc",
                                           "realloc",
                                           "memalign",
                                           "valloc",
                                           "pvalloc",
                                           "posix_memalign",
                                           "aligned_alloc",
                                           "reallocarray",
                                           "malloc_trim",
                                           "malloc_info",
                                           "malloc_stats",
                                           "mallinfo",
                                           "mallinfo2",
                                           "mallopt",
                                           "pthread_create",
                                           "pthread_detach",
                                           "atexit",
                                           "on_exit",
                                           "__cxa_atexit",
                                           "__cxa_finalize",
                                           "setenv",
                                           "putenv",
                                           "unsetenv",
                                           "clearenv",
                                           "getenv",
                                           "dlopen",
                                           "dlmopen",
                                           "dlclose",
                                           "dlsym",
                                           "dlvsym",
                                           "dladdr",
                                           "dladdr1",
                                           "dlinfo",
                                           "dlerror",
                                           "_dl_find_object",
                                           "mmap",
                                           "mmap64",
                                           "munmap",
                                           "mremap",
                                           "mprotect",
                                           "madvise",
                                           "brk",
                                           "sbrk",
                                           "setuid",
                                           "seteuid",
                                           "setreuid",
                                           "setresuid",
                                           "setgid",
                                           "setegid",
                                           "setregid",
                                           "setresgid",
                                           "setgroups",
                                           "__register_atfork",
                                           "pthread_getattr_np",
                                           "pthread_attr_setstack",
                                           "pthread_setattr_default_np"};

/* Likewise; but nobody may be called when these return: they return in a child,
 * too, or not at all, or an exception may leave them, which needs to find who
 * has called them. */
static const char *const never_names[] = {
    "fork",   "_Fork",      "vfork", "posix_spawn",  "posix_spawnp",
    "system", "popen",      "clone", "pthread_exit", "exit",
    "_exit",  "quick_exit", "abort", "execve",       "dl_iterate_phdr"};

/* malloc of other libraries and of programs has more names. */
static const char *const allocator_names[] = {
    "malloc",         "free",          "calloc", "realloc", "memalign",
    "posix_memalign", "aligned_alloc", "_ZdlPv", "_ZdlPvm", "_ZdaPv",
};

/* operator new: an exception leaves it. In an allocator of its own file, what
 * throws may have any name. */
static const char *const throwing_names[] = {
    "_Znwm", "_Znam", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t"};

#define N(array) (sizeof(array) / sizeof *(array))

/* ------------------------------------------------------------ symbols ---- */

static const void *
in_file(const struct cpprof__image *image, uint64_t offset, uint64_t n)
{
    return offset <= image->n && n <= image->n - offset ? image->data + offset
                                                        : NULL;
}

struct symbols {
    const Elf64_Sym *at;
    size_t n;
    const char *names;
    size_t n_names;
};

/* Those that the loader knows; none if the file has no sections. */
static struct symbols
symbols_of(const struct cpprof__image *image)
{
    const Elf64_Ehdr *e = in_file(image, 0, sizeof *e);
    const Elf64_Shdr *s =
        e ? in_file(image, e->e_shoff, e->e_shnum * sizeof *s) : NULL;
    struct symbols found = {0};
    unsigned i;

    for (i = 0; s && i < e->e_shnum; i++) {
        if (s[i].sh_type != SHT_DYNSYM || s[i].sh_link >= e->e_shnum)
            continue;
        found.at = in_file(image, s[i].sh_offset, s[i].sh_size);
        found.n = found.at ? s[i].sh_size / sizeof *found.at : 0;
        s += e->e_shnum ? s[i].sh_link : 0;
        found.names = in_file(image, s->sh_offset, s->sh_size);
        found.n_names = found.names ? s->sh_size : 0;
        break;
    }
    if (!found.n_names || found.names[found.n_names - 1])
        found.n = 0;
    return found;
}

/* The function of a symbol that is defined, or an empty range. */
static struct cpprof__range
range_of(const struct cpprof__image *image, const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    uint64_t lo = symbol->st_value + image->bias;

    if (symbol->st_shndx == SHN_UNDEF ||
        (type != STT_FUNC && type != STT_GNU_IFUNC))
        return (struct cpprof__range){0, 0};
    return (struct cpprof__range){lo,
                                  lo + (symbol->st_size ? symbol->st_size : 1)};
}

static const char *
name_of(const struct symbols *s, size_t i)
{
    return s->at[i].st_name < s->n_names ? s->names + s->at[i].st_name : "";
}

uint64_t
cpprof__image_symbol(const struct cpprof__image *image, const char *name)
{
    struct symbols s = symbols_of(image);
    size_t i;

    for (i = 0; i < s.n; i++)
        if (!strcmp(name_of(&s, i), name) && range_of(image, &s.at[i]).hi)
            return s.at[i].st_value + image->bias;
    return 0;
}

const uint8_t *
cpprof__image_code(const struct cpprof__image *image, uint64_t pc, size_t n)
{
    return image && image->code && pc >= image->code
               ? in_file(image, pc - image->code + image->code_offset, n)
               : NULL;
}

/* ------------------------------------------------------------- ranges ---- */

bool
cpprof__range_add(struct cpprof__range **ranges, size_t *n,
                  struct cpprof__range range)
{
    struct cpprof__range *at;

    if (range.lo >= range.hi)
        return true;
    at = reallocarray(*ranges, *n + 1, sizeof *at);
    if (!at)
        return false;
    *ranges = at;
    at[(*n)++] = range;
    return true;
}

bool
cpprof__range_has(const struct cpprof__range *ranges, size_t n,
                  uint64_t address)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (address - ranges[i].lo < ranges[i].hi - ranges[i].lo)
            return true;
    return false;
}

static bool
is_one_of(const char *name, const char *const *names, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

bool
cpprof__image_add_named(const struct cpprof__image *image,
                        const char *const *names, size_t n,
                        struct cpprof__range **ranges, size_t *n_ranges)
{
    struct symbols s = symbols_of(image);
    bool done = true;
    size_t i;

    for (i = 0; i < s.n; i++)
        if (is_one_of(name_of(&s, i), names, n))
            done &=
                cpprof__range_add(ranges, n_ranges, range_of(image, &s.at[i]));
    return done;
}

static bool
add_libc(struct cpprof__images *images)
{
    struct symbols s = symbols_of(images->libc);
    bool done =
        cpprof__image_add_named(images->libc, unsafe_names, N(unsafe_names),
                                &images->unsafe, &images->n_unsafe) &&
        cpprof__image_add_named(images->libc, never_names, N(never_names),
                                &images->never, &images->n_never);
    size_t i;

    for (i = 0; i < s.n; i++)
        done &= cpprof__range_add(&images->named, &images->n_named,
                                  range_of(images->libc, &s.at[i]));
    return done;
}

/* The bytes in executable parts of libc: where, or 0. */
uint64_t
cpprof__image_find_code(const struct cpprof__image *image, const void *code,
                        size_t n)
{
    const Elf64_Ehdr *e = in_file(image, 0, sizeof *e);
    const Elf64_Phdr *p =
        e ? in_file(image, e->e_phoff, e->e_phnum * sizeof *p) : NULL;
    const uint8_t *segment, *at;
    unsigned i;

    for (i = 0; p && i < e->e_phnum; i++) {
        if (p[i].p_type != PT_LOAD || !(p[i].p_flags & PF_X))
            continue;
        segment = in_file(image, p[i].p_offset, p[i].p_filesz);
        at = segment ? memmem(segment, p[i].p_filesz, code, n) : NULL;
        if (at)
            return (uint64_t)(at - segment) + p[i].p_vaddr + image->bias;
    }
    return 0;
}

/* It takes over what waits, too, and a thread in it may be in any of that; its
 * operator new does not throw. */
static bool
is_sanitizer(const struct cpprof__image *image)
{
    return cpprof__image_symbol(image, "__sanitizer_print_stack_trace") != 0;
}

static bool
find_unsafe(struct cpprof__images *images)
{
    /* syscall; ret. And mov $15, %rax; syscall: rt_sigreturn(2). */
    static const uint8_t syscall_ret[] = {0x0f, 0x05, 0xc3};
    static const uint8_t sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0,
                                        0,    0,    0x0f, 0x05};
    bool done = true, has_malloc = false;
    size_t i;

    for (i = 0; i < images->n; i++) {
        struct cpprof__image *image = &images->at[i];

        if (image->is_loader)
            done &=
                cpprof__range_add(&images->unsafe, &images->n_unsafe,
                                  (struct cpprof__range){image->lo, image->hi});
        if (image->is_libc || image->is_loader || !image->has_code ||
            !cpprof__image_symbol(image, "malloc"))
            continue;
        /* Of the program itself no more than its functions is known. */
        image->is_allocator = i && !has_malloc;
        has_malloc = true;
        if (image->is_allocator && !is_sanitizer(image))
            done &=
                cpprof__range_add(&images->never, &images->n_never,
                                  (struct cpprof__range){image->lo, image->hi});
        else if (image->is_allocator)
            done &=
                cpprof__range_add(&images->unsafe, &images->n_unsafe,
                                  (struct cpprof__range){image->lo, image->hi});
        else
            done &= cpprof__image_add_named(image, allocator_names,
                                            N(allocator_names), &images->unsafe,
                                            &images->n_unsafe) &&
                    cpprof__image_add_named(image, throwing_names,
                                            N(throwing_names), &images->never,
                                            &images->n_never);
    }
    if (!images->libc)
        return done;
    images->syscall_ret =
        cpprof__image_find_code(images->libc, syscall_ret, sizeof syscall_ret);
    images->sigreturn =
        cpprof__image_find_code(images->libc, sigreturn, sizeof sigreturn);
    return done && add_libc(images) && cpprof__musl_find(images);
}

uint64_t
cpprof__images_blocked(const struct cpprof__images *images)
{
    /* glibc changes credentials by 33, and cancels a thread by 32, which has to
     * find it where it waits. musl has 34 and 33; its 32 is for timers. */
    return ~(images->is_musl ? 1ull << 31 | 1ull << 33 : 1ull << 32);
}

/* -------------------------------------------------------------- files ---- */

/* The file of a mapping, as the process sees it; -1. */
static int
open_file(pid_t pid, const struct cpprof_map *map)
{
    char path[PATH_MAX + 64];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)pid,
             (unsigned long long)map->start, (unsigned long long)map->limit);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "/proc/%d/root%.*s", (int)pid, (int)map->n_path,
             map->path);
    return map->deleted ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Part of a file; what it lacks stays zero. budget: bytes that may still be
 * read. */
static void
read_part(const struct cpprof__image *image, int fd, uint64_t offset,
          uint64_t n, uint64_t *budget)
{
    uint8_t *to = (uint8_t *)image->data;
    ssize_t got = 1;

    if (!in_file(image, offset, n) || n > *budget)
        return;
    *budget -= n;
    for (; n && got > 0; offset += (uint64_t)got, n -= (uint64_t)got) {
        got = pread(fd, to + offset, n, (off_t)offset);
        if (got < 0)
            return;
    }
}

/* What the loader maps, and names of sections and symbols. */
static void
read_parts(const struct cpprof__image *image, int fd, uint64_t *budget)
{
    const Elf64_Ehdr *e = (const void *)image->data;
    const Elf64_Phdr *p;
    const Elf64_Shdr *s;
    unsigned i;

    read_part(image, fd, e->e_phoff, e->e_phnum * sizeof *p, budget);
    read_part(image, fd, e->e_shoff, e->e_shnum * sizeof *s, budget);
    p = in_file(image, e->e_phoff, e->e_phnum * sizeof *p);
    s = in_file(image, e->e_shoff, e->e_shnum * sizeof *s);
    for (i = 0; s && i < e->e_shnum; i++)
        if (i == e->e_shstrndx)
            read_part(image, fd, s[i].sh_offset, s[i].sh_size, budget);
    for (i = 0; p && i < e->e_phnum; i++)
        if (p[i].p_type == PT_LOAD)
            read_part(image, fd, p[i].p_offset, p[i].p_filesz, budget);
}

/* Tunables. A larger file is none of ours; and of all segments of one no more
 * is read. */
#define FILE_MAX  (8ull << 30)
#define PARTS_MAX (1ull << 30)

static void
read_file(struct cpprof__image *image, int fd)
{
    uint64_t budget = PARTS_MAX;
    Elf64_Ehdr e;
    struct stat st;
    void *data;

    if (fd < 0)
        return;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
        (uint64_t)st.st_size < FILE_MAX) {
        bool is_elf = pread(fd, &e, sizeof e, 0) == sizeof e &&
                      !memcmp(e.e_ident, ELFMAG, SELFMAG);
        size_t n = is_elf ? (size_t)st.st_size : 1;

        data = mmap(NULL, n, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (data != MAP_FAILED) {
            image->data = data;
            image->n = image->n_mapped = n;
            if (is_elf) {
                memcpy(data, &e, sizeof e);
                read_parts(image, fd, &budget);
            }
        }
    }
    close(fd);
}

static void
copy_memory(struct cpprof__image *image, pid_t pid,
            const struct cpprof_map *map)
{
    size_t n = map->limit - map->start;
    void *data = malloc(n);

    image->is_copy = data && cpprof__target_read(pid, map->start, data, n);
    if (image->is_copy) {
        image->data = data;
        image->n = image->n_mapped = n;
    } else {
        free(data);
    }
}

/* Where the image lies, by its first segment, which map shows the beginning of;
 * and its frame table. */
static void
place(struct cpprof__image *image)
{
    const Elf64_Ehdr *e = in_file(image, 0, sizeof *e);
    const Elf64_Phdr *p, *load = NULL;
    unsigned i, k;

    if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) ||
        e->e_ident[EI_CLASS] != ELFCLASS64)
        return;
    p = in_file(image, e->e_phoff, e->e_phnum * sizeof *p);
    for (i = 0; p && i < e->e_phnum && !load; i++)
        if (p[i].p_type == PT_LOAD)
            load = &p[i];
    if (!load)
        return;
    image->bias =
        image->lo - (load->p_vaddr & -4096ull) + (load->p_offset & -4096ull);
    for (i = 0; i < e->e_phnum; i++)
        for (k = 0; p[i].p_type == PT_GNU_EH_FRAME && k < e->e_phnum; k++)
            if (p[k].p_type == PT_LOAD &&
                p[i].p_vaddr - p[k].p_vaddr < p[k].p_filesz) {
                image->frames = in_file(
                    image, p[i].p_vaddr - p[k].p_vaddr + p[k].p_offset, 8);
                image->delta = (uint64_t)(uintptr_t)image->data +
                               p[k].p_offset - p[k].p_vaddr - image->bias;
            }
    if (!image->frames && !image->is_copy)
        cpprof__image_index_frames(image);
}

/* Whoever reads symbols maps whole libraries, too: their functions are where
 * the loader has put the code. Of a file that is gone no more is known than
 * that some of it can be executed. */
static bool
has_code(const struct cpprof__image *image)
{
    const Elf64_Ehdr *e = in_file(image, 0, sizeof *e);
    const Elf64_Phdr *p =
        e ? in_file(image, e->e_phoff, e->e_phnum * sizeof *p) : NULL;
    bool has = !image->data && image->code;
    unsigned i;

    for (i = 0; p && i < e->e_phnum; i++)
        has |= p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && image->code &&
               (p[i].p_offset & -4096ull) == image->code_offset &&
               (p[i].p_vaddr & -4096ull) + image->bias == image->code;
    return has;
}

static bool
add_image(struct cpprof__images *images, pid_t pid,
          const struct cpprof_map *map)
{
    struct cpprof__image *at = reallocarray(images->at, images->n + 1,
                                            sizeof *at),
                         *image;
    const char *name;
    bool is_musl;

    if (!at)
        return false;
    images->at = at;
    image = &at[images->n];
    *image = (struct cpprof__image){.lo = map->start, .hi = map->limit};
    image->path = strndup(map->path, map->n_path);
    if (!image->path)
        return false;
    images->n++;
    name = basename(image->path);
    /* musl is its own loader, and mostly mapped by the loader's name. */
    is_musl = !strncmp(name, "ld-musl-", 8) || !strcmp(name, "libc.so");
    image->is_libc = is_musl || !strcmp(name, "libc.so.6");
    image->is_loader =
        !is_musl && (!strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5));
    if (map->inode)
        read_file(image, open_file(pid, map));
    else
        copy_memory(image, pid, map);
    place(image);
    return true;
}

static void
note_code(struct cpprof__image *image, const struct cpprof_map *map)
{
    if (image->code || map->perms[2] != 'x')
        return;
    image->code = map->start;
    image->code_offset = map->offset;
}

/* Of a file that is mapped in several pieces the first brings it. */
static bool
take_line(struct cpprof__images *images, pid_t pid,
          const struct cpprof_map *map)
{
    struct cpprof__image *last = images->n ? &images->at[images->n - 1] : NULL;
    bool is_vdso = map->n_path == 6 && !strncmp(map->path, "[vdso]", 6);

    if (!map->inode && !is_vdso)
        return true;
    if (last && strlen(last->path) == map->n_path &&
        !strncmp(last->path, map->path, map->n_path) && map->offset) {
        last->hi = map->limit;
        note_code(last, map);
        return true;
    }
    if (map->offset || map->perms[0] != 'r')
        return true;
    if (!add_image(images, pid, map))
        return false;
    note_code(&images->at[images->n - 1], map);
    return true;
}

bool
cpprof__images_read(struct cpprof__images *images, pid_t pid, const char *maps,
                    size_t n_maps)
{
    struct cpprof_map map = {.size = sizeof map};
    const char *at = maps;
    bool done = true;
    size_t i;

    *images = (struct cpprof__images){0};
    while (done && cpprof_maps_next(&at, maps + n_maps, &map))
        done = take_line(images, pid, &map);
    for (i = 0; i < images->n; i++) {
        images->at[i].has_code = has_code(&images->at[i]);
        if (images->at[i].is_libc && images->at[i].data &&
            images->at[i].has_code) {
            images->libc = &images->at[i];
            images->is_musl =
                strcmp(basename(images->libc->path), "libc.so.6") != 0;
        }
    }
    return done && find_unsafe(images);
}

/* The build id and all symbols are in the first segment. */
bool
cpprof__image_stand_in(struct cpprof__image *image, pid_t pid, const char *path)
{
    const Elf64_Ehdr *e;
    const Elf64_Phdr *p;
    void *mapped = NULL;
    bool is_it;

    read_file(image, open(path, O_RDONLY | O_CLOEXEC));
    e = in_file(image, 0, sizeof *e);
    p = e ? in_file(image, e->e_phoff, sizeof *p) : NULL;
    is_it = p && p->p_type == PT_LOAD && !p->p_offset && p->p_filesz &&
            p->p_filesz <= image->n && (mapped = malloc(p->p_filesz)) &&
            cpprof__target_read(pid, image->lo, mapped, p->p_filesz) &&
            !memcmp(mapped, image->data, p->p_filesz);
    free(mapped);
    if (is_it) {
        place(image);
        is_it = image->has_code = has_code(image);
    }
    if (!is_it && image->data) {
        munmap((void *)image->data, image->n_mapped);
        image->data = NULL;
        image->n = image->n_mapped = 0;
    }
    return is_it;
}

void
cpprof__images_free(struct cpprof__images *images)
{
    size_t i;

    for (i = 0; i < images->n; i++) {
        struct cpprof__image *image = &images->at[i];

        if (image->is_copy)
            free((void *)image->data);
        else if (image->data)
            munmap((void *)image->data, image->n_mapped);
        free(image->path);
    }
    free(images->at);
    free(images->unsafe);
    free(images->never);
    free(images->waits);
    free(images->named);
}

const struct cpprof__image *
cpprof__image_find(const struct cpprof__images *images, uint64_t address)
{
    size_t i;

    for (i = 0; i < images->n; i++)
        if (address - images->at[i].lo < images->at[i].hi - images->at[i].lo)
            return &images->at[i];
    return NULL;
}
