/* SPDX-License-Identifier: MIT */
/*
 * Will the loader put libcpprof.so into this command? This is checked before
 * anything runs, so that for a program that cannot be profiled there is a clear
 * message and not an empty profile.
 */
#ifndef CLI_PREFLIGHT_H
#define CLI_PREFLIGHT_H

/* Exit statuses of shells and of env(1). */
#define CPPROF__EXIT_CANNOT_RUN 126
#define CPPROF__EXIT_NOT_FOUND  127

struct cpprof__preflight {
    int exit_status; /* 0: go ahead; or one of the above */
    char text[512];  /* why not, one line without an end */
};

/* command is searched for as execvp(3) does. */
void
cpprof__preflight(const char *command, struct cpprof__preflight *result);

#endif
