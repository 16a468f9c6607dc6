/* SPDX-License-Identifier: MIT */
/*
 * Profile this process: the API of Go's runtime/pprof for C and C++, all of it.
 *
 *     struct cpprof_writer out;
 *
 *     cpprof_writer_to_path("cpu.pb.gz", &out, NULL);
 *     cpprof_cpu_start(&out, NULL, NULL);
 *     work();
 *     cpprof_cpu_stop(NULL);
 *
 * Names are cpprof_OBJECT_VERB. Arguments come in one order: the object, what
 * it works with, options, outputs, error. <cpprof/vm.h> is for interpreters,
 * <cpprof/recording.h> for recorders, <cpprof/attach.h> for programs that run
 * already, <cpprof/pprof.h> for readers of profiles.
 */
#ifndef CPPROF_CPPROF_H
#define CPPROF_CPPROF_H

#include <cpprof/captures.h>
#include <cpprof/cpu.h>
#include <cpprof/deadlock.h>
#include <cpprof/heap.h>
#include <cpprof/http.h>
#include <cpprof/labels.h>
#include <cpprof/object.h>
#include <cpprof/options.h>
#include <cpprof/profiles.h>
#include <cpprof/push.h>
#include <cpprof/records.h>
#include <cpprof/status.h>
#include <cpprof/version.h>
#include <cpprof/wall.h>
#include <cpprof/writer.h>

#endif
