// Captured graphs.
#include "check.h"

namespace {

constexpr uint32_t kCount = 64;
constexpr int kThreadLocal = 1;

// y = (x + 1) + 2, z = (x + 1) + 4 on a second stream, x = y + 8 after both.
void forked_work(void* first, void* second, uint64_t x, uint64_t y, uint64_t z, bool join) {
    void* fork_event = new_event();
    void* join_event = new_event();
    OK(launch_add(first, x, x, kCount, 1.0f));
    OK(cuEventRecord(fork_event, first));
    OK(cuStreamWaitEvent(second, fork_event, 0));
    OK(launch_add(second, z, x, kCount, 4.0f));
    OK(launch_add(first, y, x, kCount, 2.0f));
    OK(cuEventRecord(join_event, second));
    if (join) OK(cuStreamWaitEvent(first, join_event, 0));
    OK(launch_add(first, x, y, kCount, 8.0f));
}

int replay() {
    use_device(0);
    void* first = new_stream();
    void* second = new_stream();
    std::vector<std::vector<float>> results[2];
    for (int captured = 0; captured < 2; ++captured) {
        const uint64_t x = upload(std::vector<float>(kCount, 0.5f)), y = device_memory(256),
                       z = device_memory(256);
        if (captured) {
            void* graph = nullptr;
            void* executable = nullptr;
            OK(cuStreamBeginCapture_v2(first, kThreadLocal));
            forked_work(first, second, x, y, z, true);
            OK(cuStreamEndCapture(first, &graph));
            OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
            OK(cuGraphDestroy(graph));
            REQUIRE(download<float>(x, 1)[0] == 0.5f);  // capturing runs nothing
            for (int i = 0; i < 3; ++i) OK(cuGraphLaunch(executable, first));
            OK(cuStreamSynchronize(first));
            OK(cuGraphExecDestroy(executable));
        } else {
            for (int i = 0; i < 3; ++i) forked_work(first, second, x, y, z, true);
            OK(cuStreamSynchronize(first));
        }
        results[captured] = {download<float>(x, kCount), download<float>(y, kCount),
                             download<float>(z, kCount)};
    }
    REQUIRE(results[0][0][0] == 33.5f);
    return results[0] == results[1] ? 0 : 1;
}

int copies_and_fills() {
    use_device(0);
    void* stream = new_stream();
    void* host = nullptr;
    OK(cuMemHostAlloc(&host, 256, 0));
    float* values = static_cast<float*>(host);
    const uint64_t x = device_memory(256);
    void* graph = nullptr;
    void* executable = nullptr;
    OK(cuStreamBeginCapture_v2(stream, kThreadLocal));
    OK(cuMemcpyHtoDAsync_v2(x, host, 256, stream));
    OK(cuMemsetD8Async(x, 0, 4, stream));
    OK(cuMemcpyDtoHAsync_v2(host, x, 128, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int i = 0; i < 64; ++i) values[i] = 7.0f;  // read at the launch, not at the capture
    OK(cuGraphLaunch(executable, stream));
    OK(cuStreamSynchronize(stream));
    REQUIRE(download<float>(x, 64)[63] == 7.0f);
    return values[0] == 0.0f && values[1] == 7.0f ? 0 : 1;
}

int unjoined() {
    use_device(0);
    void* first = new_stream();
    void* second = new_stream();
    const uint64_t x = device_memory(256);
    void* graph = nullptr;
    OK(cuStreamBeginCapture_v2(first, kThreadLocal));
    forked_work(first, second, x, x, x, false);
    return cuStreamEndCapture(first, &graph) == 904 ? 0 : 1;
}

int synchronised() {
    use_device(0);
    void* stream = new_stream();
    void* graph = nullptr;
    OK(cuStreamBeginCapture_v2(stream, kThreadLocal));
    REQUIRE(cuStreamSynchronize(stream) == 900);
    return cuStreamEndCapture(stream, &graph) == 901 ? 0 : 1;
}

int outside_event() {
    use_device(0);
    void* stream = new_stream();
    void* event = new_event();
    OK(cuEventRecord(event, new_stream()));
    OK(cuStreamBeginCapture_v2(stream, kThreadLocal));
    return cuStreamWaitEvent(stream, event, 0) == 905 ? 0 : 1;
}

int freed_before_launch() {
    use_device(0);
    void* stream = new_stream();
    const uint64_t x = device_memory(256), y = device_memory(256);
    void* graph = nullptr;
    void* executable = nullptr;
    OK(cuStreamBeginCapture_v2(stream, kThreadLocal));
    OK(launch_add(stream, y, x, kCount, 1.0f));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    OK(cuMemFree_v2(x));
    OK(cuGraphLaunch(executable, stream));
    return cuStreamSynchronize(stream) == 700 ? 3 : 0;
}

}  // namespace

int main() {
    Ended last{};
    const int right = passes_with_seeds(8, "", replay, &last);
    verdict("a graph with a fork and a join replays as eager work runs, in every seed", right == 8,
            last);
    passes("copies and fills are captured, and read what is there at the launch", "",
           copies_and_fills);
    passes("a capture that is not joined is refused", "", unjoined);
    passes("a capture does not survive a synchronisation", "", synchronised);
    passes("a capture does not wait for events from outside", "", outside_event);
    last = in_process("", freed_before_launch);
    verdict("a graph on freed memory is refused",
            last.status == 3 && last.says("graph: kernel test_add: a parameter"), last);
    return finish();
}
