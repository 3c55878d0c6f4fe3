// Atomics against a loop, over blocks on several OS threads; and the intrinsics of simt_math.h.
#include "check.h"

#include <limits>

struct Cells {
    int sum, least, most, both, either, flip;
    unsigned wrapped, down;
    unsigned long long long_sum, long_least, long_most;
    float real;
    double wide;
};

extern "C" __global__ void change_cells(Cells* cells, const int* values) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const int v = values[i];
    atomicAdd(&cells->sum, v);
    atomicMin(&cells->least, v);
    atomicMax(&cells->most, v);
    atomicAnd(&cells->both, v | 0xff);
    atomicOr(&cells->either, v & 0xffff);
    atomicXor(&cells->flip, v);
    atomicInc(&cells->wrapped, 6u);
    atomicDec(&cells->down, 10u);
    const auto big = static_cast<unsigned long long>(v) << 20;
    atomicAdd(&cells->long_sum, big);
    atomicMin(&cells->long_least, big);
    atomicMax(&cells->long_most, big);
    atomicAdd(&cells->real, static_cast<float>(v % 100));
    atomicAdd(&cells->wide, static_cast<double>(v) * 0.5);
}
SIMT_REGISTER(change_cells)

TEST(atomics_lose_no_update_over_os_threads) {
    check::Random random(5);
    std::vector<int> inputs(16 * 64);
    for (int& each : inputs) each = static_cast<int>(random.below(1 << 20));
    const auto wide = std::numeric_limits<unsigned long long>::max();
    const int most = std::numeric_limits<int>::max();
    Cells want{0, most, 0, -1, 0, 0, 0, 0, 0, wide, 0, 0.0f, 0.0};
    check::Buffer<Cells> cells(1, want);
    for (int v : inputs) {
        const auto big = static_cast<unsigned long long>(v) << 20;
        want.sum += v;
        want.least = min(want.least, v);
        want.most = max(want.most, v);
        want.both &= v | 0xff;
        want.either |= v & 0xffff;
        want.flip ^= v;
        want.wrapped = want.wrapped >= 6 ? 0 : want.wrapped + 1;
        want.down = want.down == 0 || want.down > 10 ? 10 : want.down - 1;
        want.long_sum += big;
        want.long_least = min(want.long_least, big);
        want.long_most = max(want.long_most, big);
        want.real += static_cast<float>(v % 100);  // whole numbers: any order gives the same sum
        want.wide += static_cast<double>(v) * 0.5;
    }
    check::Buffer<int> values(inputs);
    setenv("SIMT_THREADS", "3", 1);
    LAUNCH(change_cells, 16, 64, 0, cells, values);
    unsetenv("SIMT_THREADS");
    EXPECT_EQUAL(cells[0].sum, want.sum);
    EXPECT_EQUAL(cells[0].least, want.least);
    EXPECT_EQUAL(cells[0].most, want.most);
    EXPECT_EQUAL(cells[0].both, want.both);
    EXPECT_EQUAL(cells[0].either, want.either);
    EXPECT_EQUAL(cells[0].flip, want.flip);
    EXPECT_EQUAL(cells[0].wrapped, want.wrapped);
    EXPECT_EQUAL(cells[0].down, want.down);
    EXPECT_EQUAL(cells[0].long_sum, want.long_sum);
    EXPECT_EQUAL(cells[0].long_least, want.long_least);
    EXPECT_EQUAL(cells[0].long_most, want.long_most);
    EXPECT_EQUAL(cells[0].real, want.real);
    EXPECT_EQUAL(cells[0].wide, want.wide);
}

extern "C" __global__ void first_come(unsigned* owner, float* last, unsigned* winners) {
    const unsigned self = threadIdx.x + 1;
    if (atomicCAS(owner, 0u, self) == 0u) winners[0] = self;
    const float before = atomicExch(last, static_cast<float>(self));
    winners[self] = static_cast<unsigned>(before);
}
SIMT_REGISTER(first_come)

TEST(compare_and_swap_has_one_winner_and_exchange_gives_what_was_there) {
    check::for_each_schedule([] {
        check::Buffer<unsigned> owner(1);
        check::Buffer<float> last(1);
        check::Buffer<unsigned> winners(65);
        LAUNCH(first_come, 1, 64, 0, owner, last, winners);
        EXPECT_EQUAL(winners[0], owner[0]);
        uint64_t seen = 0;  // each thread's number was given to exactly one other, but the last
        for (unsigned i = 1; i <= 64; ++i) {
            if (winners[i]) seen |= 1ull << (winners[i] - 1);
        }
        seen |= 1ull << (static_cast<unsigned>(last[0]) - 1);
        EXPECT_EQUAL(seen, ~0ull);
    });
}

TEST(integer_intrinsics_count_and_multiply_bits) {
    check::Random random(6);
    EXPECT_EQUAL(__clz(0), 32);
    EXPECT_EQUAL(__clzll(0), 64);
    EXPECT_EQUAL(__ffs(0), 0);
    EXPECT_EQUAL(__ffsll(0), 0);
    for (int i = 0; i < 1000; ++i) {
        const uint64_t x = random.bits() >> random.below(64);
        const uint64_t y = random.bits();
        const auto a = static_cast<uint32_t>(x);
        const auto b = static_cast<uint32_t>(y);
        int bits = 0, top = -1, low = -1;
        uint32_t turned = 0;
        for (int k = 0; k < 32; ++k) {
            if (!((a >> k) & 1)) continue;
            ++bits;
            top = k;
            if (low < 0) low = k;
            turned |= 1u << (31 - k);
        }
        EXPECT_EQUAL(__popc(a), bits);
        EXPECT_EQUAL(__popcll(x), __popc(a) + __popc(static_cast<uint32_t>(x >> 32)));
        EXPECT_EQUAL(__clz(static_cast<int>(a)), 31 - top);
        EXPECT_EQUAL(__ffs(static_cast<int>(a)), low + 1);
        EXPECT_EQUAL(__brev(a), turned);
        const uint64_t product = static_cast<uint64_t>(a) * b;
        EXPECT_EQUAL(__umulhi(a, b), static_cast<uint32_t>(product >> 32));
        // By halves, without a 128-bit type.
        const uint64_t x0 = a, x1 = x >> 32, y0 = b, y1 = y >> 32;
        const uint64_t middle = x1 * y0 + (x0 * y0 >> 32);
        const uint64_t cross = x0 * y1 + (middle & 0xffffffffu);
        EXPECT_EQUAL(__umul64hi(x, y), x1 * y1 + (middle >> 32) + (cross >> 32));
    }
    EXPECT_EQUAL(max(-1, 1u), 0xffffffffu);  // as CUDA: both become unsigned
    EXPECT_EQUAL(min(NAN, 2.0f), 2.0f);
    EXPECT_EQUAL(rsqrtf(4.0f), 0.5f);
}

CHECK_MAIN
