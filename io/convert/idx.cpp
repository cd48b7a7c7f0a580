#include "io/convert/idx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace muster {

namespace {

std::string render(std::string_view file, bool compressed, idx_error::fault const& fault) {
    return fmt::format("{}{}: offset {}: {}: found {}, expected {}; {}", file, compressed ? " (gzip)" : "", fault.offset,
                       fault.field, fault.found, fault.expected, fault.advice);
}

std::string_view type_name(unsigned type) {
    switch (type) {
        case 0x08: return "unsigned byte";
        case 0x09: return "signed byte";
        case 0x0b: return "int16";
        case 0x0c: return "int32";
        case 0x0d: return "float32";
        case 0x0e: return "float64";
        default: return "no IDX type";
    }
}

/// Names the known formats that other files begin with.
std::string_view known_format(std::span<std::uint8_t const> head) {
    struct beginning {
        std::string_view bytes;
        std::string_view name;
    };
    static constexpr std::array beginnings{
        beginning{"\x1f\x8b", "gzip data inside gzip data: unpack it once"},
        beginning{"\x89HDF", "an HDF5 file: it needs no conversion from IDX"},
        beginning{"PK", "a zip archive: unpack it"},
        beginning{"BZh", "bzip2 data: unpack it with bunzip2"},
        beginning{"\xfd"
                  "7zX",
                  "xz data: unpack it with unxz"},
        beginning{"\x28\xb5\x2f\xfd", "zstd data: unpack it with unzstd"},
        beginning{"\x89PNG", "a PNG picture, no IDX file"},
        beginning{"\x93NUM", "a NumPy array, no IDX file"},
        beginning{"<", "markup, perhaps the error page of a failed download: download it again"},
    };
    for (beginning const& known : beginnings)
        if (head.size() >= known.bytes.size() &&
            std::equal(known.bytes.begin(), known.bytes.end(), head.begin(),
                       [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }))
            return known.name;
    return "this is no IDX file: give the IDX file of the dataset, plain or gzip";
}

std::string_view word(idx_kind kind) {
    return kind == idx_kind::images ? "images" : "labels";
}

}  // namespace

idx_error::idx_error(std::string_view file, bool compressed, fault what)
    : error(errc::invalid_data, render(file, compressed, what)), file_(file), fault_(std::move(what)) {}

idx_reader::idx_reader(std::string path, idx_kind kind) : source_(std::move(path)) {
    read_header(kind);
    check_size();
}

void idx_reader::fail(idx_error::fault fault) const {
    throw idx_error(path(), compressed(), std::move(fault));
}

void idx_reader::read_header(idx_kind kind) {
    auto const truncated = [&](std::string_view field, std::uint64_t offset, std::size_t got, std::size_t needed) {
        fail({offset, std::string(field),
              got == 0 ? "the end of the file" : fmt::format("{} of {} bytes, then the end of the file", got, needed),
              fmt::format("{} bytes", needed), "the file is truncated: copy or download it again"});
    };
    std::array<std::uint8_t, 4> magic{};
    std::size_t const got = source_.read(magic);
    if (got >= 2 && (magic[0] != 0 || magic[1] != 0))
        fail({0, "magic", fmt::format("0x{:02x} 0x{:02x}", magic[0], magic[1]), "0x00 0x00",
              std::string(known_format({magic.data(), got}))});
    if (got < 4) truncated("magic", 0, got, 4);
    if (magic[2] != 0x08)
        fail({2, "type", fmt::format("0x{:02x} ({})", magic[2], type_name(magic[2])), "0x08 (unsigned byte)",
              "convert the elements to unsigned bytes first"});
    unsigned const rank = magic[3];
    if (kind == idx_kind::images ? rank != 3 && rank != 4 : rank != 1) wrong_rank(kind, rank);
    for (unsigned i = 0; i < rank; ++i) {
        std::array<std::uint8_t, 4> bytes{};
        std::uint64_t const offset = source_.offset();
        std::size_t const read = source_.read(bytes);
        if (read < 4) truncated(fmt::format("dimension {}", i), offset, read, 4);
        std::uint64_t const value =
            std::uint64_t{bytes[0]} << 24 | std::uint64_t{bytes[1]} << 16 | std::uint64_t{bytes[2]} << 8 | bytes[3];
        if (value == 0)
            fail({offset, fmt::format("dimension {}", i), "0", "at least 1", "the file holds nothing: give another one"});
        dimensions_.push_back(value);
    }
    header_bytes_ = source_.offset();
    items_ = static_cast<std::size_t>(dimensions_[0]);
    if (rank == 1) shape_ = {1, 1, 1};
    if (rank == 3) shape_ = {1, static_cast<std::size_t>(dimensions_[1]), static_cast<std::size_t>(dimensions_[2])};
    if (rank == 4)
        shape_ = {static_cast<std::size_t>(dimensions_[1]), static_cast<std::size_t>(dimensions_[2]),
                  static_cast<std::size_t>(dimensions_[3])};
}

void idx_reader::wrong_rank(idx_kind kind, unsigned rank) const {
    std::string_view advice = "give the IDX file of these data";
    if (kind == idx_kind::images && rank == 1) advice = "this looks like labels: are --images and --labels swapped?";
    if (kind == idx_kind::labels && (rank == 3 || rank == 4))
        advice = "this looks like images: are --images and --labels swapped?";
    fail({3, "rank", fmt::format("{}", rank),
          kind == idx_kind::images ? "3 (count, height, width) or 4 (count, channels, height, width)" : "1 (count)",
          fmt::format("it was given as {}; {}", word(kind), advice)});
}

// Nothing is allocated by what a header promises before this has passed.
void idx_reader::check_size() {
    std::uint64_t bytes = 1;
    std::string product;
    bool overflow = false;
    for (std::uint64_t const dimension : dimensions_) {
        overflow = overflow || __builtin_mul_overflow(bytes, dimension, &bytes);
        product += fmt::format("{}{}", product.empty() ? "" : " x ", dimension);
    }
    overflow = overflow || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - header_bytes_;
    if (overflow)
        fail({4, "size", fmt::format("{} bytes, more than any file holds", product), "dimensions whose product fits 63 bits",
              "the header is damaged: copy or download the file again"});
    std::uint64_t const end = header_bytes_ + bytes;
    if (auto const size = source_.size(); size && *size < end)
        fail({*size, "data", fmt::format("the end of the file after {} bytes", *size),
              fmt::format("{} bytes ({} of header and {})", end, header_bytes_, product),
              "the file is truncated or its header is wrong: copy or download it again"});
    if (auto const size = source_.size(); size && *size > end)
        fail({end, "trailing bytes", fmt::format("{} bytes after the last element", *size - end),
              fmt::format("the end of the file at {} ({})", end, product),
              "the header is wrong or something was appended: copy or download it again"});
    if (end > source_.size_limit())
        fail({4, "size", fmt::format("{} bytes ({})", end, product),
              fmt::format("at most {}, the most that gzip makes of {} bytes", source_.size_limit(), source_.file_bytes()),
              "the header is wrong or the file is truncated: copy or download it again"});
}

void idx_reader::missing(std::uint64_t end) const {
    std::uint64_t const all = offset_of(items_);
    fail({end, "data", fmt::format("the end of the data after {} bytes", end),
          fmt::format("{} bytes ({} items of {})", all, items_, item_bytes()),
          "the file is truncated or its header is wrong: copy or download it again"});
}

void idx_reader::skip_to(std::size_t item) {
    expect(item >= position_ && item <= items_, "an item that lies ahead");
    std::uint64_t const bytes = static_cast<std::uint64_t>(item - position_) * item_bytes();
    if (source_.skip(bytes) < bytes) missing(source_.offset());
    position_ = item;
}

void idx_reader::read(std::span<std::uint8_t> out) {
    expect(out.size() % item_bytes() == 0 && out.size() / item_bytes() <= items_ - position_, "whole items of the file");
    if (source_.read(out) < out.size()) missing(source_.offset());
    position_ += out.size() / item_bytes();
}

void idx_reader::finish() {
    expect(position_ == items_, "all items read");
    std::uint64_t const end = source_.offset();
    std::uint8_t extra = 0;
    if (source_.read({&extra, 1}) != 0)
        fail({end, "trailing bytes", "more bytes after the last element", fmt::format("the end of the data at {}", end),
              "the header is wrong or something was appended: copy or download it again"});
}

void require_pair(idx_reader const& images, idx_reader const& labels) {
    if (images.items() == labels.items()) return;
    labels.fail({4, "label count", fmt::format("{}", labels.items()),
                 fmt::format("{}, the number of images in {}", images.items(), images.path()),
                 "give the two files of one split, not of train and test mixed"});
}

}  // namespace muster
