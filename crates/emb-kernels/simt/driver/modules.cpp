// Modules, functions and launches.
#include <cstdio>
#include <cstring>
#include <algorithm>
#include <fstream>
#include <iterator>

#include "counters.h"
#include "engine.h"
#include "memory.h"
#include "nvrtc.h"
#include "simt_launch.h"

using namespace driver;

namespace {

// Which kernels there are is known to the shim; a module only stands for having been loaded.
struct Module {
    Device* device;
    void* object = nullptr;  // shared object of a program compiled at run time
    std::map<std::string, struct Function*> functions;
};

struct Function {
    std::string name;
    Module* module;
    std::vector<size_t> parameters;
    size_t shared_allowed = 48 << 10;
};

std::set<Module*>& modules() {
    static auto* the_modules = new std::set<Module*>;
    return *the_modules;
}
std::set<Function*>& functions() {
    static auto* the_functions = new std::set<Function*>;
    return *the_functions;
}

constexpr int kThreads = 1024;                  // of a block and, twice, of a multiprocessor
constexpr size_t kSharedOptIn = 227 << 10;      // of a block on sm_90
constexpr size_t kSharedProcessor = 228 << 10;  // of a multiprocessor
constexpr size_t kSharedReserved = 1 << 10;     // of a block, for the system

// Images as nvcc makes them: a fat binary, an ELF file, or PTX text.
bool is_image(const void* image) {
    unsigned magic = 0;
    memcpy(&magic, image, 4);
    if (magic == 0xBA55ED50u || !memcmp(image,
                                        "\x7f"
                                        "ELF",
                                        4))
        return true;
    const char* text_image = static_cast<const char*>(image);
    return strstr(text_image, ".version") != nullptr;
}

int load(const void* image, Module** module) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!image) return kInvalidValue;
    void* object = nullptr;
    const std::string path = compiled_object(static_cast<const char*>(image));
    if (!path.empty()) {
        object = load_object(path);
        if (!object) return kInvalidImage;
    } else if (!is_image(image)) {
        return kInvalidImage;
    }
    *module = new Module{entry.device, object, {}};
    modules().insert(*module);
    return kOk;
}

size_t blocks_per_multiprocessor(const Function& function, int threads, size_t shared) {
    if (threads <= 0 || threads > kThreads || shared > function.shared_allowed) return 0;
    const size_t by_threads = static_cast<size_t>(2 * kThreads / ((threads + 31) / 32 * 32));
    const size_t by_shared = kSharedProcessor / (shared + kSharedReserved);
    return std::min({by_threads, by_shared, size_t{32}});
}

}  // namespace

DRIVER_API int cuModuleLoadData(Module** module, const void* image) { return load(image, module); }
DRIVER_API int cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*, void**) {
    return load(image, module);
}
DRIVER_API int cuModuleLoadFatBinary(Module** module, const void* image) {
    return load(image, module);
}

DRIVER_API int cuModuleLoad(Module** module, const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return kFileNotFound;
    std::vector<char> image((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    image.resize(image.size() + 8, 0);
    return load(image.data(), module);
}

DRIVER_API int cuModuleUnload(Module* module) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!modules().erase(module)) return kInvalidHandle;
    // Its kernels may be queued.
    wait_until(entry.lock, [module] { return idle(*module->device); });
    for (const auto& named : module->functions) {
        functions().erase(named.second);
        delete named.second;
    }
    if (module->object) unload_object(module->object);
    delete module;
    return kOk;
}

DRIVER_API int cuModuleGetFunction(Function** function, Module* module, const char* name) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!modules().count(module)) return kInvalidHandle;
    auto found = module->functions.find(name);
    if (found == module->functions.end()) {
        size_t sizes[64];
        const int count = simt_param_sizes(name, sizes, 64);
        if (count < 0) return kNotFound;
        auto* created = new Function{name, module, std::vector<size_t>(sizes, sizes + count)};
        functions().insert(created);
        found = module->functions.emplace(name, created).first;
    }
    *function = found->second;
    return kOk;
}

DRIVER_API int cuModuleGetGlobal_v2(uint64_t*, size_t*, Module*, const char*) { return kNotFound; }

DRIVER_API int cuFuncGetName(const char** name, Function* function) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!functions().count(function)) return kInvalidHandle;
    *name = function->name.c_str();
    return kOk;
}

DRIVER_API int cuFuncGetModule(Module** module, Function* function) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!functions().count(function)) return kInvalidHandle;
    *module = function->module;
    return kOk;
}

DRIVER_API int cuFuncGetAttribute(int* value, int attribute, Function* function) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!functions().count(function)) return kInvalidHandle;
    switch (attribute) {
        case 0: *value = kThreads; return kOk;
        case 4: *value = 32; return kOk;  // registers: not known here
        case 5:
        case 6: *value = 90; return kOk;  // PTX and binary version
        case 8: *value = static_cast<int>(function->shared_allowed); return kOk;
        default: *value = 0; return attribute >= 0 && attribute < 16 ? kOk : kInvalidValue;
    }
}

DRIVER_API int cuFuncSetAttribute(Function* function, int attribute, int value) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!functions().count(function)) return kInvalidHandle;
    if (attribute == 8) {
        if (value < 0 || static_cast<size_t>(value) > kSharedOptIn) return kInvalidValue;
        function->shared_allowed = static_cast<size_t>(value);
        simt_allow_shared(function->name.c_str(), static_cast<size_t>(value));
    }
    return kOk;
}

DRIVER_API int cuFuncSetCacheConfig(Function*, int) { return kOk; }

DRIVER_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* function,
                                                           int threads, size_t shared) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!functions().count(function)) return kInvalidHandle;
    *blocks = static_cast<int>(blocks_per_multiprocessor(*function, threads, shared));
    return kOk;
}
DRIVER_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Function* function,
                                                                    int threads, size_t shared,
                                                                    unsigned) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

DRIVER_API int cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, Function* function,
                                                       int blocks, int) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!functions().count(function) || blocks <= 0) return kInvalidValue;
    const size_t share = kSharedProcessor / static_cast<size_t>(blocks);
    *bytes =
        std::min(share > kSharedReserved ? share - kSharedReserved : 0, function->shared_allowed);
    return kOk;
}

DRIVER_API int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, Function* function,
                                                size_t (*shared_of)(int), size_t shared,
                                                int limit) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!functions().count(function)) return kInvalidHandle;
    *grid = *block = 0;
    size_t best = 0;
    for (int threads = limit > 0 && limit < kThreads ? limit / 32 * 32 : kThreads; threads >= 32;
         threads -= 32) {
        const size_t blocks =
            blocks_per_multiprocessor(*function, threads, shared_of ? shared_of(threads) : shared);
        if (blocks * static_cast<size_t>(threads) <= best) continue;
        best = blocks * static_cast<size_t>(threads);
        *block = threads;
        *grid = static_cast<int>(blocks) * 16;  // the multiprocessors of devices.cpp
    }
    return best ? kOk : kInvalidValue;
}
DRIVER_API int cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, Function* function,
                                                         size_t (*shared_of)(int), size_t shared,
                                                         int limit, unsigned) {
    return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of, shared, limit);
}

namespace {

struct Shape {
    unsigned grid[3], block[3], shared;
};

// The limits of the hardware.
bool possible(const Shape& shape, const Function& function) {
    const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
    const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    return threads > 0 && threads <= kThreads && shape.block[2] <= 64 && blocks > 0 &&
           shape.grid[0] <= 2147483647u && shape.grid[1] <= 65535 && shape.grid[2] <= 65535 &&
           shape.shared <= function.shared_allowed;
}

// Parameters copied at the call, and the words in them that may be addresses.
std::shared_ptr<std::vector<std::vector<char>>> copy_parameters(const Function& function,
                                                                void** parameters,
                                                                std::vector<uint64_t>* words) {
    auto values = std::make_shared<std::vector<std::vector<char>>>();
    for (size_t i = 0; i < function.parameters.size(); ++i) {
        const char* from = static_cast<const char*>(parameters[i]);
        values->emplace_back(from, from + function.parameters[i]);
        for (size_t at = 0; at + 8 <= function.parameters[i]; at += 8) {
            uint64_t word;
            memcpy(&word, from + at, 8);
            if (word > 0xffffffffu) words->push_back(word);
        }
    }
    return values;
}

int launch(Function* function, const Shape& shape, void* handle, void** parameters) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!functions().count(function)) return kInvalidHandle;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (function->module->device != stream->device) {
        say("kernel %s was loaded on device %d and is launched in a stream of device %d",
            function->name.c_str(), function->module->device->ordinal, stream->device->ordinal);
        return kInvalidHandle;
    }
    if (!possible(shape, *function)) {
        say("kernel %s: no device runs grid %u,%u,%u of block %u,%u,%u with %u shared bytes",
            function->name.c_str(), shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
            shape.block[1], shape.block[2], shape.shared);
        return kInvalidValue;
    }
    auto work = std::make_shared<Work>();
    work->what = "kernel " + function->name;
    auto values = copy_parameters(*function, parameters, &work->words);
    const std::string name = function->name;
    work->run = [name, shape, values] {
        count_launch(name);
        std::vector<void*> pointers;
        for (auto& value : *values) pointers.push_back(value.data());
        return simt_launch(name.c_str(), shape.grid[0], shape.grid[1], shape.grid[2],
                           shape.block[0], shape.block[1], shape.block[2], shape.shared,
                           pointers.data());
    };
    return push(entry.lock, stream, work);
}

}  // namespace

DRIVER_API int cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                              void* stream, void** parameters, void** extra) {
    if (extra) return kNotSupported;
    return launch(function, Shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared},
                  stream, parameters);
}
