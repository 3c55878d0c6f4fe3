// Streams: creation, waiting, queries.
#include "engine.h"
#include "graph.h"

using namespace driver;

DRIVER_API int cuStreamCreateWithPriority(void** handle, unsigned flags, int priority) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (flags > 1) return kInvalidValue;
    auto stream = std::make_shared<Stream>();
    stream->device = entry.device;
    stream->number = ++state().stream_numbers;
    stream->flags = flags;
    stream->priority = priority;
    state().streams.insert(stream);
    state().stream_handles[stream.get()] = stream;
    *handle = stream.get();
    return kOk;
}
DRIVER_API int cuStreamCreate(void** handle, unsigned flags) {
    return cuStreamCreateWithPriority(handle, flags, 0);
}

// Returns at once; what is queued still runs.
DRIVER_API int cuStreamDestroy_v2(void* handle) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    auto found = state().stream_handles.find(handle);
    if (found == state().stream_handles.end()) return kInvalidHandle;
    auto stream = found->second;
    state().stream_handles.erase(found);
    stream->destroyed = true;
    if (stream->queue.empty()) state().streams.erase(stream);
    return kOk;
}

DRIVER_API int cuStreamSynchronize(void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (stream->capture) return forbid_in_capture(stream, "cuStreamSynchronize");
    wait_until(entry.lock, [&] { return stream->queue.empty(); });
    return stream->device->status();
}

// A query moves work on by one piece, since nothing else may be running it: a program that polls
// comes to an end.
DRIVER_API int cuStreamQuery(void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (stream->capture) return forbid_in_capture(stream, "cuStreamQuery");
    if (!stream->queue.empty()) step(entry.lock);
    if (stream->device->status() != kOk) return stream->device->status();
    return stream->queue.empty() ? kOk : kNotReady;
}

DRIVER_API int cuStreamWaitEvent(void* handle, void* event_handle, unsigned) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    auto event = find_event(event_handle);
    if (!stream || !event) return kInvalidHandle;
    if (event->capture) return join_capture(stream, *event);
    if (stream->capture) {
        // An event recorded outside of the capture cannot order work inside of it.
        forbid_in_capture(stream, "cuStreamWaitEvent on an event recorded outside of the capture");
        return kCaptureIsolation;
    }
    if (!event->last) return kOk;
    auto work = std::make_shared<Work>();
    work->what = text("event wait %llu", static_cast<unsigned long long>(event->number));
    work->wait = event->last;
    return push(entry.lock, stream, work);
}

DRIVER_API int cuStreamGetFlags(void* handle, unsigned* flags) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    *flags = stream->flags;
    return kOk;
}

DRIVER_API int cuStreamGetPriority(void* handle, int* priority) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    *priority = stream->priority;
    return kOk;
}

DRIVER_API int cuStreamGetId(void* handle, unsigned long long* number) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    *number = stream->number;
    return kOk;
}

DRIVER_API int cuStreamGetCtx(void* handle, Context** context) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    *context = &stream->device->primary;
    return kOk;
}

DRIVER_API int cuStreamGetDevice(void* handle, int* device) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    *device = stream->device->ordinal;
    return kOk;
}

DRIVER_API int cuStreamAttachMemAsync(void*, uint64_t, size_t, unsigned) { return kOk; }

// The function runs outside of the lock and may not call the driver.
DRIVER_API int cuLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    auto work = std::make_shared<Work>();
    work->what = "host function";
    work->run = [=] {
        thread_state().in_host_function = true;
        function(data);
        thread_state().in_host_function = false;
        return 0;
    };
    return push(entry.lock, stream, work);
}
