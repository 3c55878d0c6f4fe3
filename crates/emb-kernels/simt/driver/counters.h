// Bytes that kernels read and write, for SIMT_COUNT.
#pragma once

#include <string>

namespace driver {

// Counts a launch; the totals are written when the process exits.
void count_launch(const std::string& kernel);

}  // namespace driver
