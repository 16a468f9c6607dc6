/* SPDX-License-Identifier: MIT */
/*
 * Names out of tables of virtual functions: stripped C++ images of several
 * compilers and forms. What is right is known from nm of the same files before
 * they were stripped.
 *
 * Some is of classes that are written here, one for each rule; some of random
 * ones ($CPPROF_TEST_SEED asks for others), where a class that is named must be
 * one that the function has.
 */
#include "symbol_fixture.h"

#define HIDDEN "-fvisibility=hidden -fvisibility-inlines-hidden"

/* base has its table elsewhere, in libother.so; `inherited` may be emitted in
 * any image. */
#define OTHER_SOURCE                                                           \
    "#pragma GCC visibility push(default)\n"                                   \
    "namespace other { struct base {\n"                                        \
    "    virtual ~base(); virtual int inherited(int x) { return x ^ 99; }\n"   \
    "}; }\n"                                                                   \
    "#pragma GCC visibility pop\n"

#define CLASSES_SOURCE                                                         \
    "#include \"other.h\"\n"                                                   \
    "namespace app { static int sink;\n"                                       \
    "struct shape { int a; virtual ~shape(); virtual int area(int);\n"         \
    "    virtual int edge(int) = 0; virtual int same(int); };\n"               \
    "struct named { int b; virtual ~named(); virtual int name(int); };\n"      \
    "struct square : shape { ~square(); int edge(int); };\n"                   \
    "struct tile : square, named { int edge(int); int name(int);\n"            \
    "    virtual int late(int); };\n"                                          \
    "template <typename T> struct box { T t; virtual ~box();\n"                \
    "    virtual T get(T x) { return x * 77; } };\n"                           \
    "struct odd { virtual int same(int); };\n"                                 \
    "struct root { int c; virtual ~root(); virtual int top(int); };\n"         \
    "struct left : virtual root { ~left(); int top(int); };\n"                 \
    "struct strange : other::base { ~strange(); int own(int);\n"               \
    "    virtual int more(int); };\n"                                          \
    "namespace { struct hidden { virtual ~hidden(); virtual int f(int); };\n"  \
    "hidden::~hidden() { sink += 3; }\n"                                       \
    "int hidden::f(int x) { return x * NUMBER + sink; } } }\n"                 \
    "using namespace app;\n"                                                   \
    "void *SHOW(int i) { return i ? (void *)new hidden : nullptr; }\n"         \
    "#ifndef SECOND\n"                                                         \
    "shape::~shape() { sink += 1; } int shape::area(int x) { return x * 11; "  \
    "}\n"                                                                      \
    "int shape::same(int x) { return x * 5 - 1; }\n"                           \
    "named::~named() { sink += 2; } int named::name(int x) { return x - 3; }"  \
    "\nsquare::~square() { sink += 4; }\n"                                     \
    "int square::edge(int x) { return x * sink; }\n"                           \
    "int tile::edge(int x) { return x + 17; }\n"                               \
    "__attribute__((noinline)) int tile::name(int x) { while (--x) sink += x " \
    "* b; return sink; }\n"                                                    \
    "int tile::late(int x) { return x * 23; }\n"                               \
    "template <typename T> box<T>::~box() { sink += 5; }\n"                    \
    "int odd::same(int x) { return x * 5 - 1; }\n"                             \
    "root::~root() { sink += 6; } int root::top(int x) { return x + 8; }\n"    \
    "left::~left() { sink += 7; } int left::top(int x) { return x * 9; }\n"    \
    "strange::~strange() { sink += 8; }\n"                                     \
    "int strange::more(int x) { return x + 31; }\n"                            \
    "void *all[9];\n"                                                          \
    "extern \"C\" void make(void) { all[0] = new square; all[1] = new tile;\n" \
    "    all[2] = new box<int>; all[3] = new odd; all[4] = new left;\n"        \
    "    all[5] = new strange; all[6] = SHOW(1); }\n"                          \
    "#endif\n"

/* ---- random classes ---------------------------------------------------- */

enum { N_CLASSES = 80, MOST_METHODS = 4 };

static bool comes_from[N_CLASSES][N_CLASSES];
static int n_methods[N_CLASSES];
static bool has_virtual[N_CLASSES];

static bool
one_in(int n)
{
    return rand() % n == 0;
}

/* The bases of class k. Several only where no class is a base twice, but for
 * virtual ones. */
static void
write_bases(FILE *file, int k)
{
    int i, n = k ? rand() % 3 : 0;
    const char *before = ":";

    for (i = 0; i < n; i++) {
        int base = rand() % k, other;
        bool is_virtual = one_in(8), is_met = false;

        for (other = 0; other < k; other++)
            is_met |= comes_from[k][other] &&
                      (other == base || comes_from[base][other]);
        if (is_met)
            continue;
        fprintf(file, "%s public %sc%d", before, is_virtual ? "virtual " : "",
                base);
        before = ",";
        comes_from[k][base] = true;
        has_virtual[k] |= is_virtual || has_virtual[base];
        for (other = 0; other < k; other++)
            comes_from[k][other] |= comes_from[base][other];
    }
}

/* A body; some are alike. */
static void
write_body(FILE *file, int k, int number)
{
    fprintf(file, " { return (x ^ %d) * %d + sink; }\n",
            one_in(6) ? 1 : k * 100 + number, one_in(3) ? 3 : k + 5);
}

static void
write_method(FILE *file, FILE *bodies, int k, int of, int number)
{
    if (one_in(4)) {
        fprintf(file, "    int m%d_%d(int x)", of, number);
        write_body(file, k, number);
        return;
    }
    fprintf(file, "    int m%d_%d(int x);\n", of, number);
    fprintf(bodies, "int c%d::m%d_%d(int x)", k, of, number);
    write_body(bodies, k, number);
}

/* Pointers to functions of no class, which may lie behind a table. */
static void
write_others(FILE *bodies, int k)
{
    fprintf(bodies,
            "static int one%d(int x) { return x / %d + sink; }\n"
            "static int two%d(int x) { return x / %d - sink; }\n"
            "static int (*const others%d[])(int) = {one%d, two%d};\n"
            "extern \"C\" SHOWN int call%d(int i) "
            "{ return others%d[i](i); }\n",
            k, k + 3, k, k + 3, k, k, k, k, k);
}

static void
write_class(FILE *file, FILE *bodies, int k)
{
    int of, i;

    fprintf(file, "struct c%d ", k);
    write_bases(file, k);
    fprintf(file, " {\n    int data%d;\n", k);
    if (one_in(4)) {
        fprintf(file, "    virtual ~c%d() { sink -= %d; }\n", k, k);
    } else {
        fprintf(file, "    virtual ~c%d();\n", k);
        fprintf(bodies, "c%d::~c%d() { sink += %d; }\n", k, k, k);
    }
    n_methods[k] = rand() % (MOST_METHODS + 1);
    for (i = 0; i < n_methods[k]; i++) {
        fprintf(file, "    virtual");
        write_method(file, bodies, k, k, i);
    }
    for (of = 0; of < k; of++)
        for (i = 0; comes_from[k][of] && i < n_methods[of]; i++)
            if (has_virtual[k] || one_in(3))
                write_method(file, bodies, k, of, i);
    fprintf(file, "};\n");
    fprintf(bodies,
            "extern \"C\" SHOWN void *make%d(void) { return new c%d; }\n", k,
            k);
    write_others(bodies, k);
}

/* The first third of the classes is in another library. */
static void
write_random(void)
{
    FILE *outer = fopen("outer.h", "w"), *inner = fopen("inner.h", "w");
    FILE *outer_bodies = fopen("outer.cc", "w");
    FILE *inner_bodies = fopen("inner.cc", "w");
    int k;

    assert_non_null(inner_bodies);
    fprintf(outer, "#define SHOWN __attribute__((visibility(\"default\")))\n"
                   "#pragma GCC visibility push(default)\n"
                   "namespace r { extern volatile int sink;\n");
    fprintf(inner, "#include \"outer.h\"\nnamespace r {\n");
    fprintf(outer_bodies, "#include \"outer.h\"\n"
                          "namespace r { volatile int sink;\n");
    fprintf(inner_bodies, "#include \"inner.h\"\nnamespace r {\n");
    for (k = 0; k < N_CLASSES; k++)
        write_class(k < 12 ? outer : inner,
                    k < 12 ? outer_bodies : inner_bodies, k);
    fprintf(outer, "}\n#pragma GCC visibility pop\n");
    fprintf(inner, "}\n");
    fprintf(outer_bodies, "}\n");
    fprintf(inner_bodies, "}\n#ifdef MAIN\nint main() { return 0; }\n#endif\n");
    fclose(outer);
    fclose(inner);
    fclose(outer_bodies);
    fclose(inner_bodies);
}

static int
make_images(void **state)
{
    const char *seed = getenv("CPPROF_TEST_SEED");

    if (make_folder(state))
        return -1;
    srand(seed ? (unsigned)atoi(seed) : 1);
    write_random();
    write_file("other.h", OTHER_SOURCE);
    write_file("other.cc", "#include \"other.h\"\nother::base::~base() {}\n");
    write_file("classes.cc", CLASSES_SOURCE);
    return !run("g++ -w -O2 -fPIC -shared -o libother.so other.cc && "
                "g++ -w -O2 -fPIC -shared -o libouter.so outer.cc && "
                "g++ -w -O2 " HIDDEN " -fPIC -c -DSHOW=second -DNUMBER=19 "
                "-DSECOND -o second.o classes.cc && "
                "g++ -w -O2 " HIDDEN " -fPIC -shared -DSHOW=first -DNUMBER=13 "
                "-o full.so classes.cc second.o -L. -lother && "
                "strip -s -o classes.so full.so");
}

/* ---- questions --------------------------------------------------------- */

static void
begin(struct loaded *l, const char *name)
{
    struct cpprof__symbolizer_options options = {.addresses = true};

    memset(l, 0, sizeof *l);
    snprintf(l->path, sizeof l->path, "%s/%s", folder, name);
    l->mapping = (struct cpprof__symbolizer_mapping){
        .limit = UINT64_MAX, .path = l->path, .build_id = ""};
    l->symbolizer = cpprof__symbolizer.make(&options);
    assert_non_null(l->symbolizer);
    l->index = cpprof__symbolizer.add_mapping(l->symbolizer, &l->mapping);
}

/* The name of the function that begins at a symbol of full.so. */
static const char *
name_of(struct loaded *l, const char *label)
{
    struct cpprof__frame frames[MOST_FRAMES];

    assert_int_equal(
        frames_of(l, local_address(l, "full.so", label) + 1, frames), 1);
    assert_true(frames[0].is_stand_in);
    assert_string_equal(frames[0].name, frames[0].system_name);
    return frames[0].name;
}

/* "[FILE+0xADDRESS]" */
static bool
is_nameless(struct loaded *l, const char *label)
{
    return strncmp(name_of(l, label), "[classes.so+0x", 14) == 0;
}

static void
function_of_one_table_is_named_by_its_class(void **state)
{
    struct loaded l;

    begin(&l, "classes.so");
    /* Two destructors are in front: complete, and deleting. */
    assert_string_equal(name_of(&l, "_ZN3app5shape4areaEi"),
                        "app::shape::virtual#2");
    assert_string_equal(name_of(&l, "_ZN3app6square4edgeEi"),
                        "app::square::virtual#3");
    assert_string_equal(name_of(&l, "_ZN3app4tile4edgeEi"),
                        "app::tile::virtual#3");
    assert_string_equal(name_of(&l, "_ZN3app4tile4lateEi"),
                        "app::tile::virtual#6");
    assert_string_equal(name_of(&l, "_ZN3app5named4nameEi"),
                        "app::named::virtual#2");
    assert_string_equal(name_of(&l, "_ZN3app6squareD0Ev"),
                        "app::square::virtual#1");
    assert_string_equal(name_of(&l, "_ZN3app3boxIiE3getEi"),
                        "app::box<int>::virtual#2");
    unload(&l);
}

static void
thunk_has_the_name_of_its_function(void **state)
{
#ifdef __x86_64__
    struct loaded l;

    begin(&l, "classes.so");
    assert_string_equal(name_of(&l, "_ZN3app4tile4nameEi"),
                        "app::tile::virtual#5");
    assert_string_equal(name_of(&l, "_ZThn16_N3app4tile4nameEi"),
                        "app::tile::virtual#5");
    unload(&l);
#endif
}

static void
function_is_not_named_where_that_is_not_sure(void **state)
{
    struct loaded l;

    begin(&l, "classes.so");
    /* Of a base whose table is in another library: inherited or not? */
    assert_true(is_nameless(&l, "_ZN5other4base9inheritedEi"));
    assert_true(is_nameless(&l, "_ZN3app7strange4moreEi"));
    assert_true(is_nameless(&l, "_ZN3app4left3topEi")); /* a virtual base */
    unload(&l);
}

/* As the compiler folds functions that are alike; and hidden of two files. */
static void
what_several_classes_have_is_not_named(void **state)
{
    struct loaded l;

    begin(&l, "classes.so");
    assert_true(is_nameless(&l, "_ZN3app5shape4sameEi"));
    assert_true(is_nameless(&l, "_ZN3app12_GLOBAL__N_16hidden1fEi"));
    unload(&l);
}

static void
true_name_goes_before(void **state)
{
    struct cpprof__frame frames[MOST_FRAMES];
    struct loaded l;

    begin(&l, "full.so");
    assert_int_equal(
        frames_of(&l, local_address(&l, "full.so", "_ZN3app6square4edgeEi"),
                  frames),
        1);
    assert_string_equal(frames[0].name, "app::square::edge(int)");
    assert_false(frames[0].is_stand_in);
    unload(&l);
}

/* ---- random ones, against nm ------------------------------------------- */

/* "r::c7" of "r::c7::virtual#3", and "r::c7::m7_1(int)", a thunk or not. */
static bool
is_method_of(const char *symbol, const char *name, size_t n_class)
{
    const char *thunk = strstr(symbol, "thunk to ");

    symbol = thunk ? thunk + 9 : symbol;
    return !strncmp(symbol, name, n_class) &&
           !strncmp(symbol + n_class, "::", 2) &&
           !strstr(symbol + n_class + 2, "::");
}

struct symbol {
    unsigned long address;
    char name[256];
};

static size_t
read_symbols(const char *full, struct symbol *symbols, size_t max)
{
    FILE *file;
    size_t n = 0;
    char kind;

    assert_true(
        run("nm -C --defined-only %s | grep -i ' [tw] ' > symbols", full));
    file = fopen("symbols", "r");
    assert_non_null(file);
    while (n < max && fscanf(file, "%lx %c %255[^\n]", &symbols[n].address,
                             &kind, symbols[n].name) == 3)
        n++;
    fclose(file);
    return n;
}

static void
check_random(const char *full, const char *stripped)
{
    static struct symbol all[4096];
    struct cpprof__frame frames[MOST_FRAMES];
    size_t n = read_symbols(full, all, 4096), n_named = 0, n_wanted = 0;
    struct loaded l;
    size_t i, k;

    begin(&l, stripped);
    for (i = 0; i < n; i++) {
        const char *end;
        bool is_right = false;

        n_wanted += strstr(all[i].name, "::m") || strchr(all[i].name, '~');
        if (!frames_of(&l, all[i].address, frames) ||
            !(end = strstr(frames[0].name, "::virtual#")))
            continue;
        for (k = 0; k < n; k++)
            is_right |= all[k].address == all[i].address &&
                        is_method_of(all[k].name, frames[0].name,
                                     (size_t)(end - frames[0].name));
        if (!is_right)
            fail_msg("%s: %s is called %s", stripped, all[i].name,
                     frames[0].name);
        n_named++;
    }
    unload(&l);
    print_message("# %s: %zu of %zu methods are named\n", stripped, n_named,
                  n_wanted);
    assert_true(n_wanted > 100 && n_named > n_wanted / 10);
}

static void
no_random_class_has_the_name_of_another(void **state)
{
    static const char *const forms[][2] = {
        {"-O2 -fPIC -shared", "g++"},
        {"-O2 -fPIE -pie -DMAIN", "g++"},
        {"-O2 -fno-pie -no-pie -DMAIN", "g++"},
        {"-O0 -fPIC -shared", "g++"},
        {"-O3 -fPIC -shared -flto", "g++"},
        {"-O2 -fPIC -shared", NULL},
        {"-O2 -fPIC -shared -Wl,-z,pack-relative-relocs", NULL},
    };
    size_t i;

    for (i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *compiler = forms[i][1] ? forms[i][1] : find_clang(true);

        if (!run("%s -w " HIDDEN " %s -o full.random inner.cc -L. -louter "
                 "2>/dev/null && strip -s -o random full.random",
                 compiler, forms[i][0])) {
            assert_ptr_equal(forms[i][1], NULL);
            say_skipped(compiler);
            continue;
        }
        check_random("full.random", "random");
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(function_of_one_table_is_named_by_its_class),
        cmocka_unit_test(thunk_has_the_name_of_its_function),
        cmocka_unit_test(function_is_not_named_where_that_is_not_sure),
        cmocka_unit_test(what_several_classes_have_is_not_named),
        cmocka_unit_test(true_name_goes_before),
        cmocka_unit_test(no_random_class_has_the_name_of_another),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_images, remove_folder);
}
