// Runs each test in a process of its own, since failures of a device stay and the seed is read
// once.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "api.h"

// How a process ended and what it wrote to stderr.
struct Ended {
    int status;  // exit status, or minus the signal
    std::string said;
    bool says(const char* part) const { return said.find(part) != std::string::npos; }
};

inline int failures = 0;

// Fails the process of a test where it stands.
#define REQUIRE(CONDITION)                                                          \
    do {                                                                            \
        if (!(CONDITION)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION); \
            _exit(99);                                                              \
        }                                                                           \
    } while (0)
#define OK(CALL) REQUIRE((CALL) == 0)

// `settings` is "NAME=value NAME=value".
inline Ended in_process(const std::string& settings, const std::function<int()>& body) {
    int ends[2];
    if (pipe(ends)) abort();
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        for (size_t at = 0; at < settings.size();) {
            const size_t end = std::min(settings.find(' ', at), settings.size());
            const std::string one = settings.substr(at, end - at);
            const size_t equals = one.find('=');
            setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);
            at = end + 1;
        }
        alarm(60);
        exit(body());  // with what is done at exit
    }
    close(ends[1]);
    Ended ended{0, ""};
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        ended.said.append(buffer, static_cast<size_t>(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ended;
}

// One line a test.
inline void verdict(const char* name, bool good, const Ended& last) {
    printf("%s %s\n", good ? "ok    " : "FAILED", name);
    if (good) return;
    ++failures;
    printf("    ended with %d and said:\n%s\n", last.status, last.said.c_str());
}

// The test must end with 0.
inline void passes(const char* name, const std::string& settings,
                   const std::function<int()>& body) {
    const Ended ended = in_process(settings, body);
    verdict(name, ended.status == 0, ended);
}

// In how many of the seeds 1..count the process ends with 0.
inline int passes_with_seeds(int count, const std::string& settings,
                             const std::function<int()>& body, Ended* last) {
    int passed = 0;
    for (int seed = 1; seed <= count; ++seed) {
        *last = in_process(settings + " SIMT_SEED=" + std::to_string(seed), body);
        passed += last->status == 0;
    }
    return passed;
}

inline int finish() {
    printf("%d failed\n", failures);
    return failures != 0;
}

// ---- short forms of calls ----

inline void* use_device(int ordinal) {
    void* context = nullptr;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, ordinal));
    OK(cuCtxSetCurrent(context));
    return context;
}
inline void* new_stream(unsigned flags = 1) {
    void* stream = nullptr;
    OK(cuStreamCreate(&stream, flags));
    return stream;
}
inline void* new_event() {
    void* event = nullptr;
    OK(cuEventCreate(&event, 0));
    return event;
}
inline uint64_t device_memory(size_t bytes) {
    uint64_t address = 0;
    OK(cuMemAlloc_v2(&address, bytes));
    return address;
}
template <typename T>
uint64_t upload(const std::vector<T>& values) {
    const uint64_t address = device_memory(values.size() * sizeof(T));
    OK(cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(T)));
    return address;
}
template <typename T>
std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    OK(cuMemcpyDtoH_v2(values.data(), address, count * sizeof(T)));
    return values;
}
inline void* kernel(const char* name) {
    static thread_local void* module = nullptr;
    if (!module) OK(cuModuleLoadData(&module, ".version 9.0"));
    void* function = nullptr;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}
inline void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// y[i] = x[i] + add, of the kernels in kernels.cu.
inline int launch_add(void* stream, uint64_t y, uint64_t x, uint32_t count, float add) {
    void* parameters[] = {&y, &x, &count, &add};
    return cuLaunchKernel(kernel("test_add"), (count + 63) / 64, 1, 1, 64, 1, 1, 0, stream,
                          parameters, nullptr);
}
