// The shim itself: where threads are, launches and their limits, schedules, shared memory.
#include "check.h"

extern "C" __global__ void coordinates(uint4* seen) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    seen[block * threads + thread] =
        make_uint4(threadIdx.x + 100 * blockIdx.x, threadIdx.y + 100 * blockIdx.y,
                   threadIdx.z + 100 * blockIdx.z, thread);
}
SIMT_REGISTER(coordinates)

TEST(every_thread_of_a_three_dimensional_grid_runs_once) {
    check::for_each_schedule([] {
        const dim3 grid(3, 2, 2);
        const dim3 block(5, 3, 4);
        check::Buffer<uint4> seen(12 * 60);
        LAUNCH(coordinates, grid, block, 0, seen);
        for (unsigned b = 0; b < 12; ++b) {
            for (unsigned t = 0; t < 60; ++t) {
                const uint4 expected = make_uint4(t % 5 + 100 * (b % 3), t / 5 % 3 + 100 * (b / 3 % 2),
                                                  t / 15 + 100 * (b / 6), t);
                EXPECT_EQUAL(seen[b * 60 + t], expected);
            }
        }
    });
}

struct Plain {
    double scale;
    int values[9];
};
extern "C" __global__ void many_parameters(float* out, Plain plain, char shift, const int* add,
                                           uint64_t big, __half small) {
    out[0] = static_cast<float>(plain.scale) * plain.values[8] + shift + (add ? *add : 0);
    out[1] = static_cast<float>(big >> 32) + __half2float(small);
}
SIMT_REGISTER(many_parameters)

TEST(parameters_arrive_by_value_as_declared) {
    Plain plain{0.5, {0, 0, 0, 0, 0, 0, 0, 0, 6}};
    check::Buffer<float> out(2);
    check::Buffer<int> add(1, 40);
    LAUNCH(many_parameters, 1, 1, 0, out, plain, 2, add, uint64_t{7} << 32, __float2half_rn(0.25f));
    EXPECT_EQUAL(out[0], 45.0f);
    EXPECT_EQUAL(out[1], 7.25f);
    LAUNCH(many_parameters, 1, 1, 0, out, plain, 2, nullptr, 0, __half{0});
    EXPECT_EQUAL(out[0], 5.0f);
    size_t bytes[6] = {};
    EXPECT_EQUAL(simt_param_sizes("many_parameters", bytes, 6), 6);
    EXPECT_EQUAL(bytes[1], sizeof(Plain));
    EXPECT_EQUAL(bytes[2], 1u);
    EXPECT_EQUAL(bytes[5], 2u);
    EXPECT_EQUAL(simt_param_sizes("not_a_kernel", bytes, 6), -1);
}

extern "C" __global__ void nothing() {}
SIMT_REGISTER(nothing)

TEST(launches_past_a_limit_of_a_gpu_are_refused_with_a_reason) {
    const auto code = [](dim3 grid, dim3 block, size_t shared) {
        return check::launch("nothing", &nothing, grid, block, shared);
    };
    EXPECT_EQUAL(code(1, 1024, 0), kSimtSuccess);
    EXPECT_EQUAL(code(1, dim3(4, 4, 64), 0), kSimtSuccess);
    EXPECT_EQUAL(code(1, 1025, 0), kSimtInvalidValue);
    EXPECT(strstr(simt_error(), "1025 x 1 x 1 threads"));
    EXPECT_EQUAL(code(1, dim3(32, 33, 1), 0), kSimtInvalidValue);
    EXPECT_EQUAL(code(1, dim3(1, 1, 65), 0), kSimtInvalidValue);
    EXPECT_EQUAL(code(1, 0, 0), kSimtInvalidValue);
    EXPECT_EQUAL(code(0, 1, 0), kSimtInvalidValue);
    EXPECT_EQUAL(code(dim3(1, 65536, 1), 1, 0), kSimtInvalidValue);
    EXPECT_EQUAL(code(dim3(0x80000000u, 1, 1), 1, 0), kSimtInvalidValue);
    EXPECT_EQUAL(code(1, 1, 48 * 1024), kSimtSuccess);
    EXPECT_EQUAL(code(1, 1, 48 * 1024 + 1), kSimtInvalidValue);
    EXPECT_EQUAL(simt_allow_shared("nothing", 227 * 1024 + 1), kSimtInvalidValue);
    EXPECT_EQUAL(simt_allow_shared("nothing", 227 * 1024), kSimtSuccess);
    EXPECT_EQUAL(code(1, 1, 227 * 1024), kSimtSuccess);
    EXPECT_EQUAL(check::launch("unknown", &nothing, 1, 1, 0), kSimtNotFound);
    EXPECT(strstr(simt_error(), "no kernel is named unknown"));
}

// Sums over the block by halves, as a block-wide tree does.
extern "C" __global__ void block_sum(const float* in, float* out) {
    EMB_SHARED_ARRAY(float, partial, [64]);
    const unsigned i = threadIdx.x;
    partial[i] = in[blockIdx.x * 64 + i];
    __syncthreads();
    for (unsigned half = 32; half > 0; half /= 2) {
        if (i < half) partial[i] += partial[i + half];
        __syncthreads();
    }
    if (i == 0) out[blockIdx.x] = partial[0];
}
SIMT_REGISTER(block_sum)

TEST(a_tree_of_barriers_sums_in_every_schedule_and_over_threads) {
    check::Random random(1);
    std::vector<float> values(8 * 64);
    std::vector<float> sums(8);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(random.below(1000));
        sums[i / 64] += values[i];
    }
    check::Buffer<float> in(values);
    for (const char* threads : {"1", "3"}) {
        setenv("SIMT_THREADS", threads, 1);
        check::for_each_schedule([&] {
            check::Buffer<float> out(8);
            LAUNCH(block_sum, 8, 64, 0, in, out);
            EXPECT_ALL_EQUAL(out, sums);
        });
    }
    unsetenv("SIMT_THREADS");
}

extern "C" __global__ void returns_early(int n, int* out) {
    EMB_SHARED_ARRAY(int, seen, [64]);
    const int i = static_cast<int>(threadIdx.x);
    if (i >= n) return;
    seen[i] = i;
    __syncthreads();
    out[i] = seen[n - 1 - i];
}
SIMT_REGISTER(returns_early)

TEST(threads_that_have_returned_are_not_waited_for) {
    check::for_each_schedule([] {
        check::Buffer<int> out(37);
        LAUNCH(returns_early, 1, 64, 0, 37, out);
        for (int i = 0; i < 37; ++i) EXPECT_EQUAL(out[i], 36 - i);
    });
}

extern "C" __global__ void votes(int* out) {
    const int i = static_cast<int>(threadIdx.x);
    const int count = __syncthreads_count(i % 3 == 0);
    const int all = __syncthreads_and(i < 96);
    const int any = __syncthreads_or(i == 95);
    const int none = __syncthreads_or(i == 96);
    out[i] = count * 8 + all * 4 + any * 2 + none;
}
SIMT_REGISTER(votes)

TEST(barriers_count_and_vote) {
    check::for_each_schedule([] {
        check::Buffer<int> out(96);
        LAUNCH(votes, 1, 96, 0, out);
        for (int each : out) EXPECT_EQUAL(each, 32 * 8 + 4 + 2);
    });
}

extern "C" __global__ void shared_at_the_start(unsigned* out) {
    EMB_SHARED_ARRAY(unsigned, words, [32]);
    EMB_DYNAMIC_SHARED(unsigned, more);
    out[blockIdx.x * 32 + threadIdx.x] = words[threadIdx.x] & more[threadIdx.x];
    words[threadIdx.x] = 0;
    more[threadIdx.x] = 0;
}
SIMT_REGISTER(shared_at_the_start)

TEST(each_block_finds_shared_memory_full_of_ones) {
    check::Buffer<unsigned> out(4 * 32);
    LAUNCH(shared_at_the_start, 4, 32, 128, out);
    for (unsigned each : out) EXPECT_EQUAL(each, 0xffffffffu);
}

extern "C" __global__ void order_of_threads(unsigned* next, unsigned* order) {
    order[atomicAdd(next, 1u)] = blockIdx.x * blockDim.x + threadIdx.x;
}
SIMT_REGISTER(order_of_threads)

TEST(a_seed_gives_one_order_and_another_seed_another) {
    const auto order = [](const char* schedule, const char* seed) {
        setenv("SIMT_SCHEDULE", schedule, 1);
        setenv("SIMT_SEED", seed, 1);
        check::Buffer<unsigned> next(1);
        check::Buffer<unsigned> seen(4 * 32);
        LAUNCH(order_of_threads, 4, 32, 0, next, seen);
        unsetenv("SIMT_SCHEDULE");
        unsetenv("SIMT_SEED");
        return seen.values();
    };
    const std::vector<unsigned> forward = order("sequential", "1");
    const std::vector<unsigned> backward = order("reverse", "1");
    for (unsigned i = 0; i < 128; ++i) {
        EXPECT_EQUAL(forward[i], i);
        EXPECT_EQUAL(backward[i], 127 - i);
    }
    EXPECT(order("random", "5") == order("random", "5"));
    EXPECT(order("random", "5") != order("random", "6"));
}

CHECK_MAIN
