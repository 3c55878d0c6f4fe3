// Groups, and queueing what a group holds.
#include "engine.h"
#include "graph.h"
#include "memory.h"
#include "nccl.h"

namespace driver::nccl {
namespace {

struct Pending {
    std::shared_ptr<Stream> stream;
    std::shared_ptr<Batch> batch;
};

struct Group {
    int depth = 0;
    Result failure = kSuccess;
    std::vector<Pending> pending;
    std::vector<std::function<Result(Lock&)>> waits;
};

Group& group() {
    static thread_local Group the_group;
    return the_group;
}

std::string tell(const Batch& batch) {
    std::string what = text("nccl group of %d/%d:", batch.comm->rank, batch.comm->clique->ranks);
    for (const Call& call : batch.calls) {
        what += text(" %s", kind_name(call.kind));
        if (call.kind == Kind::kSend || call.kind == Kind::kRecv) what += text(" %d", call.peer);
        what += text(" %zu %s;", call.count, type_name(call.type));
        if (what.size() > 300) return what + " ...";
    }
    return what;
}

Result enqueue(Lock& lock, const Pending& pending) {
    auto batch = pending.batch;
    for (Call& call : batch->calls) call.batch = batch.get();
    batch->open = batch->calls.size();
    batch->what = tell(*batch);
    batch->previous = batch->comm->last_batch;
    batch->comm->last_batch = batch;
    if (batch->previous)
        batch->previous->previous = nullptr;  // finished in order: one link is enough
    auto work = std::make_shared<Work>();
    work->what = batch->what;
    work->ready = [batch] { return advance(batch); };
    work->finished = [batch] {
        batch->finished = true;
        if (batch->open > 0)
            withdraw(*batch->comm->clique,
                     [&](const Call& call) { return call.batch == batch.get(); });
    };
    work->waiting = [batch] { return waiting(*batch); };
    return push(lock, pending.stream, work) == kOk ? kSuccess : kUnhandledCudaError;
}

// Whether the buffers are memory of the device, as far as can be told when called.
std::string refuse_buffers(const Comm& comm, const Call& call) {
    const size_t bytes = call.count * type_bytes(call.type);
    for (uint64_t address : {call.from, call.to}) {
        if (!address || !bytes) continue;
        const Allocation* allocation = find_allocation(address);
        if (!allocation) return "a buffer is " + describe(address);
        if (allocation->device && allocation->device != comm.device) {
            return text("a buffer is of device %d", allocation->device->ordinal);
        }
    }
    return "";
}

Result check(const Comm& comm, const std::shared_ptr<Stream>& stream, const Call& call) {
    std::string why;
    if (comm.aborted) {
        why = "the communicator was aborted";
    } else if (!comm.clique->complete()) {
        why = "the communicator is not ready";
    } else if (comm.clique->failure != kSuccess) {
        why = "the communicator failed before";
    } else if (!stream) {
        why = "there is no such stream";
    } else if (stream->device != comm.device) {
        why = text("the stream is of device %d, the communicator of device %d",
                   stream->device->ordinal, comm.device->ordinal);
    } else if (stream->capture) {
        why = "collectives cannot be captured here";
    } else if (!type_bytes(call.type)) {
        why = text("there is no type %d", call.type);
    } else if (call.operation < 0 || call.operation >= kOperations) {
        why = text("there is no operation %d", call.operation);
    } else if (call.peer < 0 || call.peer >= comm.clique->ranks) {
        why = text("there is no rank %d among %d", call.peer, comm.clique->ranks);
    } else {
        why = refuse_buffers(comm, call);
    }
    if (why.empty()) return kSuccess;
    const_cast<Comm&>(comm).last_error = why;
    say("nccl rank %d: %s: %s", comm.rank, kind_name(call.kind), why.c_str());
    return kInvalidArgument;
}

}  // namespace

bool in_group() { return group().depth > 0; }

void put_off(std::function<Result(Lock&)> wait) { group().waits.push_back(std::move(wait)); }

Result submit(Lock& lock, const std::shared_ptr<Comm>& comm, void* handle, Call call) {
    auto stream = find_stream(comm->device, handle);
    const Result checked = check(*comm, stream, call);
    if (checked != kSuccess) {
        if (in_group() && group().failure == kSuccess) group().failure = checked;
        return checked;
    }
    if (!in_group()) {
        Pending single{stream, std::make_shared<Batch>()};
        single.batch->comm = comm;
        single.batch->calls.push_back(call);
        return enqueue(lock, single);
    }
    for (Pending& pending : group().pending) {
        if (pending.batch->comm != comm) continue;
        if (pending.stream != stream) {
            say("nccl rank %d: one group uses a communicator on two streams, which is not offered "
                "here",
                comm->rank);
            return group().failure = kInvalidUsage;
        }
        pending.batch->calls.push_back(call);
        return kSuccess;
    }
    group().pending.push_back(Pending{stream, std::make_shared<Batch>()});
    group().pending.back().batch->comm = comm;
    group().pending.back().batch->calls.push_back(call);
    return kSuccess;
}

}  // namespace driver::nccl

using namespace driver;
using namespace driver::nccl;

DRIVER_API int ncclGroupStart() {
    ++group().depth;
    return kSuccess;
}

DRIVER_API int ncclGroupEnd() {
    Group& ours = group();
    if (ours.depth == 0) return kInvalidUsage;
    if (--ours.depth > 0) return kSuccess;
    Entry entry = enter_without_context();
    if (!entry) return kUnhandledCudaError;
    Group ended;
    std::swap(ended, ours);
    Result result = ended.failure;
    for (const Pending& pending : ended.pending) {
        // A group with a refused call queues nothing.
        if (ended.failure != kSuccess) break;
        const Result queued = enqueue(entry.lock, pending);
        if (result == kSuccess) result = queued;
    }
    for (const auto& wait : ended.waits) {
        const Result waited = wait(entry.lock);
        if (result == kSuccess) result = waited;
    }
    return result;
}
