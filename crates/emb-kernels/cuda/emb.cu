// All kernels as one source, which becomes one fat binary: `cargo xtask kernels` compiles this file
// for the GPU, the SIMT host shim compiles it for the CPU.
//
// Each file below stands alone and is tested alone; that all are named here is checked.
#include "portable.cuh"

#include "lookup.cu"
#include "gather.cu"
#include "init.cu"
#include "rows.cu"
#include "weights.cu"
#include "ids.cu"
#include "sort.cu"
#include "keys.cu"
#include "runs.cu"
#include "update.cu"
#include "route.cu"
#include "interaction.cu"
#include "cross.cu"
#include "pointwise.cu"
#include "loss.cu"
#include "dense_update.cu"

#include "../../emb-comm/cuda/reduce.cu"
