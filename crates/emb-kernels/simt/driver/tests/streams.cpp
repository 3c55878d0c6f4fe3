// Streams and events: what is not ordered shows, what is ordered does not.
#include "check.h"

namespace {

constexpr size_t kCount = 64;

// Two streams, a fill and a copy on the one, a kernel that reads it on the other.
int two_streams(bool wait) {
    use_device(0);
    void* first = new_stream();
    void* second = new_stream();
    const uint64_t x = device_memory(kCount * 4), y = device_memory(kCount * 4);
    OK(cuMemsetD32Async(x, 0, kCount, first));
    OK(launch_add(first, x, x, kCount, 2.0f));
    if (wait) {
        void* event = new_event();
        OK(cuEventRecord(event, first));
        OK(cuStreamWaitEvent(second, event, 0));
    }
    OK(launch_add(second, y, x, kCount, 1.0f));
    OK(cuStreamSynchronize(second));
    const auto got = download<float>(y, kCount);
    for (float value : got) {
        if (value != 3.0f) return 1;
    }
    return 0;
}

// Pinned memory is read when the copy runs: changing it before is a defect that shows.
int pinned(bool wait) {
    use_device(0);
    void* stream = new_stream();
    void* host = nullptr;
    OK(cuMemHostAlloc(&host, kCount * 4, 0));
    const uint64_t x = device_memory(kCount * 4);
    float* values = static_cast<float*>(host);
    for (size_t i = 0; i < kCount; ++i) values[i] = 5.0f;
    OK(cuMemcpyHtoDAsync_v2(x, host, kCount * 4, stream));
    if (wait) OK(cuStreamSynchronize(stream));
    values[0] = 6.0f;
    OK(cuStreamSynchronize(stream));
    return download<float>(x, 1)[0] == 5.0f ? 0 : 1;
}

int pageable() {
    use_device(0);
    void* stream = new_stream();
    std::vector<float> values(kCount, 5.0f);
    const uint64_t x = device_memory(kCount * 4);
    OK(cuMemcpyHtoDAsync_v2(x, values.data(), kCount * 4, stream));
    values[0] = 6.0f;
    OK(cuStreamSynchronize(stream));
    return download<float>(x, 1)[0] == 5.0f ? 0 : 1;
}

// A wait is for the recording that was the latest when it was called.
int recorded_again() {
    use_device(0);
    void* first = new_stream();
    void* second = new_stream();
    void* third = new_stream();
    void* event = new_event();
    const uint64_t x = device_memory(kCount * 4), y = device_memory(kCount * 4);
    OK(cuMemsetD32Async(x, 0, kCount, first));
    for (int i = 0; i < 5; ++i) OK(launch_add(first, x, x, kCount, 1.0f));
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(cuEventRecord(event, third));  // done at once: must not let `second` go
    OK(launch_add(second, y, x, kCount, 0.0f));
    OK(cuStreamSynchronize(second));
    return download<float>(y, 1)[0] == 5.0f ? 0 : 1;
}

// The legacy stream is ordered with blocking streams and not with others.
int legacy(unsigned flags) {
    use_device(0);
    void* stream = new_stream(flags);
    const uint64_t x = device_memory(kCount * 4), y = device_memory(kCount * 4);
    OK(cuMemsetD32Async(x, 0, kCount, stream));
    OK(launch_add(stream, x, x, kCount, 2.0f));
    OK(launch_add(nullptr, y, x, kCount, 1.0f));
    OK(cuStreamSynchronize(nullptr));
    return download<float>(y, 1)[0] == 3.0f ? 0 : 1;
}

int elapsed() {
    use_device(0);
    void* stream = new_stream();
    void* from = new_event();
    void* to = new_event();
    OK(cuEventRecord(from, stream));
    OK(cuLaunchHostFunc(stream, [](void*) { usleep(20000); }, nullptr));
    OK(cuEventRecord(to, stream));
    REQUIRE(cuEventQuery(to) == 600);
    OK(cuEventSynchronize(to));
    float milliseconds = 0;
    OK(cuEventElapsedTime(&milliseconds, from, to));
    return milliseconds >= 20.0f && milliseconds < 20000.0f ? 0 : 1;
}

// Polling alone comes to an end.
int polled() {
    use_device(0);
    void* stream = new_stream();
    const uint64_t x = device_memory(kCount * 4);
    for (int i = 0; i < 3; ++i) OK(cuMemsetD8Async(x, 1, 16, stream));
    int polls = 0;
    while (cuStreamQuery(stream) == 600) ++polls;
    return polls == 2 ? 0 : 1;
}

int host_function_calls_driver() {
    use_device(0);
    void* stream = new_stream();
    static int status = 0;
    OK(cuLaunchHostFunc(stream, [](void*) { status = cuCtxSynchronize(); }, nullptr));
    OK(cuStreamSynchronize(stream));
    return status == 800 ? 0 : 1;
}

}  // namespace

int main() {
    Ended last{};
    int right = passes_with_seeds(12, "", [] { return two_streams(true); }, &last);
    verdict("a kernel that waits for the other stream is right in every seed", right == 12, last);
    right = passes_with_seeds(12, "", [] { return two_streams(false); }, &last);
    printf("       without the wait: right in %d of 12 seeds\n", right);
    verdict("a forgotten wait gives wrong data in most seeds", right <= 5, last);
    right = passes_with_seeds(4, "SIMT_STREAMS=eager", [] { return two_streams(false); }, &last);
    verdict("eager streams hide the forgotten wait", right == 4, last);
    verdict("pinned memory is read when the copy runs",
            in_process("", [] { return pinned(false); }).status == 1, last);
    passes("pinned memory may change after the stream was waited for", "",
           [] { return pinned(true); });
    passes("pageable memory is read at the call", "", pageable);
    right = passes_with_seeds(8, "", recorded_again, &last);
    verdict("a wait keeps the recording it was called for", right == 8, last);
    right = passes_with_seeds(8, "", [] { return legacy(0); }, &last);
    verdict("the legacy stream runs after blocking streams", right == 8, last);
    right = passes_with_seeds(12, "", [] { return legacy(1); }, &last);
    verdict("the legacy stream does not wait for other streams", right < 12, last);
    passes("elapsed time is that of the work between", "", elapsed);
    passes("polling moves work on", "", polled);
    passes("a host function may not call the driver", "", host_function_calls_driver);
    return finish();
}
