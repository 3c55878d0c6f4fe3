// What a kernel includes in place of the CUDA headers when a C++ compiler builds it: the subset of
// CUDA C++ that kernels keep to, each part in a small file of its own. See README.md.
#pragma once

#include "simt_types.h"

#include "simt_half.h"

#include "simt_math.h"

#include "simt_thread.h"

#include "simt_warp.h"

#include "simt_atomics.h"

#include "simt_registry.h"
