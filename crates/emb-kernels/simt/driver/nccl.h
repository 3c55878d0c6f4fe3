// The collectives: communicators, what a call asks for, and what is enqueued of it.
//
// Calls of one group become one batch on a stream. A batch at the head of its stream is posted: its
// sends, receives and collectives may meet those that peers have posted. Two that meet move their
// data then, not before; a batch is done when all of its calls are.
#pragma once

#include <string>

#include "state.h"

namespace driver::nccl {

// Of ncclResult_t.
enum Result : int {
    kSuccess = 0,
    kUnhandledCudaError = 1,
    kSystemError = 2,
    kInternalError = 3,
    kInvalidArgument = 4,
    kInvalidUsage = 5,
    kRemoteError = 6,
    kInProgress = 7,
};

// Of ncclDataType_t.
enum Type : int { kI8, kU8, kI32, kU32, kI64, kU64, kF16, kF32, kF64, kBf16, kTypes };
// Of ncclRedOp_t.
enum Operation : int { kSum, kProd, kMax, kMin, kAvg, kOperations };

enum class Kind {
    kSend,
    kRecv,
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kBroadcast,
    kReduce,
    kAllToAll
};

struct Comm;
struct Batch;

struct Call {
    Kind kind;
    uint64_t from, to;  // buffers; 0 where there is none
    size_t count;
    int type = kU8, operation = kSum;
    int peer = 0;  // or the root
    Batch* batch = nullptr;
};

struct Batch : std::enable_shared_from_this<Batch> {
    std::shared_ptr<Comm> comm;
    std::vector<Call> calls;
    size_t open = 0;  // calls that are not done
    bool posted = false, finished = false;
    std::shared_ptr<Batch> previous;  // of the same communicator: they run in order
    std::string what;
};

// Ranks that asked for a split, until all have.
struct Split {
    struct Wish {
        int color = -1, key = 0;
        std::shared_ptr<Comm> result;
        bool made = false;
    };
    std::vector<Wish> wishes;
    int arrived = 0;
};

// The ranks of one communicator.
struct Clique {
    uint64_t number = 0;
    int ranks = 0;
    std::vector<std::shared_ptr<Comm>> members;
    int arrived = 0;
    Result failure = kSuccess;
    // Posted and not yet met.
    std::map<uint64_t, std::vector<Call*>> collectives;  // by the number of the collective
    std::map<std::pair<int, int>, std::deque<Call*>> sends, recvs;  // by sender and receiver
    std::map<uint64_t, std::shared_ptr<Split>> splits;              // by how many came before

    bool complete() const { return arrived == ranks || failure != kSuccess; }
};

struct Comm {
    std::shared_ptr<Clique> clique;
    int rank = 0;
    Device* device = nullptr;
    bool blocking = true;
    bool aborted = false;
    // Transfers that have been met and not yet moved: they read or write this rank's memory.
    int moving = 0;
    Result failure = kSuccess;
    std::string last_error;
    uint64_t posted_collectives = 0;
    std::shared_ptr<Batch> last_batch;
    uint64_t splits = 0;
};

size_t type_bytes(int type);
const char* type_name(int type);
const char* kind_name(Kind kind);

// The communicator of a handle; null where it is not one.
std::shared_ptr<Comm> find_comm(void* handle);
void* enter_comm(const std::shared_ptr<Comm>& comm);
void forget_comm(void* handle);

// Remembers the failure with the communicator, where ncclCommGetAsyncError finds it, and with its
// device until the communicator is aborted.
void fail_comm(Comm& comm, Result result, const std::string& message);

// Under the lock: posts the batch if its turn has come. True when all of its calls are done.
bool advance(const std::shared_ptr<Batch>& batch);
// Takes back what has been posted and not met, of an aborted communicator or of a batch that ended.
void withdraw(Clique& clique, const std::function<bool(const Call&)>& whose);
// Whether something that the communicator has posted waits for a rank that aborted.
bool waits_for_aborted(const Comm& comm);
// What the batch waits for, for the stall report.
std::string waiting(const Batch& batch);

// The group of this thread.
bool in_group();
// Waits that a group puts off to its end: communicators being made.
void put_off(std::function<Result(Lock&)> wait);
// Finds or queues: the call joins the group, or is one by itself.
Result submit(Lock& lock, const std::shared_ptr<Comm>& comm, void* stream, Call call);

// out[i] = the operation over from[rank][i], in the order of ranks.
void reduce(const std::vector<const void*>& from, void* out, size_t count, int type, int operation);

}  // namespace driver::nccl
