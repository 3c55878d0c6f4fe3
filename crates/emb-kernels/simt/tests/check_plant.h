// Planted defects: a body that does something wrong, run in a process of its own, which must end
// badly and say why. What is not caught fails the test, so the checkers are checked.
//
//   PLANT(row_past_the_table, {check::kAsan, "heap-buffer-overflow"}) { ... }
#pragma once

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace check {

// How this program was built; see run.sh.
enum Flavour : unsigned { kPlain = 1, kAsan = 2, kTsan = 4, kCount = 8, kEvery = 15 };
constexpr Flavour kFlavour =
#if defined(SIMT_COUNT)
    kCount;
#elif defined(SIMT_TSAN)
    kTsan;
#elif defined(__SANITIZE_ADDRESS__)
    kAsan;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    kAsan;
#else
    kPlain;
#endif
#else
    kPlain;
#endif

// In builds of `flavours` the defect is caught, and the output has `text`.
struct Caught {
    unsigned flavours;
    std::string text;
};
struct Plant {
    const char* name;
    std::vector<Caught> caught;
    void (*body)();
};
inline std::vector<Plant>& plants() {
    static std::vector<Plant> all;
    return all;
}
struct AddPlant {
    AddPlant(const char* name, std::vector<Caught> caught, void (*body)()) {
        plants().push_back({name, std::move(caught), body});
    }
};

// "file.cpp:12" of the line that ends with this comment: where a report must point.
inline std::string line_with(const char* path, const std::string& comment) {
    std::ifstream file(path);
    std::string text;
    for (int line = 1; std::getline(file, text); ++line) {
        if (text.size() < comment.size()) continue;
        if (text.compare(text.size() - comment.size(), comment.size(), comment) != 0) continue;
        const char* slash = strrchr(path, '/');
        return std::string(slash ? slash + 1 : path) + ":" + std::to_string(line);
    }
    return "no line that ends with " + comment;
}

inline void run_plant(const char* name) {
    for (const Plant& plant : plants()) {
        if (strcmp(plant.name, name) == 0) plant.body();
    }
}

[[noreturn]] inline void become_plant(const Plant& plant, int output) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(output, 1);
    dup2(output, 2);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    setenv("TSAN_OPTIONS", "halt_on_error=1:atexit_sleep_ms=0", 1);
    setenv("UBSAN_OPTIONS", "print_stacktrace=1", 1);
    execl("/proc/self/exe", "test", "plant", plant.name, static_cast<char*>(nullptr));
    _exit(0);
}

// Empty if the defect is caught, or is none in this build.
inline std::string why_not_caught(const Plant& plant, size_t* caught) {
    std::vector<std::string> texts;
    for (const Caught& each : plant.caught) {
        if (each.flavours & kFlavour) texts.push_back(each.text);
    }
    if (texts.empty()) return "";
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child < 0) return "no process";
    if (child == 0) become_plant(plant, ends[1]);
    close(ends[1]);
    std::string output;
    char part[4096];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) {
        output.append(part, static_cast<size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "it ended well\n" + output;
    for (const std::string& text : texts) {
        if (output.find(text) == std::string::npos) {
            return "nothing is said of \"" + text + "\"\n" + output;
        }
    }
    ++*caught;
    return "";
}

}  // namespace check

#define LINE_WITH(COMMENT) check::line_with(__FILE__, COMMENT)

#define PLANT(NAME, ...)                                                           \
    static void plant_##NAME();                                                    \
    static const check::AddPlant add_plant_##NAME(#NAME, {__VA_ARGS__}, &plant_##NAME); \
    static void plant_##NAME()
