// What the tests call of the libraries, as C declares it.
#pragma once

#include <cstddef>
#include <cstdint>

struct UniqueId {
    char bytes[128];
};
struct CommConfig {
    size_t bytes;
    unsigned magic, version;
    int blocking, cluster, min_blocks, max_blocks;
    const char* network;
    int share;
};
struct MemoryAccess {
    int location_type, device, flags;
};
struct Heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

extern "C" {
int cuInit(unsigned);
int cuDeviceGetCount(int*);
int cuDevicePrimaryCtxRetain(void**, int);
int cuCtxSetCurrent(void*);
int cuCtxSynchronize();
int cuCtxEnablePeerAccess(void*, unsigned);
int cuStreamCreate(void**, unsigned);
int cuStreamDestroy_v2(void*);
int cuStreamSynchronize(void*);
int cuStreamQuery(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuEventCreate(void**, unsigned);
int cuEventRecord(void*, void*);
int cuEventQuery(void*);
int cuEventSynchronize(void*);
int cuEventElapsedTime(float*, void*, void*);
int cuMemAlloc_v2(uint64_t*, size_t);
int cuMemAllocAsync(uint64_t*, size_t, void*);
int cuMemFree_v2(uint64_t);
int cuMemFreeAsync(uint64_t, void*);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemGetInfo_v2(size_t*, size_t*);
int cuMemcpyAsync(uint64_t, uint64_t, size_t, void*);
int cuMemcpyHtoD_v2(uint64_t, const void*, size_t);
int cuMemcpyDtoH_v2(void*, uint64_t, size_t);
int cuMemcpyHtoDAsync_v2(uint64_t, const void*, size_t, void*);
int cuMemcpyDtoHAsync_v2(void*, uint64_t, size_t, void*);
int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, void*);
int cuMemcpyPeerAsync(uint64_t, void*, uint64_t, void*, size_t, void*);
int cuMemsetD8Async(uint64_t, unsigned char, size_t, void*);
int cuMemsetD32Async(uint64_t, unsigned, size_t, void*);
int cuDeviceGetDefaultMemPool(void**, int);
int cuMemPoolSetAccess(void*, const MemoryAccess*, size_t);
int cuModuleLoadData(void**, const void*);
int cuModuleGetFunction(void**, void*, const char*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
int cuLaunchHostFunc(void*, void (*)(void*), void*);
int cuStreamBeginCapture_v2(void*, int);
int cuStreamEndCapture(void*, void**);
int cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
int cuGraphLaunch(void*, void*);
int cuGraphExecDestroy(void*);
int cuGraphDestroy(void*);
int cuGetErrorName(int, const char**);

int ncclGetUniqueId(UniqueId*);
int ncclCommInitRank(void**, int, UniqueId, int);
int ncclCommInitRankConfig(void**, int, UniqueId, int, CommConfig*);
int ncclCommSplit(void*, int, int, void**, CommConfig*);
int ncclCommCount(void*, int*);
int ncclCommUserRank(void*, int*);
int ncclCommAbort(void*);
int ncclCommDestroy(void*);
int ncclCommGetAsyncError(void*, int*);
int ncclGroupStart();
int ncclGroupEnd();
int ncclSend(const void*, size_t, int, int, void*, void*);
int ncclRecv(void*, size_t, int, int, void*, void*);
int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*);
int ncclReduce(const void*, void*, size_t, int, int, int, void*, void*);
int ncclReduceScatter(const void*, void*, size_t, int, int, void*, void*);
int ncclAllGather(const void*, void*, size_t, int, void*, void*);
int ncclBroadcast(const void*, void*, size_t, int, int, void*, void*);

int cublasLtCreate(void**);
int cublasLtMatmulDescCreate(void**, int, int);
int cublasLtMatmulDescSetAttribute(void*, int, const void*, size_t);
int cublasLtMatrixLayoutCreate(void**, int, uint64_t, uint64_t, int64_t);
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, size_t);
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*,
                                   int*);
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const void*, void*, size_t, void*);

int nvrtcCreateProgram(void**, const char*, const char*, int, const char* const*,
                       const char* const*);
int nvrtcCompileProgram(void*, int, const char* const*);
int nvrtcGetPTXSize(void*, size_t*);
int nvrtcGetPTX(void*, char*);
int nvrtcGetProgramLogSize(void*, size_t*);
int nvrtcGetProgramLog(void*, char*);
}
