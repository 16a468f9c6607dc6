/* SPDX-License-Identifier: MIT */
/*
 * Durations and points of time in the words of Go's package time.
 * Source: time.Duration.String, time.Time.String.
 */
#ifndef PROFILE_GO_TIME_H
#define PROFILE_GO_TIME_H

#include <stddef.h>
#include <stdint.h>

/* Room for the longest of either, a long name of a time zone aside. */
#define CPPROF__GO_TIME_MAX 80

/* "1h2m3.5s", "1.5\xc2\xb5s", "0s", ... Returns the length. */
size_t
cpprof__go_duration(char out[CPPROF__GO_TIME_MAX], int64_t ns);

/* "2006-01-02 15:04:05.999999999 -0700 MST" of ns since 1970, in the time zone
 * that tzset() read last. Returns the length. */
size_t
cpprof__go_time(char out[CPPROF__GO_TIME_MAX], int64_t ns);

#endif
