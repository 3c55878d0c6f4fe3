// The update rules as plain loops over one row: what a step does, written once more.
#pragma once

#include <cmath>
#include <vector>

// Every option of every rule; a rule uses those that it has.
struct Options {
    float lr = 0.05f, eps = 1e-8f, l2 = 0.0f, keep = 1.0f, step_size = 0.02f, root_scale = 1.5f;
    float beta1 = 0.9f, gain1 = 0.1f, longest = INFINITY;
    double beta2 = 0.99, gain2 = 0.01, square_scale = 1.0;
    bool history = false;
};

// State of a row: one value a row slot, `dim` an element slot.
struct RowState {
    std::vector<float> row, element;
};

// 16 partial sums by column, folded by halves.
template <typename Term> double sum_by_the_book(size_t dim, const Term& term) {
    double s[16] = {};
    for (size_t i = 0; i < dim; ++i) {
        s[i % 16] += term(i);
    }
    for (size_t half = 8; half > 0; half /= 2) {
        for (size_t j = 0; j < half; ++j) {
            s[j] += s[j + half];
        }
    }
    return s[0];
}

inline double measured(const Options& o, const std::vector<float>& w, const std::vector<float>& g) {
    return sum_by_the_book(w.size(), [&](size_t i) {
        const double x = o.l2 == 0.0f ? g[i] : g[i] + o.l2 * w[i];
        return x * x;
    });
}

inline void limit(std::vector<float>& w, float longest) {
    const double norm = std::sqrt(sum_by_the_book(
        w.size(), [&](size_t i) { return static_cast<double>(w[i]) * static_cast<double>(w[i]); }));
    if (norm > static_cast<double>(longest)) {
        const float scale = static_cast<float>(static_cast<double>(longest) / norm);
        for (float& x : w) {
            x *= scale;
        }
    }
}

inline void step_sgd(const Options& o, std::vector<float>& w, RowState&, const std::vector<float>& g,
                     double) {
    for (size_t i = 0; i < w.size(); ++i) {
        w[i] = o.keep * w[i] - o.lr * g[i];
    }
}

inline void step_adagrad(const Options& o, std::vector<float>& w, RowState& s,
                         const std::vector<float>& g, double) {
    for (size_t i = 0; i < w.size(); ++i) {
        const float h = g[i] + o.l2 * w[i];
        const size_t own = o.history ? w.size() + i : i;
        s.element[own] += h * h * static_cast<float>(o.square_scale);
        const float v = o.history ? s.element[i] + s.element[own] : s.element[own];
        const float denominator = std::sqrt(v) + o.eps;
        w[i] = o.keep * w[i] - (denominator == 0.0f ? 0.0f : o.lr * h / denominator);
    }
}

inline void step_row_wise_adagrad(const Options& o, std::vector<float>& w, RowState& s,
                                  const std::vector<float>& g, double mean) {
    float& own = s.row[o.history ? 1 : 0];
    own = static_cast<float>(static_cast<double>(own) + mean * o.square_scale);
    const float v = o.history ? s.row[0] + s.row[1] : s.row[0];
    const float denominator = std::sqrt(v) + o.eps;
    const float scale = denominator == 0.0f ? 0.0f : o.lr / denominator;
    const float keep = o.keep - scale * o.l2;
    for (size_t i = 0; i < w.size(); ++i) {
        w[i] = keep * w[i] - scale * g[i];
    }
}

inline void step_adam(const Options& o, std::vector<float>& w, RowState& s,
                      const std::vector<float>& g, double) {
    for (size_t i = 0; i < w.size(); ++i) {
        const float h = g[i] + o.l2 * w[i];
        float &m = s.element[i], &v = s.element[w.size() + i];
        m = o.beta1 * m + o.gain1 * h;
        v = static_cast<float>(o.beta2) * v + static_cast<float>(o.gain2) * (h * h);
        const float denominator = std::sqrt(v) * o.root_scale + o.eps;
        w[i] = o.keep * w[i] - (denominator == 0.0f ? 0.0f : o.step_size * m / denominator);
    }
}

inline void step_row_wise_adam(const Options& o, std::vector<float>& w, RowState& s,
                               const std::vector<float>& g, double mean) {
    s.row[0] = static_cast<float>(o.beta2 * static_cast<double>(s.row[0]) + o.gain2 * mean);
    const float denominator = std::sqrt(s.row[0]) * o.root_scale + o.eps;
    const float scale = denominator == 0.0f ? 0.0f : o.step_size / denominator;
    for (size_t i = 0; i < w.size(); ++i) {
        s.element[i] = o.beta1 * s.element[i] + o.gain1 * (g[i] + o.l2 * w[i]);
        w[i] = o.keep * w[i] - scale * s.element[i];
    }
}
