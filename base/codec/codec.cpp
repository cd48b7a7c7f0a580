#include "base/codec/codec.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster::codec {

void fail_by_end(std::size_t wanted, std::size_t left) {
    throw error(errc::invalid_data, fmt::format("{} bytes are needed where {} are left", wanted, left));
}

void fail_by_count(std::size_t items, std::size_t left) {
    throw error(errc::invalid_data, fmt::format("{} items do not fit into the {} bytes left", items, left));
}

void fail_by_value(std::uint64_t value) {
    throw error(errc::invalid_data, fmt::format("{} is none of the values that are possible there", value));
}

void fail_by_rest(std::size_t left) {
    throw error(errc::invalid_data, fmt::format("{} bytes follow its end", left));
}

}  // namespace muster::codec
