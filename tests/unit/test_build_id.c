/* SPDX-License-Identifier: MIT */
/*
 * The images are made here, byte by byte, for both classes and both byte
 * orders: System V gABI, chapters 4 and 5.
 */
#include "object/build_id.h"
#include "oom.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ID                                                                     \
    "\xde\xad\xbe\xef\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e" \
    "\x0f\x10"
#define ID_TEXT "deadbeef0102030405060708090a0b0c0d0e0f10"

/* An image in the making. */
struct maker {
    bool wide, big;
    uint8_t bytes[2048];
    size_t n;
};

static const struct maker kinds[] = {
    {.wide = false, .big = false},
    {.wide = false, .big = true},
    {.wide = true, .big = false},
    {.wide = true, .big = true},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static void
put(struct maker *m, uint64_t v, size_t n)
{
    size_t i;

    assert_true(m->n + n <= sizeof m->bytes);
    for (i = 0; i < n; i++)
        m->bytes[m->n + i] = (uint8_t)(v >> 8 * (m->big ? n - 1 - i : i));
    m->n += n;
}

/* An address, offset or size: as wide as the class. */
static void
put_word(struct maker *m, uint64_t v)
{
    put(m, v, m->wide ? 8 : 4);
}

static void
put_raw(struct maker *m, const void *data, size_t n)
{
    assert_true(m->n + n <= sizeof m->bytes);
    memcpy(m->bytes + m->n, data, n);
    m->n += n;
}

static size_t
header_bytes(const struct maker *m)
{
    return m->wide ? 64 : 52;
}

static size_t
program_header_bytes(const struct maker *m)
{
    return m->wide ? 56 : 32;
}

static size_t
section_header_bytes(const struct maker *m)
{
    return m->wide ? 64 : 40;
}

static void
put_header(struct maker *m, uint64_t phoff, unsigned phnum, uint64_t shoff,
           unsigned shnum)
{
    put_raw(m, ELFMAG, SELFMAG);
    put(m, m->wide ? ELFCLASS64 : ELFCLASS32, 1);
    put(m, m->big ? ELFDATA2MSB : ELFDATA2LSB, 1);
    put(m, EV_CURRENT, 1);
    put(m, 0, 8);
    put(m, 0, 1);
    put(m, ET_DYN, 2);
    put(m, EM_X86_64, 2);
    put(m, EV_CURRENT, 4);
    put_word(m, 0); /* entry */
    put_word(m, phoff);
    put_word(m, shoff);
    put(m, 0, 4); /* flags */
    put(m, header_bytes(m), 2);
    put(m, program_header_bytes(m), 2);
    put(m, phnum, 2);
    put(m, section_header_bytes(m), 2);
    put(m, shnum, 2);
    put(m, 0, 2);
    assert_int_equal(m->n, header_bytes(m));
}

static void
put_program_header(struct maker *m, uint32_t type, uint64_t offset,
                   uint64_t address, uint64_t n, uint64_t align)
{
    put(m, type, 4);
    if (m->wide)
        put(m, PF_R, 4);
    put_word(m, offset);
    put_word(m, address);
    put_word(m, address);
    put_word(m, n);
    put_word(m, n);
    if (!m->wide)
        put(m, PF_R, 4);
    put_word(m, align);
}

static void
put_section_header(struct maker *m, uint32_t type, uint64_t offset, uint64_t n,
                   uint64_t align)
{
    put(m, 1, 4); /* name */
    put(m, type, 4);
    put_word(m, SHF_ALLOC);
    put_word(m, offset);
    put_word(m, offset);
    put_word(m, n);
    put(m, 0, 4);
    put(m, 0, 4);
    put_word(m, align);
    put_word(m, 0);
}

static void
pad(struct maker *m, size_t start, size_t align)
{
    while ((m->n - start) % align)
        put(m, 0, 1);
}

static void
put_note(struct maker *m, const char *name, uint32_t type, const void *data,
         size_t n, size_t align)
{
    size_t start = m->n;

    put(m, strlen(name) + 1, 4);
    put(m, n, 4);
    put(m, type, 4);
    put_raw(m, name, strlen(name) + 1);
    pad(m, start, align);
    put_raw(m, data, n);
    pad(m, start, align);
}

/* Where the notes are said to be. */
enum where { IN_SEGMENT, IN_SECTION, IN_BOTH };

/* An image with the notes that were put into notes; align as given. */
static void
make(struct maker *m, enum where where, const struct maker *notes, size_t align)
{
    unsigned phnum = where == IN_SECTION ? 0 : 2;
    unsigned shnum = where == IN_SEGMENT ? 0 : 2;
    size_t phoff = header_bytes(m);
    size_t shoff = phoff + phnum * program_header_bytes(m);
    size_t at = shoff + shnum * section_header_bytes(m);

    at += -at % 8;
    put_header(m, phnum ? phoff : 0, phnum, shnum ? shoff : 0, shnum);
    if (phnum) {
        put_program_header(m, PT_LOAD, 0, 0, at + notes->n, 4096);
        put_program_header(m, PT_NOTE, at, at, notes->n, align);
    }
    if (shnum) {
        put_section_header(m, SHT_PROGBITS, 0, 10, 1);
        put_section_header(m, SHT_NOTE, at, notes->n, align);
    }
    pad(m, 0, 8);
    assert_int_equal(m->n, at);
    put_raw(m, notes->bytes, notes->n);
}

/* With the one note that is wanted. */
static void
make_plain(struct maker *m, enum where where)
{
    struct maker notes = {.wide = m->wide, .big = m->big};

    put_note(&notes, "GNU", NT_GNU_BUILD_ID, ID, 20, 4);
    make(m, where, &notes, 4);
}

struct bytes {
    const uint8_t *data;
    size_t n;
    unsigned n_reads;
};

static size_t
read_bytes(void *ctx, uint64_t offset, void *data, size_t n)
{
    struct bytes *b = ctx;

    b->n_reads++;
    if (offset >= b->n)
        return 0;
    n = n < b->n - offset ? n : b->n - offset;
    memcpy(data, b->data + offset, n);
    return n;
}

/* The id of the first n bytes of an image, or the error's text. */
static const char *
id_of(const uint8_t *data, size_t n, int loaded)
{
    static char text[CPPROF_BUILD_ID_MAX];
    static struct cpprof_error error;
    struct bytes bytes = {data, n, 0};
    struct cpprof__elf_source source = {read_bytes, &bytes, loaded};
    enum cpprof_status status;

    status = cpprof__build_id_read(&source, text, &error);
    assert_in_range(bytes.n_reads, 1, 20000);
    if (status == CPPROF_OK)
        return text;
    assert_int_equal(status, CPPROF_BAD_DATA);
    return error.text;
}

static void
check(const struct maker *m, const char *want)
{
    assert_string_equal(id_of(m->bytes, m->n, 0), want);
}

static void
id_is_found_in_a_segment_of_every_class_and_order(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_KINDS; i++) {
        struct maker m = kinds[i];

        make_plain(&m, IN_SEGMENT);
        check(&m, ID_TEXT);
    }
}

static void
id_is_found_in_a_section_where_no_segment_has_it(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_KINDS; i++) {
        struct maker m = kinds[i];

        make_plain(&m, IN_SECTION);
        check(&m, ID_TEXT);
    }
}

static void
damaged_segment_leaves_the_section(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_KINDS; i++) {
        struct maker m = kinds[i];
        size_t note = header_bytes(&m) + program_header_bytes(&m);

        make_plain(&m, IN_BOTH);
        memset(m.bytes + note + 4, 0xff, program_header_bytes(&m) - 4);
        check(&m, ID_TEXT);
    }
}

static void
id_is_found_behind_other_notes(void **state)
{
    size_t i, align;

    (void)state;
    for (i = 0; i < N_KINDS; i++) {
        for (align = 4; align <= 8; align += 4) {
            struct maker m = kinds[i], notes = kinds[i];

            put_note(&notes, "GNU", NT_GNU_ABI_TAG, "abi", 3, align);
            put_note(&notes, "stapsdt", NT_GNU_BUILD_ID, "no", 2, align);
            put_note(&notes, "", 1, "", 0, align);
            put_note(&notes, "GNU", NT_GNU_BUILD_ID, "", 0, align);
            put_note(&notes, "GNU", NT_GNU_BUILD_ID, ID, 20, align);
            make(&m, IN_SEGMENT, &notes, align);
            check(&m, ID_TEXT);
        }
    }
}

static void
id_of_any_length_is_kept_up_to_32_bytes(void **state)
{
    static const uint8_t long_id[40] = {0xab, [31] = 0xcd, [32] = 0xef};
    size_t n;

    (void)state;
    for (n = 1; n <= sizeof long_id; n++) {
        struct maker m = kinds[2], notes = kinds[2];
        const char *text;

        put_note(&notes, "GNU", NT_GNU_BUILD_ID, long_id, n, 4);
        make(&m, IN_SEGMENT, &notes, 4);
        text = id_of(m.bytes, m.n, 0);
        assert_int_equal(strlen(text), 2 * (n < 32 ? n : 32));
        assert_memory_equal(text, "ab", 2);
        if (n >= 32)
            assert_string_equal(text + 62, "cd");
    }
}

static void
image_without_the_note_says_so(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_KINDS; i++) {
        struct maker m = kinds[i], notes = kinds[i];

        put_note(&notes, "GNU", NT_GNU_ABI_TAG, "abi", 3, 4);
        make(&m, IN_BOTH, &notes, 4);
        check(&m, "no NT_GNU_BUILD_ID found in ELF binary");
    }
}

static void
what_is_no_elf_file_says_so(void **state)
{
    static const size_t at[] = {0, 3, EI_CLASS, EI_DATA};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof at / sizeof *at; i++) {
        struct maker m = kinds[2];

        make_plain(&m, IN_BOTH);
        m.bytes[at[i]] = 0x77;
        check(&m, "malformed ELF binary");
    }
    assert_string_equal(id_of((const uint8_t *)"#!/bin/sh\nexit 0\n", 17, 0),
                        "malformed ELF binary");
    assert_string_equal(id_of(NULL, 0, 0), "malformed ELF binary");
}

static void
header_entries_of_another_size_are_malformed(void **state)
{
    struct maker m = kinds[2];

    (void)state;
    make_plain(&m, IN_SEGMENT);
    m.bytes[54]++; /* e_phentsize */
    check(&m, "malformed ELF binary");
    m = kinds[2];
    make_plain(&m, IN_SECTION);
    m.bytes[58]++; /* e_shentsize */
    check(&m, "malformed ELF binary");
}

static void
truncation_at_every_byte_is_an_error(void **state)
{
    size_t i, n;

    (void)state;
    for (i = 0; i < 2 * N_KINDS; i++) {
        struct maker m = kinds[i / 2];

        make_plain(&m, i % 2 ? IN_SECTION : IN_SEGMENT);
        for (n = 0; n < m.n; n++) {
            uint8_t *copy = malloc(n ? n : 1);

            assert_non_null(copy);
            memcpy(copy, m.bytes, n);
            assert_string_equal(id_of(copy, n, 0), "malformed ELF binary");
            free(copy);
        }
    }
}

/* Wherever a note claims to end, its id is read from inside its notes. */
static void
note_that_claims_more_than_its_segment_is_malformed(void **state)
{
    struct maker m = kinds[2];
    size_t n_desc;

    (void)state;
    make_plain(&m, IN_SEGMENT);
    n_desc = m.n - 20 - 16 + 4;
    assert_int_equal(m.bytes[n_desc], 20);
    m.bytes[n_desc] = 21;
    put_raw(&m, "behind the notes", 16);
    check(&m, "malformed ELF binary");
}

/* Any bytes: an answer, without a crash and within the budget of reads. */
static void
random_damage_is_survived(void **state)
{
    unsigned seed = 1;
    size_t i, k;

    (void)state;
    for (i = 0; i < 20000; i++) {
        struct maker m = kinds[i % N_KINDS];

        make_plain(&m, (enum where)(i / N_KINDS % 3));
        for (k = 0; k < 1 + i % 5; k++)
            m.bytes[4 + (size_t)rand_r(&seed) % (m.n - 4)] =
                (uint8_t)(rand_r(&seed) % 3 ? rand_r(&seed) : 0xff);
        assert_non_null(id_of(m.bytes, m.n, (int)(i % 2)));
    }
}

static void
tables_of_the_largest_size_cost_bounded_reads(void **state)
{
    static uint8_t image[65535 * 64];
    struct maker m = kinds[2];

    (void)state;
    /* Each of 65535 segments is all of the file as notes of no length. */
    put_header(&m, 64, 0xfffe, 0, 0);
    memcpy(image, m.bytes, m.n);
    for (size_t i = 0; i < 65534; i++) {
        m.n = 0;
        put_program_header(&m, PT_NOTE, 0, 0, sizeof image, 4);
        memcpy(image + 64 + i * 56, m.bytes, 56);
    }
    assert_string_equal(id_of(image, sizeof image, 0), "malformed ELF binary");
}

/* A loaded image: notes are at their address, which is not their offset, and
 * addresses need not begin at 0. */
static void
loaded_image_is_read_by_addresses(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < N_KINDS; i++) {
        struct maker m = kinds[i], notes = kinds[i];
        uint64_t base = 0x400000;

        put_note(&notes, "GNU", NT_GNU_BUILD_ID, ID, 20, 4);
        put_header(&m, header_bytes(&m), 3, 0, 0);
        put_program_header(&m, PT_LOAD, 0x100, base + 0x300, 0x100, 4096);
        put_program_header(&m, PT_LOAD, 0, base, 0x100, 4096);
        put_program_header(&m, PT_NOTE, 0x100, base + 0x300, notes.n, 4);
        while (m.n < 0x300)
            put(&m, 0xee, 1);
        put_raw(&m, notes.bytes, notes.n);
        assert_string_equal(id_of(m.bytes, m.n, 1), ID_TEXT);
        assert_string_equal(id_of(m.bytes, m.n, 0), "malformed ELF binary");
    }
}

/* Sections that the first segment does not load would be somebody else's
 * memory. */
static void
loaded_image_does_not_trust_sections_that_are_not_loaded(void **state)
{
    struct maker m = kinds[2], notes = kinds[2];

    (void)state;
    put_note(&notes, "GNU", NT_GNU_BUILD_ID, ID, 20, 4);
    make(&m, IN_BOTH, &notes, 4);
    m.bytes[64 + 56] = PT_NULL; /* no PT_NOTE any more */
    check(&m, ID_TEXT);
    assert_string_equal(id_of(m.bytes, m.n, 1), ID_TEXT);
    m.bytes[64 + 32] = 0x80; /* p_filesz: the section headers are behind */
    m.bytes[64 + 33] = 0;
    assert_string_equal(id_of(m.bytes, m.n, 1),
                        "no NT_GNU_BUILD_ID found in ELF binary");
}

struct loaded {
    char path[400];
    uintptr_t address;
};

/* libc, which every distribution builds with an id. */
static int
find_libc(struct dl_phdr_info *info, size_t size, void *ctx)
{
    struct loaded *found = ctx;

    (void)size;
    if (!strstr(info->dlpi_name, "/libc."))
        return 0;
    snprintf(found->path, sizeof found->path, "%s", info->dlpi_name);
    found->address = info->dlpi_addr;
    return 1;
}

static void
file_and_memory_of_libc_agree(void **state)
{
    char of_file[CPPROF_BUILD_ID_MAX], of_memory[CPPROF_BUILD_ID_MAX];
    struct loaded libc = {0};
    struct cpprof_error error;

    (void)state;
    if (!dl_iterate_phdr(find_libc, &libc))
        return;
    assert_int_equal(cpprof_build_id_of_file(libc.path, of_file, &error),
                     CPPROF_OK);
    assert_int_equal(
        cpprof__build_id_of_memory(libc.address, of_memory, &error), CPPROF_OK);
    assert_string_equal(of_file, of_memory);
    assert_in_range(strlen(of_file), 16, 64);
}

/* Nor does the parser of maps. */
static void
reading_a_file_needs_no_memory(void **state)
{
    static const char maps[] = "1000-2000 r-xp 00000000 08:01 7 /bin/prog\n";
    struct cpprof_map map = {.size = sizeof map};
    char text[CPPROF_BUILD_ID_MAX];
    const char *at = maps;
    struct loaded libc = {0};
    enum cpprof_status status;
    bool is_line;

    (void)state;
    if (!dl_iterate_phdr(find_libc, &libc))
        return;
    oom_watch();
    oom.countdown = 0;
    status = cpprof_build_id_of_file(libc.path, text, NULL);
    is_line = cpprof_maps_next(&at, maps + sizeof maps - 1, &map);
    oom.countdown = -1;
    assert_int_equal(status, CPPROF_OK);
    assert_true(is_line && cpprof_map_is_listed(&map));
}

static void
vdso_has_an_id_in_memory(void **state)
{
    char text[CPPROF_BUILD_ID_MAX];
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);

    (void)state;
    if (!vdso)
        return;
    assert_int_equal(cpprof__build_id_of_memory(vdso, text, NULL), CPPROF_OK);
    assert_int_equal(strlen(text), 40);
}

static void
memory_that_went_away_is_an_error_and_no_fault(void **state)
{
    char text[CPPROF_BUILD_ID_MAX] = "unchanged";
    struct cpprof_error error;
    void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(p != MAP_FAILED);
    assert_int_equal(munmap(p, 4096), 0);
    assert_int_equal(cpprof__build_id_of_memory((uintptr_t)p, text, &error),
                     CPPROF_BAD_DATA);
    assert_string_equal(error.text, "malformed ELF binary");
    assert_string_equal(text, "unchanged");
}

static void
file_that_cannot_be_read_is_a_system_error(void **state)
{
    char text[CPPROF_BUILD_ID_MAX];
    struct cpprof_error error;

    (void)state;
    assert_int_equal(cpprof_build_id_of_file("/nonexistent/file", text, &error),
                     CPPROF_SYSTEM);
    assert_string_equal(error.text,
                        "/nonexistent/file: No such file or directory");
    /* Neither opened nor waited for: */
    assert_int_equal(cpprof_build_id_of_file("/", text, &error), CPPROF_SYSTEM);
    assert_int_equal(cpprof_build_id_of_file("/dev/zero", text, &error),
                     CPPROF_SYSTEM);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_is_found_in_a_segment_of_every_class_and_order),
        cmocka_unit_test(id_is_found_in_a_section_where_no_segment_has_it),
        cmocka_unit_test(damaged_segment_leaves_the_section),
        cmocka_unit_test(id_is_found_behind_other_notes),
        cmocka_unit_test(id_of_any_length_is_kept_up_to_32_bytes),
        cmocka_unit_test(image_without_the_note_says_so),
        cmocka_unit_test(what_is_no_elf_file_says_so),
        cmocka_unit_test(header_entries_of_another_size_are_malformed),
        cmocka_unit_test(truncation_at_every_byte_is_an_error),
        cmocka_unit_test(note_that_claims_more_than_its_segment_is_malformed),
        cmocka_unit_test(random_damage_is_survived),
        cmocka_unit_test(tables_of_the_largest_size_cost_bounded_reads),
        cmocka_unit_test(loaded_image_is_read_by_addresses),
        cmocka_unit_test(
            loaded_image_does_not_trust_sections_that_are_not_loaded),
        cmocka_unit_test(file_and_memory_of_libc_agree),
        cmocka_unit_test(reading_a_file_needs_no_memory),
        cmocka_unit_test(vdso_has_an_id_in_memory),
        cmocka_unit_test(memory_that_went_away_is_an_error_and_no_fault),
        cmocka_unit_test(file_that_cannot_be_read_is_a_system_error),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
