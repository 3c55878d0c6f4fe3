// A signal handler that names the kernel and the memory before the process ends as it would have.
#include "faults.h"

#include <signal.h>

#include "memory.h"

namespace driver {
namespace {

thread_local const Work* the_work = nullptr;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
struct sigaction previous_segv, previous_bus;

// Not safe after a signal in general (it allocates), but the process is lost anyway.
void report(int signal, siginfo_t* info, void*) {
    sigaction(SIGSEGV, &previous_segv, nullptr);
    sigaction(SIGBUS, &previous_bus, nullptr);
    const Work* work = the_work;
    the_work = nullptr;
    if (work) {
        // A misaligned vector access faults without an address.
        const uint64_t address =
            info->si_code == SI_KERNEL ? 0 : reinterpret_cast<uint64_t>(info->si_addr);
        const std::string what = info->si_code == SI_KERNEL
                                     ? "an address that is misaligned or impossible"
                                     : describe(address);
        say("device %d: %s touches 0x%llx, which is %s", work->device->ordinal, work->what.c_str(),
            static_cast<unsigned long long>(address), what.c_str());
    }
    // Returning runs the same instruction again, for the handler that was there before.
    (void)signal;
}
#endif

}  // namespace

void install_fault_reports() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct sigaction action = {};
    action.sa_sigaction = report;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
#endif
}

void running_work(const Work* work) { the_work = work; }

}  // namespace driver
