/* SPDX-License-Identifier: MIT */
/*
 * What libcpprof.so calls of libc is libc's. The loader binds a name to the
 * first definition in the process: where a program, or a library in front of
 * libc, has a getpid(), syscall() or pthread_sigmask() of its own, a hook, a
 * handler, a child that was forked or a thread of ours would run that code, and
 * wait for the lock that it takes. So the words by which this library calls
 * libc are pointed at the definitions of the file and version that it was
 * linked with, before it does anything.
 *
 * Names that the library takes over are no matter of this file: what is beneath
 * them (runtime/real.h) is the program's own call.
 */
#ifndef COLLECT_ENTRIES_LIBC_NAMES_H
#define COLLECT_ENTRIES_LIBC_NAMES_H

struct link_map;

/* The names that a module of ours calls, which is no part of the program. Where
 * a sanitizer is in the process, which has to see some of these calls, nothing
 * changes. Safety: AS, unless a module is being unloaded. */
void
cpprof__libc_names_bind(const struct link_map *module);

/* Of the plug-in that this address is in; NULL is in none. What it brings may
 * be the program's, too, and stays as it is. Safety: MT. Not AS. */
void
cpprof__libc_names_bind_plug_in(const void *inside);

#endif
