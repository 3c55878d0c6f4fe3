// A launch: the limits of a GPU, then blocks dealt to one or more OS threads.
#include "machine.h"
#include "simt_launch.h"

#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace simt {

namespace {

// Limits of compute capabilities 7.5 to 12.x (CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability").
constexpr uint64_t kGridX = 0x7fffffffu;
constexpr unsigned kGridYz = 65535;
constexpr unsigned kBlockZ = 64;

bool within_limits(const char* name, const Launch& launch) {
    const dim3& grid = launch.grid;
    const dim3& block = launch.block;
    const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
    if (block.x > kBlockThreads || block.y > kBlockThreads || block.z > kBlockZ || threads == 0 ||
        threads > kBlockThreads) {
        refuse("%s: a block of %u x %u x %u threads; 1 to 1024 in all, at most 64 in z", name,
               block.x, block.y, block.z);
        return false;
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > kGridX || grid.y > kGridYz ||
        grid.z > kGridYz) {
        refuse("%s: a grid of %u x %u x %u blocks; 1 to 2147483647 in x, to 65535 in y and z", name,
               grid.x, grid.y, grid.z);
        return false;
    }
    if (launch.shared > launch.kernel->shared_allowed) {
        refuse("%s: %zu bytes of dynamic shared memory, %zu are allowed", name, launch.shared,
               launch.kernel->shared_allowed);
        return false;
    }
    return true;
}

uint64_t number_from(const char* variable, uint64_t otherwise) {
    const char* text = getenv(variable);
    return text && *text ? strtoull(text, nullptr, 10) : otherwise;
}

Order order_from_environment() {
    const char* text = getenv("SIMT_SCHEDULE");
    if (!text || !*text || strcmp(text, "sequential") == 0) return Order::kSequential;
    if (strcmp(text, "reverse") == 0) return Order::kReverse;
    if (strcmp(text, "random") == 0) return Order::kRandom;
    fail(nullptr, "SIMT_SCHEDULE=%s: sequential, reverse or random", text);
}

// Machines are used again: a thousand stacks are not made for every launch. Nothing here is made or
// destroyed at run time, which the race checker would see without seeing what guards it.
std::mutex idle_guard;
Worker* idle = nullptr;

Worker* borrow_worker() {
    const std::lock_guard<std::mutex> lock(idle_guard);
    if (!idle) return new Worker;
    Worker* worker = idle;
    idle = worker->next_idle;
    return worker;
}

void return_worker(Worker* worker) {
    const std::lock_guard<std::mutex> lock(idle_guard);
    worker->next_idle = idle;
    idle = worker;
}

uint64_t common_divisor(uint64_t a, uint64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

// The block that is run at a turn. At random: a step without a common divisor visits each once.
class BlockOrder {
  public:
    explicit BlockOrder(const Launch& launch) : order(launch.order), blocks(launch.blocks) {
        uint64_t state = launch.seed * 0x9e3779b97f4a7c15u + 1;
        if (state == 0) state = 1;
        start = next_random(state) % blocks;
        step = next_random(state) % blocks;
        while (common_divisor(step, blocks) != 1) step = (step + 1) % blocks;
    }
    uint64_t at(uint64_t turn) const {
        if (order == Order::kSequential) return turn;
        if (order == Order::kReverse) return blocks - 1 - turn;
        return static_cast<uint64_t>((static_cast<unsigned __int128>(turn) * step + start) % blocks);
    }

  private:
    Order order;
    uint64_t blocks;
    uint64_t start;
    uint64_t step;
};

void run_blocks(Launch& launch, const BlockOrder& blocks) {
    Worker* worker = borrow_worker();
    worker->launch = &launch;
    worker->threads = launch.block.x * launch.block.y * launch.block.z;
    prepare_fibers(*worker);
    begin_shared(*worker);
    begin_launch_order(*worker);
    begin_launch_count(launch.kernel->kernel.name);
    for (;;) {
        const uint64_t turn = launch.next.fetch_add(1, std::memory_order_relaxed);
        if (turn >= launch.blocks) break;
        run_block(*worker, blocks.at(turn));
    }
    end_launch_count();
    end_launch_order(*worker);
    end_shared(*worker);
    return_worker(worker);
}

}  // namespace

}  // namespace simt

int simt_launch(const char* name, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, size_t shared,
                void** parameters) {
    using namespace simt;
    if (current) fail(nullptr, "%s: a kernel may not launch another", name);
    Launch launch{find_kernel(name),
                  dim3(grid_x, grid_y, grid_z),
                  dim3(block_x, block_y, block_z),
                  shared,
                  parameters,
                  order_from_environment(),
                  number_from("SIMT_SEED", 1),
                  static_cast<uint64_t>(grid_x) * grid_y * grid_z};
    if (!launch.kernel) return kSimtNotFound;
    if (!within_limits(name, launch)) return kSimtInvalidValue;
    const BlockOrder blocks(launch);
    uint64_t threads = number_from("SIMT_THREADS", 1);
    if (threads > launch.blocks) threads = launch.blocks;
    if (counts_unique()) threads = 1;  // what two threads touch is one set then
    std::vector<std::thread> others;
    for (uint64_t i = 1; i < threads; ++i) {
        others.emplace_back([&launch, &blocks] { run_blocks(launch, blocks); });
    }
    run_blocks(launch, blocks);
    for (std::thread& other : others) other.join();
    return kSimtSuccess;
}
