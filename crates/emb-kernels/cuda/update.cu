// Backward and update: sums over sorted lookups, then the rule, once a touched row.
//
// emb_update_RULE_DTYPE: a part of a warp takes a run at a time (4 lanes for dims up to 16, 8 up to
// 32, 16 up to 64, else 32), so a run is summed in the order of the batch, with the bits of the CPU
// backend. Sums of runs longer than kChunk lookups are added up from those of emb_chunk_sums.
// Grid: any, strides over the runs; block: 128, 8 KiB shared.
// Bytes: a lookup 4 * dim, and 4 (12 with sources) for each block of 4 * lanes columns (of lanes
// where dim is no multiple of 4); a run 16; a touched row 2 * (dim * bytes of its dtype + dim * 4 *
// element slots + 4 * row slots), and its weights once more, from cache, where the statistic of a
// row-wise rule needs them; nothing for other rows, however many there are. In place of the lookups
// of a long run its chunks have 4 * dim each; from the sums of runs a run has 4 * dim, and 8 of its
// statistic. emb_statistics_RULE: a run 16 + 4 * dim in and 8 out, and the weights of its row where
// the statistic needs them.
// Loads in flight: 4 gradients of 16 bytes a lane.
// Registers (sm_90): 72 (SGD) to 96 (row-wise Adam), at most 102 so that 20 warps share a
// multiprocessor; emb_statistics_RULE 22 to 40.
#include "update.cuh"

EMB_RULE(sgd, emb::Sgd)
EMB_RULE(adagrad, emb::AdaGrad)
EMB_RULE(row_wise_adagrad, emb::RowWiseAdaGrad)
EMB_RULE(adam, emb::Adam)
EMB_RULE(row_wise_adam, emb::RowWiseAdam)

// Sums of the chunks of long runs: `rows` gets one a slot, `launch.rows_stride` floats apart.
// Grid: any, strides over the slots; block: 128. Bytes: a slot 16, a lookup as in an update, a
// chunk 4 * dim out; 4 gradients of 16 bytes in flight a lane.
// Registers (sm_90): 56.
extern "C" __global__ void __launch_bounds__(emb::kUpdateThreads)
    emb_chunk_sums(const emb::Table* __restrict__ tables,
                   const emb::RuleRecord* __restrict__ rules,
                   const emb::Chunk* __restrict__ chunks, uint32_t slots,
                   const uint32_t* __restrict__ tags, const emb::Source* __restrict__ sources,
                   const emb::Feature* __restrict__ features, const uint64_t* __restrict__ offsets,
                   const emb::Sequence* __restrict__ sequences, const float* __restrict__ pooled,
                   float* __restrict__ rows, emb::Launch launch) {
    using namespace emb;
    const Upstream upstream{tags,      sources, features,             offsets,
                            sequences, pooled,  launch.pooled_stride, launch.batch};
    const Part part = Part::of(launch.lanes);
    for (uint64_t slot = part.number(); slot < slots; slot += part.count()) {
        const Chunk chunk = chunks[slot];
        if (chunk.begin == chunk.end) {
            continue;
        }
        const RunSum sum(upstream, chunk.begin, chunk.end);
        sum_row(part, sum.count, sum, rules[chunk.table].max_gradient, tables[chunk.table].dim,
                rows + slot * launch.rows_stride);
    }
}
EMB_KERNEL(emb_chunk_sums)

// Sums of all runs, for an update in two phases; chunks as in emb_update.
// Grid: any, strides over the runs; block: 128. Bytes: a lookup as in an update, or 4 * dim a chunk
// of a long run; a run 16 in and 4 * dim out; 4 gradients of 16 bytes in flight a lane.
// Registers (sm_90): 64.
extern "C" __global__ void __launch_bounds__(emb::kUpdateThreads)
    emb_run_sums(const emb::Table* __restrict__ tables, const emb::RuleRecord* __restrict__ rules,
                 const emb::Run* __restrict__ runs, const uint32_t* __restrict__ run_count,
                 const uint32_t* __restrict__ tags, const emb::Source* __restrict__ sources,
                 const emb::Feature* __restrict__ features, const uint64_t* __restrict__ offsets,
                 const emb::Sequence* __restrict__ sequences, const float* __restrict__ pooled,
                 const float* __restrict__ rows, const uint64_t* __restrict__ sum_offsets,
                 float* __restrict__ sums, emb::Launch launch) {
    using namespace emb;
    const Upstream upstream{tags,      sources, features,             offsets,
                            sequences, pooled,  launch.pooled_stride, launch.batch};
    const Part part = Part::of(launch.lanes);
    const uint32_t count = *run_count;
    for (uint64_t r = part.number(); r < count; r += part.count()) {
        const Run run = runs[r];
        const uint32_t dim = tables[run.table].dim;
        RunSum sum(upstream, run.begin, runs[r + 1].begin);
        sum.use_chunks(rows, launch.rows_stride);
        sum_row(part, sum.count, sum, sum.bound(rules[run.table].max_gradient), dim,
                sums + sum_at(sum_offsets, run, r, dim));
    }
}
EMB_KERNEL(emb_run_sums)
