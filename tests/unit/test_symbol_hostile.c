/* SPDX-License-Identifier: MIT */
/*
 * Images with damaged bytes: fewer or wrong names, never a crash. The same
 * damage in each run; $CPPROF_TEST_ROUNDS asks for more of it, and
 * $CPPROF_TEST_SEED for another.
 */
#include "symbol_fixture.h"

#include <gelf.h>

struct image {
    unsigned char *bytes;
    size_t n;
    /* Where damage is worth while. */
    struct {
        size_t offset;
        size_t n;
    } parts[64];
    size_t n_parts;
    /* Of the code, in the file. */
    uint64_t code;
    uint64_t n_code;
};

/* So much debug information that only a part of it is read. */
static const char units[] =
    "awk 'BEGIN { for (u = 0; u < 24; u++) for (i = 0; i < 150; i++)"
    " { n = sprintf(\"%02d_%03d\", u, i); print \"struct kind_\" n"
    " \" { int member_\" n \"; struct kind_\" n \" *next_\" n"
    " \"; };\\nint work_\" n \"(struct kind_\" n \" *p, int x)"
    " { return p->member_\" n \" + x; }\" >sprintf(\"unit_%02d.c\", u) } }'";

static int
make_images(void **state)
{
    if (make_folder(state))
        return -1;
    write_file("inline.c", INLINE_SOURCE);
    write_file(
        "rich.cc",
        "#include <algorithm>\n"
        "#include <map>\n"
        "#include <string>\n"
        "namespace app { namespace {\n"
        "struct by_size { bool operator()(const std::string &a,\n"
        "    const std::string &b) const { return a.size() < b.size(); }\n"
        "}; }\n"
        "int count(std::map<std::string, int, by_size> &m,\n"
        "          std::string *first, std::string *last) {\n"
        "    std::sort(first, last, [](auto &a, auto &b) { return a > b; "
        "});\n"
        "    for (; first != last; first++) m[*first]++;\n"
        "    return (int)m.size();\n"
        "} }\n");
    return !run("gcc -O2 -fPIC -c -gdwarf-4 inline.c && "
                "g++ -std=c++17 -O2 -fPIC -c -gdwarf-5 rich.cc && "
                "g++ -shared -o rich.so rich.o inline.o && "
                "gcc -O2 -fPIC -shared -g -gz -o packed.so %s/inline.c",
                folder) ||
           !run("%s", units) ||
           !run("gcc -fPIC -shared -g -o units.so unit_*.c && objcopy "
                "--compress-debug-sections=zlib units.so packed_units.so");
}

static void
add_part(struct image *image, uint64_t offset, uint64_t n)
{
    if (n && offset < image->n && n <= image->n - offset &&
        image->n_parts < sizeof image->parts / sizeof *image->parts) {
        image->parts[image->n_parts].offset = offset;
        image->parts[image->n_parts++].n = n;
    }
}

static void
find_parts(struct image *image)
{
    bool before = cpprof__within_begin(); /* nobody else's calls are here */
    Elf *elf = elf_memory((char *)image->bytes, image->n);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    GElf_Ehdr ehdr;
    size_t names;

    assert_non_null(gelf_getehdr(elf, &ehdr));
    assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
    add_part(image, 0, ehdr.e_ehsize);
    add_part(image, ehdr.e_phoff, (uint64_t)ehdr.e_phnum * ehdr.e_phentsize);
    add_part(image, ehdr.e_shoff, (uint64_t)ehdr.e_shnum * ehdr.e_shentsize);
    while ((section = elf_nextscn(elf, section))) {
        const char *name;

        gelf_getshdr(section, &header);
        name = elf_strptr(elf, names, header.sh_name);
        if (strcmp(name, ".text") == 0) {
            image->code = header.sh_offset;
            image->n_code = header.sh_size;
        } else if (!strncmp(name, ".debug", 6) || strstr(name, "tab") ||
                   strstr(name, "rela") || strstr(name, "note")) {
            add_part(image, header.sh_offset, header.sh_size);
        }
        /* The head of the first unit, which leads to the others. */
        if (strcmp(name, ".debug_info") == 0)
            add_part(image, header.sh_offset, 64);
    }
    elf_end(elf);
    cpprof__within_end(before);
}

static void
read_image(struct image *image, const char *name)
{
    FILE *file = fopen(name, "r");

    memset(image, 0, sizeof *image);
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    image->n = (size_t)ftell(file);
    rewind(file);
    image->bytes = malloc(image->n);
    assert_int_equal(fread(image->bytes, 1, image->n, file), image->n);
    fclose(file);
    elf_version(EV_CURRENT);
    find_parts(image);
}

/* Change a few bytes of one or two parts. */
static void
damage(const struct image *image, unsigned char *bytes)
{
    int n = 1 + rand() % 8;
    size_t part = (size_t)rand() % image->n_parts;

    for (; n > 0; n--) {
        size_t at =
            image->parts[part].offset + (size_t)rand() % image->parts[part].n;

        switch (rand() % 4) {
        case 0:
            bytes[at] ^= (unsigned char)(1 << rand() % 8);
            break;
        case 1:
            bytes[at] = 0xff;
            break;
        case 2:
            bytes[at] = 0;
            break;
        default:
            bytes[at] = (unsigned char)rand();
        }
        if (rand() % 4 == 0)
            part = (size_t)rand() % image->n_parts;
    }
}

static void
check_frames(const struct cpprof__frame *frames, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        assert_non_null(frames[i].name);
        assert_non_null(frames[i].system_name);
        assert_true(strlen(frames[i].name) <= 64 * 1024);
        assert_true(frames[i].line >= 0);
        assert_true(frames[i].start_line >= 0);
    }
}

/* Ask about addresses all over the code, half of which are expected; how many
 * frames there are. */
static size_t
ask(const struct image *image, const char *name, bool functions_only)
{
    struct loaded l = {0};
    struct cpprof__frame frames[MOST_FRAMES];
    size_t n_frames = 0;
    uint64_t i;

    snprintf(l.path, sizeof l.path, "%s/%s", folder, name);
    l.mapping = (struct cpprof__symbolizer_mapping){
        0x7f0000000000, 0x7f0000000000 + image->n, 0, l.path, "", 0};
    symbolize(&l, functions_only);
    for (i = 0; i < image->n_code / 2; i += image->n_code / 50 + 1)
        cpprof__symbolizer.expect(l.symbolizer, 0,
                                  0x7f0000000000 + image->code + i);
    for (i = 0; i < image->n_code; i += image->n_code / 50 + 1) {
        size_t n = frames_of(&l, 0x7f0000000000 + image->code + i, frames);

        check_frames(frames, n);
        n_frames += n;
    }
    cpprof__symbolizer.knows_inlines(l.symbolizer, 0);
    unload(&l);
    return n_frames;
}

static void
check_damaged(const char *name)
{
    const char *rounds = getenv("CPPROF_TEST_ROUNDS");
    const char *seed = getenv("CPPROF_TEST_SEED");
    long n = rounds ? atol(rounds) : 150;
    struct image image;
    unsigned char *bytes;
    size_t n_whole;

    srand(seed ? (unsigned)atoi(seed) : 3);
    read_image(&image, name);
    n_whole = ask(&image, name, false);
    assert_true(n_whole > 5);
    bytes = malloc(image.n);
    for (; n > 0; n--) {
        FILE *file = fopen("damaged.so", "w");

        memcpy(bytes, image.bytes, image.n);
        damage(&image, bytes);
        assert_int_equal(fwrite(bytes, 1, image.n, file), image.n);
        fclose(file);
        ask(&image, "damaged.so", n % 8 == 0);
    }
    free(bytes);
    free(image.bytes);
}

static void
damaged_dwarf_of_cxx_is_no_harm(void **state)
{
    check_damaged("rich.so");
}

static void
damaged_packed_dwarf_is_no_harm(void **state)
{
    check_damaged("packed.so");
}

static void
damaged_part_of_the_units_is_no_harm(void **state)
{
    check_damaged("units.so");
    check_damaged("packed_units.so");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_dwarf_of_cxx_is_no_harm),
        cmocka_unit_test(damaged_packed_dwarf_is_no_harm),
        cmocka_unit_test(damaged_part_of_the_units_is_no_harm),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_images, remove_folder);
}
