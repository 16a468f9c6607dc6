/* SPDX-License-Identifier: MIT */
/*
 * What a function is. The C API has no name for the code of a closure, so it is
 * where it was defined: source, lines, shape; of a C function its address.
 * That is the same for all closures of the code, for code that was dumped and
 * loaded, and after the collector has moved on. Where a line defines several
 * functions, or cannot be read, it is also the name that the caller uses.
 *
 * A function is named once, when it is seen first: as the libraries know it
 * ("string.rep"), else as the line of its definition does, else as the call
 * that was seen, else by its place.
 */
#include "functions.h"

#include "source_name.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Tunable: functions that a state remembers, some 200 bytes each. With more,
 * all are forgotten, so that a program that goes on to make new code does not
 * leak. */
#define FUNCTIONS_MAX 16384

#define SLOTS_FIRST 256

struct function {
    uint64_t hash;
    uint64_t source;          /* its hash */
    lua_CFunction c_function; /* NULL: one of Lua */
    int first_line;
    int last_line;
    uint32_t shape;
    uint64_t called; /* for a line with several functions: the hash of the name
                        that the caller uses */
    bool is_main;
    bool is_crowded; /* stands for all of the line */
    char *file;      /* into text; NULL: none */
    char text[];     /* name, file */
};

struct cpprof_vm *lua_vm;
lua_CFunction function_of_wrap;

const struct function tail_called = {.text = "(...tail calls...)"};
static const struct function unknown = {.text = "[unknown]"};

/* ---- identity ---------------------------------------------------------- */

static uint64_t
mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

lua_CFunction
c_function_at(lua_State *L, lua_Debug *ar)
{
    lua_CFunction function;

    lua_getinfo(L, "f", ar);
    function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    return function;
}

/* Tunable, in bytes: of a longer text so much at both ends is hashed, in some
 * microseconds. A larger value tells apart more chunks that a program
 * generates. */
#define HASHED 4096

static uint64_t
hash_text(uint64_t hash, const char *text, size_t n)
{
    uint64_t word;

    for (; n >= sizeof word; n -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, text, n);
    return mix(hash, word);
}

/* The source: the name of a chunk from a file, the text of one from a string.
 */
static uint64_t
hash_source(const lua_Debug *ar)
{
    size_t n = source_length(ar);

    if (n <= 2 * HASHED)
        return hash_text(n, ar->source, n);
    return hash_text(hash_text(n, ar->source, HASHED), ar->source + n - HASHED,
                     HASHED);
}

static void
fill_key(struct function *key, const lua_Debug *ar, lua_CFunction c_function)
{
    memset(key, 0, sizeof *key);
    if (*ar->what == 'C') {
        key->c_function = c_function;
        key->hash = mix(1, (uintptr_t)key->c_function);
        return;
    }
    key->source = hash_source(ar);
    key->first_line = ar->linedefined;
    key->last_line = ar->lastlinedefined;
    key->shape = shape_of(ar);
    key->is_main = *ar->what == 'm';
    key->hash = mix(key->source, (uint64_t)(uint32_t)key->first_line << 32 |
                                     (uint32_t)key->last_line);
    key->hash = mix(key->hash, key->shape);
}

static bool
is_same(const struct function *a, const struct function *b)
{
    return a->hash == b->hash && a->c_function == b->c_function &&
           a->first_line == b->first_line && a->last_line == b->last_line &&
           a->shape == b->shape && a->source == b->source &&
           a->called == b->called;
}

/* ---- names ------------------------------------------------------------- */

/* Is the value on top, of the table that text names, the function at index 1?
 */
static bool
find_in(lua_State *L, const char *prefix, char *name)
{
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_rawequal(L, -1, 1))
            continue;
        snprintf(name, FUNCTION_NAME_MAX, "%s%s%s", prefix, *prefix ? "." : "",
                 lua_tostring(L, -2));
        lua_pop(L, 2);
        return true;
    }
    return false;
}

/* (function, name): look through what was loaded; globals come first. */
static int
find_loaded(lua_State *L)
{
    char *name = lua_touserdata(L, 2);
    bool found;

    luaL_checkstack(L, 8, NULL);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (!lua_istable(L, -1))
        return 0;
    lua_pushliteral(L, "_G");
    lua_rawget(L, -2);
    found = lua_istable(L, -1) && find_in(L, "", name);
    lua_pop(L, 1);
    for (lua_pushnil(L); !found && lua_next(L, -2); lua_pop(L, 1))
        if (lua_istable(L, -1) && lua_type(L, -2) == LUA_TSTRING)
            found = find_in(L, lua_tostring(L, -2), name);
    return 0;
}

/* The collector may run in here, and memory may be out. */
static bool
name_by_library(lua_State *L, lua_Debug *ar, char *name)
{
    *name = 0;
    if (!lua_checkstack(L, 8))
        return false;
    lua_pushcfunction(L, find_loaded);
    lua_getinfo(L, "f", ar);
    lua_pushlightuserdata(L, name);
    if (lua_pcall(L, 2, 0, 0))
        lua_pop(L, 1);
    return *name;
}

bool
name_by_call(lua_State *L, lua_Debug *ar, char *name)
{
    static const char iterator[] = "for iterator";

    lua_getinfo(L, "n", ar);
    if (!*ar->namewhat || !ar->name || !strcmp(ar->name, "?") ||
        !strcmp(ar->namewhat, iterator) || !strcmp(ar->namewhat, "hook"))
        return false;
    snprintf(name, FUNCTION_NAME_MAX, "%s%s",
             strcmp(ar->namewhat, "metamethod") ? "" : "__", ar->name);
    return true;
}

static bool
name_by_address(lua_CFunction function, char *name)
{
    Dl_info info;
    void *address;

    memcpy(&address, &function, sizeof address);
    if (function == load_relaxed(&function_of_wrap))
        strcpy(name, "coroutine.wrap");
    else if (dladdr(address, &info) && info.dli_sname &&
             info.dli_saddr == address)
        snprintf(name, FUNCTION_NAME_MAX, "%s", info.dli_sname);
    else
        return false;
    return true;
}

static bool
name_by_own(lua_State *L, lua_Debug *ar, char *name)
{
    char called[FUNCTION_NAME_MAX] = "";
    enum source_name source;

    if (name_by_library(L, ar, name))
        return true;
    name_by_call(L, ar, called);
    source = name_by_source(ar, called, name, FUNCTION_NAME_MAX);
    if (source == SOURCE_UNKNOWN && *called)
        strcpy(name, called);
    return source == SOURCE_NAMED || (source == SOURCE_UNKNOWN && *called);
}

/* A place is not in <>: readers take that for a C++ template and leave it out.
 */
static void
find_name(lua_State *L, lua_Debug *ar, const struct function *key, char *name)
{
    *name = 0;
    if (key->c_function) {
        if (!name_by_library(L, ar, name) &&
            !name_by_address(key->c_function, name) &&
            !name_by_call(L, ar, name))
            strcpy(name, "[C]");
    } else if (!key->is_main &&
               (key->is_crowded || !name_by_own(L, ar, name))) {
        snprintf(name, FUNCTION_NAME_MAX, "function %s:%d", ar->short_src,
                 ar->linedefined);
    }
}

/* ---- the table --------------------------------------------------------- */

/* The name of the file as given; for code from elsewhere what Lua calls it. */
const char *
file_of(const lua_Debug *ar)
{
    if (*ar->what == 'C')
        return NULL;
    return *ar->source == '@' ? ar->source + 1 : ar->short_src;
}

static struct function *
make(lua_State *L, lua_Debug *ar, const struct function *key)
{
    char name[FUNCTION_NAME_MAX];
    const char *file = file_of(ar);
    size_t n_file = file ? strlen(file) + 1 : 0, n_name;
    struct function *f;

    find_name(L, ar, key, name);
    n_name = strlen(name) + 1;
    f = malloc(sizeof *f + n_name + n_file);
    if (!f)
        return NULL;
    *f = *key;
    memcpy(f->text, name, n_name);
    f->file = file ? f->text + n_name : NULL;
    if (file)
        memcpy(f->file, file, n_file);
    return f;
}

static struct function **
find_slot(struct function **slots, uint32_t n_slots, const struct function *key)
{
    uint32_t i = (uint32_t)(key->hash >> 32) & (n_slots - 1);

    while (slots[i] && !is_same(slots[i], key))
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

/* Make room for one more: at most three of four slots are taken. */
static bool
grow(struct functions *known)
{
    uint32_t n_slots = known->n_slots ? 2 * known->n_slots : SLOTS_FIRST, i;
    struct function **slots;

    if ((known->n + 1) * 4 <= known->n_slots * 3)
        return true;
    slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    for (i = 0; i < known->n_slots; i++)
        if (known->slots[i])
            *find_slot(slots, n_slots, known->slots[i]) = known->slots[i];
    free(known->slots);
    known->slots = slots;
    known->n_slots = n_slots;
    return true;
}

static const struct function *
find(const struct functions *known, const struct function *key)
{
    return known->n_slots ? *find_slot(known->slots, known->n_slots, key)
                          : NULL;
}

static const struct function *
make_known(struct functions *known, lua_State *L, lua_Debug *ar,
           const struct function *key)
{
    struct function *f = grow(known) ? make(L, ar, key) : NULL;

    if (!f)
        return &unknown;
    *find_slot(known->slots, known->n_slots, f) = f;
    known->n++;
    known->is_full = known->n >= FUNCTIONS_MAX;
    return f;
}

static bool
is_crowded(const struct function *key, const lua_Debug *ar)
{
    return !key->c_function && !key->is_main && source_is_crowded(ar);
}

static void
add_called(struct function *key, lua_State *L, lua_Debug *ar)
{
    char called[FUNCTION_NAME_MAX] = "";

    name_by_call(L, ar, called);
    key->is_crowded = false;
    key->called = hash_text(1, called, strlen(called));
    key->hash = mix(key->hash, key->called);
}

/* Several functions of one line look the same from outside. An extra entry
 * stands for all of them and tells that there are several. */
const struct function *
function_of(struct functions *known, lua_State *L, lua_Debug *ar)
{
    const struct function *f;
    struct function key;

    fill_key(&key, ar, *ar->what == 'C' ? c_function_at(L, ar) : NULL);
    f = find(known, &key);
    if (!f) {
        key.is_crowded = is_crowded(&key, ar);
        f = make_known(known, L, ar, &key);
    }
    if (!f->is_crowded)
        return f;
    add_called(&key, L, ar);
    f = find(known, &key);
    return f ? f : make_known(known, L, ar, &key);
}

const struct function *
function_known(const struct functions *known, lua_State *L, lua_Debug *ar,
               lua_CFunction c_function, uint64_t *hash)
{
    const struct function *f;
    struct function key;

    fill_key(&key, ar, c_function);
    f = find(known, &key);
    if (f && f->is_crowded) {
        add_called(&key, L, ar);
        f = find(known, &key);
    }
    *hash = key.hash ? key.hash : ~(uint64_t)0;
    return f;
}

void
functions_begin(struct functions *known)
{
    if (known->is_full)
        functions_free(known);
}

void
functions_free(struct functions *known)
{
    uint32_t i;

    for (i = 0; i < known->n_slots; i++) {
        if (!known->slots[i])
            continue;
        cpprof_vm_forget_function(lua_vm, known->slots[i]);
        free(known->slots[i]);
    }
    free(known->slots);
    memset(known, 0, sizeof *known);
}

bool
describe_function(void *state, const void *function,
                  struct cpprof_vm_function *what)
{
    const struct function *f = function;

    what->name = f->text;
    what->system_name = NULL;
    what->file = f->file;
    what->start_line = f->first_line;
    return true;
}
