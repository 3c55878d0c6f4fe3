// Backward and update in one: `EMB_RULE(name, Rule)` makes the kernels of a rule.
//
// A rule of one's own is a struct as rules.cuh describes and one line after it:
//
//   #include "update.cuh"
//   struct MyRule { .. };
//   EMB_RULE(my_rule, MyRule)
//
// `Cuda::compile_rule` writes those lines around a program's own struct and compiles them while the
// program runs.
#pragma once

#include "row_step.cuh"
#include "rules.cuh"

namespace emb {

// The rule of one table in one step.
struct RuleRecord {
    uint32_t group;      // the launch that updates this table
    float max_gradient;  // bound of every element of an incoming gradient, or INFINITY
    uint64_t rule[9];    // bytes of the rule
};
static_assert(sizeof(RuleRecord) == 80, "as in rules.rs");

// What a launch over runs is told by value.
struct Launch {
    uint64_t pooled_stride;
    uint64_t rows_stride;   // floats between the sums of two chunks
    uint64_t step;          // keys stochastic rounding
    uint32_t batch;
    uint32_t group;         // only tables of this launch are updated
    uint32_t lanes;         // of a part: 4, 8, 16, 32 for dims up to 16, 32, 64 and any
    uint32_t stage_stride;  // floats of a part's stage in `stages`
};
static_assert(sizeof(Launch) == 40, "as in update.rs");

constexpr unsigned kUpdateThreads = 128;
constexpr unsigned kUpdateWarps = kUpdateThreads / kWarp;
// Floats of a warp's stage in shared memory: dims up to 512 of one row, or 16 a lane.
constexpr unsigned kStage = 512;
struct alignas(16) Float4 {
    float v[4];
};
using Stages = Float4[kUpdateWarps][kStage / 4];

// The stage of a part: in shared memory, or, for rows that are too long, in `far`.
__device__ __forceinline__ float* stage_of(const Part& part, Stages& near, float* far,
                                           uint32_t far_stride) {
    if (far) {
        return far + part.number() * far_stride;
    }
    return &near[threadIdx.x / kWarp][part.base * (kStage / kWarp) / 4].v[0];
}

template <typename R> __device__ __forceinline__ R rule_of(const RuleRecord& record) {
    static_assert(sizeof(R) <= sizeof(RuleRecord::rule), "a rule of at most 72 bytes");
    R rule;
    memcpy(&rule, record.rule, sizeof(R));
    return rule;
}

// The contributions to a run: gradients of its lookups, or sums that were made before.
struct RunSum {
    Upstream upstream;
    const float* rows;  // null: gradients
    uint64_t stride;
    uint32_t begin;
    uint32_t count;

    __device__ RunSum(const Upstream& upstream, uint32_t begin, uint32_t end)
        : upstream(upstream), rows(nullptr), stride(0), begin(begin), count(end - begin) {}

    // A long run is the sum of its chunks.
    __device__ void use_chunks(const float* sums, uint64_t sums_stride) {
        if (const uint32_t chunks = chunks_of(count)) {
            rows = sums + static_cast<uint64_t>(chunk_slot(begin, 0) - 1) * sums_stride;
            stride = sums_stride;
            count = chunks;
        }
    }
    __device__ void use_sum(const float* sum) {
        rows = sum;
        count = 1;
    }
    // NaN and infinity were let through before.
    __device__ float bound(float max_gradient) const { return rows ? INFINITY : max_gradient; }
    __device__ Contribution operator()(uint32_t k) const {
        if (rows) {
            return {rows + (2 * static_cast<uint64_t>(k) + (k == 0)) * stride, 1.0f};
        }
        return contribution(upstream, begin + k);
    }
};

// Where the sum of run `r` lies: tables one after the other, each at a multiple of 4 floats.
__device__ __forceinline__ uint64_t sum_at(const uint64_t* sum_offsets, const Run& run, uint64_t r,
                                           uint32_t dim) {
    // An offset may be below zero; it comes right by wrapping.
    return sum_offsets[run.table] + r * dim;
}

template <typename R, typename T>
__device__ __forceinline__ void update_rows(const Table* tables, const RuleRecord* rules,
                                            const Run* runs, uint32_t run_count,
                                            const Upstream& upstream, const float* rows,
                                            const uint64_t* sum_offsets, const double* totals,
                                            float* far, const Launch& launch, Stages& near) {
    const Part part = Part::of(launch.lanes);
    float* const stage = stage_of(part, near, far, launch.stage_stride);
    for (uint64_t r = part.number(); r < run_count; r += part.count()) {
        const Run run = runs[r];
        const RuleRecord& record = rules[run.table];
        if (record.group != launch.group) {
            continue;
        }
        const Table& table = tables[run.table];
        RunSum sum(upstream, run.begin, runs[r + 1].begin);
        if (sum_offsets) {
            sum.use_sum(rows + sum_at(sum_offsets, run, r, table.dim));
        } else {
            sum.use_chunks(rows, launch.rows_stride);
        }
        sum_row(part, sum.count, sum, sum.bound(record.max_gradient), table.dim, stage);
        step_row<R, T>(part, rule_of<R>(record), table, run.row, totals ? totals + r : nullptr,
                       launch.step, stage);
        part.sync();
    }
}

// Statistics of the columns held here, from sums that were made before.
template <typename R, typename T>
__device__ __forceinline__ double statistic_of_run(const Part& part, const RuleRecord& record,
                                                   const Table& table, uint64_t row,
                                                   const float* sum) {
    return statistic<R, T>(part, rule_of<R>(record), table.dim, row_of<T>(table, row).weights, sum);
}

template <typename R>
__device__ __forceinline__ void measure_rows(const Table* tables, const RuleRecord* rules,
                                             const Run* runs, uint32_t run_count, const float* sums,
                                             const uint64_t* sum_offsets, double* statistics,
                                             const Launch& launch) {
    const Part part = Part::of(launch.lanes);
    for (uint64_t r = part.number(); r < run_count; r += part.count()) {
        const Run run = runs[r];
        const RuleRecord& record = rules[run.table];
        if (record.group != launch.group) {
            continue;
        }
        const Table& table = tables[run.table];
        const float* const sum = sums + sum_at(sum_offsets, run, r, table.dim);
        double total;
        if (table.dtype == kF32) {
            total = statistic_of_run<R, float>(part, record, table, run.row, sum);
        } else if (table.dtype == kF16) {
            total = statistic_of_run<R, __half>(part, record, table, run.row, sum);
        } else {
            total = statistic_of_run<R, __nv_bfloat16>(part, record, table, run.row, sum);
        }
        if (part.lane == 0) {
            statistics[r] = total;
        }
    }
}

}  // namespace emb

// The kernel of one rule and one type of weights. Without `sum_offsets`, `rows` has the sums of the
// chunks of long runs; with them the sums of all runs, and `tags` to `pooled` may be null. `totals`
// has a run's statistic each, or is null where rows are whole; `far` has a stage for each part of
// the grid where a dim is above 512, else it is null.
#define EMB_UPDATE(NAME, RULE, DTYPE, T)                                                           \
    extern "C" __global__ void __launch_bounds__(emb::kUpdateThreads, 5)                           \
        emb_update_##NAME##_##DTYPE(                                                               \
            const emb::Table* __restrict__ tables, const emb::RuleRecord* __restrict__ rules,      \
            const emb::Run* __restrict__ runs, const uint32_t* __restrict__ run_count,             \
            const uint32_t* __restrict__ tags, const emb::Source* __restrict__ sources,            \
            const emb::Feature* __restrict__ features, const uint64_t* __restrict__ offsets,       \
            const emb::Sequence* __restrict__ sequences, const float* __restrict__ pooled,         \
            const float* __restrict__ rows, const uint64_t* __restrict__ sum_offsets,              \
            const double* __restrict__ totals, float* far, emb::Launch launch) {                   \
        EMB_SHARED_ARRAY(emb::Float4, near, [emb::kUpdateWarps][emb::kStage / 4]);                 \
        const emb::Upstream upstream{tags,   sources,              features,    offsets, sequences, \
                                     pooled, launch.pooled_stride, launch.batch};                  \
        emb::update_rows<RULE, T>(tables, rules, runs, *run_count, upstream, rows, sum_offsets,    \
                                  totals, far, launch, near);                                      \
    }                                                                                              \
    EMB_KERNEL(emb_update_##NAME##_##DTYPE)

// All kernels of a rule: emb_update_NAME_f32, .._f16, .._bf16 and emb_statistics_NAME.
#define EMB_RULE(NAME, RULE)                                                                       \
    EMB_UPDATE(NAME, RULE, f32, float)                                                             \
    EMB_UPDATE(NAME, RULE, f16, __half)                                                            \
    EMB_UPDATE(NAME, RULE, bf16, __nv_bfloat16)                                                    \
    extern "C" __global__ void __launch_bounds__(emb::kUpdateThreads) emb_statistics_##NAME(       \
        const emb::Table* __restrict__ tables, const emb::RuleRecord* __restrict__ rules,          \
        const emb::Run* __restrict__ runs, const uint32_t* __restrict__ run_count,                 \
        const float* __restrict__ sums, const uint64_t* __restrict__ sum_offsets,                  \
        double* __restrict__ statistics, emb::Launch launch) {                                     \
        emb::measure_rows<RULE>(tables, rules, runs, *run_count, sums, sum_offsets, statistics,    \
                                launch);                                                           \
    }                                                                                              \
    EMB_KERNEL(emb_statistics_##NAME)
