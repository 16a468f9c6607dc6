/* SPDX-License-Identifier: MIT */
/*
 * Has interpreters load our modules, for programs that do not load them
 * themselves, by variables that interpreters read at their start.
 *
 * The interpreter lua contains its library, so there is no function to
 * interpose; but it runs LUA_INIT first. What we put there loads the module,
 * which runs what the variable contained (bindings/lua/script/module.c).
 *
 * CPython imports sitecustomize before the program, so a folder of ours with
 * such a file goes to the front of PYTHONPATH. That file loads the module, and
 * imports the sitecustomize that it hid.
 *
 * Both restore the variable, from a second variable with its former value.
 */
#include "base/buffer.h"
#include "vm/load/process.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Find a file of ours, in the first of two folders beside the library that has
 * it: where it is installed, or was built. False: neither has. The library may
 * have been loaded by a link or by another path. */
static bool
find_beside(const char *const folders[2], const char *name, char path[PATH_MAX])
{
    char library[PATH_MAX];
    const char *slash;
    Dl_info info;
    int i, n;

    if (!dladdr((const void *)find_beside, &info) ||
        !realpath(info.dli_fname, library))
        return false;
    slash = strrchr(library, '/');
    for (i = 0; i < 2; i++) {
        n = snprintf(path, PATH_MAX, "%.*s/%s/%s", (int)(slash - library),
                     library, folders[i], name);
        if (n < PATH_MAX && !access(path, R_OK))
            return true;
    }
    return false;
}

/* The variable `former` gets "=" and what the variable was; "": it was not
 * set. ORDER: module.c, sitecustomize.py */
static void
set_variable(const char *variable, const char *value, const char *former)
{
    const char *before = getenv(variable);
    struct cpprof__buffer kept = {0};

    if (before)
        cpprof__buffer_printf(&kept, "=%s", before);
    if (!kept.failed) {
        setenv(former, before ? (char *)kept.data : "", 1);
        setenv(variable, value, 1);
    }
    cpprof__buffer_free(&kept);
}

/* ---- Lua -------------------------------------------------------------- */

#define FORMER_LUA_INIT "CPPROF_LUA_INIT"

/* LuaJIT has the names and the variable of 5.1. */
static const struct language {
    const char *version;
    const char *variable;
    const char *has; /* a name that only it exports */
} languages[] = {
    {"5.4", "LUA_INIT_5_4", "lua_newuserdatauv"},
    {"5.1", "LUA_INIT", "lua_getfenv"},
};

static const struct language *
find_language(void)
{
    size_t i;

    if (!dlsym(RTLD_DEFAULT, "lua_newstate"))
        return NULL;
    for (i = 0; i < sizeof languages / sizeof *languages; i++)
        if (dlsym(RTLD_DEFAULT, languages[i].has))
            return &languages[i];
    return NULL;
}

static void
set_lua_init(void)
{
    static const char *const folders[] = {"lua", "bindings/lua"};
    const struct language *language = find_language();
    char name[32], path[PATH_MAX], chunk[PATH_MAX + 128];

    if (!language || getenv(FORMER_LUA_INIT))
        return;
    snprintf(name, sizeof name, "%s/cpprof.so", language->version);
    /* Those characters would end or change a string of Lua. */
    if (!find_beside(folders, name, path) || strpbrk(path, "\"\\\n"))
        return;
    snprintf(chunk, sizeof chunk,
             "local f = package.loadlib(\"%s\", \"cpprof_lua_init\") "
             "if f then f() end",
             path);
    set_variable(language->variable, chunk, FORMER_LUA_INIT);
}

/* ---- CPython ---------------------------------------------------------- */

#define FORMER_PYTHONPATH "CPPROF_PYTHONPATH"

static void
set_python_path(void)
{
    static const char *const folders[] = {"cpprof/python", "bindings/python"};
    const char *before = getenv("PYTHONPATH");
    struct cpprof__buffer path = {0};
    char folder[PATH_MAX];

    if (!dlsym(RTLD_DEFAULT, "PyEval_SetProfile") ||
        getenv(FORMER_PYTHONPATH) ||
        !find_beside(folders, "start/sitecustomize.py", folder))
        return;
    *strrchr(folder, '/') = 0;
    /* The variable has no way to quote a colon. */
    if (strchr(folder, ':'))
        return;
    cpprof__buffer_printf(&path, "%s%s%s", folder, before ? ":" : "",
                          before ? before : "");
    if (!path.failed)
        set_variable("PYTHONPATH", (char *)path.data, FORMER_PYTHONPATH);
    cpprof__buffer_free(&path);
}

void
cpprof__vm_set_variables(void)
{
    set_lua_init();
    set_python_path();
}
