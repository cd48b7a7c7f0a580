// The work of one thread of the training's kernels: what neither cuDNN nor cuBLAS has. The same functions are compiled by nvcc for
// the GPU and by the host's compiler for the fake driver; hence no CUDA type, C++17, and no other header.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define MUSTER_NET __host__ __device__ __forceinline__
#else
#include <cmath>
#define MUSTER_NET inline
#endif

namespace muster::cuda {

/// What differs from step to step, in device memory: written before a step, so that a graph of it can be launched again.
struct step_arguments {
    static constexpr unsigned most_layers = 16;
    std::uint64_t first;              ///< place in the rank's order of the step's first image
    std::uint64_t keys[most_layers];  ///< random_stream::key() of each layer's dropout
    float share;                      ///< the gradients are those of the summed loss times it
    std::uint32_t padding;
};
static_assert(sizeof(step_arguments) == 144, "the device reads what the host writes");

/// Bytes of images at the places of an order become normalised floats, plane after plane: thread i does pixel i of the batch.
struct gather_work {
    std::uint8_t const* images;
    std::uint8_t const* labels;
    std::uint32_t const* order;
    step_arguments const* step;
    float* out;
    std::uint8_t* out_labels;
    std::uint64_t count;  ///< pixels of the batch
    std::uint32_t bytes;  ///< of an image
    float factor, offset;
    std::uint32_t padding;
    MUSTER_NET void run(std::uint64_t i) const {
        std::uint64_t const image = i / bytes, pixel = i % bytes;
        std::uint64_t const sample = order[step->first + image];
        out[i] = static_cast<float>(images[sample * bytes + pixel]) * factor + offset;
        if (pixel == 0) out_labels[image] = labels[sample];
    }
};

/// The loss of image i, whether its largest output is its label's (the first of equal ones), and the outputs' gradient.
struct loss_work {
    float const* outputs;            ///< a row of `classes` an image
    float const* log_probabilities;  ///< of the same shape
    std::uint8_t const* labels;      ///< below `classes`
    step_arguments const* step;
    float* gradient;      ///< null: none
    float* losses;        ///< written at step->first + i
    std::uint8_t* hits;   ///< the same
    std::uint64_t count;  ///< images
    std::uint32_t classes;
    std::uint32_t padding;
    MUSTER_NET void run(std::uint64_t i) const {
        float const* const row = outputs + i * classes;
        float const* const logs = log_probabilities + i * classes;
        std::uint32_t largest = 0;
        for (std::uint32_t k = 1; k < classes; ++k)
            if (row[k] > row[largest]) largest = k;
        std::uint32_t const label = labels[i];
        losses[step->first + i] = -logs[label];
        hits[step->first + i] = largest == label ? 1 : 0;
        if (gradient == nullptr) return;
        for (std::uint32_t k = 0; k < classes; ++k)
            gradient[i * classes + k] = (expf(logs[k]) - (k == label ? 1.0f : 0.0f)) * step->share;
    }
};

/// Dropout, forward and backward alike: element i is multiplied by 0 or 1/(1-p). The draws are those of random_stream
/// (bench/tools/random.hpp), one for each `plane` elements, so that nothing needs to be kept between the passes.
struct dropout_work {
    float const* in;
    float* out;  ///< may be `in`
    step_arguments const* step;
    std::uint64_t count;
    std::uint32_t plane;  ///< elements that share a draw
    std::uint32_t layer;
    float probability, scale;
    static MUSTER_NET std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    MUSTER_NET void run(std::uint64_t i) const {
        std::uint64_t const bits = mix(step->keys[layer] + (i / plane + 1) * 0x9e3779b97f4a7c15u);
        float const drawn = static_cast<float>(bits >> 40) * 5.9604644775390625e-8f;  // 2^-24
        out[i] = drawn >= probability ? in[i] * scale : 0.0f;
    }
};

/// velocity = momentum * velocity + gradient; parameter -= rate * velocity.
struct sgd_work {
    float* parameters;
    float const* gradients;
    float* velocity;
    std::uint64_t count;
    float rate, momentum;
    MUSTER_NET void run(std::uint64_t i) const {
        float const next = momentum * velocity[i] + gradients[i];
        velocity[i] = next;
        parameters[i] -= rate * next;
    }
};

/// What thread `first` of `all` threads of a launch does.
template <typename Work>
MUSTER_NET void run_share(Work const& work, std::uint64_t first, std::uint64_t all) {
    for (std::uint64_t i = first; i < work.count; i += all) work.run(i);
}

/// Kernel muster_net_X takes X_work by value.
#define MUSTER_NETWORK_KERNELS(X) \
    X(gather)                     \
    X(loss)                       \
    X(dropout)                    \
    X(sgd)

}  // namespace muster::cuda
