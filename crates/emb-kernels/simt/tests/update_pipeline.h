// What the tests of sorting, updates and routing share: the sequence of launches that the Rust side
// makes.
#pragma once

#include "check.h"
#include "runs.cuh"

#include <random>
#include <utility>

// Starts a kernel, by a name that is put together, in blocks of one dimension.
template <typename... A>
void launch(const char* name, unsigned blocks, unsigned threads, A... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)...};
    if (simt_launch(name, blocks, 1, 1, threads, 1, 1, 0, pointers) != kSimtSuccess) {
        check::failed(__FILE__, __LINE__, std::string(name) + ": " + simt_error());
    }
}

// A null pointer of a kernel's argument.
template <typename T> const T* none() { return nullptr; }

constexpr uint32_t kTile = 4096;

inline uint32_t tiles_of(size_t count) { return static_cast<uint32_t>((count + kTile - 1) / kTile); }

// Keys and tags, sorted by the lowest `bits` of the keys.
inline void sort_pairs(std::vector<uint64_t>& keys, std::vector<uint32_t>& tags, uint32_t bits) {
    const uint32_t count = static_cast<uint32_t>(keys.size()), tiles = tiles_of(count);
    std::vector<uint64_t> other_keys(count);
    std::vector<uint32_t> other_tags(count), counts(256 * tiles), totals(256);
    for (uint32_t shift = 0; count > 0 && shift < bits; shift += 8) {
        launch("emb_sort_count", tiles, 256, keys.data(), count, shift, counts.data());
        launch("emb_sort_scan", 256, 256, counts.data(), tiles, totals.data());
        launch("emb_sort_scatter", tiles, 256, keys.data(), tags.data(), other_keys.data(),
               other_tags.data(), count, shift, counts.data(), totals.data());
        std::swap(keys, other_keys);
        std::swap(tags, other_tags);
    }
}

// Runs of sorted keys, as the device leaves them.
struct Runs {
    std::vector<emb::Run> runs;
    std::vector<uint32_t> tile_runs;
    uint32_t count = 0;
};

inline Runs find_runs(const std::vector<uint64_t>& keys, const std::vector<emb::Table>& tables) {
    Runs out;
    const uint32_t count = static_cast<uint32_t>(keys.size()), tiles = tiles_of(count);
    out.tile_runs.resize(tiles);
    out.runs.resize(count + 1);
    launch("emb_run_count", tiles, 256, keys.data(), count, out.tile_runs.data());
    launch("emb_run_scan", 1, 1024, out.tile_runs.data(), tiles, &out.count);
    launch("emb_run_write", tiles, 256, keys.data(), count, out.tile_runs.data(), tables.data(),
           static_cast<uint32_t>(tables.size()), out.runs.data());
    return out;
}
