// What streams queue: a piece of work, and the marks that order streams among each other.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace driver {

struct Device;
struct Stream;

using Clock = std::chrono::steady_clock;

// One recording of an event. A wait holds the recording that was the latest when it was called,
// so recording the event again does not move what is waited for.
struct Record {
    bool done = false;
    Clock::time_point at;
};

// A range that a piece of work touches; looked up again when the work runs, so that memory freed
// in between is found.
struct Access {
    uint64_t address;
    size_t bytes;
    bool write;
    bool any_device = false;  // peer copies and collectives reach other devices by themselves
};

struct Work {
    std::string what;                      // for the trace and for messages
    Device* device = nullptr;              // where it runs
    std::function<int()> run;              // outside the lock; returns a status
    std::function<bool()> ready;           // under the lock, at the head of the stream
    std::function<void()> finished;        // under the lock, after run
    std::function<std::string()> waiting;  // what it waits for, for the stall report
    std::shared_ptr<Record> wait;
    std::shared_ptr<Record> record;
    std::vector<Access> accesses;
    std::vector<uint64_t> words;  // of kernel parameters: those that are addresses must be usable
    uint64_t number = 0;          // assigned when queued
    bool quiet = false;           // an ordering mark of this driver's own, not traced
};

}  // namespace driver
