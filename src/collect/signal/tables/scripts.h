/* SPDX-License-Identifier: MIT */
/*
 * Frames of scripts in native stacks. A script location (function and line) is
 * one word that can take the place of a program counter. Its highest bit is
 * set, as in no address of user space, and the rest is the offset of an entry
 * in a table. So the ring, the stores and the tree of stacks carry mixed stacks
 * without knowing it, and the writer of a profile looks the location up here.
 *
 * The table is one block of fixed layout without pointers, and only grows;
 * another process may read it at any moment, or add to it (a file of the
 * recorder's folder, see store/script_file.h). Any thread may add, also in a
 * handler: an entry is complete before its number is handed out.
 *
 * Functions are identified by interpreter and key and not by address, so reused
 * addresses do not matter here. A name may come later than its function; the
 * last one counts.
 */
#ifndef COLLECT_SIGNAL_SCRIPTS_H
#define COLLECT_SIGNAL_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPPROF__SCRIPT_PC ((uint64_t)1 << 63)

/* Bound: 16 MiB, touched as they are used; some 100 000 locations. A location
 * that finds no room is CPPROF__SCRIPT_NO_ROOM, "[unknown]". */
#define CPPROF__SCRIPTS_BYTES  (16u << 20)
#define CPPROF__SCRIPT_NO_ROOM CPPROF__SCRIPT_PC

struct cpprof__scripts {
    struct cpprof__scripts_head *head; /* NULL: there are no scripts */
    size_t n_bytes;                    /* of the block; of a copy maybe less */
    const char *path; /* of the file that it lies in; NULL: private memory */
    uint32_t n_ready; /* of a file: bytes of the front that may be touched */
};

/* What is known of a location. A text that is not known is "". */
struct cpprof__script_location {
    const char *mapping; /* "[lua]" */
    const char *name;    /* "": as its file */
    const char *system_name;
    const char *file;
    int64_t start_line;
    int64_t line;  /* 0: not known */
    uint64_t key;  /* 0: by the texts and the first line */
    bool has_name; /* false: a name that is there already stays */
};

#pragma GCC visibility push(hidden)
extern struct cpprof__scripts cpprof__scripts; /* this process's */
#pragma GCC visibility pop

static inline bool
cpprof__is_script(uint64_t pc)
{
    return pc & CPPROF__SCRIPT_PC;
}

/* A table in zeroed memory, CPPROF__SCRIPTS_BYTES; with a path, which stays the
 * caller's, in the file of that name. False: there is no room for the file. */
bool
cpprof__scripts_make(struct cpprof__scripts *scripts, void *block,
                     const char *path);
/* The same for a file that another process has made, mapped shared. */
bool
cpprof__scripts_open_shared(struct cpprof__scripts *scripts, void *block,
                            const char *path);
/* Publish a table: other threads look at the head first. */
void
cpprof__scripts_set(struct cpprof__scripts *scripts,
                    const struct cpprof__scripts *made);

/* The word for a location, which is added if it is new. Texts are cut at 1023
 * bytes. Safety: AS, any thread, lock-free. */
uint64_t
cpprof__scripts_add(struct cpprof__scripts *scripts,
                    const struct cpprof__script_location *location);

/* Open a block that may be a copy of another process's, or anything. False: it
 * is no table. */
bool
cpprof__scripts_open(struct cpprof__scripts *scripts, void *block, size_t n);

/* Bytes from the block's front that open needs, and that hold all there is. */
size_t
cpprof__scripts_head_bytes(void);
size_t
cpprof__scripts_in_use(const struct cpprof__scripts *scripts);

/* What pc stands for; false: nothing, all is "" then. Trusts nothing. The texts
 * live as long as the block. */
bool
cpprof__scripts_read(const struct cpprof__scripts *scripts, uint64_t pc,
                     struct cpprof__script_location *location);

#endif
