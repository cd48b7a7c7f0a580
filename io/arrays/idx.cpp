#include "io/arrays/item_array.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace muster {

namespace {

std::optional<element_type> type_of(unsigned code) {
    switch (code) {
        case 0x08: return element_type::u8;
        case 0x09: return element_type::i8;
        case 0x0b: return element_type::i16;
        case 0x0c: return element_type::i32;
        case 0x0d: return element_type::f32;
        case 0x0e: return element_type::f64;
        default: return std::nullopt;
    }
}

std::string_view word(idx_kind kind) {
    return kind == idx_kind::images ? "images" : "labels";
}

}  // namespace

idx_reader::idx_reader(std::string path, idx_kind kind) : stream_array(byte_source(std::move(path))) {
    check(read_header(kind));
}

array_form idx_reader::read_header(idx_kind kind) {
    auto const truncated = [&](std::string_view field, std::uint64_t offset, std::size_t got, std::size_t needed) {
        fail({offset, std::string(field),
              got == 0 ? "the end of the file" : fmt::format("{} of {} bytes, then the end of the file", got, needed),
              fmt::format("{} bytes", needed), "the file is truncated: copy or download it again"});
    };
    std::array<std::uint8_t, 4> magic{};
    std::size_t const got = source().read(magic);
    std::string_view const known = known_format({reinterpret_cast<char const*>(magic.data()), got});
    if (got >= 2 && (magic[0] != 0 || magic[1] != 0))
        fail({0, "magic", fmt::format("0x{:02x} 0x{:02x}", magic[0], magic[1]), "0x00 0x00",
              known.empty() ? "this is no IDX file: give the IDX file of the dataset, plain or gzip" : std::string(known)});
    if (got < 4) truncated("magic", 0, got, 4);
    auto const type = type_of(magic[2]);
    if (!type)
        fail({2, "type", fmt::format("0x{:02x}", magic[2]), "0x08 (unsigned byte), 0x09, 0x0b, 0x0c, 0x0d or 0x0e",
              "this is no IDX type: copy or download the file again"});
    array_form form{{}, *type, true};
    unsigned const rank = magic[3];
    if (kind == idx_kind::images ? rank < 2 || rank > 4 : rank != 1) wrong_rank(kind, rank);
    for (unsigned i = 0; i < rank; ++i) {
        std::array<std::uint8_t, 4> bytes{};
        std::uint64_t const offset = source().offset();
        std::size_t const read = source().read(bytes);
        if (read < 4) truncated(fmt::format("dimension {}", i), offset, read, 4);
        std::uint64_t const value =
            std::uint64_t{bytes[0]} << 24 | std::uint64_t{bytes[1]} << 16 | std::uint64_t{bytes[2]} << 8 | bytes[3];
        if (value == 0)
            fail({offset, fmt::format("dimension {}", i), "0", "at least 1", "the file holds nothing: give another one"});
        form.dimensions.push_back(value);
    }
    return form;
}

void idx_reader::wrong_rank(idx_kind kind, unsigned rank) const {
    std::string_view advice = "give the IDX file of these data";
    if (kind == idx_kind::images && rank == 1) advice = "this looks like labels: are --images and --labels swapped?";
    if (kind == idx_kind::labels && rank > 1) advice = "this looks like images: are --images and --labels swapped?";
    fail({3, "rank", fmt::format("{}", rank),
          kind == idx_kind::images ? "2 to 4 (count, then the dimensions of a sample)" : "1 (count)",
          fmt::format("it was given as {}; {}", word(kind), advice)});
}

}  // namespace muster
