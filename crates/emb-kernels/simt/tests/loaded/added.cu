// A kernel of a shared object that is loaded while the program runs, as a user's own rule is. It has
// one kernel of a name that the program does not have, and one that the program has too.
#include "simt.h"

extern "C" __global__ void added_triple(float* values) {
    EMB_SHARED_ARRAY(float, turned, [32]);
    turned[31 - threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = 3.0f * turned[31 - threadIdx.x];
}
SIMT_REGISTER(added_triple)

extern "C" __global__ void answer(int* out) { *out = 42; }
SIMT_REGISTER(answer)
