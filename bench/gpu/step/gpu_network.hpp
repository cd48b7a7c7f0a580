// A network on a GPU: runs the passes of its layers over batches in device memory, with all parameters in one array.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/gpu/layers/gpu_compute.hpp"
#include "bench/gpu/layers/gpu_objects.hpp"
#include "bench/network/layer.hpp"
#include "bench/network/network.hpp"
#include "bench/network/parameter_table.hpp"

namespace muster {

/// A split in device memory, as a pass takes its images from it.
struct gpu_source {
    std::uint8_t const* images = nullptr;  ///< all of them
    std::uint8_t const* labels = nullptr;  ///< each below the network's classes
    std::uint32_t const* order = nullptr;  ///< this rank's images of the epoch
    float* losses = nullptr;               ///< written in that order: each image's loss
    std::uint8_t* hits = nullptr;          ///< and whether its largest output is its label's
};

/// The same network as the CPU's: layers, parameters, their order, first values and dropouts. Every call puts its work on the
/// stream of `with` and waits for nothing, so that a graph can be captured of it. One thread.
class gpu_network {
  public:
    /// `name`: of choose_network.hpp. Throws cuda_error, library_error, errc::usage for another name.
    gpu_network(std::string_view name, int max_batch, float dropout, gpu_compute const& with);
    gpu_network(gpu_network const&) = delete;
    gpu_network& operator=(gpu_network const&) = delete;
    ~gpu_network();

    image_input const& input() const noexcept { return input_; }
    parameter_table const& table() const noexcept { return *table_; }
    std::span<std::unique_ptr<layer> const> layers() const noexcept { return layers_; }
    float* parameters() const noexcept { return parameters_.data(); }
    float* gradients() const noexcept { return gradients_.data(); }

    /// Waits for the stream.
    void initialise(std::uint64_t seed);
    /// The parameters alone, without what lies between the layers, as the CPU's network has them. Waits for the stream.
    std::vector<float> download_parameters() const;

    /// What the next steps' work reads from the device; to be put on the stream before them, and never into a graph: the first
    /// image's place in the order, the gradients' share (see network::backward), and the dropouts of the step (network::resample).
    /// The host is at most 8 steps ahead of the device: `wait_for` waits for an event.
    void set_step(std::uint64_t first, float share, std::uint64_t seed, std::uint64_t step,
                  std::function<void(cuda::event_handle)> const& wait_for);

    // The parts of a step over `images` images, at most max_batch.
    void gather(gpu_source const& from, int images);
    void forward(int images, bool training);
    /// After forward. With `gradient` also the gradient of the outputs.
    void loss(gpu_source const& into, int images, bool gradient);
    /// Of layer `index`, after that of the layer behind it.
    void backward(std::size_t index, int images);
    /// Gradients of zero, for a rank without images in a step.
    void no_images();
    void descend(float rate, float momentum);

  private:
    /// Pinned memory in which step_arguments wait for the device, several steps ahead.
    struct waiting_arguments {
        cuda::unique_pinned memory;
        cuda::unique_event copied;
    };
    void make_activations();
    cuda::step_arguments const* step() const noexcept;

    gpu_compute const& with_;
    image_input input_;
    int max_batch_;
    cuda::unique_memory step_;
    std::vector<waiting_arguments> waiting_;
    std::size_t next_waiting_ = 0;
    std::vector<std::unique_ptr<layer>> layers_;
    std::unique_ptr<parameter_table> table_;
    gpu_floats parameters_, gradients_, velocity_;
    std::vector<gpu_floats> activations_;           // [0] the input, [i + 1] what layer i writes
    std::vector<gpu_floats> activation_gradients_;  // [i] of activations_[i]; [0] is empty
    gpu_floats log_probabilities_;
    cuda::unique_memory labels_;
    dnn_tensor outputs_;  // as cuDNN's softmax takes them
};

}  // namespace muster
