// The entry points of collectives.
#include "nccl.h"

using namespace driver;
using namespace driver::nccl;

namespace {

int call(void* handle, void* stream, Call what) {
    Entry entry = enter_without_context();
    if (!entry) return kUnhandledCudaError;
    auto comm = find_comm(handle);
    if (!comm) return kInvalidArgument;
    return submit(entry.lock, comm, stream, what);
}

Call make(Kind kind, const void* from, void* to, size_t count, int type) {
    return Call{kind, reinterpret_cast<uint64_t>(from), reinterpret_cast<uint64_t>(to), count,
                type};
}

}  // namespace

DRIVER_API int ncclSend(const void* from, size_t count, int type, int peer, void* comm,
                        void* stream) {
    Call what = make(Kind::kSend, from, nullptr, count, type);
    what.peer = peer;
    return call(comm, stream, what);
}

DRIVER_API int ncclRecv(void* to, size_t count, int type, int peer, void* comm, void* stream) {
    Call what = make(Kind::kRecv, nullptr, to, count, type);
    what.peer = peer;
    return call(comm, stream, what);
}

DRIVER_API int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                             void* comm, void* stream) {
    Call what = make(Kind::kAllReduce, from, to, count, type);
    what.operation = operation;
    return call(comm, stream, what);
}

DRIVER_API int ncclReduce(const void* from, void* to, size_t count, int type, int operation,
                          int root, void* comm, void* stream) {
    Call what = make(Kind::kReduce, from, to, count, type);
    what.operation = operation;
    what.peer = root;
    return call(comm, stream, what);
}

DRIVER_API int ncclReduceScatter(const void* from, void* to, size_t count, int type, int operation,
                                 void* comm, void* stream) {
    Call what = make(Kind::kReduceScatter, from, to, count, type);
    what.operation = operation;
    return call(comm, stream, what);
}

DRIVER_API int ncclAllGather(const void* from, void* to, size_t count, int type, void* comm,
                             void* stream) {
    return call(comm, stream, make(Kind::kAllGather, from, to, count, type));
}

DRIVER_API int ncclAlltoAll(const void* from, void* to, size_t count, int type, void* comm,
                            void* stream) {
    return call(comm, stream, make(Kind::kAllToAll, from, to, count, type));
}

DRIVER_API int ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                             void* comm, void* stream) {
    Call what = make(Kind::kBroadcast, from, to, count, type);
    what.peer = root;
    return call(comm, stream, what);
}

DRIVER_API int ncclBcast(void* buffer, size_t count, int type, int root, void* comm, void* stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
