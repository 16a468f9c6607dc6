/* SPDX-License-Identifier: MIT */
/*
 * Looks at what a child could cost the program before there is one. The program
 * may write to all its memory while the child lives, and then all of it is
 * there twice: so much must be free, in the machine and in each control group
 * that the process is in.
 */
#include "collect/leak/permit.h"

#include "base/file.h"
#include "base/status.h"
#include "collect/runtime/next.h"
#include "collect/runtime/own_threads.h"
#include "collect/runtime/proc.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Tunable: what the child needs beside copies: bits and stacks of marks. */
#define OWN_PERCENT 10
#define OWN_BYTES   (UINT64_C(32) << 20)

/* Since 5.12 pages that a device writes to are copied for the child, so what
 * the device writes stays the program's (mm/memory.c, copy_present_page). */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 12

/* ---- fields of files --------------------------------------------------- */

/* The number of a field; false: there is none. */
static bool
read_field(const char *path, const char *name, uint64_t *value)
{
    struct cpprof__buffer text = {0};
    const char *at = NULL;

    if (!cpprof__file_read(&text, path, SIZE_MAX))
        at = cpprof__field((const char *)text.data, name);
    if (at)
        *value = strtoull(at, NULL, 10);
    cpprof__buffer_free(&text);
    return at != NULL;
}

/* A file of one number; "max" is none. */
static bool
read_number(const char *folder, const char *name, uint64_t *value)
{
    struct cpprof__buffer text = {0};
    char path[4096 + 64];
    bool has;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    has = !cpprof__file_read(&text, path, SIZE_MAX) && text.data[0] >= '0' &&
          text.data[0] <= '9';
    *value = has ? strtoull((const char *)text.data, NULL, 10) : 0;
    cpprof__buffer_free(&text);
    return has;
}

/* ---- memory ------------------------------------------------------------ */

/* What a control group and those above it leave. */
static uint64_t
group_room(const char *root, const char *group, const char *limit_name,
           const char *used_name)
{
    uint64_t room = UINT64_MAX, limit, used, whole;
    char folder[4096];
    size_t n_root = strlen(root);
    char *slash;

    snprintf(folder, sizeof folder, "%s%s", root, group);
    for (;;) {
        if (read_number(folder, limit_name, &limit) &&
            read_number(folder, used_name, &used)) {
            uint64_t left = limit > used ? limit - used : 0;

            room = left < room ? left : room;
        }
        /* What ends the child would end the program, too. */
        if (read_number(folder, "memory.oom.group", &whole) && whole)
            return 0;
        slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < n_root)
            return room;
        *slash = 0;
    }
}

/* Above memory.high the program's threads are made slow. */
static uint64_t
room_of_group2(const char *group)
{
    static const char root[] = "/sys/fs/cgroup";
    uint64_t max = group_room(root, group, "memory.max", "memory.current");
    uint64_t high = group_room(root, group, "memory.high", "memory.current");

    return max < high ? max : high;
}

/* Both versions of control groups; proc_pid_cgroup(5). */
static uint64_t
room_of_groups(void)
{
    struct cpprof__buffer text = {0};
    uint64_t room = UINT64_MAX, left;
    char *line, *next, *group;

    if (cpprof__file_read(&text, "/proc/thread-self/cgroup", SIZE_MAX)) {
        cpprof__buffer_free(&text);
        return room;
    }
    for (line = (char *)text.data; *line; line = next) {
        next = strchrnul(line, '\n');
        if (*next)
            *next++ = 0;
        group = strrchr(line, ':');
        if (!group)
            continue;
        left = UINT64_MAX;
        if (!strncmp(line, "0::", 3))
            left = room_of_group2(group + 1);
        else if (strstr(line, ":memory:"))
            left = group_room("/sys/fs/cgroup/memory", group + 1,
                              "memory.limit_in_bytes", "memory.usage_in_bytes");
        room = left < room ? left : room;
    }
    cpprof__buffer_free(&text);
    return room;
}

/* Where the kernel promises no more memory than it has, a child is promised as
 * much as the program again, whether it is ever copied or not; what the program
 * asks for meanwhile would be refused (vm.overcommit_memory of proc(5)). What
 * is not written yet counts, so half of what is left has to be enough. */
static uint64_t
room_of_promises(void)
{
    uint64_t mode, limit_kb, promised_kb, data_kb = 0, left_kb;

    if (!read_number("/proc/sys/vm", "overcommit_memory", &mode) || mode != 2)
        return UINT64_MAX;
    if (!read_field("/proc/meminfo", "CommitLimit", &limit_kb) ||
        !read_field("/proc/meminfo", "Committed_AS", &promised_kb) ||
        !read_field("/proc/thread-self/status", "VmData", &data_kb))
        return 0;
    left_kb = limit_kb > promised_kb ? limit_kb - promised_kb : 0;
    return left_kb / 2 > data_kb ? left_kb / 2 * 1024 : 0;
}

static enum cpprof_status
check_memory(struct cpprof_error *error)
{
    uint64_t used_kb, free_kb, needed, room, groups;

    if (!read_field("/proc/thread-self/status", "RssAnon", &used_kb) ||
        !read_field("/proc/meminfo", "MemAvailable", &free_kb))
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: /proc does not tell how much memory is "
                            "free");
    needed = used_kb * 1024 + used_kb * 1024 / 100 * OWN_PERCENT + OWN_BYTES;
    groups = room_of_groups();
    room = free_kb * 1024 < groups ? free_kb * 1024 : groups;
    groups = room_of_promises();
    room = groups < room ? groups : room;
    if (room >= needed)
        return CPPROF_OK;
    return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                        "heapleak: a copy of the memory may need %llu MB, and "
                        "%llu MB are free",
                        (unsigned long long)(needed >> 20),
                        (unsigned long long)(room >> 20));
}

/* ---- the kernel --------------------------------------------------------- */

static bool
is_old_kernel(void)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    return uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2 ||
           major < KERNEL_MAJOR ||
           (major == KERNEL_MAJOR && minor < KERNEL_MINOR);
}

enum cpprof_status
cpprof__leak_permit(struct cpprof_error *error)
{
    if (is_old_kernel())
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: the kernel is older than %d.%d",
                            KERNEL_MAJOR, KERNEL_MINOR);
    if (cpprof__proc_has_own_filter())
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: the program filters system calls "
                            "(seccomp)");
    if (!cpprof__own_thread_has_table())
        return cpprof__fail(error, CPPROF_UNSUPPORTED, 0,
                            "heapleak: no thread with descriptors of its own "
                            "can be made");
    return check_memory(error);
}

/* ---- the allocator ------------------------------------------------------ */

bool
cpprof__leak_is_glibc(const char **name)
{
    void *next = cpprof__next_symbol("malloc");
    const char *slash;
    Dl_info info;

    *name = "an allocator that is not known";
    if (!next || !dladdr(next, &info) || !info.dli_fname)
        return false;
    slash = strrchr(info.dli_fname, '/');
    *name = slash ? slash + 1 : info.dli_fname;
    return dlsym(RTLD_DEFAULT, "gnu_get_libc_version") &&
           (!strncmp(*name, "libc.so", 7) || !strncmp(*name, "libc-2.", 7));
}
