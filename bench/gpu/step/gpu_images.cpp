#include "bench/gpu/step/gpu_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.hpp"

namespace muster {

gpu_images::gpu_images(gpu_compute const& with, image_input const& input, sampler order, int batch, int rank, int world)
    : with_(with), input_(input), order_(std::move(order)), batch_(static_cast<std::size_t>(batch)) {
    part_.rank = rank;
    part_.world = world;
    if (order_.size() > std::numeric_limits<std::uint32_t>::max())
        throw error(errc::usage,
                    fmt::format("{} images are more than a GPU's order counts; train with --device cpu", order_.size()));
    auto const most = std::max<std::size_t>(1, order_.count(part_));
    images_ = cuda::make_memory(with.on(), std::max<std::size_t>(1, size()) * static_cast<std::size_t>(input.bytes()));
    labels_ = cuda::make_memory(with.on(), std::max<std::size_t>(1, size()));
    places_ = cuda::make_memory(with.on(), most * sizeof(std::uint32_t));
    losses_ = cuda::make_memory(with.on(), most * sizeof(float));
    hits_ = cuda::make_memory(with.on(), most);
    source_.images = std::bit_cast<std::uint8_t const*>(images_.get().handle);
    source_.labels = std::bit_cast<std::uint8_t const*>(labels_.get().handle);
    source_.order = std::bit_cast<std::uint32_t const*>(places_.get().handle);
    source_.losses = std::bit_cast<float*>(losses_.get().handle);
    source_.hits = std::bit_cast<std::uint8_t*>(hits_.get().handle);
}

void gpu_images::fill(std::size_t first, std::span<std::uint8_t const> images, std::span<std::uint8_t const> labels) {
    auto const bytes = static_cast<std::size_t>(input_.bytes());
    expect(first + labels.size() <= size() && images.size() == labels.size() * bytes, "images fit the split");
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] >= input_.classes)
            throw error(errc::invalid_data,
                        fmt::format("label {} of image {} is none of the {} classes 0 to {}; give a dataset of "
                                    "so many classes",
                                    labels[i], first + i, input_.classes, input_.classes - 1));
    with_.upload(std::bit_cast<void*>(images_.get().handle + first * bytes), images.data(), images.size());
    with_.upload(std::bit_cast<void*>(labels_.get().handle + first), labels.data(), labels.size());
}

std::size_t gpu_images::begin(std::uint64_t epoch) {
    part_.epoch = epoch;
    own_ = order_.count(part_);
    std::vector<std::uint64_t> samples(own_);
    order_.fill(part_, 0, samples);
    std::vector<std::uint32_t> places(samples.begin(), samples.end());
    with_.upload(std::bit_cast<void*>(places_.get().handle), places.data(), places.size() * sizeof(std::uint32_t));
    auto const all = batch_ * static_cast<std::size_t>(part_.world);
    return (size() + all - 1) / all;
}

gpu_images::part gpu_images::step(std::size_t number) const noexcept {
    auto const all = batch_ * static_cast<std::size_t>(part_.world);
    part out;
    out.first = std::min(own_, number * batch_);
    out.count = static_cast<int>(std::min(batch_, own_ - out.first));
    out.global_count = std::min(size(), (number + 1) * all) - std::min(size(), number * all);
    return out;
}

loss_result gpu_images::results(std::size_t from, std::size_t count) const {
    std::vector<float> losses(count);
    std::vector<std::uint8_t> hits(count);
    with_.download(losses.data(), source_.losses + from, count * sizeof(float));
    with_.download(hits.data(), source_.hits + from, count);
    loss_result out;
    for (float const each : losses) out.loss_sum += static_cast<double>(each);
    out.correct = std::count(hits.begin(), hits.end(), std::uint8_t{1});
    return out;
}

}  // namespace muster
