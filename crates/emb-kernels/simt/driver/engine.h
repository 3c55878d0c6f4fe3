// Runs queued work: in a seeded random order that respects streams and events, driven by whichever
// thread waits.
#pragma once

#include "state.h"

namespace driver {

// Queues work on a stream, or appends it to the graph that the stream captures.
int push(Lock& lock, const std::shared_ptr<Stream>& stream, std::shared_ptr<Work> work);

// Runs one piece of work that may run, chosen at random. False if there is none.
bool step(Lock& lock);

// Runs work until `done`. Waits for other threads where nothing may run, for ever if need be:
// that is what a device does.
void wait_until(Lock& lock, const std::function<bool()>& done);

// Runs what may run until nothing may, without waiting for others.
void run_what_may(Lock& lock);

// Everything of the device is done.
bool idle(const Device& device);

// Records a failure that stays: every later call of the device returns it.
void fail(Device& device, int code, const std::string& message);

// A mark in the stream that is done when everything before it is.
std::shared_ptr<Record> mark(Lock& lock, const std::shared_ptr<Stream>& stream);

// The next number of the seeded sequence (SIMT_SEED).
uint64_t random_number();

}  // namespace driver
