// What lanes do together, against a plain loop over the lanes: shuffles with widths, votes, matches,
// reductions, masks of part of a warp, and several warps at once.
#include "check.h"

constexpr unsigned kFull = 0xffffffffu;

// One output of each call a lane, so that a test compares all of them at once.
struct LaneResults {
    int shuffled, up, down, flipped;
    int narrow, narrow_up, narrow_down, narrow_flipped;
    unsigned ballot, match;
    int any, all;
    float real;
    unsigned long long wide;
};

extern "C" __global__ void all_calls(const int* values, LaneResults* out) {
    const unsigned i = threadIdx.x + blockDim.x * blockIdx.x;
    const int v = values[i];
    LaneResults r;
    r.shuffled = __shfl_sync(kFull, v, 5);
    r.up = __shfl_up_sync(kFull, v, 3);
    r.down = __shfl_down_sync(kFull, v, 7);
    r.flipped = __shfl_xor_sync(kFull, v, 9);
    r.narrow = __shfl_sync(kFull, v, 13, 8);
    r.narrow_up = __shfl_up_sync(kFull, v, 2, 4);
    r.narrow_down = __shfl_down_sync(kFull, v, 2, 4);
    r.narrow_flipped = __shfl_xor_sync(kFull, v, 3, 16);
    r.ballot = __ballot_sync(kFull, v % 3 == 0);
    r.match = __match_any_sync(kFull, v % 5);
    r.any = __any_sync(kFull, v == values[i / 32 * 32 + 4]);
    r.all = __all_sync(kFull, v >= 0);
    r.real = __shfl_sync(kFull, static_cast<float>(v) * 0.5f, static_cast<int>(i % 32) + 1);
    r.wide = __shfl_xor_sync(kFull, static_cast<unsigned long long>(v) << 33, 31);
    out[i] = r;
}
SIMT_REGISTER(all_calls)

static LaneResults expected_of(const int* warp, int lane) {
    LaneResults r{};
    r.shuffled = warp[5];
    r.up = lane < 3 ? warp[lane] : warp[lane - 3];
    r.down = lane + 7 > 31 ? warp[lane] : warp[lane + 7];
    r.flipped = warp[lane ^ 9];
    r.narrow = warp[lane / 8 * 8 + 13 % 8];
    r.narrow_up = lane % 4 < 2 ? warp[lane] : warp[lane - 2];
    r.narrow_down = lane % 4 >= 2 ? warp[lane] : warp[lane + 2];
    r.narrow_flipped = warp[lane ^ 3];
    r.all = 1;
    for (int other = 0; other < 32; ++other) {
        r.ballot |= (warp[other] % 3 == 0 ? 1u : 0u) << other;
        r.match |= (warp[other] % 5 == warp[lane] % 5 ? 1u : 0u) << other;
        r.any |= warp[other] == warp[4];
        r.all &= warp[other] >= 0;
    }
    r.real = static_cast<float>(warp[(lane + 1) % 32]) * 0.5f;
    r.wide = static_cast<unsigned long long>(warp[lane ^ 31]) << 33;
    return r;
}

TEST(every_call_of_a_warp_gives_what_a_loop_over_lanes_gives) {
    check::Random random(3);
    std::vector<int> inputs(2 * 96);
    for (int& each : inputs) each = static_cast<int>(random.below(50)) - (random.below(9) == 0);
    for (int i = 0; i < 32; ++i) inputs[static_cast<size_t>(i)] |= 0x40;  // a warp where __all holds
    check::Buffer<int> values(inputs);
    check::for_each_schedule([&] {
        check::Buffer<LaneResults> out(inputs.size());
        LAUNCH(all_calls, 2, 96, 0, values, out);
        for (size_t i = 0; i < inputs.size(); ++i) {
            const LaneResults want = expected_of(&inputs[i / 32 * 32], static_cast<int>(i % 32));
            EXPECT_EQUAL(out[i].shuffled, want.shuffled);
            EXPECT_EQUAL(out[i].up, want.up);
            EXPECT_EQUAL(out[i].down, want.down);
            EXPECT_EQUAL(out[i].flipped, want.flipped);
            EXPECT_EQUAL(out[i].narrow, want.narrow);
            EXPECT_EQUAL(out[i].narrow_up, want.narrow_up);
            EXPECT_EQUAL(out[i].narrow_down, want.narrow_down);
            EXPECT_EQUAL(out[i].narrow_flipped, want.narrow_flipped);
            EXPECT_EQUAL(out[i].ballot, want.ballot);
            EXPECT_EQUAL(out[i].match, want.match);
            EXPECT_EQUAL(out[i].any, want.any);
            EXPECT_EQUAL(out[i].all, want.all);
            EXPECT_EQUAL(out[i].real, want.real);
            EXPECT_EQUAL(out[i].wide, want.wide);
        }
    });
}

extern "C" __global__ void reductions(const int* values, int* out) {
    const unsigned i = threadIdx.x;
    const unsigned mask = i % 32 < 20 ? 0x000fffffu : 0xfff00000u;
    const int v = values[i];
    const auto u = static_cast<unsigned>(v);
    int* mine = out + i * 9;
    mine[0] = __reduce_add_sync(mask, v);
    mine[1] = __reduce_min_sync(mask, v);
    mine[2] = __reduce_max_sync(mask, v);
    mine[3] = static_cast<int>(__reduce_add_sync(mask, u));
    mine[4] = static_cast<int>(__reduce_min_sync(mask, u));
    mine[5] = static_cast<int>(__reduce_max_sync(mask, u));
    mine[6] = static_cast<int>(__reduce_and_sync(mask, u));
    mine[7] = static_cast<int>(__reduce_or_sync(mask, u));
    mine[8] = static_cast<int>(__reduce_xor_sync(mask, u));
}
SIMT_REGISTER(reductions)

TEST(reductions_are_over_the_lanes_of_their_mask) {
    check::Random random(4);
    std::vector<int> inputs(64);
    for (int& each : inputs) each = static_cast<int>(random.bits());
    check::Buffer<int> values(inputs);
    check::for_each_schedule([&] {
        check::Buffer<int> out(64 * 9);
        LAUNCH(reductions, 1, 64, 0, values, out);
        for (int i = 0; i < 64; ++i) {
            const int begin = i / 32 * 32 + (i % 32 < 20 ? 0 : 20);
            const int end = i / 32 * 32 + (i % 32 < 20 ? 20 : 32);
            int least = inputs[begin], most = least;
            unsigned low = ~0u, high = 0, sum = 0, both = ~0u, either = 0, odd = 0;
            for (int lane = begin; lane < end; ++lane) {
                const auto u = static_cast<unsigned>(inputs[lane]);
                least = min(least, inputs[lane]);
                most = max(most, inputs[lane]);
                low = min(low, u);
                high = max(high, u);
                sum += u;
                both &= u;
                either |= u;
                odd ^= u;
            }
            const int want[9] = {static_cast<int>(sum), least, most, static_cast<int>(sum),
                                 static_cast<int>(low), static_cast<int>(high),
                                 static_cast<int>(both), static_cast<int>(either),
                                 static_cast<int>(odd)};
            for (int k = 0; k < 9; ++k) EXPECT_EQUAL(out[i * 9 + k], want[k]);
        }
    });
}

// Two parts of a warp go their own ways for different numbers of rounds.
extern "C" __global__ void parts_apart(int* out) {
    EMB_SHARED_ARRAY(int, seen, [64]);
    const unsigned lane = threadIdx.x % 32;
    const bool low = lane < 12;
    const unsigned mask = low ? 0x00000fffu : 0xfffff000u;
    int sum = 0;
    for (int round = 0; round < (low ? 9 : 4); ++round) {
        seen[threadIdx.x] = round + static_cast<int>(lane);
        __syncwarp(mask);
        const unsigned first = low ? 0 : 12;
        const unsigned lanes = low ? 12 : 20;
        sum += seen[threadIdx.x / 32 * 32 + first + (lane - first + 1) % lanes];
        sum += __shfl_sync(mask, round, low ? 3 : 30);
        __syncwarp(mask);
    }
    __syncwarp();
    out[threadIdx.x] = sum + __shfl_sync(kFull, sum, 0) * 1000;
}
SIMT_REGISTER(parts_apart)

TEST(parts_of_a_warp_meet_by_themselves) {
    check::for_each_schedule([] {
        check::Buffer<int> out(64);
        LAUNCH(parts_apart, 1, 64, 0, out);
        const auto sum = [](int lane) {
            const int first = lane < 12 ? 0 : 12;
            const int lanes = lane < 12 ? 12 : 20;
            const int next = first + (lane - first + 1) % lanes;
            int all = 0;
            for (int round = 0; round < (lane < 12 ? 9 : 4); ++round) all += 2 * round + next;
            return all;
        };
        for (int i = 0; i < 64; ++i) EXPECT_EQUAL(out[i], sum(i % 32) + 1000 * sum(0));
    });
}

extern "C" __global__ void part_of_a_block(int* out) {
    const int i = static_cast<int>(threadIdx.x);
    out[i] = static_cast<int>(__ballot_sync(kFull, 1)) + __reduce_add_sync(kFull, 1);
}
SIMT_REGISTER(part_of_a_block)

TEST(a_last_warp_with_fewer_lanes_takes_the_full_mask) {
    check::Buffer<int> out(37);
    LAUNCH(part_of_a_block, 1, 37, 0, out);
    EXPECT_EQUAL(out[31], -1 + 32);
    EXPECT_EQUAL(out[36], 0x1f + 5);
}

CHECK_MAIN
