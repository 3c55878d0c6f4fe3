// Arithmetic of reductions: in the order of ranks, 16-bit floats added as f32, every sum rounded.
#include <cstring>

#include "nccl.h"
#include "numbers.h"

namespace driver::nccl {
namespace {

template <typename T>
T combine(T a, T b, int operation) {
    switch (operation) {
        case kProd: return static_cast<T>(a * b);
        case kMax: return a > b ? a : b;
        case kMin: return a < b ? a : b;
        default: return static_cast<T>(a + b);
    }
}

// Load and store turn elements in memory to the type that is computed with.
template <typename T, typename Stored, T (*Load)(Stored), Stored (*Store)(T)>
void reduce_as(const std::vector<const void*>& from, void* out, size_t count, int operation) {
    Stored* to = static_cast<Stored*>(out);
    for (size_t i = 0; i < count; ++i) {
        Stored total = static_cast<const Stored*>(from[0])[i];
        for (size_t rank = 1; rank < from.size(); ++rank) {
            const Stored other = static_cast<const Stored*>(from[rank])[i];
            total = Store(combine(Load(total), Load(other), operation));
        }
        if (operation == kAvg) total = Store(static_cast<T>(Load(total) / static_cast<T>(from.size())));
        to[i] = total;
    }
}

template <typename T>
T same(T value) {
    return value;
}

template <typename T>
void reduce_plain(const std::vector<const void*>& from, void* out, size_t count, int operation) {
    reduce_as<T, T, same<T>, same<T>>(from, out, count, operation);
}

}  // namespace

void reduce(const std::vector<const void*>& from, void* out, size_t count, int type,
            int operation) {
    switch (type) {
        case kI8: return reduce_plain<int8_t>(from, out, count, operation);
        case kU8: return reduce_plain<uint8_t>(from, out, count, operation);
        case kI32: return reduce_plain<int32_t>(from, out, count, operation);
        case kU32: return reduce_plain<uint32_t>(from, out, count, operation);
        case kI64: return reduce_plain<int64_t>(from, out, count, operation);
        case kU64: return reduce_plain<uint64_t>(from, out, count, operation);
        case kF16:
            return reduce_as<float, uint16_t, f16_to_f32, f32_to_f16>(from, out, count, operation);
        case kF32: return reduce_plain<float>(from, out, count, operation);
        case kF64: return reduce_plain<double>(from, out, count, operation);
        case kBf16:
            return reduce_as<float, uint16_t, bf16_to_f32, f32_to_bf16>(from, out, count,
                                                                        operation);
        default: break;
    }
}

size_t type_bytes(int type) {
    constexpr size_t kBytes[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < kTypes ? kBytes[type] : 0;
}

const char* type_name(int type) {
    constexpr const char* kNames[kTypes] = {"i8",  "u8",  "i32", "u32", "i64",
                                            "u64", "f16", "f32", "f64", "bf16"};
    return type >= 0 && type < kTypes ? kNames[type] : "unknown";
}

}  // namespace driver::nccl
