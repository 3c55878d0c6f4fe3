// What a kernel test is written with: claims, expectations, planted defects, and the main function.
//
//   #include "check.h"
//   #include "pool.cu"
//   TEST(a_mean_of_one_row_is_the_row) { LAUNCH(emb_pool, 4, 256, 0, ...); EXPECT_EQUAL(a, b); }
//   CHECK_MAIN
//
// A program runs all its tests and exits with 1 if any expectation failed.
#pragma once

#include "check_launch.h"

#include "check_plant.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace check {

constexpr int kShown = 8;  // failures of one test that are printed

struct State {
    int failed = 0;        // expectations, of the test that runs
    int failed_tests = 0;
    const char* test = "";
    const char* around = "";  // the schedule, in for_each_schedule
};
inline State& state() {
    static State all;
    return all;
}

struct Test {
    const char* name;
    void (*body)();
};
inline std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}
struct AddTest {
    AddTest(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

inline void failed(const char* file, int line, const std::string& what) {
    State& now = state();
    if (now.failed++ < kShown) {
        fprintf(stderr, "%s:%d: %s%s: %s\n", file, line, now.test, now.around, what.c_str());
    }
}

template <typename T>
std::string shown(const T& value) {
    char text[64];
    if constexpr (std::is_floating_point<T>::value) {
        snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    } else if constexpr (std::is_integral<T>::value) {
        return std::to_string(value);
    } else if constexpr (std::is_pointer<T>::value) {
        snprintf(text, sizeof text, "%p", static_cast<const void*>(value));
    } else {  // a half or a struct: its bytes, lowest first
        std::string bytes = "bytes";
        const auto* each = reinterpret_cast<const unsigned char*>(&value);
        for (size_t i = 0; i < sizeof value && i < 16; ++i) {
            snprintf(text, sizeof text, " %02x", each[i]);
            bytes += text;
        }
        return bytes;
    }
    return text;
}

// Equal, or both NaN; a half or a struct by its bytes.
template <typename A, typename B>
bool equal(const A& a, const B& b) {
    if constexpr (std::is_arithmetic<A>::value && std::is_arithmetic<B>::value) {
        using Common = std::common_type_t<A, B>;
        const auto x = static_cast<Common>(a);
        const auto y = static_cast<Common>(b);
        return x == y || (x != x && y != y);
    } else if constexpr (std::is_pointer<A>::value) {
        return a == b;
    } else {
        static_assert(std::is_same<A, B>::value, "structs are compared with their own type");
        return memcmp(&a, &b, sizeof a) == 0;
    }
}

template <typename A, typename B>
void expect_equal(const A& actual, const B& expected, const char* text, const char* file,
                  int line) {
    if (equal(actual, expected)) return;
    failed(file, line, std::string(text) + " is " + shown(actual) + ", expected " + shown(expected));
}

// Element by element, of anything with size() and []; the first difference is told.
template <typename A, typename B, typename Same>
void expect_all(const A& actual, const B& expected, const char* text, const char* file, int line,
                Same same) {
    if (actual.size() != expected.size()) {
        failed(file, line, std::string(text) + " has " + std::to_string(actual.size()) +
                               " elements, expected " + std::to_string(expected.size()));
        return;
    }
    size_t differ = 0;
    size_t first = 0;
    for (size_t i = actual.size(); i-- > 0;) {
        if (same(actual[i], expected[i])) continue;
        ++differ;
        first = i;
    }
    if (differ == 0) return;
    failed(file, line, std::string(text) + ": " + std::to_string(differ) + " of " +
                           std::to_string(actual.size()) + " differ, the first at " +
                           std::to_string(first) + ": " + shown(actual[first]) + ", expected " +
                           shown(expected[first]));
}

template <typename A, typename B>
void expect_all_equal(const A& actual, const B& expected, const char* text, const char* file,
                      int line) {
    expect_all(actual, expected, text, file, line,
               [](const auto& a, const auto& b) { return equal(a, b); });
}

// Within tolerance, absolute or relative to the expected value, whichever is larger.
template <typename A, typename B>
bool near(const A& actual, const B& expected, double tolerance) {
    const double size = std::fabs(static_cast<double>(expected));
    const double apart = std::fabs(static_cast<double>(actual) - static_cast<double>(expected));
    return apart <= tolerance * (size > 1.0 ? size : 1.0);  // false for NaN
}

// Runs `body` with threads and blocks in order, in reverse and at random; the results must not care.
// The race checker looks at what is ordered, not at the order that happened: one seed is enough.
template <typename Body>
void for_each_schedule(Body body) {
    static const char* const kSchedules[][3] = {{"sequential", "1", " (sequential)"},
                                                {"reverse", "1", " (reverse)"},
#ifndef SIMT_TSAN
                                                {"random", "2", " (random, seed 2)"},
                                                {"random", "3", " (random, seed 3)"},
#endif
                                                {"random", "1", " (random, seed 1)"}};
    for (const auto& schedule : kSchedules) {
        setenv("SIMT_SCHEDULE", schedule[0], 1);
        setenv("SIMT_SEED", schedule[1], 1);
        state().around = schedule[2];
        body();
    }
    unsetenv("SIMT_SCHEDULE");
    unsetenv("SIMT_SEED");
    state().around = "";
}

inline int run(int argc, char** argv) {
    State& now = state();
    if (argc == 3 && strcmp(argv[1], "plant") == 0) {
        now.test = argv[2];
        run_plant(argv[2]);
        return now.failed > 0;
    }
    size_t ran = 0;
    for (const Test& test : tests()) {
        if (argc > 1 && !strstr(test.name, argv[1])) continue;
        now.test = test.name;
        now.failed = 0;
        test.body();
        ++ran;
        if (now.failed > kShown) fprintf(stderr, "%s: %d failures\n", test.name, now.failed);
        if (now.failed > 0) ++now.failed_tests;
    }
    size_t caught = 0;
    for (const Plant& plant : plants()) {
        if (argc > 1 && !strstr(plant.name, argv[1])) continue;
        now.test = plant.name;
        const std::string why = why_not_caught(plant, &caught);
        if (why.empty()) continue;
        fprintf(stderr, "%s: not caught: %s\n", plant.name, why.c_str());
        ++now.failed_tests;
    }
    fprintf(stderr, "%zu tests, %zu planted defects caught, %d failures\n", ran, caught,
            now.failed_tests);
    return now.failed_tests > 0;
}

}  // namespace check

#define TEST(NAME)                                                  \
    static void test_##NAME();                                      \
    static const check::AddTest add_test_##NAME(#NAME, &test_##NAME); \
    static void test_##NAME()

#define CHECK_MAIN \
    int main(int argc, char** argv) { return check::run(argc, argv); }

#define EXPECT(CONDITION)                                               \
    do {                                                                \
        if (!(CONDITION)) check::failed(__FILE__, __LINE__, #CONDITION); \
    } while (0)
#define EXPECT_EQUAL(ACTUAL, EXPECTED) \
    check::expect_equal((ACTUAL), (EXPECTED), #ACTUAL, __FILE__, __LINE__)
#define EXPECT_ALL_EQUAL(ACTUAL, EXPECTED) \
    check::expect_all_equal((ACTUAL), (EXPECTED), #ACTUAL, __FILE__, __LINE__)
#define EXPECT_ALL_NEAR(ACTUAL, EXPECTED, TOLERANCE)                                       \
    check::expect_all((ACTUAL), (EXPECTED), #ACTUAL, __FILE__, __LINE__,                   \
                      [&](const auto& a, const auto& b) { return check::near(a, b, (TOLERANCE)); })
