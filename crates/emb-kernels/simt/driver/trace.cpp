// Writes the trace of SIMT_TRACE.
#include "trace.h"

#include <atomic>
#include <cstdio>

namespace driver {
namespace {

FILE* file() {
    static FILE* the_file = [] {
        const std::string path = path_from_environment("SIMT_TRACE");
        FILE* opened = path.empty() ? nullptr : fopen(path.c_str(), "w");
        // Whole lines reach the file even where the process is killed.
        if (opened) setvbuf(opened, nullptr, _IOLBF, 1 << 16);
        return opened;
    }();
    return the_file;
}

int thread_number() {
    static std::atomic<int> threads{0};
    static thread_local int the_number = threads++;
    return the_number;
}

std::string escaped(const std::string& plain) {
    std::string out;
    for (char c : plain) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
}

}  // namespace

bool tracing() { return file() != nullptr; }

// Called under the lock, so that `order` is the order of the lines.
void trace(const char* event, const Stream* stream, const Work& work) {
    if (!file()) return;
    static uint64_t order = 0;
    fprintf(file(),
            "{\"event\":\"%s\",\"order\":%llu,\"work\":%llu,\"device\":%d,\"stream\":%lld,\"what\":"
            "\"%s\",\"thread\":%d}\n",
            event, static_cast<unsigned long long>(order++),
            static_cast<unsigned long long>(work.number),
            work.device ? work.device->ordinal : stream->device->ordinal,
            stream ? static_cast<long long>(stream->number) : -1LL, escaped(work.what).c_str(),
            thread_number());
}

}  // namespace driver
