// The machine that runs blocks: one fiber a CUDA thread, a queue of those that can run, the places
// where they meet, the block's shared memory. Private to the runtime.
//
// Functions that run on fibers use no templates of the standard library: the linker may pick the
// copy that a kernel's file was given under the thread sanitizer, and report the runtime's own work.
#pragma once

#include "context.h"
#include "sanitizers.h"
#include "simt_registry.h"
#include "simt_thread.h"
#include "simt_warp.h"

#include <atomic>

namespace simt {

constexpr unsigned kBlockThreads = 1024;
constexpr unsigned kBlockWarps = kBlockThreads / 32;
constexpr size_t kStaticShared = 48 * 1024;     // bytes, of arrays in the source
constexpr size_t kSharedLimit = 227 * 1024;     // bytes a block may have at all, of an H100
constexpr unsigned kSharedArrays = 64;          // in one kernel
constexpr unsigned kAtomics = 8;                // addresses remembered between two fences
constexpr unsigned kFibers = 2 * kBlockThreads;  // of a worker: two blocks' under the race checker

enum class Order { kSequential, kReverse, kRandom };
enum class State : uint8_t { kReady, kAtBarrier, kInWarp, kFinished };

// By hand: strcmp would be watched by the race checker, and calls come by the million.
inline bool same_text(const char* left, const char* right) {
    if (left == right) return true;
    while (*left && *left == *right) ++left, ++right;
    return *left == *right;
}
inline bool same_place(const Site& left, const Site& right) {
    return left.line == right.line && same_text(left.what, right.what) &&
           same_text(left.file, right.file);
}

struct Worker;

struct Fiber {
    Coordinates at{};
    unsigned number = 0;  // of the thread in its block
    State state = State::kFinished;
    WarpCall call{};      // what it waits in, or did last
    bool predicate = false;
    unsigned present = 0;  // threads that met at its last barrier
    uint64_t result = 0;
    Worker* worker = nullptr;
    Context context{};
    WatchedStack stack{};
#ifdef SIMT_TSAN
    bool fenced = false;  // since the thread began
    unsigned atomics = 0;
    void* atomic[kAtomics] = {};
#endif
};

// Fibers that can run, each at most once.
struct Ready {
    Fiber* ring[kBlockThreads];
    unsigned head = 0;
    unsigned count = 0;

    void push(Fiber* fiber) { ring[(head + count++) % kBlockThreads] = fiber; }
    Fiber* take_first() {
        Fiber* fiber = ring[head];
        head = (head + 1) % kBlockThreads;
        --count;
        return fiber;
    }
    // The `index`-th leaves; the first takes its place.
    Fiber* take(unsigned index) {
        const unsigned place = (head + index) % kBlockThreads;
        Fiber* fiber = ring[place];
        ring[place] = ring[head];
        take_first();
        return fiber;
    }
};

struct Barrier {
    unsigned waiting = 0;
    unsigned yes = 0;  // predicates that hold
    Site site{};
    unsigned generation = 0;
};

struct WarpState {
    unsigned arrived = 0;   // lanes that wait
    unsigned finished = 0;  // lanes that have returned, or never were
    unsigned turns = 0;     // by lowest lane of a mask: which of its two orderings is next
};

struct SharedArray {
    const void* key;
    char* data;
    size_t bytes;
    void* block;  // of the heap
};

struct Launch {
    Registration* kernel;
    dim3 grid;
    dim3 block;
    size_t shared;
    void** parameters;
    Order order;
    uint64_t seed;
    uint64_t blocks;
    std::atomic<uint64_t> next{0};
};

struct Worker {
    Worker* next_idle = nullptr;
    Fiber* pool[kFibers] = {};
    unsigned made = 0;
    Fiber* fibers[kBlockThreads] = {};  // of the block, by number of the thread
    uint64_t turn = 0;                  // blocks that were run in this launch
    Fiber host;
    Fiber* left = nullptr;  // the fiber that was switched from last
    Ready ready;
    unsigned threads = 0;
    unsigned finished = 0;
    Barrier barrier;
    WarpState warps[kBlockWarps];
    SharedArray arrays[kSharedArrays];
    unsigned array_count = 0;
    size_t static_shared = 0;
    Launch* launch = nullptr;
    uint64_t random = 1;
#ifdef SIMT_TSAN
    char* arena = nullptr;  // addresses that no other block has used, for arrays and orderings
    size_t arena_used = 0;
    char* start = nullptr;  // orders the launch before its threads
    char* end = nullptr;    // and its threads before what follows
    char* meeting = nullptr;  // two of the block's barrier, then two a lane
#endif
};

// fiber.cpp
void prepare_fibers(Worker& worker);
void choose_fibers(Worker& worker);
void switch_fiber(Fiber& from, Fiber& to);
Fiber& running();

// schedule.cpp
uint64_t next_random(uint64_t& state);
void run_block(Worker& worker, uint64_t index);
void make_ready(Worker& worker, Fiber* fiber);
void pass_on(Fiber& from);
void finish_thread(Fiber& fiber);

// barrier.cpp, warp.cpp: what a thread's return completes
void complete_barrier(Worker& worker);
void complete_warp_calls(Worker& worker, unsigned warp);

// shared.cpp
void begin_shared(Worker& worker);
void begin_block_shared(Worker& worker);
void end_shared(Worker& worker);

// order.cpp: what happens before what, for the race checker
void* barrier_order(Worker& worker, unsigned generation);
void* warp_order(Worker& worker, unsigned warp, unsigned mask);
void begin_launch_order(Worker& worker);
void begin_block_order(Worker& worker);
void end_launch_order(Worker& worker);
void begin_thread_order(Fiber& fiber);
void end_thread_order(Fiber& fiber);
void* take_fresh(Worker& worker, size_t bytes);

// counter.cpp
void begin_launch_count(const char* kernel);
void end_launch_count();
bool counts_unique();

// registry.cpp
Registration* find_kernel(const char* name);
void refuse(const char* format, ...) __attribute__((format(printf, 1, 2)));

// report.cpp
[[noreturn]] void fail(const Fiber* fiber, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
[[noreturn]] void report_deadlock(const Worker& worker);

}  // namespace simt
