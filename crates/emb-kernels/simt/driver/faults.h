// Tells what a kernel touched when the system stops it.
#pragma once

namespace driver {

struct Work;

// Once a process; nothing where a sanitizer reports faults by itself.
void install_fault_reports();
// What this thread runs from now on, or null.
void running_work(const Work* work);

}  // namespace driver
