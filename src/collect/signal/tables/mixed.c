/* SPDX-License-Identifier: MIT */
#include "collect/signal/tables/mixed.h"

const struct cpprof__mixer *cpprof__mixer;
