// Meeting of posted calls, and the transfers that follow.
#include <algorithm>
#include <cstring>

#include "engine.h"
#include "memory.h"
#include "nccl.h"

namespace driver::nccl {
namespace {

std::string tell(const Call& call) {
    const int rank = call.batch->comm->rank;
    switch (call.kind) {
        case Kind::kSend:
            return text("rank %d sends %zu %s to rank %d", rank, call.count, type_name(call.type),
                        call.peer);
        case Kind::kRecv:
            return text("rank %d receives %zu %s from rank %d", rank, call.count,
                        type_name(call.type), call.peer);
        default:
            return text("rank %d calls %s of %zu %s, operation %d, root %d", rank,
                        kind_name(call.kind), call.count, type_name(call.type), call.operation,
                        call.peer);
    }
}

void close(Call& call) {
    --call.batch->open;
    ++state().progress;
}

// A meeting that must not be: both sides fail and are over.
void refuse_meeting(const std::vector<Call*>& calls, const std::string& message) {
    for (Call* call : calls) {
        fail_comm(*call->batch->comm, kInvalidUsage, message);
        close(*call);
    }
}

// Queues the movement of data as work that may run at any time from now on.
void queue_transfer(const std::vector<Call*>& calls, const std::string& what,
                    std::vector<Access> accesses, std::function<void()> move) {
    auto work = std::make_shared<Work>();
    auto moved = std::make_shared<bool>(false);
    work->what = what;
    work->device = calls[0]->batch->comm->device;
    work->accesses = std::move(accesses);
    work->number = ++state().work_numbers;
    work->run = [move, moved] {
        move();
        *moved = true;
        return 0;
    };
    // A batch may end before its transfers do, where its communicator is aborted.
    std::vector<std::shared_ptr<Batch>> batches;
    for (Call* call : calls) {
        batches.push_back(call->batch->shared_from_this());
        ++call->batch->comm->moving;
    }
    work->finished = [calls, batches, moved, what] {
        for (const auto& batch : batches) --batch->comm->moving;
        if (!*moved) refuse_meeting(calls, what + " did not happen, since a device failed");
        if (!*moved) return;
        for (Call* call : calls) close(*call);
    };
    state().loose.push_back(std::move(work));
}

size_t bytes_of(const Call& call, size_t factor = 1) {
    return call.count * type_bytes(call.type) * factor;
}

void meet_pair(Call* send, Call* recv) {
    if (bytes_of(*send) != bytes_of(*recv)) {
        refuse_meeting({send, recv}, tell(*send) + ", but " + tell(*recv));
        return;
    }
    const size_t bytes = bytes_of(*send);
    void* to = reinterpret_cast<void*>(recv->to);
    const void* from = reinterpret_cast<const void*>(send->from);
    queue_transfer(
        {send, recv},
        text("nccl transfer %d->%d %zu", send->batch->comm->rank, recv->batch->comm->rank, bytes),
        {{send->from, bytes, false, true}, {recv->to, bytes, true, true}},
        [=] { memmove(to, from, bytes); });
}

bool rooted(Kind kind) { return kind == Kind::kBroadcast || kind == Kind::kReduce; }
bool reduces(Kind kind) {
    return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce;
}

bool agree(const Call& a, const Call& b) {
    return a.kind == b.kind && a.count == b.count && a.type == b.type &&
           (!rooted(a.kind) || a.peer == b.peer) &&
           (!reduces(a.kind) || a.operation == b.operation);
}

// How many times `count` a rank of the collective reads and writes.
size_t read_factor(const Call& call, int ranks) {
    if (call.kind == Kind::kReduceScatter || call.kind == Kind::kAllToAll)
        return static_cast<size_t>(ranks);
    if (call.kind == Kind::kBroadcast && call.batch->comm->rank != call.peer) return 0;
    return 1;
}
size_t write_factor(const Call& call, int ranks) {
    if (call.kind == Kind::kAllGather || call.kind == Kind::kAllToAll)
        return static_cast<size_t>(ranks);
    if (call.kind == Kind::kReduce && call.batch->comm->rank != call.peer) return 0;
    return 1;
}

// What a collective does, given every rank's part in the order of ranks.
void move_collective(const std::vector<Call>& calls) {
    const Call& first = calls[0];
    const size_t ranks = calls.size();
    const size_t bytes = bytes_of(first);
    auto source = [&](size_t rank, size_t part) {
        return reinterpret_cast<const char*>(calls[rank].from) + part * bytes;
    };
    auto target = [&](size_t rank, size_t part) {
        return reinterpret_cast<char*>(calls[rank].to) + part * bytes;
    };
    auto reduced = [&](size_t part) {
        std::vector<const void*> from;
        for (size_t rank = 0; rank < ranks; ++rank) from.push_back(source(rank, part));
        std::vector<char> out(bytes);
        reduce(from, out.data(), first.count, first.type, first.operation);
        return out;
    };
    const size_t root = static_cast<size_t>(first.peer);
    // All results are ready before any is written: buffers may be used in place.
    std::vector<std::vector<char>> results;
    switch (first.kind) {
        case Kind::kAllReduce:
        case Kind::kReduce: results.push_back(reduced(0)); break;
        case Kind::kReduceScatter:
            for (size_t rank = 0; rank < ranks; ++rank) results.push_back(reduced(rank));
            break;
        case Kind::kBroadcast:
            results.emplace_back(source(root, 0), source(root, 0) + bytes);
            break;
        case Kind::kAllGather:
            for (size_t rank = 0; rank < ranks; ++rank)
                results.emplace_back(source(rank, 0), source(rank, 0) + bytes);
            break;
        default:
            for (size_t rank = 0; rank < ranks; ++rank)
                results.emplace_back(source(rank, 0), source(rank, 0) + bytes * ranks);
    }
    for (size_t rank = 0; rank < ranks; ++rank) {
        if (first.kind == Kind::kReduce && rank != root) continue;
        if (first.kind == Kind::kReduceScatter) {
            memcpy(target(rank, 0), results[rank].data(), bytes);
        } else if (first.kind == Kind::kAllGather) {
            for (size_t part = 0; part < ranks; ++part)
                memcpy(target(rank, part), results[part].data(), bytes);
        } else if (first.kind == Kind::kAllToAll) {
            for (size_t part = 0; part < ranks; ++part)
                memcpy(target(rank, part), results[part].data() + rank * bytes, bytes);
        } else {
            memcpy(target(rank, 0), results[0].data(), bytes);
        }
    }
}

void meet_all(const std::vector<Call*>& calls) {
    for (Call* call : calls) {
        if (agree(*calls[0], *call)) continue;
        refuse_meeting(calls, tell(*calls[0]) + ", but " + tell(*call));
        return;
    }
    std::vector<Access> accesses;
    std::vector<Call> copies;
    const int ranks = static_cast<int>(calls.size());
    for (Call* call : calls) {
        accesses.push_back({call->from, bytes_of(*call, read_factor(*call, ranks)), false, true});
        accesses.push_back({call->to, bytes_of(*call, write_factor(*call, ranks)), true, true});
        copies.push_back(*call);
    }
    queue_transfer(calls,
                   text("nccl %s %zu %s of %d ranks", kind_name(calls[0]->kind), calls[0]->count,
                        type_name(calls[0]->type), ranks),
                   accesses, [copies] { move_collective(copies); });
}

void post(Call& call) {
    Comm& comm = *call.batch->comm;
    Clique& clique = *comm.clique;
    if (call.kind == Kind::kSend || call.kind == Kind::kRecv) {
        const bool sends = call.kind == Kind::kSend;
        const auto pair =
            sends ? std::make_pair(comm.rank, call.peer) : std::make_pair(call.peer, comm.rank);
        auto& own = sends ? clique.sends[pair] : clique.recvs[pair];
        auto& other = sends ? clique.recvs[pair] : clique.sends[pair];
        if (other.empty()) {
            own.push_back(&call);
            return;
        }
        Call* met = other.front();
        other.pop_front();
        sends ? meet_pair(&call, met) : meet_pair(met, &call);
        return;
    }
    const uint64_t number = comm.posted_collectives++;
    auto& calls = clique.collectives[number];
    calls.push_back(&call);
    if (static_cast<int>(calls.size()) < clique.ranks) return;
    std::vector<Call*> all = calls;
    clique.collectives.erase(number);
    std::sort(all.begin(), all.end(),
              [](Call* a, Call* b) { return a->batch->comm->rank < b->batch->comm->rank; });
    meet_all(all);
}

}  // namespace

const char* kind_name(Kind kind) {
    switch (kind) {
        case Kind::kSend: return "send";
        case Kind::kRecv: return "recv";
        case Kind::kAllReduce: return "all-reduce";
        case Kind::kAllGather: return "all-gather";
        case Kind::kReduceScatter: return "reduce-scatter";
        case Kind::kBroadcast: return "broadcast";
        case Kind::kReduce: return "reduce";
        default: return "all-to-all";
    }
}

bool advance(const std::shared_ptr<Batch>& batch) {
    Comm& comm = *batch->comm;
    if (comm.aborted || comm.device->status() != kOk) return true;
    if (batch->previous && !batch->previous->finished) return false;
    if (!batch->posted) {
        batch->posted = true;
        for (Call& call : batch->calls) post(call);
    }
    return batch->open == 0;
}

void withdraw(Clique& clique, const std::function<bool(const Call&)>& whose) {
    auto ours = [&](Call* call) { return whose(*call); };
    for (auto* queues : {&clique.sends, &clique.recvs}) {
        for (auto& queue : *queues) {
            auto& calls = queue.second;
            calls.erase(std::remove_if(calls.begin(), calls.end(), ours), calls.end());
        }
    }
    for (auto& collective : clique.collectives) {
        auto& calls = collective.second;
        calls.erase(std::remove_if(calls.begin(), calls.end(), ours), calls.end());
    }
}

bool waits_for_aborted(const Comm& comm) {
    const Clique& clique = *comm.clique;
    auto aborted = [&](int rank) {
        const auto& member = clique.members[static_cast<size_t>(rank)];
        return !member || member->aborted;
    };
    for (const auto* queues : {&clique.sends, &clique.recvs}) {
        for (const auto& queue : *queues) {
            for (Call* call : queue.second) {
                if (call->batch->comm.get() == &comm && aborted(call->peer)) return true;
            }
        }
    }
    for (const auto& collective : clique.collectives) {
        bool ours = false;
        std::set<int> there;
        for (Call* call : collective.second) {
            ours = ours || call->batch->comm.get() == &comm;
            there.insert(call->batch->comm->rank);
        }
        for (int rank = 0; ours && rank < clique.ranks; ++rank) {
            if (!there.count(rank) && aborted(rank)) return true;
        }
    }
    return false;
}

std::string waiting(const Batch& batch) {
    const Comm& comm = *batch.comm;
    const Clique& clique = *comm.clique;
    std::string out;
    for (const auto& collective : clique.collectives) {
        bool ours = false;
        std::set<int> there;
        for (Call* call : collective.second) {
            there.insert(call->batch->comm->rank);
            ours = ours || call->batch == &batch;
        }
        if (!ours) continue;
        for (int rank = 0; rank < clique.ranks; ++rank) {
            if (!there.count(rank))
                out += text("rank %d to join %s; ", rank, kind_name(collective.second[0]->kind));
        }
    }
    for (const auto* queues : {&clique.sends, &clique.recvs}) {
        for (const auto& queue : *queues) {
            for (Call* call : queue.second) {
                if (call->batch == &batch) out += tell(*call) + ", not met; ";
            }
        }
    }
    return out.empty() ? "its turn" : out;
}

}  // namespace driver::nccl
