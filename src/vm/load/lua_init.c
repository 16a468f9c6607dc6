/* SPDX-License-Identifier: MIT */
/*
 * Loads our module into the interpreter lua, for scripts that do not load it
 * themselves. The interpreter contains its library, so there is no function to
 * interpose; but it runs LUA_INIT first. What we put there loads the module,
 * which restores the variable and runs what it contained
 * (bindings/lua/script/init.c).
 */
#include "vm/load/process.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "=" and what the variable was; "": it was not set. ORDER: init.c. */
#define FORMER_VARIABLE "CPPROF_LUA_INIT"

struct language {
    const char *version;
    const char *variable;
    const char *has; /* a name that only it exports */
};

/* LuaJIT has the names and the variable of 5.1. */
static const struct language languages[] = {
    {"5.4", "LUA_INIT_5_4", "lua_newuserdatauv"},
    {"5.1", "LUA_INIT", "lua_getfenv"},
};
#define N_LANGUAGES (sizeof languages / sizeof *languages)

static const struct language *
find_language(void)
{
    size_t i;

    if (!dlsym(RTLD_DEFAULT, "lua_newstate"))
        return NULL;
    for (i = 0; i < N_LANGUAGES; i++)
        if (dlsym(RTLD_DEFAULT, languages[i].has))
            return &languages[i];
    return NULL;
}

static bool
find_module(const char *version, char path[PATH_MAX])
{
    static const char *const folders[] = {"lua", "bindings/lua"};
    char name[32];

    snprintf(name, sizeof name, "%s/cpprof.so", version);
    return cpprof__vm_find_beside(folders, name, path);
}

/* In a string of Lua, that is. */
static bool
can_be_quoted(const char *path)
{
    return !strpbrk(path, "\"\\\n");
}

void
cpprof__vm_set_lua_init(void)
{
    const struct language *language = find_language();
    char path[PATH_MAX], chunk[PATH_MAX + 128], *former = NULL;
    const char *before;

    if (!language || getenv(FORMER_VARIABLE) ||
        !find_module(language->version, path) || !can_be_quoted(path))
        return;
    before = getenv(language->variable);
    if (before && asprintf(&former, "=%s", before) < 0)
        return;
    snprintf(chunk, sizeof chunk,
             "local f = package.loadlib(\"%s\", \"cpprof_lua_init\") "
             "if f then f() end",
             path);
    setenv(FORMER_VARIABLE, former ? former : "", 1);
    setenv(language->variable, chunk, 1);
    free(former);
}
