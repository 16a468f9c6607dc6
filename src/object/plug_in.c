/* SPDX-License-Identifier: MIT */
/*
 * Finds plug-ins and loads them (plug_in.h). They are never unloaded, and what
 * they bring ends with the process, on the thread that calls exit().
 */
#include "object/plug_in.h"

#include "base/status.h"
#include "object/symbolizer.h"
#include "own/memory.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
own_file(char file[PATH_MAX])
{
    struct link_map *map;
    Dl_info info;
    ssize_t n;

    if (!dladdr1((void *)(uintptr_t)&cpprof__plug_in_load, &info, (void **)&map,
                 RTLD_DL_LINKMAP))
        return false;
    /* For the program itself the loader knows only argv[0], which need not be a
     * path. */
    if (*map->l_name)
        return realpath(map->l_name, file);
    n = readlink("/proc/thread-self/exe", file, PATH_MAX - 1);
    if (n < 0)
        n = readlink("/proc/self/exe", file, PATH_MAX - 1);
    if (n >= 0)
        file[n] = 0;
    return n >= 0;
}

/* The loader maps what the headers say; a file that was cut off, as by a full
 * disk, has less, and whoever touches the rest is killed by SIGBUS. */
static bool
is_cut_off(const char *path, uint64_t n_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ElfW(Ehdr) header;
    ElfW(Phdr) part;
    bool is_library =
        fd >= 0 &&
        pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    bool is_whole = true;
    unsigned i;

    for (i = 0; is_library && is_whole && i < header.e_phnum; i++)
        is_whole = pread(fd, &part, sizeof part,
                         (off_t)(header.e_phoff + i * sizeof part)) ==
                       (ssize_t)sizeof part &&
                   (part.p_type != PT_LOAD ||
                    (part.p_offset <= n_bytes &&
                     part.p_filesz <= n_bytes - part.p_offset));
    if (fd >= 0)
        close(fd);
    return !is_whole;
}

/* TSan does not know the loader's lock: to it, who is given a module that
 * another thread has loaded reads what that one is still writing. */
static void *
open_module(const char *path)
{
#ifdef __SANITIZE_THREAD__
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *module;

    pthread_mutex_lock(&lock);
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pthread_mutex_unlock(&lock);
    return module;
#else
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
#endif
}

/* Load a file. `why` is what is wrong with the first one that is there: what is
 * no file is not opened, because a pipe would be waited for. */
static void *
load_file(const char *path, struct cpprof_error *why)
{
    const char *wrong = NULL;
    void *plug_in = NULL;
    struct stat st;

    if (lstat(path, &st) != 0)
        return NULL;
    if (stat(path, &st) != 0)
        wrong = "a link that leads nowhere";
    else if (!S_ISREG(st.st_mode))
        wrong = "not a file";
    else if (is_cut_off(path, (uint64_t)st.st_size))
        wrong = "the end of the file is missing";
    else
        plug_in = open_module(path);
    if (!plug_in && why->status == CPPROF_OK) {
        if (wrong)
            cpprof__fail(why, CPPROF_UNSUPPORTED, 0, "%s: %s", path, wrong);
        else
            cpprof__fail(why, CPPROF_UNSUPPORTED, 0, "%s", dlerror());
    }
    return plug_in;
}

/* From where we are: a build folder; a library; a program. */
static const char *const folders[] = {"", "/cpprof",
                                      "/" CPPROF_BIN_TO_LIB "/cpprof"};

/* In the folders where the loader looks for what we ask it for, but for its
 * cache: left to itself it would wait for a pipe there. */
static void *
find_in_loaders_path(const char *name, struct cpprof_error *why)
{
    char path[PATH_MAX + NAME_MAX + 2];
    void *handle = dlopen(NULL, RTLD_NOW), *plug_in = NULL;
    Dl_serinfo size, *list = NULL;
    unsigned i;

    if (handle && dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0)
        list = cpprof__malloc(size.dls_size);
    if (list) {
        list->dls_size = size.dls_size;
        list->dls_cnt = size.dls_cnt;
    }
    if (list && dlinfo(handle, RTLD_DI_SERINFO, list) == 0)
        for (i = 0; i < list->dls_cnt && !plug_in; i++) {
            snprintf(path, sizeof path, "%s/%s", list->dls_serpath[i].dls_name,
                     name);
            plug_in = load_file(path, why);
        }
    cpprof__free(list);
    if (handle)
        dlclose(handle);
    return plug_in;
}

/* Beside us, where it was installed, and where the loader looks. */
static void *
find_file(const char *name, struct cpprof_error *why)
{
    char path[PATH_MAX + NAME_MAX + 64], file[PATH_MAX];
    char *slash = own_file(file) ? strrchr(file, '/') : NULL;
    void *plug_in = NULL;
    size_t i;

    if (slash)
        *slash = 0;
    for (i = 0; slash && !plug_in && i < sizeof folders / sizeof *folders;
         i++) {
        snprintf(path, sizeof path, "%s%s/%s", file, folders[i], name);
        plug_in = load_file(path, why);
    }
    snprintf(path, sizeof path, "%s/cpprof/%s", CPPROF_LIBDIR, name);
    if (!plug_in)
        plug_in = load_file(path, why);
    if (!plug_in && why->status == CPPROF_OK)
        plug_in = find_in_loaders_path(name, why);
    /* One that is damaged is not asked for again. What is left is the loader's
     * cache, which has libraries only. */
    if (plug_in || why->status != CPPROF_OK)
        return plug_in;
    plug_in = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!plug_in) {
        const char *text = dlerror();

        cpprof__fail(why, CPPROF_UNSUPPORTED, 0, "%s",
                     text ? text : "it is not there");
    }
    return plug_in;
}

/*
 * GnuTLS, which libmicrohttpd and libcurl bring, frees some 700 blocks when the
 * process ends, unless somebody still uses it. So we do, for good: who calls
 * exit() may be a handler that interrupted malloc, and would wait for ever.
 *
 * Source: gnutls_global_init(3).
 */
static void
use_gnutls(void *plug_in)
{
    typedef int init_fn(void);
    init_fn *init = (init_fn *)dlsym(plug_in, "gnutls_global_init");

    if (init)
        init();
}

const void *
cpprof__plug_in_load(const char *name, const char *symbol, uint32_t version,
                     struct cpprof_error *error)
{
    char file[NAME_MAX];
    struct cpprof_error why = {0};
    const uint32_t *ops;
    void *plug_in;

    snprintf(file, sizeof file, "libcpprof-%s.so", name);
    plug_in = find_file(file, &why);
    if (!plug_in) {
        cpprof__fail(error, CPPROF_UNSUPPORTED, 0, "%s: %s", name, why.text);
        return NULL;
    }
    use_gnutls(plug_in);
    ops = dlsym(plug_in, symbol);
    if (ops && *ops == version)
        return ops;
    cpprof__fail(error, CPPROF_UNSUPPORTED, 0, "%s: %s is of another version",
                 name, file);
    return NULL;
}

struct cpprof__fetcher cpprof__fetcher;

const struct cpprof__symbolizer_ops *
cpprof__symbolizer_load(void)
{
    static const struct cpprof__memory memory = {cpprof__malloc, cpprof__calloc,
                                                 cpprof__realloc, cpprof__free};
    const struct cpprof__symbolizer_ops *ops = cpprof__plug_in_load(
        "symbol", CPPROF__SYMBOLIZER_SYMBOL, CPPROF__SYMBOLIZER_ABI, NULL);

    if (ops)
        ops->borrow(&memory);
    return ops;
}
