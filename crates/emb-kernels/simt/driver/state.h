// The objects behind the handles, and the one state of the process that all libraries share.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "codes.h"
#include "work.h"

namespace driver {

using Lock = std::unique_lock<std::mutex>;

struct Graph;
struct Capture;

struct Context {
    Device* device;
    bool primary;
    int retained = 0;
    unsigned flags = 0;
};

struct Pool {
    explicit Pool(Device* of) : device(of) {}

    Device* device;
    uint64_t release_threshold = 0;
    uint64_t used = 0, high = 0;
    std::set<Device*> access;  // other devices that may touch memory of this pool
    std::map<int, int> switches;
};

struct Stream {
    Device* device = nullptr;
    uint64_t number = 0;  // 0 for the legacy stream
    unsigned flags = 0;
    int priority = 0;
    std::deque<std::shared_ptr<Work>> queue;
    bool busy = false;  // a thread runs the head of the queue
    bool destroyed = false;
    std::shared_ptr<Capture> capture;
    std::vector<size_t> capture_tail;  // nodes that the next captured work comes after

    bool blocking() const { return (flags & 1u) == 0; }
};

struct Event {
    Device* device = nullptr;
    uint64_t number = 0;
    bool timing = true;
    std::shared_ptr<Record> last;
    std::shared_ptr<Capture> capture;  // the last record was captured
    std::vector<size_t> capture_tail;
};

struct Device {
    int ordinal = 0;
    size_t total = 0, used = 0;
    Context primary{nullptr, true, 0, 0};
    Pool default_pool{nullptr};
    Pool* pool = nullptr;
    std::shared_ptr<Stream> legacy;
    std::set<Device*> peers;       // whose memory this device may touch
    int failed = 0;                // sticky status
    std::set<void*> failed_comms;  // communicators whose failure lasts until they are aborted

    int status() const { return failed ? failed : failed_comms.empty() ? kOk : kLaunchFailed; }
};

// The order of scheduling: that of creation, not of addresses, which differ from run to run.
struct StreamOrder {
    bool operator()(const std::shared_ptr<Stream>& a, const std::shared_ptr<Stream>& b) const {
        return a->device->ordinal != b->device->ordinal ? a->device->ordinal < b->device->ordinal
                                                        : a->number < b->number;
    }
};

struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool initialized = false;
    std::vector<std::unique_ptr<Device>> devices;
    std::set<std::shared_ptr<Stream>, StreamOrder> streams;  // the legacy ones too
    std::map<void*, std::shared_ptr<Stream>> stream_handles;
    std::map<void*, std::shared_ptr<Event>> event_handles;
    std::set<Context*> contexts;
    std::set<Pool*> pools;
    std::vector<std::shared_ptr<Work>>
        loose;  // runnable work of no stream: transfers of collectives
    uint64_t work_numbers = 0, stream_numbers = 0, event_numbers = 0;
    uint64_t random = 0;
    uint64_t progress = 0;  // counts pieces of work done
    int executing = 0;
    bool eager = false;
};

// Never destroyed: threads may still call when static destructors run.
State& state();

// What a thread has current.
struct ThreadState {
    std::vector<Context*> contexts;
    bool in_host_function = false;
    int capture_mode = 0;
    int captures = 0;  // this thread's captures that are not relaxed
};
ThreadState& thread_state();

// The lock and the current device of one call.
struct Entry {
    Lock lock;
    Device* device = nullptr;
    int status = kOk;  // not to be ignored: uninitialised, no context, or a failure that stays
    explicit operator bool() const { return status == kOk; }
};

// For calls that need a current context.
Entry enter();
// For calls that do not; only initialisation is checked.
Entry enter_without_context();

// Handles, checked: null where they are not one of this process.
std::shared_ptr<Stream> find_stream(Device* device, void* handle);
std::shared_ptr<Event> find_event(void* handle);

// A long unsigned from the environment, or `otherwise`.
uint64_t environment(const char* name, uint64_t otherwise);
// The path that a variable names, with %p replaced by the number of the process; empty where unset.
std::string path_from_environment(const char* name);
// One message on stderr, "simt driver: ...".
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace driver
