/* SPDX-License-Identifier: MIT */
/* Source: getdents(2). */
#include "own/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's; with 64-bit files it is libc's struct dirent, too. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t n_bytes;
    uint8_t type;
    char name[];
};

bool
cpprof__folder_open(struct cpprof__folder *folder, const char *path)
{
    folder->n = folder->at = 0;
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    return folder->fd >= 0;
}

const char *
cpprof__folder_next(struct cpprof__folder *folder)
{
    struct entry *entry;

    errno = 0;
    if (folder->at >= folder->n) {
        folder->at = 0;
        folder->n = (int)syscall(SYS_getdents64, folder->fd, folder->entries,
                                 sizeof folder->entries);
        if (folder->n <= 0)
            return NULL;
    }
    entry = (struct entry *)(void *)(folder->entries + folder->at);
    folder->at += entry->n_bytes;
    return entry->name;
}

void
cpprof__folder_rewind(struct cpprof__folder *folder)
{
    lseek(folder->fd, 0, SEEK_SET);
    folder->n = folder->at = 0;
}

void
cpprof__folder_close(struct cpprof__folder *folder)
{
    close(folder->fd);
}
