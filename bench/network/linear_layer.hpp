// A fully connected layer with optional ReLU and dropout.
#pragma once

#include "bench/network/kernel_table.hpp"
#include "bench/network/layer.hpp"
#include "bench/tools/aligned.hpp"

namespace muster {

/// out = dropout(relu(in * weights^T + bias)). Rows of inputs and outputs are padded with zeros to a multiple of 8 floats.
class linear_layer : public layer {
  public:
    struct options {
        std::string name;
        int in = 0, out = 0;
        bool relu = false;
        float dropout = 0;  ///< probability that an output is dropped; 0: none
        int max_batch = 64;
    };
    linear_layer(options const& what, kernel_table const& kernels);

    std::string_view name() const override { return options_.name; }
    tensor_format in_format() const override { return row_format(options_.in); }
    tensor_format out_format() const override { return row_format(options_.out); }
    tensor_format in_gradient_format() const override { return in_format(); }
    std::vector<parameter_shape> parameters() const override;
    void bind(std::span<float const> parameters, std::span<float> gradients) override;
    void resample(random_stream const& stream, int images) override;
    float dropout_factor(int image, int unit) const override;
    void forward(int images, float const* in, float* out, bool training) override;
    void backward(int images, float const* in, float const* out, float const* out_gradient, float* in_gradient) override;
    work dense_work(bool input_gradient) const override;

  private:
    static int padded(int count) noexcept { return (count + 7) / 8 * 8; }
    static tensor_format row_format(int count) { return {count, 1, 1, padded(count), 1, 1, 1}; }
    float const* packed_weights();
    /// Large layers go through the blocked matrix product, which reads the weights once and not once for each few images.
    bool is_large() const noexcept { return gemm_scratch_.size() > 0; }
    void multiply(gemm_shape const& shape, gemm_operand const& a, gemm_operand const& b, float* const* c, bool add) {
        kernels_->gemm(shape, a, b, c, add, gemm_scratch_.data());
    }
    void large_forward(int images, float const* in, float* out);
    void large_backward(int images, float const* in, float* in_gradient);

    options options_;
    kernel_table const* kernels_;
    linear_shape shape_;
    float keep_scale_;
    std::span<float const> weights_, bias_;
    std::span<float> weight_gradient_, bias_gradient_;
    aligned_vector<float> factor_;        // dropout's, [image][padded out]
    aligned_vector<float> masked_;        // the output's gradient before ReLU and dropout, [image][padded out]
    aligned_vector<float> weights_rows_;  // padded copies, only where `in` is no multiple of 8
    aligned_vector<float> gradient_rows_;
    aligned_vector<float> gemm_scratch_;
    std::vector<float const*> in_rows_, weight_rows_, masked_rows_;  // addresses, for the matrix product
    std::vector<float*> to_rows_;
};

}  // namespace muster
