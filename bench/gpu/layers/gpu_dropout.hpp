// The dropout of a GPU layer: multiplies by factors that the device draws anew in each pass, as the CPU layers draw them.
#pragma once

#include "bench/gpu/layers/gpu_compute.hpp"
#include "bench/tools/random.hpp"

namespace muster {

class gpu_dropout {
  public:
    /// `step`: where the device finds the keys; `layer`: whose key.
    gpu_dropout(gpu_compute const& with, float probability, cuda::step_arguments const* step, unsigned layer)
        : with_(&with), probability_(probability), scale_(1.0f / (1.0f - probability)), step_(step), layer_(layer) {}

    bool drops() const noexcept { return probability_ > 0; }
    void resample(random_stream const& stream) noexcept { stream_ = stream; }
    /// What the device draws from the key of that stream.
    float factor(std::uint64_t draw) const noexcept {
        return !drops() || stream_.uniform(draw) >= probability_ ? (drops() ? scale_ : 1.0f) : 0.0f;
    }

    /// `count` elements, of which each `plane` share a draw. `out` may be `in`.
    void apply(float const* in, float* out, std::size_t count, int plane) const {
        with_->run(cuda::dropout_work{in, out, step_, count, static_cast<std::uint32_t>(plane), layer_, probability_, scale_});
    }

  private:
    gpu_compute const* with_;
    float probability_, scale_;
    cuda::step_arguments const* step_;
    unsigned layer_;
    random_stream stream_{0, 0};
};

}  // namespace muster
