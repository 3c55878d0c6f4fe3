// Run lengths of sorted keys. How many runs there are stays on the device: what follows is launched
// for as many as there may be, and reads it.
#include "runs.cuh"

// Runs that begin in each tile of 4,096 keys.
// Grid: tiles; block: 256. Reads 8 bytes a key, 16 loads in flight a lane, and writes 4 a tile. A
// lane also loads the key before its own, which its neighbour has brought to the cache.
// Registers (sm_90): 32.
extern "C" __global__ void __launch_bounds__(emb::kRunThreads)
    emb_run_count(const uint64_t* __restrict__ keys, uint32_t count,
                  uint32_t* __restrict__ tile_runs) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, sums, [kRunWarps]);
    uint32_t heads[kRunRounds];
    const uint32_t own = warp_heads(keys, count, first_of_lane(), heads);
    uint32_t total;
    block_exclusive(threadIdx.x % kWarp == 0 ? own : 0, sums, total);
    if (threadIdx.x == 0) {
        tile_runs[blockIdx.x] = total;
    }
}
EMB_KERNEL(emb_run_count)

// Turns counts into the sums of those before; `total` gets the sum of all.
// Grid: 1; block: 1024. Reads 4 bytes a count and writes 4; and 4 for the sum.
// Registers (sm_90): 31.
extern "C" __global__ void __launch_bounds__(1024)
    emb_run_scan(uint32_t* __restrict__ counts, uint32_t len, uint32_t* __restrict__ total) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, sums, [kWarp]);
    uint32_t before = 0;
    for (uint32_t start = 0; start < len; start += blockDim.x) {
        const uint32_t i = start + threadIdx.x;
        const uint32_t count = i < len ? counts[i] : 0;
        uint32_t sum;
        const uint32_t exclusive = block_exclusive(count, sums, sum);
        if (i < len) {
            counts[i] = before + exclusive;
        }
        before += sum;
    }
    if (threadIdx.x == 0) {
        *total = before;
    }
}
EMB_KERNEL(emb_run_scan)

// Writes the runs and the sentinel after them; without tables a run's row is its key.
// Grid: tiles; block: 256. Reads 8 bytes a key and 4 a tile, writes 16 a run and 16 for the
// sentinel; 16 loads in flight a lane. From cache: the key before each, a run's key again, and 8
// bytes for each step of a run's search for its table.
// Registers (sm_90): 48.
extern "C" __global__ void __launch_bounds__(emb::kRunThreads)
    emb_run_write(const uint64_t* __restrict__ keys, uint32_t count,
                  const uint32_t* __restrict__ tile_runs, const emb::Table* __restrict__ tables,
                  uint32_t table_count, emb::Run* __restrict__ runs) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, warps, [kRunWarps]);
    const unsigned lane = threadIdx.x % kWarp;
    const uint64_t first = first_of_lane();
    uint32_t heads[kRunRounds];
    const uint32_t own = warp_heads(keys, count, first, heads);
    uint32_t before = runs_before_warp(own, tile_runs[blockIdx.x], warps);
#pragma unroll
    for (unsigned round = 0; round < kRunRounds; ++round) {
        const uint64_t i = first + round * kWarp;
        const uint32_t run = run_of(before, heads[round]);
        if (heads[round] >> lane & 1) {
            const uint64_t key = keys[i];
            const uint32_t table = table_count ? table_of(tables, table_count, key) : 0;
            const uint64_t row = table_count ? key - tables[table].first_key : key;
            runs[run] = {row, static_cast<uint32_t>(i), table};
        }
        if (i + 1 == count) {
            runs[run + 1] = {~0ull, count, ~0u};
        }
        before += __popc(heads[round]);
    }
}
EMB_KERNEL(emb_run_write)

// Lists the chunks of long runs; `chunks` was cleared.
// Grid: any; block: 256. Reads where a run begins, 4 of its 16 bytes, and the table of a long one;
// writes 16 bytes a chunk. One load in flight a lane.
// Registers (sm_90): 30.
extern "C" __global__ void __launch_bounds__(256)
    emb_long_runs(const emb::Run* __restrict__ runs, const uint32_t* __restrict__ run_count,
                  emb::Chunk* __restrict__ chunks) {
    using namespace emb;
    const uint32_t count = *run_count;
    for (uint64_t r = blockIdx.x * blockDim.x + threadIdx.x; r < count;
         r += gridDim.x * blockDim.x) {
        const uint32_t begin = runs[r].begin, end = runs[r + 1].begin;
        const uint32_t pieces = chunks_of(end - begin);
        for (uint32_t piece = 0; piece < pieces; ++piece) {
            const uint32_t from = begin + piece * kChunk;
            const uint32_t left = end - from;
            chunks[chunk_slot(begin, piece)] = {from, from + (left < kChunk ? left : kChunk),
                                                runs[r].table, 0};
        }
    }
}
EMB_KERNEL(emb_long_runs)

// The first run of each table, and the number of all runs as that of the table after the last.
// Grid: any; block: 256, a thread a table. Reads 4 bytes of a run for each table and step of a
// binary search, writes 4 bytes a table and 4 at the end.
// Registers (sm_90): 16.
extern "C" __global__ void __launch_bounds__(256)
    emb_table_runs(const emb::Run* __restrict__ runs, const uint32_t* __restrict__ run_count,
                   uint32_t table_count, uint32_t* __restrict__ first_runs) {
    const uint32_t table = blockIdx.x * blockDim.x + threadIdx.x;
    if (table > table_count) {
        return;
    }
    uint32_t low = 0, high = *run_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (runs[middle].table < table) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    first_runs[table] = low;
}
EMB_KERNEL(emb_table_runs)
