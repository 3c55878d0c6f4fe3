// What collectives compute.
#include "collectives.h"

#include <cmath>

namespace {

constexpr int kRanks = 3;
constexpr size_t kCount = 10;

template <typename T>
std::vector<T> values_of(int rank, size_t count) {
    std::vector<T> out(count);
    for (size_t i = 0; i < count; ++i)
        out[i] = static_cast<T>((i * 7 + static_cast<size_t>(rank) * 3) % 5 + 1);
    return out;
}

template <typename T>
T expected(int operation, size_t i) {
    double total = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
        const double x = static_cast<double>(values_of<T>(rank, i + 1)[i]);
        if (rank == 0) {
            total = x;
        } else {
            total = operation == kProd  ? total * x
                    : operation == kMax ? std::max(total, x)
                    : operation == kMin ? std::min(total, x)
                                        : total + x;
        }
    }
    if (operation == kAvg) total /= kRanks;
    return static_cast<T>(total);
}

template <typename T>
int all_reduces(RankState& rank, int type) {
    for (int operation = kSum; operation <= kAvg; ++operation) {
        const uint64_t x = upload(values_of<T>(rank.rank, kCount));
        const uint64_t y = device_memory(kCount * sizeof(T));
        OK(ncclAllReduce(pointer(x), pointer(y), kCount, type, operation, rank.comm, rank.stream));
        OK(ncclAllReduce(pointer(x), pointer(x), kCount, type, operation, rank.comm,
                         rank.stream));  // in place
        OK(cuStreamSynchronize(rank.stream));
        const auto got = download<T>(y, kCount), in_place = download<T>(x, kCount);
        for (size_t i = 0; i < kCount; ++i) {
            REQUIRE(std::fabs(static_cast<double>(got[i]) -
                              static_cast<double>(expected<T>(operation, i))) < 1e-6);
            REQUIRE(got[i] == in_place[i]);
        }
    }
    return 0;
}

// 1.5, -2 and 0.25 are exact in both; their bits as f16 and bf16.
int half_sums(RankState& rank, int type) {
    const uint16_t f16[] = {0x3E00, 0xC000, 0x3400}, bf16[] = {0x3FC0, 0xC000, 0x3E80};
    const uint16_t want = type == kF16 ? 0xB400 : 0xBE80;  // -0.25
    const uint64_t x = upload(std::vector<uint16_t>(4, (type == kF16 ? f16 : bf16)[rank.rank]));
    OK(ncclAllReduce(pointer(x), pointer(x), 4, type, kSum, rank.comm, rank.stream));
    OK(cuStreamSynchronize(rank.stream));
    return download<uint16_t>(x, 4)[3] == want ? 0 : 1;
}

int every_type() {
    return on_ranks(kRanks, [](RankState& rank) {
        return all_reduces<float>(rank, kF32) | all_reduces<double>(rank, kF64) |
               all_reduces<int8_t>(rank, kI8) | all_reduces<uint8_t>(rank, kU8) |
               all_reduces<int32_t>(rank, kI32) | all_reduces<uint32_t>(rank, kU32) |
               all_reduces<int64_t>(rank, kI64) | all_reduces<uint64_t>(rank, kU64) |
               half_sums(rank, kF16) | half_sums(rank, kBf16);
    });
}

int others() {
    return on_ranks(kRanks, [](RankState& rank) {
        const auto own = values_of<float>(rank.rank, kRanks * 2);
        const uint64_t x = upload(own), y = device_memory(kRanks * 2 * 4);
        OK(ncclReduceScatter(pointer(x), pointer(y), 2, kF32, kSum, rank.comm, rank.stream));
        OK(cuStreamSynchronize(rank.stream));
        for (size_t i = 0; i < 2; ++i)
            REQUIRE(download<float>(y, 2)[i] ==
                    expected<float>(kSum, static_cast<size_t>(rank.rank) * 2 + i));
        OK(ncclAllGather(pointer(x), pointer(y), 2, kF32, rank.comm, rank.stream));
        OK(cuStreamSynchronize(rank.stream));
        for (size_t i = 0; i < kRanks * 2; ++i)
            REQUIRE(download<float>(y, kRanks * 2)[i] ==
                    values_of<float>(static_cast<int>(i / 2), 2)[i % 2]);
        OK(ncclBroadcast(pointer(x), pointer(y), 4, kF32, 1, rank.comm, rank.stream));
        OK(cuStreamSynchronize(rank.stream));
        REQUIRE(download<float>(y, 4) == values_of<float>(1, 4));
        OK(cuMemsetD8Async(y, 0, 16, rank.stream));
        OK(ncclReduce(pointer(x), pointer(y), 4, kF32, kMax, 2, rank.comm, rank.stream));
        OK(cuStreamSynchronize(rank.stream));
        REQUIRE(download<float>(y, 4)[1] == (rank.rank == 2 ? expected<float>(kMax, 1) : 0.0f));
        return 0;
    });
}

size_t sent(int from, int to) { return static_cast<size_t>((from + to) % 3); }

// Uneven all-to-all in one group, then once more behind it without waiting.
int all_to_all() {
    return on_ranks(kRanks, [](RankState& rank) {
        std::vector<uint32_t> data;
        for (int to = 0; to < kRanks; ++to)
            data.insert(data.end(), sent(rank.rank, to),
                        static_cast<uint32_t>(rank.rank * 10 + to));
        data.push_back(0);
        const uint64_t x = upload(data), y = device_memory(64), z = device_memory(64);
        for (uint64_t target : {y, z}) {
            size_t at_send = 0, at_recv = 0;
            OK(ncclGroupStart());
            for (int peer = 0; peer < kRanks; ++peer) {
                OK(ncclSend(pointer(x + at_send * 4), sent(rank.rank, peer), kU32, peer, rank.comm,
                            rank.stream));
                OK(ncclRecv(pointer(target + at_recv * 4), sent(peer, rank.rank), kU32, peer,
                            rank.comm, rank.stream));
                at_send += sent(rank.rank, peer);
                at_recv += sent(peer, rank.rank);
            }
            OK(ncclGroupEnd());
        }
        OK(cuStreamSynchronize(rank.stream));
        for (uint64_t target : {y, z}) {
            const auto got = download<uint32_t>(target, 16);
            size_t at = 0;
            for (int from = 0; from < kRanks; ++from) {
                for (size_t i = 0; i < sent(from, rank.rank); ++i)
                    REQUIRE(got[at++] == static_cast<uint32_t>(from * 10 + rank.rank));
            }
        }
        OK(ncclCommDestroy(rank.comm));
        return 0;
    });
}

// Even ranks, in reverse order, and odd ranks.
int split() {
    return on_ranks(4, [](RankState& rank) {
        void* part = nullptr;
        OK(ncclCommSplit(rank.comm, rank.rank % 2, -rank.rank, &part, nullptr));
        int count = 0, place = -1;
        OK(ncclCommCount(part, &count));
        OK(ncclCommUserRank(part, &place));
        REQUIRE(count == 2 && place == (rank.rank < 2 ? 1 : 0));
        const uint64_t x = upload(std::vector<int32_t>(1, rank.rank));
        OK(ncclAllReduce(pointer(x), pointer(x), 1, kI32, kSum, part, rank.stream));
        OK(cuStreamSynchronize(rank.stream));
        REQUIRE(download<int32_t>(x, 1)[0] == (rank.rank % 2 ? 4 : 2));
        void* none = &count;
        OK(ncclCommSplit(rank.comm, rank.rank == 0 ? 0 : -1, 0, &none, nullptr));
        return (none != nullptr) == (rank.rank == 0) ? 0 : 1;
    });
}

// One thread that makes every rank in a group.
int one_thread() {
    UniqueId id;
    OK(ncclGetUniqueId(&id));
    void* comms[2];
    void* streams[2];
    uint64_t x[2];
    OK(ncclGroupStart());
    for (int rank = 0; rank < 2; ++rank) {
        use_device(rank);
        streams[rank] = new_stream();
        x[rank] = upload(std::vector<float>(4, static_cast<float>(rank + 1)));
        OK(ncclCommInitRank(&comms[rank], 2, id, rank));
    }
    OK(ncclGroupEnd());
    OK(ncclGroupStart());
    for (int rank = 0; rank < 2; ++rank)
        OK(ncclAllReduce(pointer(x[rank]), pointer(x[rank]), 4, kF32, kSum, comms[rank],
                         streams[rank]));
    OK(ncclGroupEnd());
    OK(cuStreamSynchronize(streams[1]));
    use_device(0);
    return download<float>(x[0], 4)[2] == 3.0f ? 0 : 1;
}

// Made without blocking: in progress until the other rank comes.
int polled_init() {
    UniqueId id;
    OK(ncclGetUniqueId(&id));
    use_device(0);
    CommConfig config{};
    config.blocking = 0;
    void* comm = nullptr;
    REQUIRE(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == 7);
    int result = 0;
    OK(ncclCommGetAsyncError(comm, &result));
    REQUIRE(result == 7);
    std::thread other([&] {
        use_device(1);
        void* theirs = nullptr;
        OK(ncclCommInitRank(&theirs, 2, id, 1));
    });
    other.join();
    OK(ncclCommGetAsyncError(comm, &result));
    return result;
}

}  // namespace

int main() {
    passes("all-reduce of every type and operation equals a plain loop, also in place",
           "SIMT_DEVICES=3", every_type);
    passes("reduce-scatter, all-gather, broadcast and reduce equal plain loops", "SIMT_DEVICES=3",
           others);
    Ended last{};
    int right = passes_with_seeds(6, "SIMT_DEVICES=3", all_to_all, &last);
    verdict("an uneven all-to-all is right in every seed", right == 6, last);
    passes("a split has the ranks of its color in the order of keys", "SIMT_DEVICES=4", split);
    passes("one thread makes all ranks in a group", "SIMT_DEVICES=2", one_thread);
    passes("a communicator that does not block is in progress until all ranks came",
           "SIMT_DEVICES=2", polled_init);
    return finish();
}
