/* SPDX-License-Identifier: MIT */
/*
 * libdebuginfod asks all servers at once, checks its cache first, and remembers
 * for ten minutes what nobody had. What it does not do is give up early: it
 * waits 90 s for each file. Here a server has STALL_S for the first byte and
 * between two, and one that is too slow once is not asked again. A file may
 * have MOST_BYTES and take MOST_S. Ctrl-C ends the asking, not the command: a
 * recording goes on without these names.
 *
 * Nor does it look at what comes: that is done here, and a file that is not the
 * one that was asked for does not stay in the cache. Why nothing came it only
 * tells by its report for people (DEBUGINFOD_VERBOSE): a server that fails, or
 * breaks off, is "not found" otherwise.
 */
#include "cli/fetch/debuginfod.h"

#include "arch/clock.h"
#include "cli/messages.h"
#include "cli/terminal.h"
#include "object/elf_header.h"

#include <cpprof/object.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Tunable: seconds without a byte; $DEBUGINFOD_TIMEOUT is another number. */
#define STALL_S 10

/* Tunables: of one file. The debug files of the largest programs have 1 to 2
 * GB; $DEBUGINFOD_MAXSIZE and $DEBUGINFOD_MAXTIME are other numbers, for the
 * library, too. */
#define MOST_BYTES (4l << 30)
#define MOST_S     600

#define URLS "DEBUGINFOD_URLS"

const char cpprof__debuginfod_default[] = "default";

/* Of <elfutils/debuginfod.h>, which is not needed to build. A build id of
 * length 0 is text in hex. A result below 0 is an errno. */
struct client;
typedef int
find(struct client *, const unsigned char *build_id, int n_bytes, char **path);

static struct {
    bool is_on;
    bool is_loaded;
    const char *url; /* of -debuginfod; NULL: those of the environment */
    struct client *client;
    find *find_debuginfo, *find_executable;
    int report;        /* what the library says while it asks; -1: nothing */
    uint64_t stall_ns; /* the most since a byte came */
    uint64_t most_s;
    long most_bytes;

    /* Of the file that is fetched: */
    const char *build_id;
    long n_bytes;      /* that came */
    uint64_t heard_ns; /* when the last did */
    uint64_t begun_ns;
    bool is_late;
    bool is_too_large;
    bool is_too_long;
    volatile sig_atomic_t is_interrupted;
} debuginfod;

bool
cpprof__debuginfod_begin(const char *value)
{
    const char *urls = getenv(URLS);
    bool has_urls = urls && urls[strspn(urls, " ")];

    debuginfod.is_on =
        value && (value != cpprof__debuginfod_default || has_urls);
    if (!value || value == cpprof__debuginfod_default)
        return true;
    if (*value)
        debuginfod.url = value;
    if (*value || has_urls)
        return true;
    cpprof__cli_fail("no server: give -debuginfod=URL, or set " URLS);
    return false;
}

bool
cpprof__debuginfod_is_on(void)
{
    return debuginfod.is_on;
}

/* Called some times a second and whenever bytes came. Before the first byte
 * n_bytes counts the calls, and n_all is 0 until the size is known, which a
 * server may leave out. Not 0: give up. */
static int
note_progress(struct client *client, long n_bytes, long n_all)
{
    uint64_t now_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    long n_before = debuginfod.n_bytes;

    (void)client;
    debuginfod.n_bytes = n_bytes;
    if (n_bytes > n_before + 1) {
        debuginfod.heard_ns = now_ns;
        cpprof__progress("fetching debug information of %.8s, %.1f of %.1f MB",
                         debuginfod.build_id, (double)n_bytes * 1e-6,
                         (double)(n_all > 0 ? n_all : n_bytes) * 1e-6);
    }
    debuginfod.is_late = now_ns - debuginfod.heard_ns > debuginfod.stall_ns;
    debuginfod.is_too_large =
        n_all > debuginfod.most_bytes || n_bytes > debuginfod.most_bytes;
    debuginfod.is_too_long =
        (now_ns - debuginfod.begun_ns) / 1000000000u >= debuginfod.most_s;
    return debuginfod.is_late || debuginfod.is_too_large ||
           debuginfod.is_too_long || debuginfod.is_interrupted;
}

/* Stays loaded: the TLS library below it gives nothing back when unloaded. */
static bool
load(void)
{
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    struct client *(*begin)(void) = NULL;
    void (*set_progress)(struct client *,
                         int (*)(struct client *, long, long)) = NULL;
    void (*set_verbose)(struct client *, int) = NULL;

    if (!library)
        return false;
    *(void **)&begin = dlsym(library, "debuginfod_begin");
    *(void **)&set_progress = dlsym(library, "debuginfod_set_progressfn");
    *(void **)&set_verbose = dlsym(library, "debuginfod_set_verbose_fd");
    *(void **)&debuginfod.find_debuginfo =
        dlsym(library, "debuginfod_find_debuginfo");
    *(void **)&debuginfod.find_executable =
        dlsym(library, "debuginfod_find_executable");
    /* Set this late, a command that is recorded does not inherit it. */
    if (!begin || !set_progress || !debuginfod.find_debuginfo ||
        !debuginfod.find_executable ||
        (debuginfod.url && setenv(URLS, debuginfod.url, 1) != 0))
        return false;
    debuginfod.client = begin();
    if (debuginfod.client)
        set_progress(debuginfod.client, note_progress);
    debuginfod.report = -1;
    if (debuginfod.client && set_verbose && !getenv("DEBUGINFOD_VERBOSE"))
        debuginfod.report = memfd_create("cpprof-debuginfod", MFD_CLOEXEC);
    if (debuginfod.report >= 0)
        set_verbose(debuginfod.client, debuginfod.report);
    return debuginfod.client != NULL;
}

/* A number that is more than 0, or `otherwise`. */
static long
number_of(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    long number = text ? atol(text) : 0;

    return number > 0 ? number : otherwise;
}

static bool
is_ready(void)
{
    if (!debuginfod.is_on || debuginfod.is_loaded)
        return debuginfod.is_on;
    debuginfod.stall_ns =
        (uint64_t)number_of("DEBUGINFOD_TIMEOUT", STALL_S) * 1000000000u;
    debuginfod.most_s = (uint64_t)number_of("DEBUGINFOD_MAXTIME", MOST_S);
    debuginfod.most_bytes = number_of("DEBUGINFOD_MAXSIZE", MOST_BYTES);
    debuginfod.is_loaded = load();
    debuginfod.is_on = debuginfod.is_loaded;
    if (!debuginfod.is_on)
        cpprof__cli_warn("debuginfod needs libdebuginfod.so.1; in Debian, "
                         "install libdebuginfod1");
    return debuginfod.is_on;
}

/* Where the library keeps what came; false: nowhere. It makes the folder before
 * it asks, and tells that it could not as if nobody had the file. */
static bool
has_cache(char *path, size_t n)
{
    const char *home = getenv("HOME"), *own = getenv("DEBUGINFOD_CACHE_PATH");
    const char *caches = getenv("XDG_CACHE_HOME");

    if (own && *own) {
        snprintf(path, n, "%s", own);
        return access(path, W_OK) == 0;
    }
    home = home ? home : "/";
    snprintf(path, n, "%s/.debuginfod_client_cache", home);
    if (access(path, W_OK) == 0)
        return true;
    if (caches && *caches)
        snprintf(path, n, "%s/debuginfod_client", caches);
    else
        snprintf(path, n, "%s/.cache/debuginfod_client", home);
    return access(path, W_OK) == 0;
}

/* What a server did wrong, as "url 0 TEXT" of the report says it: not that it
 * has no such file. Its first line is the address. "": nothing is known. */
static void
read_fault(char *fault, size_t n)
{
    char text[4096], line[256];
    ssize_t n_text = pread(debuginfod.report, text, sizeof text - 1, 0);
    const char *at = text, *name = "\nurl ";

    text[n_text > 0 ? n_text : 0] = 0;
    snprintf(fault, n, "%s",
             strstr(text, "\nserver response No error\n") ? "an empty file"
                                                          : "");
    while ((at = strstr(at, name))) {
        at += strlen(name);
        at += strspn(at, "0123456789 ");
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (!strstr(line, "://") && !strstr(line, "error: 404"))
            snprintf(fault, n, "%s", line);
    }
}

/* Nothing came, and whoever has no such file goes on being asked for others. */
static void
tell_fault(void)
{
    char fault[256], text[2048];

    read_fault(fault, sizeof fault);
    snprintf(text, sizeof text, "debuginfod: %s: %s; names are missing",
             getenv(URLS), fault);
    if (*fault)
        cpprof__cli_warn_once(NULL, text);
}

/* Why nothing came. Whoever has no such file goes on being asked for others;
 * that a server is too slow the library tells by the same error. */
static void
note_failure(int error)
{
    uint64_t now_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    char cache[PATH_MAX];

    if (!debuginfod.is_interrupted && !has_cache(cache, sizeof cache)) {
        debuginfod.is_on = false;
        cpprof__cli_warn("debuginfod: %s: %s; nothing more is asked for", cache,
                         strerror(errno));
        return;
    }
    if (debuginfod.is_too_large || error == EFBIG) {
        cpprof__cli_warn("debuginfod: the file of %.8s is more than %.1f MB "
                         "and is not fetched; DEBUGINFOD_MAXSIZE=BYTES allows "
                         "more",
                         debuginfod.build_id,
                         (double)debuginfod.most_bytes * 1e-6);
        return;
    }
    debuginfod.is_too_long |= error == ETIME;
    debuginfod.is_late |=
        now_ns - debuginfod.heard_ns >= debuginfod.stall_ns / 10 * 9;
    if (error == ENOENT && !debuginfod.is_late && !debuginfod.is_too_long &&
        !debuginfod.is_interrupted) {
        tell_fault();
        return;
    }
    debuginfod.is_on = false;
    cpprof__cli_warn("debuginfod: %s: %s; nothing more is asked for",
                     getenv(URLS),
                     debuginfod.is_interrupted ? "interrupted"
                     : debuginfod.is_too_long  ? "a file takes too long, which "
                                                 "DEBUGINFOD_MAXTIME=SECONDS "
                                                 "allows"
                     : debuginfod.is_late      ? "no answer"
                                               : strerror(error));
}

/* Profiles of others have ids that are none: of Go, of perf, of whoever wrote
 * them. The library refuses these as it refuses a URL. */
static bool
is_build_id(const char *id)
{
    size_t n = strspn(id, "0123456789abcdef");

    return n >= 2 && n % 2 == 0 && !id[n] && n < CPPROF_BUILD_ID_MAX;
}

/* ---- what came -------------------------------------------------------- */

/* Does the file end before its last section header, which is its end? */
static bool
is_cut(const struct cpprof__elf_source *source)
{
    struct cpprof__elf_reader r = {.source = source, .n_reads = 3};
    uint8_t e[sizeof(Elf64_Ehdr)], last[sizeof(Elf64_Shdr)];
    uint64_t n_sections, n_bytes;

    if (!cpprof__elf_read(&r, 0, e, EI_NIDENT))
        return true;
    r.is_64 = e[EI_CLASS] == ELFCLASS64;
    r.is_big_endian = e[EI_DATA] == ELFDATA2MSB;
    if (!cpprof__elf_read(&r, 0, e, CPPROF__ELF_BYTES(&r, Ehdr)))
        return true;
    n_bytes = CPPROF__ELF_BYTES(&r, Shdr);
    n_sections = CPPROF__ELF_FIELD(&r, e, Ehdr, e_shnum);
    return n_sections &&
           !cpprof__elf_read(&r,
                             CPPROF__ELF_FIELD(&r, e, Ehdr, e_shoff) +
                                 (n_sections - 1) * n_bytes,
                             last, n_bytes);
}

/* Is it what was asked for? If not that is told, and the next one to ask does
 * not find it in the cache. */
static bool
is_right(int fd, const char *path)
{
    struct cpprof__elf_source source = {cpprof__elf_read_file, &fd, 0};
    char id[CPPROF_BUILD_ID_MAX];
    const char *what = NULL, *of = "";

    if (cpprof__build_id_read(&source, id, NULL) != CPPROF_OK) {
        what = "no ELF file with a build id";
    } else if (strcmp(id, debuginfod.build_id) != 0) {
        what = "a file of build ";
        of = id;
    } else if (is_cut(&source)) {
        what = "a part of a file";
    }
    if (what)
        cpprof__cli_warn("debuginfod: %s: %s%s%s", path, what, of,
                         unlink(path) ? "; remove it" : "; it is removed");
    return !what;
}

static void
on_interrupt(int signal)
{
    (void)signal;
    debuginfod.is_interrupted = true;
}

/* Ask for one file. Whoever ignores Ctrl-C goes on to ignore it. */
static int
ask(enum pprof_wanted_file what, const char *build_id, char **found)
{
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    find *find_it = what == PPROF_WANTED_BINARY ? debuginfod.find_executable
                                                : debuginfod.find_debuginfo;
    int fd;

    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
    if (debuginfod.report >= 0 && !ftruncate(debuginfod.report, 0))
        lseek(debuginfod.report, 0, SEEK_SET);
    fd = find_it(debuginfod.client, (const unsigned char *)build_id, 0, found);
    sigaction(SIGINT, &before, NULL);
    return fd;
}

bool
cpprof__debuginfod_fetch(void *ctx, enum pprof_wanted_file what,
                         const char *build_id, char *path, size_t n_path)
{
    char *found = NULL;
    bool fits;
    int fd;

    (void)ctx;
    if (!is_build_id(build_id) || !is_ready())
        return false;
    debuginfod.build_id = build_id;
    debuginfod.n_bytes = 0;
    debuginfod.begun_ns = cpprof__now_ns(CLOCK_MONOTONIC);
    debuginfod.heard_ns = debuginfod.begun_ns;
    debuginfod.is_late = false;
    debuginfod.is_too_large = false;
    debuginfod.is_too_long = false;
    cpprof__progress("asking debuginfod for %.8s", build_id);
    fd = ask(what, build_id, &found);
    cpprof__progress("reading debug information");
    if (fd < 0) {
        note_failure(-fd);
        return false;
    }
    fits = found && strlen(found) < n_path && is_right(fd, found);
    close(fd);
    if (fits)
        strcpy(path, found);
    free(found);
    return fits;
}
