// Who runs next: threads in order, in reverse or at random from a seed. A thread runs until it
// waits or returns, and hands over to the next by itself; there is no scheduler in between.
#include "machine.h"

namespace simt {

// xorshift64 (Marsaglia, "Xorshift RNGs", 2003).
uint64_t next_random(uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

void make_ready(Worker& worker, Fiber* fiber) {
    fiber->state = State::kReady;
    worker.ready.push(fiber);
}

namespace {

Fiber& next(Worker& worker) {
    if (worker.ready.count == 0) {
        if (worker.finished < worker.threads) report_deadlock(worker);
        return worker.host;
    }
    if (worker.launch->order != Order::kRandom) return *worker.ready.take_first();
    return *worker.ready.take(next_random(worker.random) % worker.ready.count);
}

void place_thread(Worker& worker, unsigned number, const uint3& block) {
    const Launch& launch = *worker.launch;
    const dim3& size = launch.block;
    Fiber& fiber = *worker.fibers[number];
    fiber.at.thread = {number % size.x, number / size.x % size.y, number / (size.x * size.y)};
    fiber.at.block = block;
    fiber.at.block_dim = size;
    fiber.at.grid_dim = launch.grid;
    fiber.at.lane = number % 32;
    fiber.number = number;
    fiber.call.site = {};
}

}  // namespace

// The thread that runs has stopped, or is in the queue: another goes on.
void pass_on(Fiber& from) {
    Fiber& to = next(*from.worker);
    if (&to != &from) switch_fiber(from, to);
}

void finish_thread(Fiber& fiber) {
    Worker& worker = *fiber.worker;
    fiber.state = State::kFinished;
    ++worker.finished;
    const unsigned warp = fiber.number / 32;
    worker.warps[warp].finished |= 1u << fiber.at.lane;
    complete_warp_calls(worker, warp);
    complete_barrier(worker);
    pass_on(fiber);
}

void run_block(Worker& worker, uint64_t index) {
    const Launch& launch = *worker.launch;
    const uint64_t plane = static_cast<uint64_t>(launch.grid.x) * launch.grid.y;
    const uint3 block = {static_cast<unsigned>(index % launch.grid.x),
                         static_cast<unsigned>(index / launch.grid.x % launch.grid.y),
                         static_cast<unsigned>(index / plane)};
    // Any odd factors that spread seed and block over the bits; the state may not be zero.
    worker.random = (launch.seed * 0x9e3779b97f4a7c15u) ^ ((index + 1) * 0xd1b54a32d192ed03u) ^ 1;
    if (worker.random == 0) worker.random = 1;
    choose_fibers(worker);
    begin_block_order(worker);
    begin_block_shared(worker);
    worker.finished = 0;
    worker.barrier = {};
    for (unsigned first = 0; first < worker.threads; first += 32) {
        const unsigned lanes = worker.threads - first < 32 ? worker.threads - first : 32;
        worker.warps[first / 32] = {0, lanes == 32 ? 0u : ~0u << lanes, 0};
    }
    const bool reverse = launch.order == Order::kReverse;
    for (unsigned i = 0; i < worker.threads; ++i) place_thread(worker, i, block);
    for (unsigned i = 0; i < worker.threads; ++i) {
        make_ready(worker, worker.fibers[reverse ? worker.threads - 1 - i : i]);
    }
    pass_on(worker.host);
}

}  // namespace simt
