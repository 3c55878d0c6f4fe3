// What is printed when a kernel is wrong. Then the process aborts: a GPU's context is lost as well.
#include "machine.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace simt {

namespace {

constexpr unsigned kGroups = 12;  // of threads that are told of in a report

void print_place(const Fiber& fiber) {
    const Coordinates& at = fiber.at;
    fprintf(stderr, "kernel %s, block (%u,%u,%u), thread (%u,%u,%u): ",
            fiber.worker->launch->kernel->kernel.name, at.block.x, at.block.y, at.block.z,
            at.thread.x, at.thread.y, at.thread.z);
}

bool wait_alike(const Fiber& left, const Fiber& right) {
    if (left.state != right.state) return false;
    if (left.state == State::kFinished) return true;
    if (left.state == State::kInWarp && left.call.mask != right.call.mask) return false;
    return same_place(left.call.site, right.call.site);
}

void print_wait(const Fiber& fiber) {
    const Site& site = fiber.call.site;
    if (fiber.state == State::kFinished) {
        fputs("have returned\n", stderr);
    } else if (fiber.state == State::kInWarp) {
        fprintf(stderr, "wait at %s(%08x), %s:%d\n", site.what, fiber.call.mask, site.file,
                site.line);
    } else {
        fprintf(stderr, "wait at %s, %s:%d\n", site.what, site.file, site.line);
    }
}

}  // namespace

void fail(const Fiber* fiber, const char* format, ...) {
    fputs("simt: ", stderr);
    if (fiber) print_place(*fiber);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    abort();
}

void report_deadlock(const Worker& worker) {
    const uint3 block = worker.fibers[0]->at.block;
    fprintf(stderr, "simt: kernel %s, block (%u,%u,%u): deadlock, %u of %u threads have returned\n",
            worker.launch->kernel->kernel.name, block.x, block.y, block.z, worker.finished,
            worker.threads);
    bool told[kBlockThreads] = {};
    unsigned groups = 0;
    for (unsigned first = 0; first < worker.threads && groups < kGroups; ++first) {
        if (told[first]) continue;
        ++groups;
        unsigned count = 0;
        unsigned last = first;
        for (unsigned i = first; i < worker.threads; ++i) {
            if (!wait_alike(*worker.fibers[first], *worker.fibers[i])) continue;
            told[i] = true;
            ++count;
            last = i;
        }
        const char* some = last - first + 1 == count ? "" : "some of ";
        fprintf(stderr, "simt:   %u threads (%s%u to %u) ", count, some, first, last);
        print_wait(*worker.fibers[first]);
    }
    fflush(stderr);
    abort();
}

}  // namespace simt
