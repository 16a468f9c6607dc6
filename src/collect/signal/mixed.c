/* SPDX-License-Identifier: MIT */
#include "collect/signal/mixed.h"

const struct cpprof__mixer *cpprof__mixer;
