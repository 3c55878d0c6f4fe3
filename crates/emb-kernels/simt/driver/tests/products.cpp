// Matrix products of cuBLASLt, and kernels compiled at run time.
#include <cmath>

#include "check.h"

namespace {

enum { kF32 = 0, kF16 = 2, kBf16 = 14 };
enum { kExact = 68, kFastBf16 = 75, kFastTf32 = 77 };
enum {
    kTransposeA = 3,
    kTransposeB = 4,
    kEpilogue = 7,
    kBiasPointer = 8,
    kAuxPointer = 11,
    kAuxLeading = 12
};
constexpr size_t kM = 5, kN = 4, kK = 3;

float value(size_t i) { return static_cast<float>(static_cast<int>(i * 37 % 19) - 9) / 7.0f; }

std::vector<float> values(size_t count) {
    std::vector<float> out(count);
    for (size_t i = 0; i < count; ++i) out[i] = value(i);
    return out;
}

void* layout(int type, uint64_t rows, uint64_t cols) {
    void* made = nullptr;
    OK(cublasLtMatrixLayoutCreate(&made, type, rows, cols, static_cast<int64_t>(rows)));
    return made;
}

struct Description {
    void* handle = nullptr;
    explicit Description(int compute) { OK(cublasLtMatmulDescCreate(&handle, compute, kF32)); }
    template <typename T>
    Description& set(int attribute, T what) {
        OK(cublasLtMatmulDescSetAttribute(handle, attribute, &what, sizeof what));
        return *this;
    }
};

// D = alpha A B + beta C of [kM, kK] and [kK, kN] by columns, or transposed.
std::vector<float> run(const Description& description, bool ta, bool tb, uint64_t a, uint64_t b,
                       float alpha, float beta) {
    void* blas = nullptr;
    OK(cublasLtCreate(&blas));
    void* la = ta ? layout(kF32, kK, kM) : layout(kF32, kM, kK);
    void* lb = tb ? layout(kF32, kN, kK) : layout(kF32, kK, kN);
    void* ld = layout(kF32, kM, kN);
    const uint64_t d = upload(values(kM * kN));
    Heuristic found{};
    int count = 0;
    OK(cublasLtMatmulAlgoGetHeuristic(blas, description.handle, la, lb, ld, ld, nullptr, 1, &found,
                                      &count));
    REQUIRE(count == 1 && found.status == 0);
    OK(cublasLtMatmul(blas, description.handle, &alpha, pointer(a), la, pointer(b), lb, &beta,
                      pointer(d), ld, pointer(d), ld, found.algorithm, nullptr, 0, nullptr));
    OK(cuStreamSynchronize(nullptr));
    return download<float>(d, kM * kN);
}

float bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, 4);
    return x;
}

int transposes() {
    use_device(0);
    const uint64_t a = upload(values(kM * kK)), b = upload(values(kK * kN));
    for (int ta = 0; ta < 2; ++ta) {
        for (int tb = 0; tb < 2; ++tb) {
            Description description(kExact);
            description.set(kTransposeA, ta).set(kTransposeB, tb);
            const auto got = run(description, ta, tb, a, b, 2.0f, 0.5f);
            for (size_t i = 0; i < kM; ++i) {
                for (size_t j = 0; j < kN; ++j) {
                    double sum = 0;
                    for (size_t k = 0; k < kK; ++k)
                        sum += static_cast<double>(value(ta ? i * kK + k : k * kM + i)) *
                               value(tb ? k * kN + j : j * kK + k);
                    REQUIRE(got[j * kM + i] ==
                            static_cast<float>(2.0 * sum + 0.5 * value(j * kM + i)));
                }
            }
        }
    }
    return 0;
}

int roundings() {
    use_device(0);
    const uint64_t a = upload(values(kM * kK)), b = upload(values(kK * kN));
    const auto got = run(Description(kFastBf16), false, false, a, b, 1.0f, 0.0f);
    double sum = 0;
    for (size_t k = 0; k < kK; ++k)
        sum += static_cast<double>(bf16(value(k * kM))) * bf16(value(k));
    REQUIRE(got[0] == static_cast<float>(sum));
    const auto exact = run(Description(kExact), false, false, a, b, 1.0f, 0.0f);
    const auto tf32 = run(Description(kFastTf32), false, false, a, b, 1.0f, 0.0f);
    REQUIRE(exact != tf32 && tf32 != got);
    return std::fabs(exact[0] - tf32[0]) < 4e-3f ? 0 : 1;
}

// Bias and ReLU forward with the mask kept, then the gradient through the mask with its bias sums.
int epilogues() {
    use_device(0);
    const uint64_t a = upload(values(kM * kK)), b = upload(values(kK * kN)),
                   bias = upload(values(kM)), aux = device_memory(16 * kN);
    const auto plain = run(Description(kExact), false, false, a, b, 1.0f, 0.0f);
    Description forward(kExact);
    forward.set(kEpilogue, 134u)
        .set(kBiasPointer, bias)
        .set(kAuxPointer, aux)
        .set(kAuxLeading, int64_t{128});
    const auto active = run(forward, false, false, a, b, 1.0f, 0.0f);
    Description backward(kExact);
    const uint64_t sums = device_memory(kM * 4);
    backward.set(kEpilogue, 152u)
        .set(kBiasPointer, sums)
        .set(kAuxPointer, aux)
        .set(kAuxLeading, int64_t{128});
    const auto gradient = run(backward, false, false, a, b, 1.0f, 0.0f);
    const auto got_sums = download<float>(sums, kM);
    int zeros = 0;
    for (size_t i = 0; i < kM; ++i) {
        double sum = 0;
        for (size_t j = 0; j < kN; ++j) {
            const float before = plain[j * kM + i] + value(i);
            REQUIRE(std::fabs(active[j * kM + i] - std::max(before, 0.0f)) < 1e-5f);
            REQUIRE(gradient[j * kM + i] == (active[j * kM + i] > 0 ? plain[j * kM + i] : 0.0f));
            zeros += active[j * kM + i] == 0;
            sum += gradient[j * kM + i];
        }
        REQUIRE(std::fabs(got_sums[i] - sum) < 1e-5);
    }
    Description sums_of_b(kExact);
    const uint64_t columns = device_memory(kN * 4);
    sums_of_b.set(kEpilogue, 512u).set(kBiasPointer, columns);
    run(sums_of_b, false, false, a, b, 1.0f, 0.0f);
    REQUIRE(std::fabs(download<float>(columns, kN)[1] - (value(3) + value(4) + value(5))) < 1e-5f);
    return zeros > 0 ? 0 : 1;
}

int small_output() {
    use_device(0);
    void* blas = nullptr;
    OK(cublasLtCreate(&blas));
    Description description(kExact);
    const uint64_t a = device_memory(kM * kK * 4), b = device_memory(kK * kN * 4),
                   d = device_memory(kM * kN * 4 - 4);
    void* ld = layout(kF32, kM, kN);
    const float one = 1, zero = 0;
    OK(cublasLtMatmul(blas, description.handle, &one, pointer(a), layout(kF32, kM, kK), pointer(b),
                      layout(kF32, kK, kN), &zero, pointer(d), ld, pointer(d), ld, nullptr, nullptr,
                      0, nullptr));
    return cuStreamSynchronize(nullptr) == 700 ? 3 : 0;
}

const char* const kSource =
    "#include \"portable.cuh\"\n"
    "extern \"C\" __global__ void user_scale(float* x, float by) { x[threadIdx.x] *= by; }\n"
    "EMB_KERNEL(user_scale)\n";

int compiled() {
    use_device(0);
    void* program = nullptr;
    OK(nvrtcCreateProgram(&program, kSource, nullptr, 0, nullptr, nullptr));
    const char* options[] = {"--gpu-architecture=sm_90"};
    const int status = nvrtcCompileProgram(program, 1, options);
    size_t bytes = 0;
    nvrtcGetProgramLogSize(program, &bytes);
    std::vector<char> log(bytes), image;
    nvrtcGetProgramLog(program, log.data());
    if (status) fprintf(stderr, "%s\n", log.data());
    OK(status);
    OK(nvrtcGetPTXSize(program, &bytes));
    image.resize(bytes);
    OK(nvrtcGetPTX(program, image.data()));
    void* module = nullptr;
    void* function = nullptr;
    OK(cuModuleLoadData(&module, image.data()));
    OK(cuModuleGetFunction(&function, module, "user_scale"));
    REQUIRE(cuModuleGetFunction(&function, module, "no_such_kernel") == 500);
    uint64_t x = upload(std::vector<float>(32, 3.0f));
    float by = 2.0f;
    void* parameters[] = {&x, &by};
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    return download<float>(x, 32)[31] == 6.0f ? 0 : 1;
}

int not_compiled() {
    void* program = nullptr;
    OK(nvrtcCreateProgram(&program, "extern \"C\" __global__ void broken(", nullptr, 0, nullptr,
                          nullptr));
    REQUIRE(nvrtcCompileProgram(program, 0, nullptr) == 6);
    size_t bytes = 0;
    nvrtcGetProgramLogSize(program, &bytes);
    std::vector<char> log(bytes);
    nvrtcGetProgramLog(program, log.data());
    return strstr(log.data(), "error") ? 0 : 1;
}

}  // namespace

int main() {
    passes("products equal plain loops, transposed or not", "", transposes);
    passes("fast products round their inputs", "", roundings);
    passes("epilogues equal plain loops", "", epilogues);
    const Ended ended = in_process("", small_output);
    verdict("an output that is too small is refused",
            ended.status == 3 && ended.says("past the end"), ended);
    passes("a kernel compiled at run time runs", "", compiled);
    passes("a kernel that does not compile has a log", "", not_compiled);
    return finish();
}
