// Communicators: made by all ranks together, split, queried, aborted.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine.h"
#include "nccl.h"

namespace driver::nccl {
namespace {

std::map<void*, std::shared_ptr<Comm>>& comms() {
    static auto* the_comms = new std::map<void*, std::shared_ptr<Comm>>;
    return *the_comms;
}

std::map<std::string, std::shared_ptr<Clique>>& cliques() {
    static auto* the_cliques = new std::map<std::string, std::shared_ptr<Clique>>;
    return *the_cliques;
}

thread_local std::string last_error;

uint64_t next_number() {
    static uint64_t numbers = 0;
    return ++numbers;
}

std::shared_ptr<Clique> new_clique(int ranks) {
    auto clique = std::make_shared<Clique>();
    clique->number = next_number();
    clique->ranks = ranks;
    clique->members.resize(static_cast<size_t>(ranks));
    return clique;
}

// Adds a member; the whole clique fails where the member cannot be.
Result join(const std::shared_ptr<Clique>& clique, const std::shared_ptr<Comm>& comm, int ranks,
            int rank) {
    if (ranks != clique->ranks) {
        last_error = text("rank %d says %d ranks, others say %d", rank, ranks, clique->ranks);
    } else if (rank < 0 || rank >= ranks) {
        last_error = text("there is no rank %d among %d", rank, ranks);
    } else if (clique->members[static_cast<size_t>(rank)]) {
        last_error = text("rank %d is there already", rank);
    } else {
        last_error.clear();
        for (const auto& other : clique->members) {
            if (other && other->device == comm->device) {
                last_error =
                    text("duplicate GPU detected: rank %d and rank %d are both on device %d", rank,
                         other->rank, comm->device->ordinal);
            }
        }
    }
    if (!last_error.empty()) {
        say("nccl: %s", last_error.c_str());
        clique->failure = kInvalidUsage;
        state().changed.notify_all();
        return kInvalidUsage;
    }
    comm->clique = clique;
    comm->rank = rank;
    clique->members[static_cast<size_t>(rank)] = comm;
    ++clique->arrived;
    state().changed.notify_all();
    return kSuccess;
}

Result wait_complete(Lock& lock, const std::shared_ptr<Clique>& clique) {
    wait_until(lock, [&] { return clique->complete(); });
    return clique->failure;
}

// Blocking communicators wait for all ranks here or at the end of the group, others are polled.
Result settle(Lock& lock, const std::shared_ptr<Comm>& comm) {
    auto clique = comm->clique;
    if (!comm->blocking) return clique->complete() ? clique->failure : kInProgress;
    if (!in_group()) return wait_complete(lock, clique);
    put_off([clique](Lock& later) { return wait_complete(later, clique); });
    return kSuccess;
}

struct Config {
    size_t bytes;
    unsigned magic, version;
    int blocking;
};

}  // namespace

std::shared_ptr<Comm> find_comm(void* handle) {
    auto found = comms().find(handle);
    return found == comms().end() ? nullptr : found->second;
}

void* enter_comm(const std::shared_ptr<Comm>& comm) {
    comms()[comm.get()] = comm;
    return comm.get();
}

void forget_comm(void* handle) { comms().erase(handle); }

void fail_comm(Comm& comm, Result result, const std::string& message) {
    // What follows from the first failure is not told.
    if (comm.failure != kSuccess) return;
    say("nccl rank %d of %d on device %d: %s", comm.rank, comm.clique->ranks, comm.device->ordinal,
        message.c_str());
    comm.failure = result;
    comm.last_error = message;
    if (!comm.aborted) comm.device->failed_comms.insert(&comm);
}

namespace {

// Rank `rank` of a clique known by its id, on the current device.
int init_rank(void** handle, int ranks, const char* id, int rank, bool blocking) {
    Entry entry = enter();
    if (!entry) return kUnhandledCudaError;
    if (!handle || ranks <= 0) return kInvalidArgument;
    *handle = nullptr;
    auto& clique = cliques()[std::string(id, strnlen(id, 128))];
    if (!clique) clique = new_clique(ranks);
    auto comm = std::make_shared<Comm>();
    comm->device = entry.device;
    comm->blocking = blocking;
    auto joined = clique;
    if (Result result = join(joined, comm, ranks, rank)) return result;
    if (joined->arrived == ranks) cliques().erase(std::string(id, strnlen(id, 128)));
    *handle = enter_comm(comm);
    return settle(entry.lock, comm);
}

// Makes the communicators of a split, once all ranks have asked.
void perform(const Comm& parent, Split& split) {
    std::map<int, std::vector<size_t>> colors;
    for (size_t rank = 0; rank < split.wishes.size(); ++rank) {
        if (split.wishes[rank].color >= 0) colors[split.wishes[rank].color].push_back(rank);
    }
    for (auto& color : colors) {
        auto& members = color.second;
        std::stable_sort(members.begin(), members.end(), [&](size_t a, size_t b) {
            return split.wishes[a].key < split.wishes[b].key;
        });
        auto clique = new_clique(static_cast<int>(members.size()));
        for (size_t place = 0; place < members.size(); ++place) {
            auto comm = split.wishes[members[place]].result;
            comm->device = parent.clique->members[members[place]]->device;
            join(clique, comm, clique->ranks, static_cast<int>(place));
        }
    }
    for (auto& wish : split.wishes) wish.made = true;
    state().changed.notify_all();
}

}  // namespace
}  // namespace driver::nccl

using namespace driver;
using namespace driver::nccl;

struct UniqueId {
    char bytes[128];
};

DRIVER_API int ncclGetVersion(int* version) {
    *version = 22809;  // 2.28.9
    return kSuccess;
}

DRIVER_API int ncclGetUniqueId(UniqueId* id) {
    Lock lock(state().mutex);
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "simt-clique-%llu",
             static_cast<unsigned long long>(next_number()));
    return kSuccess;
}

DRIVER_API int ncclCommInitRank(void** comm, int ranks, UniqueId id, int rank) {
    return init_rank(comm, ranks, id.bytes, rank, true);
}

DRIVER_API int ncclCommInitRankConfig(void** comm, int ranks, UniqueId id, int rank,
                                      const Config* config) {
    return init_rank(comm, ranks, id.bytes, rank, !config || config->blocking != 0);
}

DRIVER_API int ncclCommInitAll(void** handles, int count, const int* ordinals) {
    Entry entry = enter_without_context();
    if (!entry) return kUnhandledCudaError;
    auto clique = new_clique(count);
    for (int rank = 0; rank < count; ++rank) {
        const size_t ordinal = static_cast<size_t>(ordinals ? ordinals[rank] : rank);
        if (ordinal >= state().devices.size()) return kInvalidArgument;
        auto comm = std::make_shared<Comm>();
        comm->device = state().devices[ordinal].get();
        if (Result result = join(clique, comm, count, rank)) return result;
        handles[rank] = enter_comm(comm);
    }
    return kSuccess;
}

DRIVER_API int ncclCommSplit(void* handle, int color, int key, void** result,
                             const Config* config) {
    Entry entry = enter_without_context();
    if (!entry) return kUnhandledCudaError;
    auto parent = find_comm(handle);
    if (!parent || !result || color < -1) return kInvalidArgument;
    *result = nullptr;
    auto& split = parent->clique->splits[parent->splits++];
    if (!split) {
        split = std::make_shared<Split>();
        split->wishes.resize(parent->clique->members.size());
    }
    auto held = split;
    const size_t rank = static_cast<size_t>(parent->rank);
    auto comm = std::make_shared<Comm>();
    comm->device = parent->device;
    comm->blocking = config ? config->blocking != 0 : parent->blocking;
    held->wishes[rank] = Split::Wish{color, key, comm};
    if (color >= 0) *result = enter_comm(comm);
    if (++held->arrived == parent->clique->ranks) perform(*parent, *held);
    auto wait = [held, rank](Lock& lock) {
        wait_until(lock, [&] { return held->wishes[rank].made; });
        return held->wishes[rank].result->clique ? held->wishes[rank].result->clique->failure
                                                 : kSuccess;
    };
    if (!comm->blocking) return held->wishes[rank].made ? kSuccess : kInProgress;
    if (in_group()) {
        put_off(wait);
        return kSuccess;
    }
    return wait(entry.lock);
}

namespace {

// What has been queued of the communicator has run.
bool flushed(const Comm& comm) { return !comm.last_batch || comm.last_batch->finished; }

int finish(void* handle, bool forget) {
    Entry entry = enter_without_context();
    if (!entry) return kUnhandledCudaError;
    auto comm = find_comm(handle);
    if (!comm) return kInvalidArgument;
    wait_until(entry.lock, [&] { return flushed(*comm); });
    if (forget) {
        comm->device->failed_comms.erase(comm.get());
        forget_comm(handle);
    }
    return kSuccess;
}

}  // namespace

DRIVER_API int ncclCommFinalize(void* comm) { return finish(comm, false); }
DRIVER_API int ncclCommDestroy(void* comm) { return finish(comm, true); }

// Pending operations of this rank end without having happened. Peers whose operations wait for this
// rank learn of it as an asynchronous error; these stay pending until the peers abort as well.
DRIVER_API int ncclCommAbort(void* handle) {
    Entry entry = enter_without_context();
    if (!entry) return kUnhandledCudaError;
    auto comm = find_comm(handle);
    if (!comm) return kInvalidArgument;
    comm->aborted = true;
    if (comm->clique) {
        if (!flushed(*comm))
            say("nccl rank %d: aborted with operations pending: %s", comm->rank,
                comm->last_batch->what.c_str());
        withdraw(*comm->clique, [&](const Call& call) { return call.batch->comm == comm; });
        if (!comm->clique->complete()) comm->clique->failure = kRemoteError;
    }
    comm->device->failed_comms.erase(comm.get());
    forget_comm(handle);
    state().changed.notify_all();
    // Once it has returned, nothing touches memory that the caller may free.
    wait_until(entry.lock, [&] { return comm->moving == 0; });
    return kSuccess;
}

DRIVER_API int ncclCommGetAsyncError(void* handle, int* result) {
    Entry entry = enter_without_context();
    if (!entry) return kUnhandledCudaError;
    auto comm = find_comm(handle);
    if (!comm) return kInvalidArgument;
    // Moves work on by one piece, as cuStreamQuery does.
    if (!flushed(*comm)) step(entry.lock);
    if (comm->failure != kSuccess) {
        *result = comm->failure;
    } else if (!comm->clique || !comm->clique->complete()) {
        *result = kInProgress;
    } else if (waits_for_aborted(*comm)) {
        *result = kRemoteError;
    } else {
        *result = comm->clique->failure;
    }
    return kSuccess;
}

DRIVER_API int ncclCommCount(void* handle, int* count) {
    Entry entry = enter_without_context();
    auto comm = entry ? find_comm(handle) : nullptr;
    if (!comm || !comm->clique) return kInvalidArgument;
    *count = comm->clique->ranks;
    return kSuccess;
}

DRIVER_API int ncclCommUserRank(void* handle, int* rank) {
    Entry entry = enter_without_context();
    auto comm = entry ? find_comm(handle) : nullptr;
    if (!comm || !comm->clique) return kInvalidArgument;
    *rank = comm->rank;
    return kSuccess;
}

DRIVER_API int ncclCommCuDevice(void* handle, int* device) {
    Entry entry = enter_without_context();
    auto comm = entry ? find_comm(handle) : nullptr;
    if (!comm) return kInvalidArgument;
    *device = comm->device->ordinal;
    return kSuccess;
}

DRIVER_API const char* ncclGetErrorString(int result) {
    switch (result) {
        case kSuccess: return "no error";
        case kUnhandledCudaError:
            return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
        case kSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case kInternalError:
            return "internal error";
        case kInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
        case kInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
        case kRemoteError: return "remote process exited or there was a network error";
        case kInProgress: return "NCCL operation in progress";
        default: return "unknown result code";
    }
}

DRIVER_API const char* ncclGetLastError(void* handle) {
    static thread_local std::string kept;
    Entry entry = enter_without_context();
    auto comm = entry ? find_comm(handle) : nullptr;
    kept = comm && !comm->last_error.empty() ? comm->last_error : last_error;
    return kept.c_str();
}
