
#include "io/arrays/item_array.hpp"

#include <fmt/format.h>

#include <limits>

namespace muster {

void item_array::set_form(array_form form) {
    form_ = std::move(form);
    std::uint64_t bytes = bytes_of(form_.type);
    for (std::size_t i = 1; i < form_.dimensions.size(); ++i)
        if (__builtin_mul_overflow(bytes, form_.dimensions[i], &bytes)) bytes = std::numeric_limits<std::uint64_t>::max();
    item_bytes_ = static_cast<std::size_t>(bytes);
}

stream_array::stream_array(byte_source source, array_form form) : source_(std::move(source)) {
    check(std::move(form));
}

void item_array::fail(source_error::fault fault) const {
    throw source_error(name(), compressed(), std::move(fault));
}

void stream_array::check(array_form form) {
    set_form(std::move(form));
    header_bytes_ = source_.offset();
    check_size();
}

// Nothing is allocated by what a header promises before this has passed.
void stream_array::check_size() {
    std::uint64_t bytes = bytes_of(form().type);
    std::string product;
    bool overflow = false;
    for (std::uint64_t const dimension : form().dimensions) {
        overflow = overflow || __builtin_mul_overflow(bytes, dimension, &bytes);
        product += fmt::format("{}{}", product.empty() ? "" : " x ", dimension);
    }
    if (form().type != element_type::u8) product += fmt::format(" of {}", to_string(form().type));
    overflow = overflow || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - header_bytes_;
    if (overflow)
        fail({4, "size", fmt::format("{} bytes, more than any file holds", product), "dimensions whose product fits 63 bits",
              "the header is damaged: copy or download the file again"});
    std::uint64_t const end = header_bytes_ + bytes;
    auto const size = source_.size();
    if (size && *size < end)
        fail({*size, "data", fmt::format("the end of the file after {} bytes", *size),
              fmt::format("{} bytes ({} of header and {})", end, header_bytes_, product),
              "the file is truncated or its header is wrong: copy or download it again"});
    if (size && *size > end)
        fail({end, "trailing bytes", fmt::format("{} bytes after the last element", *size - end),
              fmt::format("the end of the file at {} ({})", end, product),
              "the header is wrong or something was appended: copy or download it again"});
    if (end > source_.size_limit())
        fail({4, "size", fmt::format("{} bytes ({})", end, product),
              fmt::format("at most {}, the most that deflate makes of {} bytes", source_.size_limit(), source_.file_bytes()),
              "the header is wrong or the file is truncated: copy or download it again"});
}

void stream_array::missing(std::uint64_t end) const {
    std::uint64_t const all = offset_of(items());
    fail({end, "data", fmt::format("the end of the data after {} bytes", end),
          fmt::format("{} bytes ({} items of {})", all, items(), item_bytes()),
          "the file is truncated or its header is wrong: copy or download it again"});
}

void stream_array::skip_to(std::size_t item) {
    expect(item >= position_ && item <= items(), "an item that lies ahead");
    std::uint64_t const bytes = static_cast<std::uint64_t>(item - position_) * item_bytes();
    if (source_.skip(bytes) < bytes) missing(source_.offset());
    position_ = item;
}

void stream_array::read(std::span<std::uint8_t> out) {
    expect(out.size() % item_bytes() == 0 && out.size() / item_bytes() <= items() - position_, "whole items of the file");
    if (source_.read(out) < out.size()) missing(source_.offset());
    if (form().big_endian) swap_bytes(form().type, out);
    position_ += out.size() / item_bytes();
}

void stream_array::read(hyperslab rows, std::span<std::uint8_t> out) {
    skip_to(rows.first);
    read(out);
}

void stream_array::finish() {
    expect(position_ == items(), "all items read");
    std::uint64_t const end = source_.offset();
    std::uint8_t extra = 0;
    if (source_.read({&extra, 1}) != 0)
        fail({end, "trailing bytes", "more bytes after the last element", fmt::format("the end of the data at {}", end),
              "the header is wrong or something was appended: copy or download it again"});
}

}  // namespace muster
