#include "comm/exchange/batch/device_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <exception>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"

namespace muster::detail {

namespace {

std::shared_ptr<cuda::fusion_kernels const> find_kernels(std::shared_ptr<cuda::device const> const& on) {
    try {
        return cuda::fusion_kernels::load(on);
    } catch (error const& problem) {
        if (problem.code() != errc::unavailable) throw;
        spdlog::warn("tensors are copied one by one into the fusion buffer on {}: {}", on->name(), problem.what());
        return nullptr;
    }
}

std::unique_ptr<device_lane> make_lane(communicator& host, comm_options options, gpu_access& gpu) {
    std::shared_ptr<cuda::device const> on;
    std::exception_ptr problem;
    try {
        on = gpu.open();
        options.device = on->ordinal();
    } catch (error const&) {
        problem = std::current_exception();
    }
    // A rank that has no GPU takes part: so all hear of it.
    communicator ranks = host.for_device(options);
    if (problem) std::rethrow_exception(problem);
    auto kernels = find_kernels(on);
    return std::make_unique<device_lane>(std::move(ranks), std::move(on), std::move(kernels));
}

}  // namespace

std::byte* device_scratch::get(std::size_t bytes) {
    constexpr std::size_t least = std::size_t{1} << 20;
    if (bytes > bytes_) {
        std::size_t const wanted = std::bit_ceil(std::max(bytes, least));
        memory_.push_back(cuda::make_memory(*on_, wanted));
        bytes_ = wanted;
    }
    return std::bit_cast<std::byte*>(memory_.back().get().handle);
}

std::byte* device_scratch::find(std::size_t bytes) const noexcept {
    return bytes <= bytes_ && !memory_.empty() ? std::bit_cast<std::byte*>(memory_.back().get().handle) : nullptr;
}

device_lane::device_lane(communicator over, std::shared_ptr<cuda::device const> gpu,
                         std::shared_ptr<cuda::fusion_kernels const> with)
    : on(std::move(gpu)),
      ranks(std::move(over)),
      stream(cuda::make_stream(*on)),
      kernels(std::move(with)),
      first(on),
      second(on) {
    ranks.use_stream(queue());
}

std::unique_ptr<device_lane> open_lane(communicator& host, comm_options const& options, gpu_access& gpu, std::string& refusal) {
    std::unique_ptr<device_lane> made;
    std::exception_ptr problem;
    try {
        made = make_lane(host, options, gpu);
        spdlog::debug("exchange: {}", made->ranks.why_backend());
    } catch (error const& known) {
        problem = std::current_exception();
        refusal = known.what();
    }
    std::array<std::int32_t, 2> able{made ? 1 : 0, made ? 0 : 1};  // whether all of them, and whether none
    host.allreduce("device memory", view_of(std::span(able)), reduction::min).wait();
    if (able[0] == 1 || able[1] == 1) return made;
    if (problem) std::rethrow_exception(problem);
    throw comm_error(errc::peer_failed,
                     fmt::format("{} (rank {} of {} on {}): this rank can work on device memory and another one cannot; look at "
                                 "what the others wrote",
                                 made->ranks.backend(), host.rank(), host.size(), host.who().host));
}

}  // namespace muster::detail
