#include "comm/tensor/compress.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "comm/tensor/half.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

namespace {

/// This many elements are converted at once, in the first-level cache.
constexpr std::size_t rounded_at_once = 1024;

constexpr std::size_t wire_bytes = 2;

void round_to(compression how, float const* from, void* to, std::size_t count, simd level) noexcept {
    if (how == compression::f16)
        from_float(from, static_cast<half*>(to), count, level);
    else
        from_float(from, static_cast<bfloat16*>(to), count, level);
}

void widen(compression how, void const* from, float* to, std::size_t count, simd level) noexcept {
    if (how == compression::f16)
        to_float(static_cast<half const*>(from), to, count, level);
    else
        to_float(static_cast<bfloat16 const*>(from), to, count, level);
}

std::byte* at(void* wire, std::size_t element) noexcept {
    return static_cast<std::byte*>(wire) + element * wire_bytes;
}

}  // namespace

void compress(compression how, std::span<float const> values, float factor, std::span<float> residual, void* wire,
              simd level) noexcept {
    if (residual.empty() && factor == 1) return round_to(how, values.data(), wire, values.size(), level);
    alignas(64) std::array<float, rounded_at_once> exact, rounded;
    for (std::size_t first = 0; first < values.size(); first += rounded_at_once) {
        std::size_t const n = std::min(rounded_at_once, values.size() - first);
        float const* const from = values.data() + first;
        float* const lost = residual.empty() ? nullptr : residual.data() + first;
        for (std::size_t i = 0; i < n; ++i) exact[i] = from[i] * factor;
        if (lost != nullptr)
            for (std::size_t i = 0; i < n; ++i) exact[i] += lost[i];
        round_to(how, exact.data(), at(wire, first), n, level);
        if (lost == nullptr) continue;
        widen(how, at(wire, first), rounded.data(), n, level);
        for (std::size_t i = 0; i < n; ++i) {
            bool const finite = rounded[i] - rounded[i] == 0;
            lost[i] = finite ? exact[i] - rounded[i] : 0.0f;
        }
    }
}

void decompress(compression how, void const* wire, std::span<float> values, float factor, simd level) noexcept {
    if (factor == 1) return widen(how, wire, values.data(), values.size(), level);
    for (std::size_t first = 0; first < values.size(); first += rounded_at_once) {
        auto const some = values.subspan(first, std::min(rounded_at_once, values.size() - first));
        widen(how, static_cast<std::byte const*>(wire) + first * wire_bytes, some.data(), some.size(), level);
        for (float& each : some) each *= factor;
    }
}

std::string_view to_string(compression wire) noexcept {
    switch (wire) {
        case compression::none: return "none";
        case compression::f16: return "f16";
        case compression::bf16: return "bf16";
    }
    return "unknown";
}

compression parse_compression(std::string_view text, std::string_view origin) {
    for (auto const each : {compression::none, compression::f16, compression::bf16})
        if (text == to_string(each)) return each;
    throw parse_error(origin, text, 0, "not none, f16 or bf16", errc::usage);
}

}  // namespace muster
