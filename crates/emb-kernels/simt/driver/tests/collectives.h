// A thread and a device for each rank of a communicator.
#pragma once

#include <time.h>

#include "check.h"

// Of ncclDataType_t and ncclRedOp_t.
enum { kI8, kU8, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBf16 };
enum { kSum, kProd, kMax, kMin, kAvg };

struct RankState {
    int rank, ranks;
    void* comm;
    void* stream;
};

// Runs the body on every rank; the largest result.
inline int on_ranks(int ranks, const std::function<int(RankState&)>& body) {
    UniqueId id;
    OK(ncclGetUniqueId(&id));
    std::vector<int> results(static_cast<size_t>(ranks), 0);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            use_device(rank);
            RankState state{rank, ranks, nullptr, new_stream()};
            OK(ncclCommInitRank(&state.comm, ranks, id, rank));
            results[static_cast<size_t>(rank)] = body(state);
        });
    }
    int largest = 0;
    for (auto& thread : threads) thread.join();
    for (int result : results) largest = std::max(largest, result);
    return largest;
}

inline double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Polls the stream as a program with a timeout does. 0 done, 600 timed out, else the failure.
inline int wait_for(void* stream, double seconds) {
    const double end = now() + seconds;
    int status = 600;
    while ((status = cuStreamQuery(stream)) == 600 && now() < end) usleep(200);
    return status;
}
