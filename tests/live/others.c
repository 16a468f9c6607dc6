/* SPDX-License-Identifier: MIT */
#include "others.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of 2 ms. One that is about to run on may sleep for a moment. */
#define LOOKS        5000
#define LOOKS_ASLEEP 4

static bool
sleeps(const char *tid)
{
    char path[64], text[512] = "";
    const char *end;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", tid);
    file = fopen(path, "r");
    if (!file)
        return true; /* it has ended */
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    end = strrchr(text, ')');
    return !end || (end[1] && strchr("SZX", end[2]));
}

static bool
others_sleep(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    bool all = dir != NULL;

    while (all && (entry = readdir(dir)))
        all = atoi(entry->d_name) <= 0 ||
              atoi(entry->d_name) == (int)syscall(SYS_gettid) ||
              sleeps(entry->d_name);
    if (dir)
        closedir(dir);
    return all;
}

void
let_others_sleep(void)
{
    int i, n = 0;

    for (i = 0; i < LOOKS && n < LOOKS_ASLEEP; i++) {
        usleep(2000);
        n = others_sleep() ? n + 1 : 0;
    }
}
