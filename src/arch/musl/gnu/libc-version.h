/* SPDX-License-Identifier: MIT */
/* A function that libc alone has: by its address libc is found. */
#ifndef ARCH_MUSL_LIBC_VERSION_H
#define ARCH_MUSL_LIBC_VERSION_H

#include <sys/auxv.h>

#define gnu_get_libc_version getauxval

#endif
