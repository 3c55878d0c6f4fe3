// The address space: what is allocated, by whom, and who may touch it.
#pragma once

#include <string>

#include "state.h"

namespace driver {

struct Allocation {
    uint64_t base = 0;
    size_t bytes = 0;          // as asked for
    size_t accounted = 0;      // as counted against the device
    Device* device = nullptr;  // null: pinned host memory
    Pool* pool = nullptr;
    size_t mapped = 0;        // bytes of the mapping, 0 where it came from malloc
    bool registered = false;  // host memory of the caller
    uint64_t number = 0;
};

// Device memory from `pool` (null: not from a pool). Status, and the address.
int allocate(Lock& lock, Device& device, Pool* pool, size_t bytes, uint64_t* address);
int allocate_host(size_t bytes, void** address);
// Gives back memory that `allocate` or `allocate_host` returned.
int release(uint64_t address, bool host);
int register_host(void* address, size_t bytes);
int unregister_host(void* address);

// The allocation that holds the address, or null.
const Allocation* find_allocation(uint64_t address);
// "8 bytes past the end of allocation 3 (64 bytes of device 0)" and the like.
std::string describe(uint64_t address);
// May `device` touch this? An empty text if so, else why not.
std::string refuse(const Device& device, const Access& access);
// May a kernel of `device` use this parameter word, if it is an address at all?
std::string refuse_word(const Device& device, uint64_t word);

// The first of these over all that the work touches.
std::string refuse_work(const Work& work);

// memset that gives whole pages of mapped memory back instead of writing zeros to them.
void clear(uint64_t address, size_t bytes);

}  // namespace driver
