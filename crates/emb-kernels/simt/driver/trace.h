// The trace of SIMT_TRACE: one JSON line for every piece of work queued and run.
#pragma once

#include "state.h"

namespace driver {

bool tracing();
void trace(const char* event, const Stream* stream, const Work& work);

}  // namespace driver
