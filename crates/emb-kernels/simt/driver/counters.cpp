// Writes launches and bytes by kernel to the file that SIMT_COUNT names, when the process exits.
// Bytes are counted in the `count` build only; other builds write zeros.
#include "counters.h"

#include <cstdio>
#include <cstdlib>
#include <map>

#include "simt_launch.h"
#include "state.h"

namespace driver {
namespace {

std::map<std::string, uint64_t>& launches() {
    static auto* the_launches = new std::map<std::string, uint64_t>;
    return *the_launches;
}

void write_counts() {
    Lock lock(state().mutex);
    FILE* file = fopen(path_from_environment("SIMT_COUNT").c_str(), "w");
    if (!file) return;
    fprintf(file, "{\"counted\":%s,\"kernels\":{", simt_counts() ? "true" : "false");
    const char* separator = "";
    for (const auto& kernel : launches()) {
        uint64_t reads = 0, writes = 0;
        simt_counters(kernel.first.c_str(), &reads, &writes);
        fprintf(file, "%s\n\"%s\":{\"launches\":%llu,\"read_bytes\":%llu,\"written_bytes\":%llu}",
                separator, kernel.first.c_str(), static_cast<unsigned long long>(kernel.second),
                static_cast<unsigned long long>(reads), static_cast<unsigned long long>(writes));
        separator = ",";
    }
    fprintf(file, "\n}}\n");
    fclose(file);
}

}  // namespace

void count_launch(const std::string& kernel) {
    static const bool wanted = [] {
        return !path_from_environment("SIMT_COUNT").empty() && atexit(write_counts) == 0;
    }();
    if (!wanted) return;
    Lock lock(state().mutex);
    ++launches()[kernel];
}

}  // namespace driver
