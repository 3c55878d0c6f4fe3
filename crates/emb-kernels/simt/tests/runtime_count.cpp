// The byte counter: what kernels read and write of device memory, to the byte. Other builds count
// nothing and say so.
#include "check.h"

extern "C" __global__ void copy_floats(const float* from, float* to, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void copy_vectors(const float4* from, float4* to, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void copy_halves(const __half* from, __half* to, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void copy_longs(const uint64_t* from, uint64_t* to, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) to[i] = __ldg(&from[i]);
}
SIMT_REGISTER(copy_floats)
SIMT_REGISTER(copy_vectors)
SIMT_REGISTER(copy_halves)
SIMT_REGISTER(copy_longs)

struct Counts {
    uint64_t reads;
    uint64_t writes;
};
static Counts counts_of(const char* kernel) {
    Counts counts{};
    simt_counters(kernel, &counts.reads, &counts.writes);
    return counts;
}
static Counts unique_of(const char* kernel) {
    Counts counts{};
    simt_unique_counters(kernel, &counts.reads, &counts.writes);
    return counts;
}
static Counts counts_in(const void* start) {
    Counts counts{};
    simt_region_counters(start, &counts.reads, &counts.writes);
    return counts;
}
// What a counting build should say; the others say 0.
static uint64_t counted(uint64_t bytes) { return simt_counts() ? bytes : 0; }

static void expect_counts(const Counts& actual, uint64_t reads, uint64_t writes) {
    EXPECT_EQUAL(actual.reads, counted(reads));
    EXPECT_EQUAL(actual.writes, counted(writes));
}

TEST(only_the_counting_build_counts) {
    EXPECT_EQUAL(simt_counts() != 0, check::kFlavour == check::kCount);
}

template <typename T, typename Kernel>
static void copy(const char* name, Kernel kernel, const char* threads) {
    setenv("SIMT_THREADS", threads, 1);
    simt_counters_reset();
    const int n = 1000;
    check::Buffer<T> from(n);
    check::Buffer<T> to(n);
    EXPECT_EQUAL(check::launch(name, kernel, 8, 128, 0, from, to, n), kSimtSuccess);
    unsetenv("SIMT_THREADS");
    expect_counts(counts_of(name), n * sizeof(T), n * sizeof(T));
    expect_counts(counts_in(from), n * sizeof(T), 0);
    expect_counts(counts_in(to), 0, n * sizeof(T));
    EXPECT_EQUAL(check::launch(name, kernel, 8, 128, 0, from, to, n - 7), kSimtSuccess);
    expect_counts(counts_of(name), (2 * n - 7) * sizeof(T), (2 * n - 7) * sizeof(T));
}
TEST(a_copy_of_n_elements_reads_and_writes_them_once) {
    for (const char* threads : {"1", "2"}) {
        copy<float>("copy_floats", &copy_floats, threads);
        copy<float4>("copy_vectors", &copy_vectors, threads);
        copy<__half>("copy_halves", &copy_halves, threads);
        copy<uint64_t>("copy_longs", &copy_longs, threads);
    }
}

struct Wide {
    uint64_t words[13];
};
extern "C" __global__ void copy_structs(const Wide* from, Wide* to) {
    Wide one = from[threadIdx.x];
    one.words[threadIdx.x] += 1;  // so that it is a copy in registers or on the stack
    to[threadIdx.x] = one;
}
SIMT_REGISTER(copy_structs)
TEST(a_struct_is_read_and_written_whole) {
    simt_counters_reset();
    check::Buffer<Wide> from(5);
    check::Buffer<Wide> to(5);
    LAUNCH(copy_structs, 1, 5, 0, from, to);
    expect_counts(counts_of("copy_structs"), 5 * sizeof(Wide), 5 * sizeof(Wide));
}

extern "C" __global__ void through_shared(const float* from, float* to) {
    EMB_SHARED_ARRAY(float, tile, [128]);
    EMB_DYNAMIC_SHARED(float, more);
    tile[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    more[threadIdx.x] = tile[127 - threadIdx.x];
    __syncthreads();
    float local[4] = {};
    for (unsigned i = 0; i < 16; ++i) local[(threadIdx.x + i) % 4] += more[(threadIdx.x + i) % 128];
    to[threadIdx.x] = local[threadIdx.x % 4];
}
SIMT_REGISTER(through_shared)
TEST(shared_memory_and_stacks_do_not_count) {
    simt_counters_reset();
    check::Buffer<float> from(128);
    check::Buffer<float> to(128);
    LAUNCH(through_shared, 1, 128, 512, from, to);
    expect_counts(counts_of("through_shared"), 512, 512);
}

extern "C" __global__ void add_to_all(int* ints, float* floats, unsigned long long* longs) {
    const unsigned i = threadIdx.x % 8;
    atomicAdd(&ints[i], 1);
    atomicAdd(&floats[i], 1.0f);
    atomicMax(&longs[i], 3ull);
}
SIMT_REGISTER(add_to_all)
TEST(an_atomic_reads_and_writes_once) {
    simt_counters_reset();
    check::Buffer<int> ints(8);
    check::Buffer<float> floats(8);
    check::Buffer<unsigned long long> longs(8);
    LAUNCH(add_to_all, 2, 32, 0, ints, floats, longs);
    expect_counts(counts_of("add_to_all"), 64 * 16, 64 * 16);
    expect_counts(counts_in(longs), 64 * 8, 64 * 8);
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQUAL(ints[i], 8);
        EXPECT_EQUAL(floats[i], 8.0f);
        EXPECT_EQUAL(longs[i], 3ull);
    }
}

extern "C" __global__ void read_twice(const float* from, const int* index, float* to) {
    const unsigned i = threadIdx.x;
    float sum = 0.0f;
    for (int pass = 0; pass < 2; ++pass) sum += from[index[i] + pass];
    to[i] = sum;
    if (i == 0) to[0] = 0.5f;
}
SIMT_REGISTER(read_twice)
TEST(unique_bytes_count_once_a_launch) {
    simt_counters_reset();
    simt_count_unique(1);
    check::Buffer<float> from(9000);
    std::vector<int> places(64);
    for (int i = 0; i < 64; ++i) places[i] = i * 100 + i % 2;
    check::Buffer<int> index(places);
    check::Buffer<float> to(64);
    LAUNCH(read_twice, 1, 64, 0, from, index, to);
    expect_counts(unique_of("read_twice"), 64 * 2 * 4 + 64 * 4, 64 * 4);
    EXPECT(!simt_counts() || counts_of("read_twice").reads >= 64 * 3 * 4);
    EXPECT(!simt_counts() || counts_of("read_twice").writes >= 64 * 4);
    LAUNCH(read_twice, 1, 64, 0, from, index, to);
    expect_counts(unique_of("read_twice"), 2 * (64 * 2 * 4 + 64 * 4), 2 * 64 * 4);
    simt_count_unique(0);
    std::vector<int> same(64, 7);
    check::Buffer<int> one_place(same);
    simt_counters_reset();
    simt_count_unique(1);
    LAUNCH(read_twice, 1, 64, 0, from, one_place, to);
    expect_counts(unique_of("read_twice"), 8 + 64 * 4, 64 * 4);
    expect_counts(counts_in(from), 64 * 8, 0);
    simt_count_unique(0);
}

TEST(memory_that_is_not_registered_does_not_count) {
    simt_counters_reset();
    check::Buffer<float> from(100);
    std::vector<float> to(100);
    LAUNCH(copy_floats, 1, 128, 0, from, to.data(), 100);
    expect_counts(counts_of("copy_floats"), 400, 0);
    simt_uncount_region(from);
    LAUNCH(copy_floats, 1, 128, 0, from, to.data(), 100);
    expect_counts(counts_of("copy_floats"), 400, 0);
}

CHECK_MAIN
