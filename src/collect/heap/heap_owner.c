/* SPDX-License-Identifier: MIT */
/*
 * The definition of malloc that the loader finds first decides, unless the
 * program has one of its own with hidden visibility, which no library sees.
 * That one is in the program's symbol table, if it was not stripped.
 */
#include "collect/heap/heap_owner.h"
#include "collect/signal/tables/reserve.h"

#include "arch/place.h"
#include "collect/runtime/next.h"
#include "collect/runtime/real.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uintptr_t cpprof__heap_our_malloc CPPROF__AT_START;
bool cpprof__heap_misses_operators;

struct file {
    const unsigned char *bytes;
    size_t n;
};

static const void *
part(const struct file *file, uint64_t offset, uint64_t n)
{
    if (offset > file->n || n > file->n - offset || offset % 8)
        return NULL;
    return file->bytes + offset;
}

/* Hidden symbols are local in a linked file, and look like what is static in
 * one of its sources: that too is called by some of the program. */
static bool
is_own_malloc(const ElfW(Sym) * s, const char *strings, size_t n)
{
    static const char name[] = "malloc";

    if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
        s->st_name >= n || n - s->st_name < sizeof name)
        return false;
    return memcmp(strings + s->st_name, name, sizeof name) == 0;
}

static bool
find_in_table(const struct file *file, const ElfW(Shdr) * table,
              const ElfW(Shdr) * text, uint64_t *value)
{
    const ElfW(Sym) *s = part(file, table->sh_offset, table->sh_size);
    size_t i, n = table->sh_size / sizeof *s;
    const char *strings;

    if (text->sh_offset > file->n || text->sh_size > file->n - text->sh_offset)
        return false;
    strings = (const char *)file->bytes + text->sh_offset;
    for (i = 0; s && i < n; i++)
        if (is_own_malloc(&s[i], strings, text->sh_size)) {
            *value = s[i].st_value;
            return true;
        }
    return false;
}

static bool
find_own_malloc(const struct file *file, uint64_t *value)
{
    const ElfW(Ehdr) *head = part(file, 0, sizeof *head);
    const ElfW(Shdr) * sections;
    unsigned i;

    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
        head->e_ident[EI_CLASS] !=
            (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
        return false;
    sections = part(file, head->e_shoff, head->e_shnum * sizeof *sections);
    for (i = 0; sections && i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB &&
            sections[i].sh_link < head->e_shnum &&
            find_in_table(file, &sections[i], &sections[sections[i].sh_link],
                          value))
            return true;
    return false;
}

/* A malloc of the program itself that is not ours: base is where the program
 * lies. */
static bool
program_has_its_own(uintptr_t base)
{
    int fd = open("/proc/thread-self/exe", O_RDONLY | O_CLOEXEC);
    struct file file = {NULL, 0};
    struct stat st;
    uint64_t value;
    bool found;

    if (fd < 0) /* before Linux 3.17 */
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && st.st_size > 0) {
        file.n = (size_t)st.st_size;
        file.bytes = mmap((void *)cpprof__table_place(file.n), file.n,
                          PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    if (!file.n || file.bytes == MAP_FAILED)
        return false;
    found = find_own_malloc(&file, &value) &&
            base + value != cpprof__heap_our_malloc;
    munmap((void *)file.bytes, file.n);
    return found;
}

static const char *
say_program(char *name, size_t size)
{
    char path[200];
    ssize_t n = readlink("/proc/thread-self/exe", path, sizeof path - 1);

    path[n > 0 ? n : 0] = 0;
    snprintf(name, size, "the program%s%s", *path ? " " : "", path);
    return name;
}

const char *
cpprof__heap_owner(char *name, size_t size)
{
    const struct link_map *module = NULL, *program = cpprof__own_module();
    uintptr_t first = (uintptr_t)cpprof__first_symbol("malloc", &module);

    if (cpprof__linked) /* by the linker, to ours */
        return NULL;
    while (program && program->l_prev)
        program = program->l_prev;
    if (program_has_its_own(program ? program->l_addr : 0))
        return say_program(name, size);
    if (!first || first == cpprof__heap_our_malloc)
        return NULL;
    if (!*module->l_name)
        return say_program(name, size);
    snprintf(name, size, "%s", module->l_name);
    return name;
}
