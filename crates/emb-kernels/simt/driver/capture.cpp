// Stream capture: forks and joins by events, and what a capture forbids.
#include <algorithm>

#include "engine.h"
#include "graph.h"

namespace driver {

int capture_work(Stream& stream, std::shared_ptr<Work> work) {
    Capture& capture = *stream.capture;
    if (capture.invalid) return kCaptureInvalidated;
    if (!work->device) work->device = stream.device;
    // Marks of time make no node; the event keeps the tail instead.
    capture.graph->nodes.push_back(Node{std::move(work), stream.capture_tail});
    stream.capture_tail = {capture.graph->nodes.size() - 1};
    return kOk;
}

int join_capture(const std::shared_ptr<Stream>& stream, const Event& event) {
    if (stream->capture && stream->capture != event.capture) {
        stream->capture->invalid = event.capture->invalid = true;
        say("a stream of one capture waits for an event of another");
        return kCaptureMerge;
    }
    if (event.capture->invalid) return kCaptureInvalidated;
    if (!event.capture->origin->capture) return kCapturedEvent;  // the capture has ended
    if (stream == stream->device->legacy) return kCaptureImplicit;
    stream->capture = event.capture;
    for (size_t node : event.capture_tail) {
        auto& tail = stream->capture_tail;
        if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
    }
    return kOk;
}

int forbid_in_capture(const std::shared_ptr<Stream>& stream, const char* call) {
    stream->capture->invalid = true;
    say("%s is called while stream %llu of device %d is captured", call,
        static_cast<unsigned long long>(stream->number), stream->device->ordinal);
    return kCaptureUnsupported;
}

int forbid_while_capturing(const char* call) {
    for (const auto& stream : state().streams) {
        const auto& capture = stream->capture;
        if (!capture || capture->mode == 2) continue;
        if (capture->mode == 0 || capture->thread == std::this_thread::get_id())
            return forbid_in_capture(stream, call);
    }
    return kOk;
}

namespace {

// Every node comes before the end of the stream that began the capture.
bool joined(const Graph& graph, const std::vector<size_t>& tail) {
    std::vector<char> reached(graph.nodes.size(), 0);
    std::vector<size_t> open = tail;
    while (!open.empty()) {
        size_t node = open.back();
        open.pop_back();
        if (reached[node]) continue;
        reached[node] = 1;
        for (size_t before : graph.nodes[node].after) open.push_back(before);
    }
    return std::find(reached.begin(), reached.end(), 0) == reached.end();
}

}  // namespace
}  // namespace driver

using namespace driver;

DRIVER_API int cuStreamBeginCapture_v2(void* handle, int mode) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (stream == stream->device->legacy) return kCaptureUnsupported;
    if (stream->capture) return kCaptureMerge;
    static uint64_t numbers = 0;
    stream->capture = std::make_shared<Capture>();
    stream->capture->number = ++numbers;
    stream->capture->mode = mode;
    stream->capture->origin = stream;
    stream->capture->thread = std::this_thread::get_id();
    stream->capture_tail.clear();
    return kOk;
}

DRIVER_API int cuStreamEndCapture(void* handle, Graph** graph) {
    Entry entry = enter();
    if (!entry) return entry.status;
    *graph = nullptr;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    auto capture = stream->capture;
    if (!capture) return 401;  // CUDA_ERROR_ILLEGAL_STATE
    if (capture->origin != stream) return kCaptureUnmatched;
    if (capture->mode != 2 && capture->thread != std::this_thread::get_id())
        return kCaptureWrongThread;
    const bool complete = joined(*capture->graph, stream->capture_tail);
    for (const auto& other : state().streams) {
        if (other->capture != capture) continue;
        other->capture = nullptr;
        other->capture_tail.clear();
    }
    capture->origin = stream;
    if (capture->invalid) return kCaptureInvalidated;
    if (!complete) {
        say("the capture ends before a stream that joined it is joined back");
        return kCaptureUnjoined;
    }
    *graph = new Graph(std::move(*capture->graph));
    return kOk;
}

DRIVER_API int cuStreamIsCapturing(void* handle, int* status) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    *status = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
    return kOk;
}

DRIVER_API int cuStreamGetCaptureInfo_v2(void* handle, int* status, uint64_t* number, Graph** graph,
                                         const void** nodes, size_t* count) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    *status = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
    if (number) *number = stream->capture ? stream->capture->number : 0;
    if (graph) *graph = stream->capture ? stream->capture->graph.get() : nullptr;
    if (nodes) *nodes = nullptr;
    if (count) *count = 0;
    return kOk;
}
DRIVER_API int cuStreamGetCaptureInfo_v3(void* handle, int* status, uint64_t* number, Graph** graph,
                                         const void** nodes, const void** edges, size_t* count) {
    if (edges) *edges = nullptr;
    return cuStreamGetCaptureInfo_v2(handle, status, number, graph, nodes, count);
}
DRIVER_API int cuStreamGetCaptureInfo(void* handle, int* status, uint64_t* number) {
    return cuStreamGetCaptureInfo_v2(handle, status, number, nullptr, nullptr, nullptr);
}
DRIVER_API int cuThreadExchangeStreamCaptureMode(int* mode) {
    std::swap(thread_state().capture_mode, *mode);
    return kOk;
}
