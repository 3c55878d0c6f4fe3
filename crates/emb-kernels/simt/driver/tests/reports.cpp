// The trace, the byte counts, and many threads at once.
#include <fstream>
#include <iterator>
#include <sstream>

#include "collectives.h"

namespace {

std::string temporary(const char* name) {
    const char* base = getenv("TMPDIR");
    return std::string(base && *base ? base : "/tmp") + "/simt-driver-" + std::to_string(getpid()) +
           "-" + name;
}

std::string read_and_remove(const std::string& path) {
    std::ifstream file(path);
    std::string out((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    remove(path.c_str());
    return out;
}

// A process that ends with exit(), so that what is written at exit is.
int work_and_exit() {
    use_device(0);
    void* stream = new_stream();
    const uint64_t x = device_memory(256), y = device_memory(256);
    OK(cuMemsetD8Async(x, 0, 256, stream));
    OK(launch_add(stream, y, x, 60, 1.0f));
    OK(launch_add(stream, y, x, 60, 1.0f));
    OK(cuStreamSynchronize(stream));
    exit(0);
}

size_t position(const std::string& trace, const char* event, const char* what) {
    const std::string start = std::string("{\"event\":\"") + event + "\"";
    std::istringstream lines(trace);
    size_t number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
        if (line.rfind(start, 0) == 0 && line.find(what) != std::string::npos) return number;
    }
    return std::string::npos;
}

void check_trace() {
    const std::string path = temporary("trace");
    const Ended ended = in_process("SIMT_TRACE=" + path, work_and_exit);
    const std::string trace = read_and_remove(path);
    const size_t queued = position(trace, "enqueue", "\"what\":\"kernel test_add\""),
                 filled = position(trace, "run", "\"what\":\"fill 256\"");
    const size_t ran = position(trace, "run", "\"stream\":1,\"what\":\"kernel test_add\"");
    verdict("the trace has what is queued, then what runs, in order",
            ended.status == 0 && queued < filled && filled < ran && ran != std::string::npos,
            ended);
}

void check_counts() {
    const std::string path = temporary("count");
    const Ended ended = in_process("SIMT_COUNT=" + path, work_and_exit);
    const std::string counts = read_and_remove(path);
    const bool counted = counts.find("\"counted\":true") != std::string::npos;
    const char* want =
        counted ? "\"test_add\":{\"launches\":2,\"read_bytes\":480,\"written_bytes\":480}"
                : "\"test_add\":{\"launches\":2,\"read_bytes\":0,\"written_bytes\":0}";
    verdict("launches and bytes are written by kernel",
            ended.status == 0 && counts.find(want) != std::string::npos,
            Ended{ended.status, ended.said + counts});
}

// Ranks that compute, exchange and free at their own pace; every step's sum is known.
int many_steps() {
    return on_ranks(4, [](RankState& rank) {
        void* compute = new_stream();
        uint64_t x = 0;
        OK(cuMemAllocAsync(&x, 256, compute));
        OK(cuMemsetD8Async(x, 0, 256, compute));
        for (int step = 0; step < 20; ++step) {
            void* before = new_event();
            void* after = new_event();
            OK(launch_add(compute, x, x, 64, 1.0f));
            OK(cuEventRecord(before, compute));
            OK(cuStreamWaitEvent(rank.stream, before, 0));
            OK(ncclAllReduce(pointer(x), pointer(x), 64, kF32, kMax, rank.comm, rank.stream));
            OK(cuEventRecord(after, rank.stream));
            OK(cuStreamWaitEvent(compute, after, 0));
            uint64_t scratch = 0;
            OK(cuMemAllocAsync(&scratch, 4096, compute));
            OK(cuMemcpyDtoDAsync_v2(scratch, x, 256, compute));
            OK(cuMemFreeAsync(scratch, compute));
            if (step % 5 == rank.rank) OK(cuStreamSynchronize(compute));
        }
        OK(cuStreamSynchronize(compute));
        return download<float>(x, 64)[63] == 20.0f ? 0 : 1;
    });
}

}  // namespace

int main() {
    check_trace();
    check_counts();
    Ended last{};
    const int right = passes_with_seeds(4, "SIMT_DEVICES=4", many_steps, &last);
    verdict("ranks at their own pace agree in every seed", right == 4, last);
    return finish();
}
