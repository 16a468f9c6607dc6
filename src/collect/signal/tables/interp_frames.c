/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/interp_frames.h"

const struct cpprof__interp_ops *cpprof__interp_ops;
