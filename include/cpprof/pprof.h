/* SPDX-License-Identifier: MIT */
/*
 * libcpprof-profile: profiles as data. Read them, change them, make them, write
 * them, and make reports of them.
 */
#ifndef CPPROF_PPROF_H
#define CPPROF_PPROF_H

#include <cpprof/pprof/build.h>
#include <cpprof/pprof/change.h>
#include <cpprof/pprof/profile.h>
#include <cpprof/pprof/report.h>
#include <cpprof/pprof/symbolize.h>
#include <cpprof/version.h>

#endif
