/* SPDX-License-Identifier: MIT */
/*
 * Reads tables of virtual functions, of x86-64 images.
 *
 * All pointers that the image has as data are gathered first: where the loader
 * relocates them, else, in an image that is not moved, as they are. Type
 * information is what begins with a pointer into one of three tables of the C++
 * runtime. A table is what has, in this order, a distance that is 0 for the
 * class's own table and negative for the parts of other bases, a pointer to
 * type information, and pointers to code. It ends before what any code or data
 * refers to: that is another object, which may have pointers to code, too.
 *
 * Invariants: what is read is reachable from the tables, since libelf is left
 * where memory runs out; nothing is read but what lies in the file; what is
 * kept is sorted and within the MOST_ limits, so time is bounded by them, too.
 */
#include "symbol/elf/vtables.h"

#include <stdlib.h>
#include <string.h>

/* Tunable: pointers of 16 bytes; of an image with more no tables are read. */
#define MOST_POINTERS (2u << 20)

#define MOST_PIECES  64        /* loaded parts, and sections with pointers */
#define MOST_BASES   64        /* of one class */
#define LONGEST_NAME 4096      /* mangled */
#define MOST_ZEROS   2         /* functions without an address in front */
#define FARTHEST     (1 << 24) /* that a base may lie in an object */

/* What a pointer points to: an address, or one of these. */
enum { ELSEWHERE = 1, TYPE_PLAIN, TYPE_SINGLE, TYPE_SEVERAL, N_SPECIAL };

/* Their names in the C++ runtime. */
static const char *const type_tables[] = {
    [TYPE_PLAIN] = "_ZTVN10__cxxabiv117__class_type_infoE",
    [TYPE_SINGLE] = "_ZTVN10__cxxabiv120__si_class_type_infoE",
    [TYPE_SEVERAL] = "_ZTVN10__cxxabiv121__vmi_class_type_infoE",
};

struct pointer {
    uint64_t at;
    uint64_t to;
};

struct cpprof__reading {
    struct cpprof__vtables *out;
    const struct cpprof__ranges *code;
    Elf *elf;
    const uint8_t *bytes; /* of the file */
    size_t n_bytes;
    GElf_Ehdr head;
    struct cpprof__segment loaded[MOST_PIECES];
    size_t n_loaded;
    struct cpprof__segment places[MOST_PIECES]; /* that have tables */
    size_t n_places;
    struct {
        const uint8_t *at; /* Elf64_Sym */
        size_t n;
        const char *names;
        size_t n_names;
    } symbols;
    uint64_t type_tables[N_SPECIAL]; /* addresses; 0: not in this image */
    bool has_types;
    CPPROF__ARRAY(struct pointer) pointers; /* sorted by `at` */
    uint8_t *marks[MOST_PIECES]; /* a bit for each word of a place: something
                                    refers to it */
};

/* ---- the file ---------------------------------------------------------- */

/* n bytes of the file from there on, or NULL. */
static const uint8_t *
file_bytes(const struct cpprof__reading *r, uint64_t offset, uint64_t n)
{
    return offset <= r->n_bytes && n <= r->n_bytes - offset ? r->bytes + offset
                                                            : NULL;
}

/* The piece that an address lies in, or NULL. */
static const struct cpprof__segment *
piece_of(const struct cpprof__segment *pieces, size_t n, uint64_t address)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (address - pieces[i].address < pieces[i].n_bytes)
            return &pieces[i];
    return NULL;
}

/* What is loaded at an address: *n bytes of it, or NULL. */
static const uint8_t *
loaded_bytes(const struct cpprof__reading *r, uint64_t address, uint64_t *n)
{
    const struct cpprof__segment *piece =
        piece_of(r->loaded, r->n_loaded, address);
    uint64_t offset = piece ? address - piece->address : 0;

    if (!piece)
        return NULL;
    *n = piece->n_bytes - offset;
    return file_bytes(r, piece->offset + offset, *n);
}

static bool
read_word(const struct cpprof__reading *r, uint64_t address, uint64_t *word)
{
    uint64_t n;
    const uint8_t *bytes = loaded_bytes(r, address, &n);

    if (!bytes || n < sizeof *word)
        return false;
    memcpy(word, bytes, sizeof *word);
    return true;
}

static bool
begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void
add_piece(struct cpprof__segment *pieces, size_t *n, uint64_t offset,
          uint64_t address, uint64_t n_bytes)
{
    if (*n < MOST_PIECES && n_bytes <= UINT64_MAX - offset &&
        n_bytes <= UINT64_MAX - address)
        pieces[(*n)++] = (struct cpprof__segment){offset, address, n_bytes};
}

/* Where linkers put tables: constant data, relocated or not. Other data may
 * have the same form by chance. */
static void
find_places(struct cpprof__reading *r)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    size_t names;

    if (elf_getshdrstrndx(r->elf, &names) != 0)
        return;
    while ((section = elf_nextscn(r->elf, section))) {
        const char *name = gelf_getshdr(section, &header)
                               ? elf_strptr(r->elf, names, header.sh_name)
                               : NULL;

        if (name && header.sh_type == SHT_PROGBITS &&
            (begins_with(name, ".data.rel.ro") || begins_with(name, ".rodata")))
            add_piece(r->places, &r->n_places, header.sh_offset, header.sh_addr,
                      header.sh_size);
    }
}

static bool
make_marks(struct cpprof__reading *r)
{
    size_t i;

    for (i = 0; i < r->n_places; i++) {
        if (!file_bytes(r, r->places[i].offset, r->places[i].n_bytes))
            return false;
        r->marks[i] = calloc(r->places[i].n_bytes / 64 + 1, 1);
        if (!r->marks[i])
            return false;
    }
    return true;
}

void
cpprof__vtables_read_end(struct cpprof__vtables *tables)
{
    struct cpprof__reading *r = tables->reading;
    size_t i;

    if (!r)
        return;
    for (i = 0; i < r->n_places; i++)
        free(r->marks[i]);
    CPPROF__ARRAY_FREE(&r->pointers);
    free(r);
    tables->reading = NULL;
}

static bool
open_reading(struct cpprof__reading *r, const struct cpprof__elf_file *file)
{
    GElf_Phdr header;
    size_t n, i;

    r->elf = file->elf;
    r->bytes = (const uint8_t *)elf_rawfile(r->elf, &r->n_bytes);
    if (!r->bytes || !gelf_getehdr(r->elf, &r->head) ||
        r->head.e_machine != EM_X86_64 ||
        r->head.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf_getphdrnum(r->elf, &n) != 0)
        return false;
    for (i = 0; i < n && i < MOST_PIECES; i++)
        if (gelf_getphdr(r->elf, (int)i, &header) && header.p_type == PT_LOAD)
            add_piece(r->loaded, &r->n_loaded, header.p_offset, header.p_vaddr,
                      header.p_filesz);
    find_places(r);
    return r->n_places > 0;
}

/* Something refers to an address. */
static inline void
mark(struct cpprof__reading *r, uint64_t address)
{
    size_t i;

    for (i = 0; i < r->n_places && address % 8 == 0; i++) {
        uint64_t at = address - r->places[i].address;

        if (at < r->places[i].n_bytes)
            r->marks[i][at / 64] |= (uint8_t)(1 << at / 8 % 8);
    }
}

/* ---- symbols: only those of the C++ runtime matter --------------------- */

static const char *
symbol_name(const struct cpprof__reading *r, const Elf64_Sym *symbol)
{
    size_t at = symbol->st_name;

    return at < r->symbols.n_names &&
                   memchr(r->symbols.names + at, 0, r->symbols.n_names - at)
               ? r->symbols.names + at
               : "";
}

static bool
get_symbol(const struct cpprof__reading *r, uint64_t i, Elf64_Sym *symbol)
{
    if (i >= r->symbols.n)
        return false;
    memcpy(symbol, r->symbols.at + i * sizeof *symbol, sizeof *symbol);
    return true;
}

/* TYPE_PLAIN and so on, or 0. */
static int
type_table_of(const char *name)
{
    int i;

    if (!begins_with(name, "_ZTVN10__cxxabiv1"))
        return 0;
    for (i = TYPE_PLAIN; i < N_SPECIAL; i++)
        if (strcmp(name, type_tables[i]) == 0)
            return i;
    return 0;
}

static void
find_symbols(struct cpprof__reading *r)
{
    GElf_Shdr header, names;
    Elf_Scn *section = NULL, *other;
    Elf64_Sym symbol;
    uint64_t i;

    while ((section = elf_nextscn(r->elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
            break;
    other = section ? elf_getscn(r->elf, header.sh_link) : NULL;
    if (!other || !gelf_getshdr(other, &names))
        return;
    r->symbols.at = file_bytes(r, header.sh_offset, header.sh_size);
    r->symbols.names =
        (const char *)file_bytes(r, names.sh_offset, names.sh_size);
    if (!r->symbols.at || !r->symbols.names)
        return;
    r->symbols.n = header.sh_size / sizeof symbol;
    r->symbols.n_names = names.sh_size;
    for (i = 0; get_symbol(r, i, &symbol); i++) {
        int type = type_table_of(symbol_name(r, &symbol));

        r->has_types |= type != 0;
        if (type && symbol.st_shndx != SHN_UNDEF)
            r->type_tables[type] = symbol.st_value;
        mark(r, symbol.st_value);
    }
}

/* ---- pointers ---------------------------------------------------------- */

static bool
is_marked(const struct cpprof__reading *r, uint64_t address)
{
    const struct cpprof__segment *place =
        piece_of(r->places, r->n_places, address);
    uint64_t at = place ? address - place->address : 0;

    return !place || r->marks[place - r->places][at / 64] & 1 << at / 8 % 8;
}

/* False: there are too many, or there is no memory. */
static bool
add_pointer(struct cpprof__reading *r, uint64_t at, uint64_t to)
{
    if (!piece_of(r->places, r->n_places, at))
        return true;
    if (r->pointers.n >= MOST_POINTERS || !CPPROF__ARRAY_ROOM(&r->pointers, 1))
        return false;
    r->pointers.at[r->pointers.n++] = (struct pointer){at, to};
    return true;
}

/* One to an address of the image; others are numbers that are none. What points
 * to type tables does so to the first function, behind two words. */
static bool
add_address(struct cpprof__reading *r, uint64_t at, uint64_t to)
{
    uint64_t i;

    mark(r, to);
    for (i = TYPE_PLAIN; i < N_SPECIAL; i++)
        if (r->type_tables[i] && to == r->type_tables[i] + 16)
            return add_pointer(r, at, i);
    return to < N_SPECIAL || !piece_of(r->loaded, r->n_loaded, to) ||
           add_pointer(r, at, to);
}

/* One to a symbol, of this image or of another. */
static bool
add_symbol(struct cpprof__reading *r, const Elf64_Rela *rela)
{
    Elf64_Sym symbol;
    int type = 0;

    if (get_symbol(r, ELF64_R_SYM(rela->r_info), &symbol)) {
        if (rela->r_addend == 16)
            type = type_table_of(symbol_name(r, &symbol));
        if (!type && symbol.st_shndx != SHN_UNDEF)
            return add_address(r, rela->r_offset,
                               symbol.st_value + (uint64_t)rela->r_addend);
    }
    return add_pointer(r, rela->r_offset, type ? (uint64_t)type : ELSEWHERE);
}

static bool
add_relocations(struct cpprof__reading *r, const uint8_t *bytes, uint64_t n)
{
    Elf64_Rela rela;
    uint64_t i;

    for (i = 0; i < n / sizeof rela; i++) {
        bool is_added = true;

        memcpy(&rela, bytes + i * sizeof rela, sizeof rela);
        if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE)
            is_added = add_address(r, rela.r_offset, (uint64_t)rela.r_addend);
        else if (ELF64_R_TYPE(rela.r_info) == R_X86_64_64)
            is_added = add_symbol(r, &rela);
        if (!is_added)
            return false;
    }
    return true;
}

/* A pointer that is relative to where the image lies, as it is in the file. */
static bool
add_in_place(struct cpprof__reading *r, uint64_t at)
{
    uint64_t to;

    return !read_word(r, at, &to) || add_address(r, at, to);
}

/* An even entry is an address, an odd one bits for the 63 words behind. */
static bool
add_packed(struct cpprof__reading *r, const uint8_t *bytes, uint64_t n)
{
    uint64_t entry, at = 0, i, k;

    for (i = 0; i < n / sizeof entry; i++) {
        memcpy(&entry, bytes + i * sizeof entry, sizeof entry);
        if (!(entry & 1)) {
            if (!add_in_place(r, entry))
                return false;
            at = entry + 8;
            continue;
        }
        for (k = 0; k < 63; k++)
            if (entry >> (k + 1) & 1 && !add_in_place(r, at + 8 * k))
                return false;
        at += 63 * 8;
    }
    return true;
}

/* Of an image that is not moved: each word that is an address of it. */
static bool
add_fixed(struct cpprof__reading *r)
{
    size_t i;

    for (i = 0; i < r->n_places; i++) {
        const struct cpprof__segment *place = &r->places[i];
        uint64_t at = (place->address + 7) & ~(uint64_t)7, to;

        for (; at - place->address < place->n_bytes && read_word(r, at, &to);
             at += 8)
            if (!add_address(r, at, to))
                return false;
    }
    return true;
}

/* What code refers to: as it is, or relative to the next instruction, behind a
 * byte that says so and in front of none to four bytes of the operand. Where
 * instructions begin is not known: a few marks too many end tables early. */
static void
mark_part(struct cpprof__reading *r, const uint8_t *code, uint64_t n,
          uint64_t address)
{
    bool is_fixed = r->head.e_type == ET_EXEC;
    uint64_t i, k;

    for (i = 1; i + 4 <= n; i++) {
        int32_t distance;
        uint64_t to;

        if (!is_fixed && (code[i - 1] & 0xc7) != 0x05)
            continue;
        memcpy(&distance, code + i, sizeof distance);
        to = address + i + 4 + (uint64_t)(int64_t)distance;
        if ((code[i - 1] & 0xc7) == 0x05) {
            for (k = 0; k <= 4; k++)
                mark(r, to + k);
        }
        if (is_fixed)
            mark(r, (uint32_t)distance);
    }
}

static void
mark_code(struct cpprof__reading *r)
{
    size_t n, i;
    GElf_Phdr header;

    if (elf_getphdrnum(r->elf, &n) != 0)
        return;
    for (i = 0; i < n && i < MOST_PIECES; i++) {
        const uint8_t *code =
            gelf_getphdr(r->elf, (int)i, &header) && header.p_type == PT_LOAD &&
                    header.p_flags & PF_X
                ? file_bytes(r, header.p_offset, header.p_filesz)
                : NULL;

        if (code)
            mark_part(r, code, header.p_filesz, header.p_vaddr);
    }
}

static int
compare_pointers(const void *a, const void *b)
{
    const struct pointer *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static bool
gather(struct cpprof__reading *r)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    bool is_whole = r->head.e_type != ET_EXEC || add_fixed(r);

    while (is_whole && (section = elf_nextscn(r->elf, section))) {
        const uint8_t *bytes =
            gelf_getshdr(section, &header)
                ? file_bytes(r, header.sh_offset, header.sh_size)
                : NULL;

        if (bytes && header.sh_flags & SHF_ALLOC && header.sh_type == SHT_RELA)
            is_whole = add_relocations(r, bytes, header.sh_size);
        else if (bytes && header.sh_type == SHT_RELR)
            is_whole = add_packed(r, bytes, header.sh_size);
    }
    if (is_whole && r->pointers.n)
        qsort(r->pointers.at, r->pointers.n, sizeof *r->pointers.at,
              compare_pointers);
    return is_whole;
}

/* The pointer at an address, or NULL. */
static const struct pointer *
pointer_at(const struct cpprof__reading *r, uint64_t address)
{
    struct pointer key = {address, 0};

    return r->pointers.n ? bsearch(&key, r->pointers.at, r->pointers.n,
                                   sizeof key, compare_pointers)
                         : NULL;
}

/* ---- classes ----------------------------------------------------------- */

/* One that the compiler wrote begins with a letter or a digit, behind a '*' if
 * the class is local to its file. */
static bool
get_name(const struct cpprof__reading *r, uint64_t address,
         struct cpprof__class *class)
{
    uint64_t n;
    const char *name = (const char *)loaded_bytes(r, address, &n);
    const char *end;

    if (!name)
        return false;
    if (n && *name == '*')
        name++, n--;
    end = memchr(name, 0, n < LONGEST_NAME ? n : LONGEST_NAME);
    if (!end || end == name || *name < '0' || *name > 'Z')
        return false;
    class->name = name;
    class->n_name = (uint32_t)(end - name);
    return true;
}

/* The base whose type information is written there. */
static bool
add_base(struct cpprof__reading *r, struct cpprof__class *class, uint64_t at)
{
    const struct pointer *p = pointer_at(r, at);

    if (!p || p->to < N_SPECIAL || !CPPROF__BOUNDED_ROOM(&r->out->bases))
        return false;
    r->out->bases.at[r->out->bases.n++] = p->to;
    class->n_bases++;
    return true;
}

/* __flags, __base_count, and for each base its type, and its flags with its
 * offset above them; 1: it is virtual (2.9.5, p. 5 to 7). */
static bool
add_bases(struct cpprof__reading *r, struct cpprof__class *class)
{
    uint64_t word, flags, i;

    if (!read_word(r, class->type + 16, &word) || word >> 32 > MOST_BASES)
        return false;
    for (i = 0; i < word >> 32; i++)
        if (!add_base(r, class, class->type + 24 + 16 * i) ||
            !read_word(r, class->type + 32 + 16 * i, &flags) || flags & 1)
            return false;
    return true;
}

/* Type information, if its name is behind its first pointer. */
static bool
add_class(struct cpprof__reading *r, const struct pointer *p)
{
    struct cpprof__vtables *out = r->out;
    struct cpprof__class class = {.type = p->at,
                                  .first_base = (uint32_t)out->bases.n};
    const struct pointer *name = pointer_at(r, p->at + 8);

    if (!name || !get_name(r, name->to, &class))
        return true;
    if (p->to == TYPE_SINGLE)
        class.is_unsure = !add_base(r, &class, p->at + 16);
    else if (p->to == TYPE_SEVERAL)
        class.is_unsure = !add_bases(r, &class);
    if (!CPPROF__BOUNDED_ROOM(&out->classes))
        return false;
    out->classes.at[out->classes.n++] = class;
    return true;
}

static int
compare_classes(const void *a, const void *b)
{
    const struct cpprof__class *x = a, *y = b;

    return (x->type > y->type) - (x->type < y->type);
}

/* The class of that type information, or NULL. */
static struct cpprof__class *
class_of(const struct cpprof__vtables *out, uint64_t type)
{
    struct cpprof__class key = {.type = type};

    return out->classes.n ? bsearch(&key, out->classes.at, out->classes.n,
                                    sizeof key, compare_classes)
                          : NULL;
}

static int
compare_names(const void *a, const void *b)
{
    const struct cpprof__class *x = *(struct cpprof__class *const *)a;
    const struct cpprof__class *y = *(struct cpprof__class *const *)b;

    return x->n_name != y->n_name ? (x->n_name > y->n_name ? 1 : -1)
                                  : memcmp(x->name, y->name, x->n_name);
}

static bool
find_namesakes(struct cpprof__vtables *out)
{
    size_t n = out->classes.n, i;
    struct cpprof__class **all = calloc(n + 1, sizeof(struct cpprof__class *));

    for (i = 0; all && i < n; i++)
        all[i] = &out->classes.at[i];
    if (all)
        qsort(all, n, sizeof *all, compare_names);
    for (i = 1; all && i < n; i++)
        if (!compare_names(&all[i - 1], &all[i]))
            all[i - 1]->has_namesake = all[i]->has_namesake = true;
    free(all);
    return all != NULL;
}

/* From where their types are to their numbers; the classes are sorted, as the
 * pointers are. */
static void
find_bases(struct cpprof__vtables *out)
{
    size_t i;

    for (i = 0; i < out->bases.n; i++) {
        const struct cpprof__class *base = class_of(out, out->bases.at[i]);

        out->bases.at[i] =
            base ? (uint64_t)(base - out->classes.at) : UINT64_MAX;
    }
}

static bool
find_classes(struct cpprof__reading *r)
{
    size_t i;

    for (i = 0; i < r->pointers.n; i++) {
        uint64_t to = r->pointers.at[i].to;

        if (to > ELSEWHERE && to < N_SPECIAL &&
            !add_class(r, &r->pointers.at[i]))
            return false;
    }
    find_bases(r->out);
    return find_namesakes(r->out);
}

/* ---- tables ------------------------------------------------------------ */

static bool
is_code(const struct cpprof__reading *r, const struct pointer *p)
{
    return p->to == ELSEWHERE || cpprof__ranges_find(r->code, p->to);
}

/* How many pointers to code, here or elsewhere, stand from pointer i on. */
static size_t
count_functions(const struct cpprof__reading *r, size_t i)
{
    const struct pointer *all = r->pointers.at;
    size_t n = 0;

    while (i + n < r->pointers.n && all[i + n].at == all[i].at + 8 * n &&
           is_code(r, &all[i + n]))
        n++;
    return n;
}

/* How many of n from pointer i on are in front of what is another object. */
static size_t
count_own(const struct cpprof__reading *r, size_t i, size_t n)
{
    size_t k = 1;

    while (k < n && !is_marked(r, r->pointers.at[i + k].at))
        k++;
    return k;
}

/* Zeros in front of pointer i, which lies `at` or behind: destructors of an
 * abstract class have no address. False: something else is there. */
static bool
count_zeros(const struct cpprof__reading *r, size_t i, uint64_t at, uint64_t *n)
{
    uint64_t word;

    if (i >= r->pointers.n || r->pointers.at[i].at - at > 8 * MOST_ZEROS)
        return false;
    for (*n = 0; at + 8 * *n < r->pointers.at[i].at; ++*n)
        if (!read_word(r, at + 8 * *n, &word) || word)
            return false;
    return at + 8 * *n == r->pointers.at[i].at;
}

/* Zeros and then others, in the middle of a table? Where a table without type
 * information begins it looks the same. */
static bool
is_interrupted(const struct cpprof__reading *r, size_t next)
{
    uint64_t n;

    return count_zeros(r, next, r->pointers.at[next - 1].at + 8, &n) && n &&
           is_code(r, &r->pointers.at[next]);
}

/* Pointer i is one to the type of class: is a table behind it? */
static bool
add_table(struct cpprof__reading *r, size_t i, struct cpprof__class *class)
{
    struct cpprof__vtables *out = r->out;
    const struct pointer *all = r->pointers.at;
    uint64_t distance, n_zeros, k, n, n_own;

    if (!read_word(r, all[i].at - 8, &distance) || -distance > FARTHEST ||
        distance % 8 || (i && all[i - 1].at == all[i].at - 8) ||
        !count_zeros(r, i + 1, all[i].at + 8, &n_zeros))
        return true;
    n = count_functions(r, i + 1);
    if (!n)
        return true;
    n_own = distance ? 0 : count_own(r, i + 1, n);
    class->has_table |= distance == 0;
    class->is_unsure |= is_interrupted(r, i + 1 + n);
    for (k = 0; k < n; k++) {
        uint64_t function = all[i + 1 + k].to;

        if (function == ELSEWHERE)
            continue;
        if (!CPPROF__BOUNDED_ROOM(&out->slots))
            return false;
        out->slots.at[out->slots.n++] = (struct cpprof__slot){
            function, (uint32_t)(class - out->classes.at),
            k < n_own ? (uint32_t)(n_zeros + k) : CPPROF__OTHER_PART};
    }
    return true;
}

static int
compare_slots(const void *a, const void *b)
{
    const struct cpprof__slot *x = a, *y = b;

    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static bool
find_tables(struct cpprof__reading *r)
{
    struct cpprof__vtables *out = r->out;
    size_t i;

    for (i = 0; i < r->pointers.n; i++) {
        struct cpprof__class *class = class_of(out, r->pointers.at[i].to);

        if (class && !add_table(r, i, class))
            return false;
    }
    if (out->slots.n)
        qsort(out->slots.at, out->slots.n, sizeof *out->slots.at,
              compare_slots);
    CPPROF__ARRAY_TRIM(&out->slots);
    return true;
}

/* All of it, or nothing: with a table that is missing others would be taken
 * for sure. */
void
cpprof__vtables_read(struct cpprof__vtables *tables,
                     const struct cpprof__elf_file *file,
                     const struct cpprof__ranges *code)
{
    struct cpprof__reading *r = calloc(1, sizeof *r);
    bool is_whole = false;

    tables->reading = r;
    if (r) {
        r->out = tables;
        r->code = code;
        if (open_reading(r, file) && make_marks(r))
            find_symbols(r);
        is_whole = r->has_types && gather(r) && find_classes(r);
        if (is_whole && tables->classes.n)
            mark_code(r);
        is_whole = is_whole && find_tables(r);
    }
    cpprof__vtables_read_end(tables);
    if (!is_whole)
        cpprof__vtables_free(tables);
    tables->is_read = true;
}
