// All kernels as one source, which becomes one fat binary: `cargo xtask kernels` compiles this file
// for the GPU, the SIMT host shim compiles it for the CPU.
//
// Each file below stands alone and is tested alone; that all are named here is checked.
#include "portable.cuh"

#if __has_include("lookup.cu")
#include "lookup.cu"
#endif
#if __has_include("gather.cu")
#include "gather.cu"
#endif
#if __has_include("init.cu")
#include "init.cu"
#endif
#if __has_include("rows.cu")
#include "rows.cu"
#endif
#if __has_include("weights.cu")
#include "weights.cu"
#endif
#if __has_include("ids.cu")
#include "ids.cu"
#endif
#if __has_include("sort.cu")
#include "sort.cu"
#endif
#if __has_include("keys.cu")
#include "keys.cu"
#endif
#if __has_include("runs.cu")
#include "runs.cu"
#endif
#if __has_include("update.cu")
#include "update.cu"
#endif
#if __has_include("route.cu")
#include "route.cu"
#endif
#if __has_include("interaction.cu")
#include "interaction.cu"
#endif
#if __has_include("cross.cu")
#include "cross.cu"
#endif
#if __has_include("pointwise.cu")
#include "pointwise.cu"
#endif
#if __has_include("loss.cu")
#include "loss.cu"
#endif
#if __has_include("dense_update.cu")
#include "dense_update.cu"
#endif
#if __has_include("../../emb-comm/cuda/reduce.cu")
#include "../../emb-comm/cuda/reduce.cu"
#endif
