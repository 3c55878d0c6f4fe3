// Binary cross-entropy with logits, against a plain loop.
#include "check.h"

#include "loss.cu"

namespace {

struct Batch {
    check::Buffer<float> logits, labels;
    explicit Batch(uint64_t samples) : logits(samples), labels(samples) {
        check::Random random(samples);
        for (uint64_t k = 0; k < samples; ++k) {
            logits[k] = 20.0f * random.uniform();
            labels[k] = random.uniform() > 0.0f ? 1.0f : 0.0f;
        }
        // Where exp(z) would overflow in f32, and in f64.
        if (samples > 2) logits[0] = 1000.0f, logits[1] = -1000.0f, labels[2] = 0.3f;
    }
};

double loss(Batch& batch, unsigned grid, check::Buffer<float>& gradient) {
    const uint64_t samples = batch.logits.size(), chunks = (samples + 255) / 256;
    check::Buffer<double> partials(chunks, NAN), total(1, NAN);
    LAUNCH(emb_bce_with_logits, grid, 256, 0, batch.logits, batch.labels, samples, 0.25f, gradient,
           partials);
    LAUNCH(emb_loss_total, 1, 256, 0, partials, chunks, total);
    return total[0];
}

}  // namespace

TEST(losses_and_gradients_are_those_of_a_loop_in_double_precision) {
    for (const uint64_t samples : {1, 3, 255, 256, 257, 700}) {
        Batch batch(samples);
        check::Buffer<float> gradient(samples, NAN), want(samples);
        double sum = 0.0;
        for (uint64_t k = 0; k < samples; ++k) {
            const double z = batch.logits[k], y = batch.labels[k], small = std::exp(-std::fabs(z));
            sum += std::fmax(z, 0.0) - z * y + std::log1p(small);
            const double sigmoid = (z < 0.0 ? small : 1.0) / (1.0 + small);
            want[k] = static_cast<float>((sigmoid - y) * 0.25);
        }
        const double got = loss(batch, 2, gradient);
        EXPECT(std::fabs(got - sum) <= 1e-13 * sum);
        EXPECT_ALL_EQUAL(gradient, want);
    }
}

TEST(a_sum_of_losses_has_one_order_for_every_grid_and_schedule) {
    Batch batch(1100);
    check::Buffer<float> gradient(1100, NAN);
    const double first = loss(batch, 5, gradient);
    check::for_each_schedule([&] {
        EXPECT_EQUAL(loss(batch, 1, gradient), first);
        EXPECT_EQUAL(loss(batch, 3, gradient), first);
    });
}

TEST(more_than_256_partial_sums_are_all_added) {
    check::Buffer<double> partials(700), total(1, NAN);
    for (int k = 0; k < 700; ++k) partials[k] = k;
    LAUNCH(emb_loss_total, 1, 256, 0, partials, 700, total);
    EXPECT_EQUAL(total[0], 699.0 * 700.0 / 2.0);
}

TEST(a_loss_of_not_a_number_is_seen) {
    Batch batch(300);
    check::Buffer<float> gradient(300, 0.0f);
    batch.logits[290] = NAN;
    EXPECT(std::isnan(loss(batch, 1, gradient)));
    EXPECT(std::isnan(gradient[290]) && !std::isnan(gradient[289]));
}

CHECK_MAIN
