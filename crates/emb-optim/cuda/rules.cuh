// Update rules of embedding rows on a device: twins of this crate's Rust rules, to the last bit.
//
// How to write a rule. A rule is a struct of plain numbers, the options of one step; the host
// fills one a table and copies its bytes, so fields lie as in a `repr(C)` struct and take at most
// 72 bytes. The kernel that sums a row's gradients calls these members, all of them
// `__device__ ... const`:
//
//   static constexpr int kRowSlots, kElementSlots;
//       Most floats of state that the rule keeps for a row, and for an element. A table may be made
//       with fewer (an option that needs no slot): the slots beyond read as 0 and are not stored.
//   struct Row;
//       What the elements of a row share in a step. Plain numbers.
//   bool uses_statistic();
//       Whether `row` needs the row's statistic. If not, `statistic_of` is never called.
//   bool statistic_reads_weights();
//       Whether `statistic_of` needs `w`; if not, it is given 0 and the row is read once less.
//   double statistic_of(float w, float g);
//       What an element of weight `w` and gradient `g` adds to the statistic of its row. The kernel
//       adds elements in the order of `sum_of_squares.rs`: 16 partial sums, folded by halves.
//   Row row(float* state, double mean);
//       Once a row, before its elements. `state` is [kRowSlots], to be changed in place; `mean` is
//       the statistic of the whole row over its number of columns. Every lane of the row calls it
//       with a copy of its own, so it must be a pure function.
//   float element(const Row& row, float w, float g, float* state);
//       Once an element: the new weight. `state` is [kElementSlots], to be changed in place.
//   float max_norm();
//       Longest norm of a row after the step; INFINITY for none.
//
// The clamp of incoming gradients (`RowRule::max_gradient`) is not the rule's: kernels know it.
// Arithmetic is rounded operation by operation (-fmad=false), as Rust does it.
#pragma once

namespace emb {

// What the elements of a row share where nothing is shared.
struct NoRow {};

// `w = keep * w - lr * g`, see sgd.rs.
struct Sgd {
    float lr;
    float keep;
    float longest;  // max_norm, or INFINITY

    static constexpr int kRowSlots = 0, kElementSlots = 0;
    using Row = NoRow;
    __device__ bool uses_statistic() const { return false; }
    __device__ bool statistic_reads_weights() const { return false; }
    __device__ double statistic_of(float, float) const { return 0.0; }
    __device__ Row row(float*, double) const { return {}; }
    __device__ float element(const Row&, float w, float g, float*) const { return keep * w - lr * g; }
    __device__ float max_norm() const { return longest; }
};

// `v += h^2`, `w -= lr * h / (sqrt(v) + eps)`, see adagrad.rs. Slots: sum, sum_local (history).
struct AdaGrad {
    float lr;
    float eps;
    float l2;
    float keep;
    float square_scale;
    float longest;
    unsigned int history;

    static constexpr int kRowSlots = 0, kElementSlots = 2;
    using Row = NoRow;
    __device__ bool uses_statistic() const { return false; }
    __device__ bool statistic_reads_weights() const { return false; }
    __device__ double statistic_of(float, float) const { return 0.0; }
    __device__ Row row(float*, double) const { return {}; }
    __device__ float element(const Row&, float w, float g, float* state) const {
        const float gradient = g + l2 * w;
        const float sum = (history ? state[1] : state[0]) + gradient * gradient * square_scale;
        const float v = history ? state[0] + sum : sum;
        if (history) {
            state[1] = sum;
        } else {
            state[0] = sum;
        }
        const float denominator = sqrtf(v) + eps;
        const float quotient = lr * gradient / denominator;
        return keep * w - (denominator == 0.0f ? 0.0f : quotient);
    }
    __device__ float max_norm() const { return longest; }
};

// `v += mean(h^2)` over the row, `w -= lr * h / (sqrt(v) + eps)`, see rowwise_adagrad.rs. Slots: sum,
// sum_local (history).
struct RowWiseAdaGrad {
    double square_scale;
    float lr;
    float eps;
    float l2;
    float keep;
    float longest;
    unsigned int history;

    static constexpr int kRowSlots = 2, kElementSlots = 0;
    struct Row {
        float keep;
        float scale;
    };
    __device__ bool uses_statistic() const { return true; }
    __device__ bool statistic_reads_weights() const { return l2 != 0.0f; }
    __device__ double statistic_of(float w, float g) const {
        // Without decay a row of infinite weight still measures its gradient only.
        const double x = l2 == 0.0f ? g : g + l2 * w;
        return x * x;
    }
    __device__ Row row(float* state, double mean) const {
        const double increment = mean * square_scale;
        const double before = history ? state[1] : state[0];
        const float sum = static_cast<float>(before + increment);
        const float v = history ? state[0] + sum : sum;
        if (history) {
            state[1] = sum;
        } else {
            state[0] = sum;
        }
        const float denominator = sqrtf(v) + eps;
        const float scale = denominator == 0.0f ? 0.0f : lr / denominator;
        return {keep - scale * l2, scale};
    }
    __device__ float element(const Row& row, float w, float g, float*) const {
        return row.keep * w - row.scale * g;
    }
    __device__ float max_norm() const { return longest; }
};

// `m = beta1 * m + gain1 * h`, `v = beta2 * v + gain2 * h^2`,
// `w = keep * w - step_size * m / (sqrt(v) * root_scale + eps)`, see adam.rs. Slots: exp_avg,
// exp_avg_sq.
struct Adam {
    float step_size;
    float root_scale;
    float beta1;
    float gain1;
    float beta2;
    float gain2;
    float eps;
    float l2;
    float keep;
    float longest;

    static constexpr int kRowSlots = 0, kElementSlots = 2;
    using Row = NoRow;
    __device__ bool uses_statistic() const { return false; }
    __device__ bool statistic_reads_weights() const { return false; }
    __device__ double statistic_of(float, float) const { return 0.0; }
    __device__ Row row(float*, double) const { return {}; }
    __device__ float element(const Row&, float w, float g, float* state) const {
        const float gradient = g + l2 * w;
        state[0] = beta1 * state[0] + gain1 * gradient;
        state[1] = beta2 * state[1] + gain2 * (gradient * gradient);
        const float denominator = sqrtf(state[1]) * root_scale + eps;
        const float quotient = step_size * state[0] / denominator;
        return keep * w - (denominator == 0.0f ? 0.0f : quotient);
    }
    __device__ float max_norm() const { return longest; }
};

// Adam with `v = beta2 * v + gain2 * mean(h^2)` over the row, see rowwise_adam.rs. Slots: exp_avg of
// elements, exp_avg_sq of the row.
struct RowWiseAdam {
    double beta2;
    double gain2;
    float step_size;
    float root_scale;
    float beta1;
    float gain1;
    float eps;
    float l2;
    float keep;
    float longest;

    static constexpr int kRowSlots = 1, kElementSlots = 1;
    struct Row {
        float scale;
    };
    __device__ bool uses_statistic() const { return true; }
    __device__ bool statistic_reads_weights() const { return l2 != 0.0f; }
    __device__ double statistic_of(float w, float g) const {
        const double x = l2 == 0.0f ? g : g + l2 * w;
        return x * x;
    }
    __device__ Row row(float* state, double mean) const {
        state[0] = static_cast<float>(beta2 * static_cast<double>(state[0]) + gain2 * mean);
        const float denominator = sqrtf(state[0]) * root_scale + eps;
        return {denominator == 0.0f ? 0.0f : step_size / denominator};
    }
    __device__ float element(const Row& row, float w, float g, float* state) const {
        state[0] = beta1 * state[0] + gain1 * (g + l2 * w);
        return keep * w - row.scale * state[0];
    }
    __device__ float max_norm() const { return longest; }
};

}  // namespace emb
