/* SPDX-License-Identifier: MIT */
#include "collect/cpu/thread_names.h"

#include "arch/clock.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_NS 1000000000u

/* End the text where it is no UTF-8 (the kernel cuts names anywhere) or has a
 * control character, such as the end of the line. */
static void
end_text(char *text)
{
    char *at = text;
    uint32_t rune;
    size_t n;

    while ((n = cpprof__utf8_next(at, 4, &rune)) && rune >= ' ' && rune != 127)
        at += n;
    *at = 0;
}

static void
read_name(int32_t tid, char text[CPPROF__THREAD_NAME_BYTES])
{
    char bytes[CPPROF__THREAD_NAME_BYTES + 4] = {0}, path[48];
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, bytes, CPPROF__THREAD_NAME_BYTES - 1);
        close(fd);
    }
    if (n <= 0)
        return; /* what it was called before */
    end_text(bytes);
    memcpy(text, bytes, CPPROF__THREAD_NAME_BYTES);
}

const char *
cpprof__thread_name(struct cpprof__thread_names *names, int32_t tid)
{
    struct cpprof__thread_name *name =
        &names->at[(uint32_t)tid % CPPROF__THREAD_NAMES];
    uint64_t now_ns = cpprof__now_ns(CLOCK_MONOTONIC);

    if (name->tid == tid && now_ns < name->until_ns)
        return name->text;
    if (name->tid != tid)
        name->text[0] = 0;
    name->tid = tid;
    name->until_ns = now_ns + AGAIN_NS;
    read_name(tid, name->text);
    return name->text;
}
