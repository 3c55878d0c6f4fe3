// Planted defects of addresses: past the end of global, static and dynamic shared memory, misaligned
// vectors, too much shared memory, a stack that overflows. Each has a twin that is right.
#include "check.h"

// The build that has the undefined-behaviour checks. clang does not check the copy of a struct.
#ifdef __clang__
constexpr unsigned kUnaligned = 0;
#else
constexpr unsigned kUnaligned = check::kAsan;
#endif

extern "C" __global__ void gather_rows(const float* table, const int* rows, float* out) {
    out[threadIdx.x] = table[rows[threadIdx.x / 8] * 8 + threadIdx.x % 8];  // row
}
SIMT_REGISTER(gather_rows)

static void gather(int row) {
    check::Buffer<float> table(100 * 8, 2.0f);
    check::Buffer<int> rows(std::vector<int>{0, 99, 5, row});
    check::Buffer<float> out(32);
    LAUNCH(gather_rows, 1, 32, 0, table, rows, out);
    for (float each : out) EXPECT_EQUAL(each, 2.0f);
}
TEST(the_last_row_of_a_table_may_be_read) { gather(99); }
PLANT(a_row_one_past_the_table, {check::kAsan, "heap-buffer-overflow"},
      {check::kAsan, "in gather_rows"}, {check::kAsan, LINE_WITH("// row")}) {
    gather(100);
}

extern "C" __global__ void shift_in_shared(int by, float* out) {
    EMB_SHARED_ARRAY(float, tile, [64]);
    const int i = static_cast<int>(threadIdx.x);
    float* floats = tile;  // a pointer, of which the compiler does not know the end
    floats[i] = 1.0f;
    floats[i + by] = 1.0f;
    out[i] = tile[i];
}
SIMT_REGISTER(shift_in_shared)

static void shift(int by) {
    check::Buffer<float> out(32);
    LAUNCH(shift_in_shared, 1, 32, 0, by, out);
    for (float each : out) EXPECT_EQUAL(each, 1.0f);
}
TEST(the_last_element_of_a_shared_array_may_be_written) { shift(32); }
PLANT(element_64_of_64_in_shared_memory, {check::kAsan, "heap-buffer-overflow"},
      {check::kAsan, "in shift_in_shared"}) {
    shift(33);
}

extern "C" __global__ void before_shared(int index, float* out) {
    EMB_SHARED_ARRAY(float, tile, [32]);
    const float* floats = tile;
    tile[threadIdx.x] = 1.0f;
    out[threadIdx.x] = floats[static_cast<int>(threadIdx.x) + index];
}
SIMT_REGISTER(before_shared)

extern "C" __global__ void index_shared(int index, float* out) {
    EMB_SHARED_ARRAY(float, tile, [32]);
    out[threadIdx.x] = tile[index];
}
SIMT_REGISTER(index_shared)
PLANT(an_index_past_a_shared_array_by_its_type, {check::kAsan, "index 32 out of bounds"}) {
    check::Buffer<float> out(32);
    LAUNCH(index_shared, 1, 1, 0, 32, out);
}

TEST(own_elements_of_a_shared_array_need_no_barrier) {
    check::Buffer<float> out(32);
    LAUNCH(before_shared, 1, 32, 0, 0, out);
    for (float each : out) EXPECT_EQUAL(each, 1.0f);
}
PLANT(an_element_before_a_shared_array, {check::kAsan, "use-after-poison"}) {
    check::Buffer<float> out(32);
    LAUNCH(before_shared, 1, 1, 0, -1, out);
}

extern "C" __global__ void fill_dynamic(int elements, float* out) {
    EMB_DYNAMIC_SHARED(float, all);
    for (int i = 0; i < elements; ++i) all[i] = static_cast<float>(i);
    out[0] = all[elements - 1];
}
SIMT_REGISTER(fill_dynamic)

static void fill(int elements, size_t bytes) {
    check::Buffer<float> out(1);
    LAUNCH(fill_dynamic, 3, 1, bytes, elements, out);
    EXPECT_EQUAL(out[0], static_cast<float>(elements - 1));
}
TEST(all_of_dynamic_shared_memory_may_be_written) {
    if (check::kFlavour != check::kTsan) fill(25, 100);  // blocks write the same word of `out`
}
PLANT(more_dynamic_shared_memory_than_was_asked_for, {check::kAsan, "heap-buffer-overflow"}) {
    fill(26, 100);
}
PLANT(dynamic_shared_memory_that_was_not_asked_for,
      {check::kEvery, "dynamic shared memory of a launch that asked for none"},
      {check::kEvery, "kernel fill_dynamic, block (0,0,0), thread (0,0,0)"}) {
    fill(1, 0);
}

extern "C" __global__ void load_vector(const float* from, float* out) {
    const float4 four = *reinterpret_cast<const float4*>(from);  // four at once
    out[0] = four.x + four.w;
}
SIMT_REGISTER(load_vector)

static void load_at(int offset) {
    check::Buffer<float> from(8, 1.5f);
    check::Buffer<float> out(1);
    LAUNCH(load_vector, 1, 1, 0, from.data() + offset, out);
    EXPECT_EQUAL(out[0], 3.0f);
}
TEST(a_16_byte_load_from_a_multiple_of_16_is_right) { load_at(4); }
PLANT(a_16_byte_load_from_an_odd_float, {kUnaligned, "misaligned address"},
      {kUnaligned, "requires 16 byte alignment"}, {kUnaligned, LINE_WITH("// four at once")}) {
    load_at(1);
}

template <typename T>
__device__ float first_of_shared() {
    EMB_SHARED_ARRAY(T, tile, [64]);
    auto* floats = reinterpret_cast<float*>(&tile[0]);
    for (int i = 0; i < 4; ++i) floats[i] = 1.5f;
    return reinterpret_cast<const float4*>(floats)->w;
}
extern "C" __global__ void vector_of_shared(int wide, float* out) {
    out[0] = wide ? first_of_shared<float4>() : first_of_shared<float>();
}
SIMT_REGISTER(vector_of_shared)

static void shared_vector(int wide) {
    check::Buffer<float> out(1);
    LAUNCH(vector_of_shared, 1, 1, 0, wide, out);
    EXPECT_EQUAL(out[0], 1.5f);
}
TEST(a_shared_array_of_vectors_is_aligned_for_them) { shared_vector(1); }
PLANT(a_vector_read_from_a_shared_array_of_floats, {kUnaligned, "misaligned address"}) {
    shared_vector(0);
}

extern "C" __global__ void much_shared(int second, float* out) {
    EMB_SHARED_ARRAY(float, first_half, [6144]);
    first_half[0] = 1.0f;
    if (second) {
        EMB_SHARED_ARRAY(float, second_half, [6145]);
        second_half[0] = 1.0f;
    }
    out[0] = first_half[0];
}
SIMT_REGISTER(much_shared)

TEST(half_of_the_static_shared_memory_may_be_taken) {
    check::Buffer<float> out(1);
    LAUNCH(much_shared, 1, 1, 0, 0, out);
    EXPECT_EQUAL(out[0], 1.0f);
}
PLANT(more_than_48_kib_of_static_shared_memory,
      {check::kEvery, "49156 bytes of shared arrays and 0 of dynamic"}) {
    check::Buffer<float> out(1);
    LAUNCH(much_shared, 1, 1, 0, 1, out);
}

// Volatile, so that no compiler turns the recursion into a loop.
static int deep(volatile int n) {
    volatile char frame[256];
    frame[0] = static_cast<char>(n);
    if (n == 0) return frame[0];
    const int below = deep(n - 1);
    return below + frame[0];
}
extern "C" __global__ void recursion(int n, int* out) { out[0] = deep(n); }
SIMT_REGISTER(recursion)

TEST(a_thread_has_tens_of_kilobytes_of_stack) {
    check::Buffer<int> out(1);
    LAUNCH(recursion, 1, 1, 0, 100, out);
}
PLANT(a_stack_that_overflows_meets_its_guard_page, {check::kEvery, ""}) {
    check::Buffer<int> out(1);
    LAUNCH(recursion, 1, 1, 0, 1000000, out);
}

PLANT(a_kernel_called_outside_of_a_launch, {check::kEvery, "outside of a launch"}) {
    float out[32];
    before_shared(0, out);
}

CHECK_MAIN
