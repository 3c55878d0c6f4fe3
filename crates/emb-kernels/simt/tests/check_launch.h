// Launches with typed arguments, device buffers and random numbers, for kernel tests.
#pragma once

#include "simt.h"
#include "simt_launch.h"

#include <cstdlib>
#include <cstring>
#include <tuple>
#include <vector>

namespace check {

// Memory as a GPU's allocator gives it: aligned to 256 bytes, and not one byte more than asked for,
// so that a sanitizer sees the end. Its bytes are counted where the build counts.
template <typename T>
class Buffer {
  public:
    explicit Buffer(size_t count, T fill = T{}) : Buffer() {
        take(count);
        for (size_t i = 0; i < count; ++i) start[i] = fill;
    }
    Buffer(const std::vector<T>& values) : Buffer() {
        take(values.size());
        for (size_t i = 0; i < values.size(); ++i) start[i] = values[i];
    }
    ~Buffer() {
        simt_uncount_region(start);
        free(start);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    size_t size() const { return count; }
    T* data() { return start; }
    T& operator[](size_t i) { return start[i]; }
    const T& operator[](size_t i) const { return start[i]; }
    T* begin() { return start; }
    T* end() { return start + count; }
    operator T*() { return start; }
    std::vector<T> values() const { return std::vector<T>(start, start + count); }

  private:
    Buffer() = default;
    void take(size_t elements) {
        void* memory = nullptr;
        const size_t bytes = elements * sizeof(T);
        if (posix_memalign(&memory, 256, bytes ? bytes : 1) != 0) abort();
        start = static_cast<T*>(memory);
        count = elements;
        simt_count_region(start, bytes);
    }
    T* start = nullptr;
    size_t count = 0;
};

// As name<<<grid, block, shared>>>(arguments...): arguments convert to the kernel's parameters.
template <typename... P, typename... A>
int launch(const char* name, void (*)(P...), dim3 grid, dim3 block, size_t shared,
           A&&... arguments) {
    static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has parameters");
    std::tuple<std::decay_t<P>...> values(std::forward<A>(arguments)...);
    return std::apply(
        [&](auto&... value) {
            void* pointers[sizeof...(P) + 1] = {static_cast<void*>(&value)..., nullptr};
            return simt_launch(name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
                               pointers);
        },
        values);
}

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class Random {
  public:
    explicit Random(uint64_t seed) : state(seed) {}
    uint64_t bits() {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t end) { return bits() % end; }
    // In [-1, 1), a multiple of 2^-23.
    float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-23f - 1.0f; }
    std::vector<float> uniforms(size_t count) {
        std::vector<float> all(count);
        for (float& each : all) each = uniform();
        return all;
    }

  private:
    uint64_t state;
};

}  // namespace check

// A refused launch is a failure of the test; use check::launch where a refusal is the claim.
#define LAUNCH(KERNEL, GRID, BLOCK, SHARED, ...)                                                 \
    do {                                                                                         \
        if (check::launch(#KERNEL, &KERNEL, GRID, BLOCK, SHARED, ##__VA_ARGS__) != kSimtSuccess) \
            check::failed(__FILE__, __LINE__, simt_error());                                     \
    } while (0)
