#include "comm/tensor/compression_kind.hpp"

#include "base/error.hpp"

namespace muster {

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
