// The entry points of cuBLASLt.
#include <cstring>

#include "engine.h"
#include "matmul.h"
#include "memory.h"

using namespace driver;
using namespace driver::blas;

namespace {

// Of cublasStatus_t.
enum { kSuccess = 0, kNotReadyYet = 1, kInvalid = 7, kExecutionFailed = 13, kUnsupported = 15 };

struct Description {
    int compute = kExact, scale = kF32;
    int pointer_mode = 0;
    int transpose_a = 0, transpose_b = 0, transpose_c = 0;
    uint32_t epilogue = kDefault;
    uint64_t bias = 0, aux = 0;
    int bias_type = -1;
    int64_t bias_batch_stride = 0, aux_leading = 0, aux_batch_stride = 0;
};

struct Field {
    int attribute;
    size_t offset, bytes;
};
#define FIELD(NUMBER, OF, NAME) {NUMBER, offsetof(OF, NAME), sizeof(OF::NAME)}

// Numbers of cublasLtMatmulDescAttributes_t and cublasLtMatrixLayoutAttribute_t.
constexpr Field kDescriptionFields[] = {
    FIELD(0, Description, compute),
    FIELD(1, Description, scale),
    FIELD(2, Description, pointer_mode),
    FIELD(3, Description, transpose_a),
    FIELD(4, Description, transpose_b),
    FIELD(5, Description, transpose_c),
    FIELD(7, Description, epilogue),
    FIELD(8, Description, bias),
    FIELD(10, Description, bias_batch_stride),
    FIELD(11, Description, aux),
    FIELD(12, Description, aux_leading),
    FIELD(13, Description, aux_batch_stride),
    FIELD(26, Description, bias_type),
};
constexpr Field kLayoutFields[] = {
    FIELD(0, Layout, type),         FIELD(1, Layout, order),   FIELD(2, Layout, rows),
    FIELD(3, Layout, cols),         FIELD(4, Layout, leading), FIELD(5, Layout, batches),
    FIELD(6, Layout, batch_stride),
};

template <typename Of, size_t N>
int set(Of* object, const Field (&fields)[N], int attribute, const void* value, size_t bytes) {
    if (!object || !value) return kInvalid;
    for (const Field& field : fields) {
        if (field.attribute != attribute) continue;
        if (bytes != field.bytes) return kInvalid;
        memcpy(reinterpret_cast<char*>(object) + field.offset, value, bytes);
        return kSuccess;
    }
    return kUnsupported;
}

bool valid(const Layout& layout) {
    const uint64_t line = layout.order ? layout.cols : layout.rows;
    return blas::type_bytes(layout.type) && layout.leading >= static_cast<int64_t>(line) &&
           layout.batches >= 1 && layout.batch_stride >= 0;
}

uint64_t rows_of(const Layout& layout, bool transposed) {
    return transposed ? layout.cols : layout.rows;
}
uint64_t cols_of(const Layout& layout, bool transposed) {
    return transposed ? layout.rows : layout.cols;
}

// Why the product is refused; null where it is not.
const char* refuse_product(const Description& description, const Layout& a, const Layout& b,
                           const Layout& c, const Layout& d) {
    if (!valid(a) || !valid(b) || !valid(c) || !valid(d)) return "a layout is not possible";
    if (rows_of(a, description.transpose_a) != d.rows ||
        cols_of(b, description.transpose_b) != d.cols ||
        cols_of(a, description.transpose_a) != rows_of(b, description.transpose_b) ||
        c.rows != d.rows || c.cols != d.cols) {
        return "the shapes do not fit";
    }
    if (a.batches != d.batches || b.batches != d.batches || c.batches != d.batches)
        return "the batch counts differ";
    if (description.pointer_mode != 0) return "only the host pointer mode is offered here";
    if (description.transpose_c) return "C cannot be transposed";
    // DGELU, and GELU with its input kept.
    if (description.epilogue & 64 || (description.epilogue & kGelu && description.epilogue & kAux))
        return "the epilogue is not offered here";
    if (a.type != b.type) return "A and B are of different types";
    return nullptr;
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

double scalar(const void* pointer, int type) {
    return type == kF64 ? *static_cast<const double*>(pointer)
                        : static_cast<double>(*static_cast<const float*>(pointer));
}

size_t bias_length(const Product& product) {
    const Layout& d = product.d.layout;
    const size_t length = product.epilogue & kBiasGradientB ? d.cols : d.rows;
    return static_cast<size_t>(product.bias_batch_stride) * static_cast<size_t>(d.batches - 1) +
           length;
}

std::vector<Access> accesses_of(const Product& product) {
    std::vector<Access> out = {{product.a.address, matrix_bytes(product.a.layout), false},
                               {product.b.address, matrix_bytes(product.b.layout), false},
                               {product.d.address, matrix_bytes(product.d.layout), true}};
    if (product.beta != 0)
        out.push_back({product.c.address, matrix_bytes(product.c.layout), false});
    const uint32_t gradients = kBiasGradient | kBiasGradientA | kBiasGradientB;
    if (product.epilogue & (kBias | gradients)) {
        out.push_back({product.bias, bias_length(product) * blas::type_bytes(product.bias_type),
                       (product.epilogue & gradients) != 0});
    }
    if (product.epilogue & kAux) {
        const size_t bits = static_cast<size_t>(product.aux_leading) * product.d.layout.cols;
        out.push_back({product.aux, bits / 8, !(product.epilogue & kGradient)});
    }
    return out;
}

Product make_product(const Description& description, const void* alpha, const void* beta) {
    Product product;
    product.transpose_a = description.transpose_a;
    product.transpose_b = description.transpose_b;
    product.alpha = scalar(alpha, description.scale);
    product.beta = scalar(beta, description.scale);
    product.compute = description.compute;
    product.epilogue = description.epilogue;
    product.bias = description.bias;
    product.bias_batch_stride = description.bias_batch_stride;
    product.aux = description.aux;
    product.aux_leading = description.aux_leading;
    product.aux_batch_stride = description.aux_batch_stride;
    return product;
}

struct Heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
};

int dummy_handle;

}  // namespace

DRIVER_API int cublasLtCreate(void** handle) {
    Entry entry = enter();
    if (!entry) return kNotReadyYet;
    *handle = &dummy_handle;
    return kSuccess;
}
DRIVER_API int cublasLtDestroy(void* handle) {
    return handle == &dummy_handle ? kSuccess : kInvalid;
}
DRIVER_API size_t cublasLtGetVersion() { return 130001; }

DRIVER_API int cublasLtMatmulDescCreate(Description** description, int compute, int scale) {
    *description = new Description;
    (*description)->compute = compute;
    (*description)->scale = scale;
    return kSuccess;
}
DRIVER_API int cublasLtMatmulDescDestroy(Description* description) {
    delete description;
    return kSuccess;
}
DRIVER_API int cublasLtMatmulDescSetAttribute(Description* description, int attribute,
                                              const void* value, size_t bytes) {
    return set(description, kDescriptionFields, attribute, value, bytes);
}

DRIVER_API int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t cols,
                                          int64_t leading) {
    *layout = new Layout{type, 0, rows, cols, leading, 1, 0};
    return kSuccess;
}
DRIVER_API int cublasLtMatrixLayoutDestroy(Layout* layout) {
    delete layout;
    return kSuccess;
}
DRIVER_API int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value,
                                                size_t bytes) {
    return set(layout, kLayoutFields, attribute, value, bytes);
}

DRIVER_API int cublasLtMatmulPreferenceCreate(void** preference) {
    *preference = new int(0);
    return kSuccess;
}
DRIVER_API int cublasLtMatmulPreferenceDestroy(void* preference) {
    delete static_cast<int*>(preference);
    return kSuccess;
}
DRIVER_API int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) {
    return kSuccess;
}

DRIVER_API int cublasLtMatmulAlgoGetHeuristic(void*, const Description* description,
                                              const Layout* a, const Layout* b, const Layout* c,
                                              const Layout* d, void*, int wanted,
                                              Heuristic* results, int* count) {
    *count = 0;
    if (!description || !a || !b || !c || !d || wanted < 1) return kInvalid;
    if (const char* why = refuse_product(*description, *a, *b, *c, *d)) {
        say("cublasLt: %s", why);
        return kUnsupported;
    }
    memset(results, 0, sizeof *results);
    results->waves = 1;
    *count = 1;
    return kSuccess;
}

DRIVER_API int cublasLtMatmul(void*, const Description* description, const void* alpha,
                              const void* a, const Layout* a_layout, const void* b,
                              const Layout* b_layout, const void* beta, const void* c,
                              const Layout* c_layout, void* d, const Layout* d_layout, const void*,
                              void*, size_t, void* handle) {
    Entry entry = enter();
    if (!entry) return kExecutionFailed;
    auto stream = find_stream(entry.device, handle);
    if (!stream || !description || !a_layout || !b_layout || !c_layout || !d_layout)
        return kInvalid;
    if (const char* why =
            refuse_product(*description, *a_layout, *b_layout, *c_layout, *d_layout)) {
        say("cublasLt: %s", why);
        return kUnsupported;
    }
    Product product = make_product(*description, alpha, beta);
    product.a = {address_of(a), *a_layout};
    product.b = {address_of(b), *b_layout};
    product.c = {address_of(c), *c_layout};
    product.d = {address_of(d), *d_layout};
    product.bias_type = description->bias_type < 0 ? d_layout->type : description->bias_type;
    auto work = std::make_shared<Work>();
    work->what =
        text("matmul %llux%llux%llu", static_cast<unsigned long long>(d_layout->rows),
             static_cast<unsigned long long>(d_layout->cols),
             static_cast<unsigned long long>(cols_of(*a_layout, description->transpose_a)));
    work->accesses = accesses_of(product);
    work->run = [product] {
        multiply(product);
        return 0;
    };
    return push(entry.lock, stream, work) == kOk ? kSuccess : kExecutionFailed;
}
