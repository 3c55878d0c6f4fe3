// Update rules over a dense parameter, element by element: the device rules of emb-optim, with a row
// of one element.
#include "elements.cuh"
#include "rules.cuh"

namespace emb {
namespace dense_update {

// Steps `kWidth` neighbouring elements from `first` on.
template <int kWidth, typename Rule>
__device__ __forceinline__ void step(const Rule& rule, uint32_t slots, float* parameter, float* state,
                                     const float* __restrict__ gradient, uint64_t len,
                                     uint64_t first) {
    constexpr int kSlots = int(Rule::kElementSlots);
    // One more than the rule has, so that it is never empty.
    Pack<kWidth> kept[kSlots + 1] = {};
    auto weights = read_pack<kWidth>(parameter + first);
    const auto gradients = read_pack<kWidth>(gradient + first);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
        if (slot < int(slots)) kept[slot] = read_pack<kWidth>(state + slot * len + first);
    }
    const typename Rule::Row row = rule.row(nullptr, 0.0);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
        float mine[kSlots + 1];
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) mine[slot] = kept[slot].at[k];
        weights.at[k] = rule.element(row, weights.at[k], gradients.at[k], mine);
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) kept[slot].at[k] = mine[slot];
    }
    write_pack(parameter + first, weights);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
        if (slot < int(slots)) write_pack(state + slot * len + first, kept[slot]);
    }
}

template <typename Rule>
__device__ __forceinline__ void all(const Rule& rule, uint32_t slots, float* parameter, float* state,
                                    const float* __restrict__ gradient, uint64_t len) {
    static_assert(Rule::kRowSlots == 0, "a parameter has no rows");
    // Each slot is a row of `state`.
    const bool aligned = aligned_rows(parameter, 0, 1) && aligned_rows(gradient, 0, 1) &&
                         (slots == 0 || aligned_rows(state, len, slots));
    over_elements(1, len, aligned, [=](auto width, uint64_t, uint64_t first) {
        step<decltype(width)::value>(rule, slots, parameter, state, gradient, len, first);
    });
}

}  // namespace dense_update
}  // namespace emb

#define EMB_DENSE_UPDATE(NAME, RULE)                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                            \
        emb_dense_update_##NAME(emb::RULE rule, uint32_t slots, float* parameter, float* state,  \
                                const float* gradient, uint64_t len) {                           \
        emb::dense_update::all(rule, slots, parameter, state, gradient, len);                    \
    }                                                                                            \
    EMB_KERNEL(emb_dense_update_##NAME)

// Steps a parameter of `len` elements; `state` is [slots, len].
//
// Grid and block: any, all of it along x; 256 threads and enough blocks to fill the device. Reads
// 8 + 4 * slots and writes 4 + 4 * slots bytes an element. 2 + slots reads of 16 bytes in flight a
// thread where parameter, gradient and every slot lie on 16 bytes, else of 4. 26 (sgd) and 44
// registers.
EMB_DENSE_UPDATE(sgd, Sgd)
EMB_DENSE_UPDATE(adagrad, AdaGrad)
EMB_DENSE_UPDATE(adam, Adam)
