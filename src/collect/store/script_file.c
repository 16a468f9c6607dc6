/* SPDX-License-Identifier: MIT */
/*
 * The memory of the table of script locations. Its file is made under another
 * name and then linked to its own. So a process that finds the file there,
 * because its parent made it meanwhile, finds it complete.
 */
#include "collect/store/script_file.h"

#include "arch/atomic.h"
#include "arch/clock.h"
#include "arch/place.h"
#include "collect/signal/tables/reserve.h"
#include "collect/store/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Zero bytes after the table: a text that others change while it is read ends
 * there at the latest. */
#define GUARD_BYTES 4096u

#define PATH_BYTES (PATH_MAX + 32)

static char folder[PATH_MAX] CPPROF__LARGE; /* "": no recorder */
static char path[PATH_BYTES] CPPROF__LARGE; /* of the table's file */
static uint64_t number;
static uid_t user;     /* whose file it is */
static int32_t making; /* pid of the process that makes the table; 0: none */

static void
file_path(char *to, const char *directory, uint64_t of)
{
    snprintf(to, PATH_BYTES, "%s/scripts.%016" PRIx64, directory, of);
}

static uint64_t
draw(void)
{
    uint64_t drawn = 0;

    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
        drawn = cpprof__now_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
    return drawn | 1;
}

uint64_t
cpprof__script_file_record(const char *directory)
{
    uint64_t none = 0;

    /* The file of a parent that had other rights could not be opened. */
    if (load_acquire(&number) && user != geteuid() &&
        !load_acquire(&cpprof__scripts.head))
        store_release(&number, draw());
    user = geteuid();
    cas_acq_rel(&number, &none, draw());
    if (!*folder)
        snprintf(folder, sizeof folder, "%s", directory);
    return load_acquire(&number);
}

/* ---- memory ----------------------------------------------------------- */

static void *
map(int fd)
{
    void *p = cpprof__map_file(fd, CPPROF__SCRIPTS_BYTES,
                               CPPROF__SCRIPTS_BYTES + GUARD_BYTES,
                               PROT_READ | PROT_WRITE);

    if (p)
        add_relaxed(&cpprof__reserved_bytes,
                    (uint64_t)(CPPROF__SCRIPTS_BYTES + GUARD_BYTES));
    return p;
}

static void
unmap(void *p)
{
    cpprof__unreserve(p, CPPROF__SCRIPTS_BYTES + GUARD_BYTES);
}

/* ---- making ----------------------------------------------------------- */

/* Make a table in a new file, under another name for now. */
static bool
make_new(struct cpprof__scripts *made, const char *temporary)
{
    int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *p = NULL;

    if (fd < 0)
        return false;
    if (!ftruncate(fd, CPPROF__SCRIPTS_BYTES))
        p = map(fd);
    close(fd);
    if (p && cpprof__scripts_make(made, p, temporary)) {
        made->path = path;
        return true;
    }
    if (p)
        unmap(p);
    unlink(temporary);
    return false;
}

/* Map the table that another process with the same number has made. */
static bool
join(struct cpprof__scripts *made)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    void *p = NULL;

    if (fd < 0)
        return false;
    /* Another user could make it shorter. */
    if (!fstat(fd, &st) && st.st_uid == geteuid() &&
        st.st_size == CPPROF__SCRIPTS_BYTES)
        p = map(fd);
    close(fd);
    if (p && cpprof__scripts_open_shared(made, p, path))
        return true;
    if (p)
        unmap(p);
    return false;
}

static bool
make_shared(struct cpprof__scripts *made)
{
    char temporary[PATH_BYTES + 16];
    int failed;

    if (cpprof__is_too_long(CPPROF__SCRIPTS_BYTES))
        return false;
    file_path(path, folder, number);
    if (join(made))
        return true;
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    if (!make_new(made, temporary))
        return false;
    failed = link(temporary, path) ? errno : 0;
    unlink(temporary);
    if (!failed)
        return true;
    unmap(made->head);
    return failed == EEXIST && join(made);
}

/* One thread makes it at a time. A maker that a fork left in the parent does
 * not count. */
static bool
begin(void)
{
    int32_t pid = (int32_t)getpid(), who = 0;

    while (!load_acquire(&cpprof__scripts.head)) {
        if (cas_acq_rel(&making, &who, pid))
            return true;
        if (who == pid) {
            cpprof__sleep_ns(100000);
            who = 0;
        }
    }
    return false;
}

bool
cpprof__script_file_make(void)
{
    struct cpprof__scripts made;
    bool is_made;
    void *block;

    if (!begin())
        return true;
    is_made = load_acquire(&cpprof__scripts.head) != NULL;
    if (!is_made) {
        is_made = *folder && make_shared(&made);
        if (!is_made && (block = map(-1)))
            is_made = cpprof__scripts_make(&made, block, NULL);
        if (is_made)
            cpprof__scripts_set(&cpprof__scripts, &made);
    }
    store_release(&making, 0);
    return is_made;
}

/* ---- the recorder's side ---------------------------------------------- */

/* Read up to n bytes of the file. Returns how many. */
static size_t
read_to(int fd, char *to, size_t at, size_t n)
{
    while (at < n) {
        ssize_t got = pread(fd, to + at, n - at, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        at += (size_t)got;
    }
    return at;
}

/* Copy the parts of a table that are in use: the rest of the file is holes. */
static bool
read_table(struct cpprof__scripts *scripts, int fd, void *p)
{
    size_t n = read_to(fd, p, 0, cpprof__scripts_head_bytes());

    if (!cpprof__scripts_open(scripts, p, n))
        return false;
    n = read_to(fd, p, n, cpprof__scripts_in_use(scripts));
    return cpprof__scripts_open(scripts, p, n);
}

bool
cpprof__script_file_read(struct cpprof__scripts *scripts, const char *directory,
                         uint64_t of)
{
    char name[PATH_BYTES];
    bool is_read = false;
    void *p;
    int fd;

    memset(scripts, 0, sizeof *scripts);
    file_path(name, directory, of);
    fd = of ? cpprof__spool_open(name) : -1;
    if (fd < 0)
        return false;
    p = map(-1);
    if (p)
        is_read = read_table(scripts, fd, p);
    close(fd);
    if (p && !is_read) {
        unmap(p);
        memset(scripts, 0, sizeof *scripts);
    }
    return is_read;
}

void
cpprof__script_file_free(struct cpprof__scripts *scripts)
{
    if (scripts->head)
        unmap(scripts->head);
    memset(scripts, 0, sizeof *scripts);
}
