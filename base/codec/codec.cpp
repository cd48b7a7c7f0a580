#include "base/codec/codec.hpp"

#include "base/throw_error.hpp"

namespace muster::codec {

void fail_by_end(std::size_t wanted, std::size_t left) {
    throw_error(errc::invalid_data, "{} bytes are needed where {} are left", wanted, left);
}

void fail_by_count(std::size_t items, std::size_t left) {
    throw_error(errc::invalid_data, "{} items do not fit into the {} bytes left", items, left);
}

void fail_by_value(std::uint64_t value) {
    throw_error(errc::invalid_data, "{} is none of the values that are possible there", value);
}

void fail_by_rest(std::size_t left) {
    throw_error(errc::invalid_data, "{} bytes follow its end", left);
}

}  // namespace muster::codec
