// Events: recording, waiting, time between two.
#include "engine.h"
#include "graph.h"

using namespace driver;

namespace {
constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
}

DRIVER_API int cuEventCreate(void** handle, unsigned flags) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto event = std::make_shared<Event>();
    event->device = entry.device;
    event->number = ++state().event_numbers;
    event->timing = !(flags & kDisableTiming);
    state().event_handles[event.get()] = event;
    *handle = event.get();
    return kOk;
}

// What waits for the event keeps its recording.
DRIVER_API int cuEventDestroy_v2(void* handle) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    return state().event_handles.erase(handle) ? kOk : kInvalidHandle;
}

DRIVER_API int cuEventRecord(void* event_handle, void* stream_handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto event = find_event(event_handle);
    auto stream = find_stream(entry.device, stream_handle);
    if (!event || !stream) return kInvalidHandle;
    if (event->device != stream->device) {
        say("event %llu of device %d is recorded in a stream of device %d",
            static_cast<unsigned long long>(event->number), event->device->ordinal,
            stream->device->ordinal);
        return kInvalidHandle;
    }
    if (stream->capture) {
        event->capture = stream->capture;
        event->capture_tail = stream->capture_tail;
        event->last = nullptr;
        return kOk;
    }
    event->capture = nullptr;
    event->last = std::make_shared<Record>();
    auto work = std::make_shared<Work>();
    work->what = text("event record %llu", static_cast<unsigned long long>(event->number));
    work->record = event->last;
    return push(entry.lock, stream, work);
}
DRIVER_API int cuEventRecordWithFlags(void* event, void* stream, unsigned) {
    return cuEventRecord(event, stream);
}

DRIVER_API int cuEventSynchronize(void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto event = find_event(handle);
    if (!event) return kInvalidHandle;
    if (event->capture) return kCapturedEvent;
    auto record = event->last;
    if (!record) return kOk;
    wait_until(entry.lock, [&] { return record->done; });
    return event->device->status();
}

// Moves work on by one piece, as cuStreamQuery does.
DRIVER_API int cuEventQuery(void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto event = find_event(handle);
    if (!event) return kInvalidHandle;
    if (event->capture) return kCapturedEvent;
    auto record = event->last;
    if (!record || record->done) return kOk;
    step(entry.lock);
    if (event->device->status() != kOk) return event->device->status();
    return record->done ? kOk : kNotReady;
}

DRIVER_API int cuEventElapsedTime(float* milliseconds, void* first_handle, void* second_handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto first = find_event(first_handle);
    auto second = find_event(second_handle);
    if (!first || !second || !first->timing || !second->timing || !first->last || !second->last)
        return kInvalidHandle;
    if (!first->last->done || !second->last->done) return kNotReady;
    *milliseconds =
        std::chrono::duration<float, std::milli>(second->last->at - first->last->at).count();
    return kOk;
}
DRIVER_API int cuEventElapsedTime_v2(float* milliseconds, void* first, void* second) {
    return cuEventElapsedTime(milliseconds, first, second);
}
