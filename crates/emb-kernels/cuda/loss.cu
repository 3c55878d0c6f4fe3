// Binary cross-entropy with logits, and its gradient.
#include "portable.cuh"

namespace emb {

constexpr int kLossThreads = 256;

// The sum over a block in a fixed order: halves are folded onto each other. Thread 0 has it, the
// others 0.
__device__ __forceinline__ double block_sum(double value) {
    EMB_SHARED_ARRAY(double, sums, [kLossThreads]);
    const int t = threadIdx.x;
    sums[t] = value;
    for (int half = kLossThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    const double sum = t == 0 ? sums[0] : 0.0;
    // The next sum takes the place of this one.
    __syncthreads();
    return sum;
}

}  // namespace emb

// The loss of each sample, max(z, 0) - z*y + ln(1 + exp(-|z|)), in f64: exp(-|z|) never overflows,
// so it is right for every finite logit. `gradient` becomes (sigmoid(z) - y) * scale, and
// `partials[c]` the sum of the losses of samples 256 c .. 256 c + 255, in an order that no launch
// changes.
//
// Grid: [ceil(samples / 256)] or less; block 256; 2 KiB of shared memory. Reads 8 and writes 4 bytes
// a sample, and writes 8 bytes for 256. 2 reads of 4 bytes in flight a thread. 31 registers.
extern "C" __global__ void __launch_bounds__(emb::kLossThreads)
    emb_bce_with_logits(const float* __restrict__ logits, const float* __restrict__ labels,
                        uint64_t samples, float scale, float* __restrict__ gradient,
                        double* __restrict__ partials) {
    const uint64_t chunks = (samples + emb::kLossThreads - 1) / emb::kLossThreads;
    for (uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const uint64_t k = chunk * emb::kLossThreads + threadIdx.x;
        double loss = 0.0;
        if (k < samples) {
            const double z = double(logits[k]);
            const double y = double(labels[k]);
            const double small = exp(-fabs(z));
            loss = fmax(z, 0.0) - z * y + log1p(small);
            const double sigmoid = (z < 0.0 ? small : 1.0) / (1.0 + small);
            gradient[k] = float((sigmoid - y) * double(scale));
        }
        const double sum = emb::block_sum(loss);
        if (threadIdx.x == 0) partials[chunk] = sum;
    }
}
EMB_KERNEL(emb_bce_with_logits)

// The sum of `partials`, 256 at a time, the sums of 256 in order.
//
// Grid 1; block 256; 2 KiB of shared memory. Reads 8 bytes for 256 samples, writes 8. 20 registers.
extern "C" __global__ void __launch_bounds__(emb::kLossThreads)
    emb_loss_total(const double* __restrict__ partials, uint64_t count, double* __restrict__ out) {
    double total = 0.0;
    for (uint64_t first = 0; first < count; first += emb::kLossThreads) {
        const uint64_t k = first + threadIdx.x;
        total += emb::block_sum(k < count ? partials[k] : 0.0);
    }
    if (threadIdx.x == 0) out[0] = total;
}
EMB_KERNEL(emb_loss_total)
