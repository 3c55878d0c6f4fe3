// Kernels by name, the newest first, and shared objects that bring more of them.
#include "machine.h"
#include "simt_launch.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>

#include <dlfcn.h>

namespace simt {

namespace {

// Constructors of static objects run in any order: these two need none.
std::mutex guard;
Registration* newest = nullptr;

thread_local char refusal[512];

// Names of a library loaded privately, as a driver is, are not seen by later ones: this shows them.
void show_own_names() {
    Dl_info own;
    if (dladdr(reinterpret_cast<void*>(&simt_load), &own) == 0 || !own.dli_fname) return;
    void* object = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    if (object) dlclose(object);
}

}  // namespace

void refuse(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(refusal, sizeof refusal, format, arguments);
    va_end(arguments);
}

Registration::Registration(const Kernel& described) : kernel(described) {
    const std::lock_guard<std::mutex> lock(guard);
    older = newest;
    newest = this;
}

Registration::~Registration() {
    const std::lock_guard<std::mutex> lock(guard);
    Registration** link = &newest;
    while (*link && *link != this) link = &(*link)->older;
    if (*link) *link = older;
}

Registration* find_kernel(const char* name) {
    const std::lock_guard<std::mutex> lock(guard);
    for (Registration* kernel = newest; kernel; kernel = kernel->older) {
        if (strcmp(kernel->kernel.name, name) == 0) return kernel;
    }
    refuse("no kernel is named %s", name);
    return nullptr;
}

}  // namespace simt

const char* simt_error() { return simt::refusal; }

int simt_param_sizes(const char* name, size_t* out, int capacity) {
    const simt::Registration* found = simt::find_kernel(name);
    if (!found) return -1;
    const auto count = static_cast<int>(found->kernel.parameters);
    for (int i = 0; i < count && i < capacity; ++i) out[i] = found->kernel.parameter_bytes[i];
    return count;
}

int simt_allow_shared(const char* name, size_t bytes) {
    simt::Registration* found = simt::find_kernel(name);
    if (!found) return kSimtNotFound;
    if (bytes > simt::kSharedLimit) {
        simt::refuse("%s: %zu bytes of shared memory, a block has at most %zu", name, bytes,
                     simt::kSharedLimit);
        return kSimtInvalidValue;
    }
    found->shared_allowed = bytes;
    return kSimtSuccess;
}

void* simt_load(const char* path) {
    simt::show_own_names();
    void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) simt::refuse("%s", dlerror());
    return object;
}

void simt_unload(void* object) { dlclose(object); }
