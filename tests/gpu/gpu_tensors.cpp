#include "gpu_tensors.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "comm/cuda/fusion_kernels.hpp"

namespace muster {

namespace {

constexpr std::size_t apart_bytes = 512;

double pattern(std::size_t tensor, std::size_t element) noexcept {
    return static_cast<double>((31 * tensor + element) % 251) - 125.0;
}

void put(std::byte* to, dtype type, double value) {
    auto const write = [&](auto each) { std::memcpy(to, &each, sizeof each); };
    switch (type) {
        case dtype::f32: return write(static_cast<float>(value));
        case dtype::f64: return write(value);
        case dtype::f16: return write(half(static_cast<float>(value)));
        case dtype::bf16: return write(bfloat16(static_cast<float>(value)));
        default: throw error(errc::usage, fmt::format("no GPU benchmark of type {}; give f32, f16 or bf16", to_string(type)));
    }
}

std::vector<std::size_t> places_of(std::span<std::size_t const> counts, dtype type, gpu_tensors::layout how) {
    std::vector<std::size_t> places;
    if (how == gpu_tensors::layout::fused) {
        places = cuda::fused_offsets(counts, type);
        for (auto& each : places) each *= size_of(type);
        return places;
    }
    std::size_t at = 0;
    for (std::size_t const count : counts) {
        places.push_back(at);
        at += (count * size_of(type) + apart_bytes - 1) / apart_bytes * apart_bytes;
    }
    places.push_back(at);
    return places;
}

}  // namespace

gpu_tensors::gpu_tensors(cuda::device const& on, std::span<std::size_t const> counts, dtype type, layout how)
    : on_(on), type_(type) {
    auto const places = places_of(counts, type, how);
    bytes_ = places.back();
    memory_ = cuda::make_memory(on, bytes_);
    for (std::size_t i = 0; i < counts.size(); ++i)
        views_.push_back({std::bit_cast<void*>(memory_.get().handle + places[i]), counts[i], type, memory_kind::device});
}

void gpu_tensors::fill(void* stream) {
    std::vector<std::byte> image(bytes_);
    for (std::size_t i = 0; i < views_.size(); ++i) {
        std::size_t const begin = std::bit_cast<cuda::device_address>(views_[i].data) - memory_.get().handle;
        for (std::size_t k = 0; k < views_[i].count; ++k) put(image.data() + begin + k * size_of(type_), type_, pattern(i, k));
    }
    cuda::driver const& with = on_.with();
    cuda::device::scope const current(on_);
    auto* const on_stream = static_cast<cuda::stream_handle>(stream);
    cuda::check(with, with.copy_host_to_device(memory_.get().handle, image.data(), bytes_, on_stream), "cuMemcpyHtoDAsync");
    cuda::check(with, with.stream_synchronize(on_stream), "cuStreamSynchronize");
}

void gpu_tensors::clear(void* stream) const {
    cuda::device::scope const current(on_);
    cuda::check(on_.with(), on_.with().fill(memory_.get().handle, 0xff, bytes_, static_cast<cuda::stream_handle>(stream)),
                "cuMemsetD8Async");
}

std::string gpu_tensors::fault(void* stream, double factor) const {
    std::vector<std::byte> image(bytes_);
    cuda::driver const& with = on_.with();
    cuda::device::scope const current(on_);
    auto* const on_stream = static_cast<cuda::stream_handle>(stream);
    cuda::check(with, with.copy_device_to_host(image.data(), memory_.get().handle, bytes_, on_stream), "cuMemcpyDtoHAsync");
    cuda::check(with, with.stream_synchronize(on_stream), "cuStreamSynchronize");
    std::byte wanted[8];
    for (std::size_t i = 0; i < views_.size(); ++i) {
        std::size_t const begin = std::bit_cast<cuda::device_address>(views_[i].data) - memory_.get().handle;
        for (std::size_t k = 0; k < views_[i].count; ++k) {
            put(wanted, type_, pattern(i, k) * factor);
            if (std::memcmp(wanted, image.data() + begin + k * size_of(type_), size_of(type_)) != 0)
                return fmt::format("element {} of tensor {} is not {}", k, i, pattern(i, k) * factor);
        }
    }
    return {};
}

}  // namespace muster
