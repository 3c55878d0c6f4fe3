// Calls of a warp's lanes together. The last lane that arrives works out what each one gets.
#include "machine.h"

namespace simt {

namespace {

Fiber& lane_of(Worker& worker, unsigned warp, unsigned lane) {
    return *worker.fibers[warp * 32 + lane];
}

// Lanes of a set, lowest first: for (unsigned lane : Lanes{set}).
struct Lanes {
    unsigned set;
    struct Iterator {
        unsigned rest;
        unsigned operator*() const { return static_cast<unsigned>(__builtin_ctz(rest)); }
        Iterator& operator++() {
            rest &= rest - 1;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return rest != other.rest; }
    };
    Iterator begin() const { return {set}; }
    Iterator end() const { return {0}; }
};

// The lanes that wait in a call with this very mask. Others of the mask may wait in a call of a part
// of the warp first; if they never come, that is a deadlock.
unsigned waiting_with(Worker& worker, unsigned warp, unsigned mask) {
    unsigned lanes = 0;
    for (const unsigned lane : Lanes{worker.warps[warp].arrived & mask}) {
        if (lane_of(worker, warp, lane).call.mask == mask) lanes |= 1u << lane;
    }
    return lanes;
}

void check_agrees(const Fiber& fiber, const Fiber& other) {
    const Site& mine = fiber.call.site;
    const Site& its = other.call.site;
    if (same_place(mine, its)) return;
    fail(&fiber, "divergent warp: lane %u is at %s(%08x), %s:%d; lane %u waits at %s, %s:%d",
         fiber.at.lane, mine.what, fiber.call.mask, mine.file, mine.line, other.at.lane, its.what,
         its.file, its.line);
}

void give_shuffled(Worker& worker, unsigned warp, unsigned lanes) {
    for (const unsigned lane : Lanes{lanes}) {
        Fiber& fiber = lane_of(worker, warp, lane);
        const unsigned source = fiber.call.source;
        if (!((lanes >> source) & 1u)) {
            const bool named = (fiber.call.mask >> source) & 1u;
            fail(&fiber, "lane %u reads lane %u, which %s %08x; %s, %s:%d", lane, source,
                 named ? "has returned, of the mask" : "is not in the mask", fiber.call.mask,
                 fiber.call.site.what, fiber.call.site.file, fiber.call.site.line);
        }
        fiber.result = lane_of(worker, warp, source).call.value;
    }
}

void give_ballot(Worker& worker, unsigned warp, unsigned lanes) {
    unsigned votes = 0;
    for (const unsigned lane : Lanes{lanes}) {
        if (lane_of(worker, warp, lane).call.value != 0) votes |= 1u << lane;
    }
    for (const unsigned lane : Lanes{lanes}) lane_of(worker, warp, lane).result = votes;
}

void give_matches(Worker& worker, unsigned warp, unsigned lanes) {
    for (const unsigned lane : Lanes{lanes}) {
        Fiber& fiber = lane_of(worker, warp, lane);
        unsigned same = 0;
        for (const unsigned other : Lanes{lanes}) {
            if (lane_of(worker, warp, other).call.value == fiber.call.value) same |= 1u << other;
        }
        fiber.result = same;
    }
}

void give_reduced(Worker& worker, unsigned warp, unsigned lanes) {
    const auto first = static_cast<unsigned>(__builtin_ctz(lanes));
    const Combine combine = lane_of(worker, warp, first).call.combine;
    uint64_t sum = lane_of(worker, warp, first).call.value;
    for (const unsigned lane : Lanes{lanes & (lanes - 1)}) {
        sum = combine(sum, lane_of(worker, warp, lane).call.value);
    }
    for (const unsigned lane : Lanes{lanes}) lane_of(worker, warp, lane).result = sum;
}

// Wakes the lanes that wait in this call if nobody is missing. Those that have returned are not
// waited for: all non-exited threads of the mask must come (CUDA C++ Programming Guide, "Warp
// Shuffle Functions").
void complete(Worker& worker, unsigned warp, unsigned mask, Warp kind) {
    WarpState& state = worker.warps[warp];
    const unsigned gone = state.finished & mask;
    if (((state.arrived & mask) | gone) != mask) return;
    const unsigned lanes = waiting_with(worker, warp, mask);
    if ((lanes | gone) != mask || lanes == 0) return;
    switch (kind) {
        case Warp::kSync: state.turns ^= mask & (~mask + 1); break;
        case Warp::kShuffle: give_shuffled(worker, warp, lanes); break;
        case Warp::kBallot: give_ballot(worker, warp, lanes); break;
        case Warp::kMatch: give_matches(worker, warp, lanes); break;
        case Warp::kReduce: give_reduced(worker, warp, lanes); break;
    }
    state.arrived &= ~lanes;
    const bool reverse = worker.launch->order == Order::kReverse;
    for (unsigned i = 0; i < 32; ++i) {
        const unsigned lane = reverse ? 31 - i : i;
        if ((lanes >> lane) & 1u) make_ready(worker, &lane_of(worker, warp, lane));
    }
}

}  // namespace

void complete_warp_calls(Worker& worker, unsigned warp) {
    for (const unsigned lane : Lanes{worker.warps[warp].arrived}) {
        const Fiber& fiber = lane_of(worker, warp, lane);
        if (fiber.state == State::kInWarp) complete(worker, warp, fiber.call.mask, fiber.call.kind);
    }
}

uint64_t meet_warp(const WarpCall& call) {
    Fiber& fiber = running();
    Worker& worker = *fiber.worker;
    const unsigned warp = fiber.number / 32;
    const unsigned self = 1u << fiber.at.lane;
    fiber.call = call;
    if (!(call.mask & self)) {
        fail(&fiber, "lane %u is not in its own mask %08x; %s, %s:%d", fiber.at.lane, call.mask,
             call.site.what, call.site.file, call.site.line);
    }
    WarpState& state = worker.warps[warp];
    const unsigned others = waiting_with(worker, warp, call.mask);
    if (others) check_agrees(fiber, lane_of(worker, warp, *Lanes{others}.begin()));
    // Of these calls only __syncwarp orders memory (CUDA C++ Programming Guide, "Warp Vote
    // Functions": "they do not imply a memory barrier").
    void* order = call.kind == Warp::kSync ? warp_order(worker, warp, call.mask) : nullptr;
    if (order) order_release(order);
    state.arrived |= self;
    fiber.state = State::kInWarp;
    complete(worker, warp, call.mask, call.kind);
    pass_on(fiber);
    if (order) order_acquire(order);
    return fiber.result;
}

}  // namespace simt
