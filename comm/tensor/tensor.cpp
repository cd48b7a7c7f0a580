#include "comm/tensor/tensor.hpp"

namespace muster {

std::size_t size_of(dtype type) noexcept {
    switch (type) {
        case dtype::f64:
        case dtype::i64: return 8;
        case dtype::f32:
        case dtype::i32: return 4;
        case dtype::f16:
        case dtype::bf16:
        case dtype::i16:
        case dtype::u16: return 2;
        case dtype::boolean:
        case dtype::u8:
        case dtype::i8: return 1;
    }
    return 0;
}

std::string_view to_string(dtype type) noexcept {
    switch (type) {
        case dtype::f32: return "f32";
        case dtype::f64: return "f64";
        case dtype::f16: return "f16";
        case dtype::bf16: return "bf16";
        case dtype::i32: return "i32";
        case dtype::i64: return "i64";
        case dtype::u8: return "u8";
        case dtype::i8: return "i8";
        case dtype::boolean: return "boolean";
        case dtype::i16: return "i16";
        case dtype::u16: return "u16";
    }
    return "unknown";
}

std::string_view to_string(reduction how) noexcept {
    switch (how) {
        case reduction::sum: return "sum";
        case reduction::average: return "average";
        case reduction::min: return "min";
        case reduction::max: return "max";
        case reduction::product: return "product";
        case reduction::adasum: return "adasum";
    }
    return "unknown";
}

std::string_view to_string(memory_kind where) noexcept {
    return where == memory_kind::host ? "host" : "device";
}

element_range share_of(std::size_t count, int ranks, int rank) noexcept {
    auto const n = static_cast<std::size_t>(ranks);
    auto const r = static_cast<std::size_t>(rank);
    std::size_t const longer = count % n;
    return {count / n * r + (r < longer ? r : longer), count / n + (r < longer ? 1 : 0)};
}

tensor_view part_of(tensor_view const& whole, element_range const& part) noexcept {
    auto* const first = static_cast<std::byte*>(whole.data);
    return {first == nullptr ? nullptr : first + part.first * size_of(whole.type), part.count, whole.type, whole.where};
}

}  // namespace muster
