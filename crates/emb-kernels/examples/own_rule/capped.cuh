// Row-wise AdaGrad whose weights move by at most `cap` a step: the twin of rule.rs.
struct CappedAdaGrad {
    float lr, eps, cap;

    static constexpr unsigned int kRowSlots = 1, kElementSlots = 0;
    struct Row {
        float scale;
    };
    __device__ bool uses_statistic() const { return true; }
    __device__ bool statistic_reads_weights() const { return false; }
    __device__ double statistic_of(float, float g) const { return double(g) * double(g); }
    __device__ Row row(float* state, double mean) const {
        state[0] = static_cast<float>(double(state[0]) + mean);
        return {lr / (sqrtf(state[0]) + eps)};
    }
    __device__ float element(const Row& row, float w, float g, float*) const {
        const float step = row.scale * g;
        return w - (step > cap ? cap : step < -cap ? -cap : step);
    }
    __device__ float max_norm() const { return INFINITY; }
};
