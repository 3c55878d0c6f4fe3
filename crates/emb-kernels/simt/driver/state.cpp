// The state of the process and the checks that every call starts with.
#include "state.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace driver {

State& state() {
    static State* the_state = new State;
    return *the_state;
}

ThreadState& thread_state() {
    static thread_local ThreadState the_thread;
    return the_thread;
}

uint64_t environment(const char* name, uint64_t otherwise) {
    const char* value = getenv(name);
    return value && *value ? strtoull(value, nullptr, 10) : otherwise;
}

std::string path_from_environment(const char* name) {
    const char* value = getenv(name);
    std::string path = value ? value : "";
    const size_t place = path.find("%p");
    if (place != std::string::npos) path.replace(place, 2, std::to_string(getpid()));
    return path;
}

std::string text(const char* format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return line;
}

void say(const char* format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    // One call a line, so that lines of threads do not mix.
    fprintf(stderr, "simt driver: %s\n", line);
}

Entry enter_without_context() {
    Entry entry;
    if (thread_state().in_host_function) {
        entry.status = kNotPermitted;
        say("a function queued by cuLaunchHostFunc calls the driver, which is not allowed");
        return entry;
    }
    entry.lock = Lock(state().mutex);
    if (!state().initialized) entry.status = kNotInitialized;
    return entry;
}

Entry enter() {
    Entry entry = enter_without_context();
    if (!entry) return entry;
    const ThreadState& thread = thread_state();
    if (thread.contexts.empty() || !thread.contexts.back()) {
        entry.status = kInvalidContext;
        return entry;
    }
    entry.device = thread.contexts.back()->device;
    entry.status = entry.device->status();
    return entry;
}

std::shared_ptr<Stream> find_stream(Device* device, void* handle) {
    // 0 and 1 are the legacy stream, 2 the stream of the thread, which orders less than the legacy
    // one does; it is not offered on its own.
    if (reinterpret_cast<uintptr_t>(handle) <= 2) return device ? device->legacy : nullptr;
    auto found = state().stream_handles.find(handle);
    return found == state().stream_handles.end() ? nullptr : found->second;
}

std::shared_ptr<Event> find_event(void* handle) {
    auto found = state().event_handles.find(handle);
    return found == state().event_handles.end() ? nullptr : found->second;
}

}  // namespace driver
