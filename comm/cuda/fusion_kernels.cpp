#include "comm/cuda/fusion_kernels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/throw_error.hpp"
#include "comm/cuda/driver.hpp"
#include "comm/cuda/fusion_image.hpp"

namespace muster::cuda {

namespace {

template <typename Way>
constexpr fusion_way way_of(std::string_view kernel, bool scales) {
    return {kernel,
            fusion_shape<Way>::from_bytes,
            fusion_shape<Way>::to_bytes,
            fusion_shape<Way>::elements,
            sizeof(typename Way::factor),
            scales,
            Way::keeps};
}

fusion_way copy_way(std::size_t bytes) {
    switch (bytes) {
        case 8: return way_of<ways::copy_8>("muster_copy_8", false);
        case 4: return way_of<ways::copy_4>("muster_copy_4", false);
        case 2: return way_of<ways::copy_2>("muster_copy_2", false);
        default: return way_of<ways::copy_1>("muster_copy_1", false);
    }
}

struct scaled_row {
    dtype from, to;
    fusion_way way;
};

constexpr std::array scaled_rows{
    scaled_row{dtype::f32, dtype::f32, way_of<ways::f32_f32>("muster_f32_f32", true)},
    scaled_row{dtype::f32, dtype::f16, way_of<ways::f32_f16>("muster_f32_f16", true)},
    scaled_row{dtype::f32, dtype::bf16, way_of<ways::f32_bf16>("muster_f32_bf16", true)},
    scaled_row{dtype::f16, dtype::f32, way_of<ways::f16_f32>("muster_f16_f32", true)},
    scaled_row{dtype::bf16, dtype::f32, way_of<ways::bf16_f32>("muster_bf16_f32", true)},
    scaled_row{dtype::f16, dtype::f16, way_of<ways::f16_f16>("muster_f16_f16", true)},
    scaled_row{dtype::bf16, dtype::bf16, way_of<ways::bf16_bf16>("muster_bf16_bf16", true)},
    scaled_row{dtype::f64, dtype::f64, way_of<ways::f64_f64>("muster_f64_f64", true)},
};

constexpr std::array keeping_rows{
    scaled_row{dtype::f32, dtype::f16, way_of<ways::f32_f16_kept>("muster_f32_f16_kept", true)},
    scaled_row{dtype::f32, dtype::bf16, way_of<ways::f32_bf16_kept>("muster_f32_bf16_kept", true)},
};

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

void check_residual(fusion_item const& item, std::size_t index, fusion_way const& way) {
    std::uint64_t const bytes = item.count * sizeof(float);
    if (item.residual != 0 && item.residual % sizeof(float) == 0 &&
        !overlap(item.residual, bytes, item.from, item.count * way.from_bytes) &&
        !overlap(item.residual, bytes, item.to, item.count * way.to_bytes))
        return;
    throw_error(errc::usage,
                "{}: tensor {} of {} elements goes from {:#x} to {:#x}, its residual at {:#x} must be aligned to 4 bytes and "
                "overlap neither",
                way.kernel, index, item.count, item.from, item.to, item.residual);
}

void check_item(fusion_item const& item, std::size_t index, fusion_way const& way) {
    if (item.from == 0 || item.to == 0 || item.from % way.from_bytes != 0 || item.to % way.to_bytes != 0)
        throw_error(errc::usage, "{}: tensor {} goes from {:#x} to {:#x}, which must be aligned to {} and {} bytes", way.kernel,
                    index, item.from, item.to, way.from_bytes, way.to_bytes);
    if (way.keeps) check_residual(item, index, way);
    if (item.from == item.to && way.from_bytes == way.to_bytes) return;
    if (overlap(item.from, item.count * way.from_bytes, item.to, item.count * way.to_bytes))
        throw_error(errc::usage, "{}: tensor {} of {} elements goes from {:#x} to {:#x}, which overlap; give it memory apart",
                    way.kernel, index, item.count, item.from, item.to);
}

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

fusion_way choose_way(dtype from, dtype to, double factor) {
    if (from == to && factor == 1) return copy_way(size_of(from));
    for (auto const& row : scaled_rows)
        if (row.from == from && row.to == to) return row.way;
    if (!is_floating(from) && from == to)
        throw_error(errc::usage, "{} cannot be scaled by {}: the result is no integer", to_string(from), factor);
    throw_error(errc::unavailable, "there is no kernel from {} to {}; f32 goes to and from f16 and bf16", to_string(from),
                to_string(to));
}

fusion_way choose_keeping_way(dtype from, dtype to) {
    for (auto const& row : keeping_rows)
        if (row.from == from && row.to == to) return row.way;
    throw_error(errc::usage, "from {} to {} nothing is kept of what rounding loses: that is for f32 to f16 or bf16",
                to_string(from), to_string(to));
}

fusion_plan plan_fusion(std::span<fusion_item const> items, fusion_way const& way, std::uint32_t most_blocks) {
    if (items.size() > std::numeric_limits<std::uint32_t>::max() - 1)
        throw_error(errc::invalid_data, "{}: {} tensors are more than one launch takes", way.kernel, items.size());
    fusion_plan plan;
    plan.segments.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
        fusion_item const& item = items[i];
        if (item.count == 0) continue;
        check_item(item, i, way);
        bool const to_is_narrow = way.to_bytes <= way.from_bytes;
        std::uint64_t const skew = to_is_narrow ? item.to % 16 / way.to_bytes : item.from % 16 / way.from_bytes;
        plan.segments.push_back({item.from, item.to, item.count, plan.pieces});
        if (way.keeps) plan.residuals.push_back(item.residual);
        plan.pieces += ceil_div(item.count + skew, way.piece_elements);
    }
    if (plan.pieces == 0) return plan;
    std::uint64_t const share = ceil_div(plan.pieces, std::max(most_blocks, 1u));
    std::uint64_t const rounded = ceil_div(share, fusion_threads) * fusion_threads;
    if (rounded > std::numeric_limits<std::uint32_t>::max())
        throw_error(errc::invalid_data, "{}: {} pieces are too many for {} blocks; move fewer tensors at once", way.kernel,
                    plan.pieces, most_blocks);
    plan.pieces_per_block = static_cast<std::uint32_t>(rounded);
    plan.blocks = static_cast<std::uint32_t>(ceil_div(plan.pieces, plan.pieces_per_block));
    plan.starts.reserve(plan.blocks + 1);
    std::uint32_t at = 0;
    for (std::uint32_t block = 0; block < plan.blocks; ++block) {
        std::uint64_t const first = static_cast<std::uint64_t>(block) * plan.pieces_per_block;
        while (at + 1 < plan.segments.size() && plan.segments[at + 1].first_piece <= first) ++at;
        plan.starts.push_back(at);
    }
    plan.starts.push_back(static_cast<std::uint32_t>(plan.segments.size() - 1));
    return plan;
}

std::vector<std::size_t> fused_offsets(std::span<std::size_t const> counts, dtype buffer) {
    std::size_t const step = 16 / size_of(buffer);
    std::vector<std::size_t> offsets;
    offsets.reserve(counts.size() + 1);
    std::size_t at = 0;
    for (std::size_t const count : counts) {
        offsets.push_back(at);
        at += (count + step - 1) / step * step;
    }
    offsets.push_back(at);
    return offsets;
}

namespace {

constexpr std::array<std::string_view, fusion_ways> names{
#define MUSTER_NAME(way) "muster_" #way,
    MUSTER_FUSION_WAYS(MUSTER_NAME)
#undef MUSTER_NAME
};

/// Returns the type of all tensors; throws if one has another or is not in device memory.
dtype type_of(std::span<tensor_view const> tensors, std::string_view role) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].type != tensors.front().type)
            throw_error(errc::usage, "fusion: tensor {} of \"{}\" is {}, the first is {}; launch each type by itself", i, role,
                        to_string(tensors[i].type), to_string(tensors.front().type));
        if (tensors[i].where != memory_kind::device && tensors[i].count != 0)
            throw_error(errc::usage, "fusion: tensor {} of \"{}\" lies in {} memory, the kernels work on device memory", i, role,
                        to_string(tensors[i].where));
    }
    return tensors.front().type;
}

std::vector<fusion_item> items_of(std::span<tensor_view const> from, std::span<tensor_view const> to) {
    std::vector<fusion_item> items;
    items.reserve(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i].count != to[i].count)
            throw_error(errc::usage, "fusion: tensor {} has {} elements in \"from\" and {} in \"to\"", i, from[i].count,
                        to[i].count);
        items.push_back({std::bit_cast<std::uint64_t>(from[i].data), std::bit_cast<std::uint64_t>(to[i].data), from[i].count});
    }
    return items;
}

void add_residuals(std::span<fusion_item> items, std::span<tensor_view const> residuals) {
    if (residuals.size() != items.size())
        throw_error(errc::usage, "fusion: {} residuals for {} tensors", residuals.size(), items.size());
    if (auto const type = type_of(residuals, "residuals"); type != dtype::f32)
        throw_error(errc::usage, "fusion: residuals are f32, not {}", to_string(type));
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (residuals[i].count != items[i].count)
            throw_error(errc::usage, "fusion: tensor {} has {} elements and its residual {}", i, items[i].count,
                        residuals[i].count);
        items[i].residual = std::bit_cast<std::uint64_t>(residuals[i].data);
    }
}

}  // namespace

std::optional<std::string> kernels_missing() noexcept {
    if (fusion_image_size != 0) return std::nullopt;
    return "this build has no CUDA kernels: install nvcc (CUDA 11.8 or later) and build again with MUSTER_WITH_CUDA=ON";
}

std::shared_ptr<fusion_kernels const> fusion_kernels::load(std::shared_ptr<device const> on) {
    if (auto const why = kernels_missing()) throw error(errc::unavailable, *why);
    driver const& with = on->with();
    std::shared_ptr<fusion_kernels> const made(new fusion_kernels(on));
    device::scope const current(*on);
    module_handle module = nullptr;
    int const code = with.module_load(&module, fusion_image);
    if (code == error_no_binary_for_gpu || code == error_unsupported_ptx_version) {
        int version = 0;
        with.version(&version);
        throw_error(errc::unavailable,
                    "{}, with a driver for CUDA {}.{}, takes none of the kernels of this build ({}): {}; build with a CUDA "
                    "toolkit that is not newer than the driver, and with MUSTER_CUDA_ARCHITECTURES for this GPU",
                    on->name(), version / 1000, version % 1000 / 10, fusion_image_contents, describe(with, code));
    }
    check(with, code, "cuModuleLoadData");
    made->module_.reset({on.get(), module});
    for (std::size_t i = 0; i < names.size(); ++i) {
        entry& each = made->entries_[i];
        each.name = names[i];
        check(with, with.module_function(&each.kernel, module, each.name.data()), "cuModuleGetFunction");
        int resident = 0;
        check(with, with.occupancy(&resident, each.kernel, static_cast<int>(fusion_threads), 0),
              "cuOccupancyMaxActiveBlocksPerMultiprocessor");
        each.resident = static_cast<std::uint32_t>(std::max(resident, 1) * std::max(on->multiprocessors(), 1));
    }
    return made;
}

fusion_kernels::entry const& fusion_kernels::find(std::string_view name) const {
    auto const found = std::find_if(entries_.begin(), entries_.end(), [&](entry const& each) { return each.name == name; });
    expect(found != entries_.end(), "a kernel that choose_way names is in the image");
    return *found;
}

kernel_handle fusion_kernels::kernel(std::string_view name) const {
    return find(name).kernel;
}

std::uint32_t fusion_kernels::resident_blocks(std::string_view name) const {
    return find(name).resident;
}

void fusion_launch::prepare(std::span<tensor_view const> from, std::span<tensor_view const> to, double factor, void* stream,
                            std::uint32_t most_blocks, std::span<tensor_view const> residuals) {
    if (from.size() != to.size())
        throw_error(errc::usage, "fusion: {} tensors in \"from\" and {} in \"to\"", from.size(), to.size());
    plan_ = {};
    bytes_ = 0;
    if (from.empty()) return;
    dtype const first = type_of(from, "from"), second = type_of(to, "to");
    way_ = residuals.empty() ? choose_way(first, second, factor) : choose_keeping_way(first, second);
    factor_ = factor;
    auto items = items_of(from, to);
    if (!residuals.empty()) add_residuals(items, residuals);
    plan_ = plan_fusion(items, way_, most_blocks != 0 ? most_blocks : kernels_->resident_blocks(way_.kernel));
    std::size_t const each = way_.from_bytes + way_.to_bytes + (way_.keeps ? 2 * sizeof(float) : 0);
    for (auto const& item : items) bytes_ += item.count * each;
    if (plan_.blocks != 0) upload(stream);
}

void fusion_launch::upload(void* stream) {
    device const& on = kernels_->on();
    driver const& with = on.with();
    device::scope const current(on);
    std::size_t const segments = plan_.segments.size() * sizeof(fusion_segment);
    std::size_t const residuals = plan_.residuals.size() * sizeof(std::uint64_t);
    std::size_t const starts = plan_.starts.size() * sizeof(std::uint32_t);
    std::size_t const all = segments + residuals + starts;
    if (!uploaded_) uploaded_ = make_event(on);
    auto* const on_stream = static_cast<stream_handle>(stream);
    if (all > capacity_) {
        std::size_t const wanted = std::bit_ceil(all);
        if (capacity_ != 0)
            check(with, with.stream_synchronize(on_stream), "cuStreamSynchronize");  // the device reads the old tables
        capacity_ = 0;
        staging_ = make_pinned(on, wanted);
        tables_ = make_memory(on, wanted);
        capacity_ = wanted;
    } else {
        check(with, with.event_synchronize(uploaded_.get().handle), "cuEventSynchronize");
    }
    auto* const bytes = static_cast<std::byte*>(staging_.get().handle);
    std::memcpy(bytes, plan_.segments.data(), segments);
    if (residuals != 0) std::memcpy(bytes + segments, plan_.residuals.data(), residuals);
    std::memcpy(bytes + segments + residuals, plan_.starts.data(), starts);
    check(with, with.copy_host_to_device(tables_.get().handle, bytes, all, on_stream), "cuMemcpyHtoDAsync");
    check(with, with.event_record(uploaded_.get().handle, on_stream), "cuEventRecord");
}

void fusion_launch::run(void* stream) const {
    if (plan_.blocks == 0) return;
    driver const& with = kernels_->on().with();
    device::scope const current(kernels_->on());
    device_address const segments = tables_.get().handle;
    device_address const residuals = segments + plan_.segments.size() * sizeof(fusion_segment);
    device_address const starts = residuals + plan_.residuals.size() * sizeof(std::uint64_t);
    fusion_work work{std::bit_cast<fusion_segment const*>(segments),
                     std::bit_cast<std::uint32_t const*>(starts),
                     std::bit_cast<std::uint64_t const*>(residuals),
                     plan_.pieces,
                     plan_.pieces_per_block,
                     0};
    float narrow = static_cast<float>(factor_);
    double wide = factor_;
    std::array<void*, 2> arguments{&work, way_.factor_bytes == sizeof wide ? static_cast<void*>(&wide) : &narrow};
    check(with,
          with.launch(kernels_->kernel(way_.kernel), plan_.blocks, 1, 1, fusion_threads, 1, 1, 0,
                      static_cast<stream_handle>(stream), arguments.data(), nullptr),
          "cuLaunchKernel");
}

}  // namespace muster::cuda
