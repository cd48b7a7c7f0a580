#include "bench/gpu/step/gpu_network.hpp"

#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "bench/gpu/step/gpu_layers.hpp"

namespace muster {

namespace {

constexpr std::size_t steps_ahead = 8;       // how many steps the host may be before the device
constexpr std::size_t layer_alignment = 32;  // floats: 128 bytes, which suits every load that the libraries may choose

}  // namespace

gpu_network::gpu_network(std::string_view name, int max_batch, float dropout, gpu_compute const& with)
    : with_(with),
      input_(input_of_gpu_network(name)),
      max_batch_(max_batch),
      step_(cuda::make_memory(with.on(), sizeof(cuda::step_arguments))),
      layers_(make_gpu_layers(name, max_batch, dropout, with, step())),
      table_(std::make_unique<parameter_table>(layers_, layer_alignment)),
      parameters_(with.on(), table_->total()),
      gradients_(with.on(), table_->total()),
      velocity_(with.on(), table_->total()) {
    expect(layers_.size() <= cuda::step_arguments::most_layers, "a key for each layer");
    for (std::size_t i = 0; i < steps_ahead; ++i)
        waiting_.push_back({cuda::make_pinned(with.on(), sizeof(cuda::step_arguments)), cuda::make_event(with.on())});
    table_->bind(layers_, {parameters_.data(), table_->total()}, {gradients_.data(), table_->total()});
    make_activations();
    for (auto const* each : {&velocity_, &gradients_})  // of the gradients, what lies between the layers
        with_.check(with_.driver().fill(std::bit_cast<cuda::device_address>(each->data()), 0, each->size() * sizeof(float),
                                        with_.stream()),
                    "cuMemsetD8Async");
}

gpu_network::~gpu_network() {
    with_.driver().stream_synchronize(with_.stream());  // it works on this memory
}

cuda::step_arguments const* gpu_network::step() const noexcept {
    return std::bit_cast<cuda::step_arguments const*>(step_.get().handle);
}

void gpu_network::make_activations() {
    auto const batch = static_cast<std::size_t>(max_batch_);
    auto const floats = [&](tensor_format const& of) {
        return gpu_floats(with_.on(), batch * static_cast<std::size_t>(of.image_step));
    };
    activations_.push_back(floats(layers_.front()->in_format()));
    activation_gradients_.emplace_back();
    for (auto const& each : layers_) {
        activations_.push_back(floats(each->out_format()));
        activation_gradients_.push_back(floats(each->out_format()));
    }
    auto const outputs = layers_.back()->out_format();
    expect(outputs.elements() == input_.classes && outputs.image_step == input_.classes, "an output a class");
    log_probabilities_ = floats(outputs);
    labels_ = cuda::make_memory(with_.on(), batch);
    outputs_ = dnn_tensor(with_, planes_of(input_.classes, 1, 1));
}

void gpu_network::initialise(std::uint64_t seed) {
    std::vector<float> values(table_->total());
    table_->initialise(seed, values);
    with_.upload(parameters_.data(), values.data(), values.size() * sizeof(float));
}

std::vector<float> gpu_network::download_parameters() const {
    std::vector<float> all(table_->total()), out;
    with_.download(all.data(), parameters_.data(), all.size() * sizeof(float));
    out.reserve(all.size());
    for (auto const& row : table_->rows()) {
        auto const values = std::span(all).subspan(row.first, row.shape.count());
        out.insert(out.end(), values.begin(), values.end());
    }
    return out;
}

void gpu_network::set_step(std::uint64_t first, float share, std::uint64_t seed, std::uint64_t step,
                           std::function<void(cuda::event_handle)> const& wait_for) {
    cuda::step_arguments now{};
    now.first = first;
    now.share = share;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        random_stream const stream(seed, 2 + i, step);
        layers_[i]->resample(stream, max_batch_);
        now.keys[i] = stream.key();
    }
    auto const& slot = waiting_[next_waiting_++ % waiting_.size()];
    wait_for(slot.copied.get().handle);
    std::memcpy(slot.memory.get().handle, &now, sizeof now);
    with_.check(with_.driver().copy_host_to_device(step_.get().handle, slot.memory.get().handle, sizeof now, with_.stream()),
                "cuMemcpyHtoDAsync");
    with_.check(with_.driver().event_record(slot.copied.get().handle, with_.stream()), "cuEventRecord");
}

void gpu_network::gather(gpu_source const& from, int images) {
    expect(images > 0 && images <= max_batch_, "a batch fits the network");
    cuda::gather_work work{};
    work.images = from.images;
    work.labels = from.labels;
    work.order = from.order;
    work.step = step();
    work.out = activations_.front().data();
    work.out_labels = std::bit_cast<std::uint8_t*>(labels_.get().handle);
    work.bytes = static_cast<std::uint32_t>(input_.bytes());
    work.count = static_cast<std::uint64_t>(images) * work.bytes;
    work.factor = 1.0f / (255.0f * input_.deviation);
    work.offset = -input_.mean / input_.deviation;
    with_.run(work);
}

void gpu_network::forward(int images, bool training) {
    for (std::size_t i = 0; i < layers_.size(); ++i)
        layers_[i]->forward(images, activations_[i].data(), activations_[i + 1].data(), training);
}

void gpu_network::loss(gpu_source const& into, int images, bool gradient) {
    float const* const outputs = activations_.back().data();
    outputs_.set_images(images);
    with_.call("cudnnSoftmaxForward", &cudnn::functions::softmax_forward, cudnn::softmax_log, cudnn::softmax_of_image, &dnn_one,
               outputs_.get(), outputs, &dnn_zero, outputs_.get(), log_probabilities_.data());
    cuda::loss_work work{};
    work.outputs = outputs;
    work.log_probabilities = log_probabilities_.data();
    work.labels = std::bit_cast<std::uint8_t const*>(labels_.get().handle);
    work.step = step();
    work.gradient = gradient ? activation_gradients_.back().data() : nullptr;
    work.losses = into.losses;
    work.hits = into.hits;
    work.count = static_cast<std::uint64_t>(images);
    work.classes = static_cast<std::uint32_t>(input_.classes);
    with_.run(work);
}

void gpu_network::backward(std::size_t index, int images) {
    layers_[index]->backward(images, activations_[index].data(), activations_[index + 1].data(),
                             activation_gradients_[index + 1].data(), index == 0 ? nullptr : activation_gradients_[index].data());
}

void gpu_network::no_images() {
    with_.check(with_.driver().fill(std::bit_cast<cuda::device_address>(gradients_.data()), 0, gradients_.size() * sizeof(float),
                                    with_.stream()),
                "cuMemsetD8Async");
}

void gpu_network::descend(float rate, float momentum) {
    with_.run(cuda::sgd_work{parameters_.data(), gradients_.data(), velocity_.data(), table_->total(), rate, momentum});
}

}  // namespace muster
