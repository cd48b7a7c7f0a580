#include "io/arrays/item_array.hpp"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <array>
#include <memory>
#include <string_view>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t longest_header = 65536;  // NumPy itself reads 10,000 bytes

[[noreturn]] void fail(byte_source const& from, source_error::fault fault) {
    throw source_error(from.name(), from.compressed(), std::move(fault));
}

/// NumPy's letter for the kind of number, and its bytes: "f4".
std::string code_of(element_type type) {
    return fmt::format("{}{}", is_real(type) ? 'f' : is_signed(type) ? 'i' : 'u', bytes_of(type));
}

/// Reads the dictionary; its errors name what it does not expect, with the offset.
class header_reader {
  public:
    header_reader(byte_source const& from, std::string_view text, std::uint64_t offset)
        : from_(from), text_(text), offset_(offset) {}

    array_form read() {
        array_form form;
        bool has_type = false;
        bool has_shape = false;
        take('{');
        while (!peek('}')) {
            std::string_view const key = quoted();
            take(':');
            if (key == "descr") {
                set_type(form);
                has_type = true;
            } else if (key == "fortran_order") {
                if (word() == "True")
                    fail(from_, {at(), "fortran_order", "True", "False (the last dimension fastest)",
                                 "save it with numpy.save(file, numpy.ascontiguousarray(a))"});
            } else if (key == "shape") {
                form.dimensions = tuple();
                has_shape = true;
            } else {
                unexpected("one of descr, fortran_order, shape");
            }
            if (!peek('}')) take(',');
        }
        if (!has_type || !has_shape) unexpected("the keys descr and shape");
        return form;
    }

  private:
    std::uint64_t at() const { return offset_ + position_; }
    [[noreturn]] void unexpected(std::string_view wanted) const {
        std::string const found = position_ < text_.size() ? without_controls(text_.substr(position_, 20)) : "its end";
        fail(from_,
             {at(), "header", fmt::format("'{}'", found), std::string(wanted), "the file is damaged: copy or save it again"});
    }
    void blanks() {
        while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
    }
    bool peek(char c) {
        blanks();
        return position_ < text_.size() && text_[position_] == c;
    }
    void take(char c) {
        if (!peek(c)) unexpected(fmt::format("'{}'", c));
        ++position_;
    }
    std::string_view quoted() {
        blanks();
        char const quote = position_ < text_.size() ? text_[position_] : '\0';
        std::size_t const end = quote == '\'' || quote == '"' ? text_.find(quote, position_ + 1) : std::string_view::npos;
        if (end == std::string_view::npos) unexpected("a text in quotes");
        std::string_view const inside = text_.substr(position_ + 1, end - position_ - 1);
        position_ = end + 1;
        return inside;
    }
    std::string_view word() {
        blanks();
        std::size_t const begin = position_;
        while (position_ < text_.size() && text_[position_] >= 'A' && text_[position_] <= 'z') ++position_;
        std::string_view const found = text_.substr(begin, position_ - begin);
        if (found != "True" && found != "False") unexpected("True or False");
        return found;
    }
    std::vector<std::uint64_t> tuple() {
        std::vector<std::uint64_t> numbers;
        take('(');
        while (!peek(')')) {
            std::size_t const begin = position_;
            while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
            auto const value = parse_integer(text_.substr(begin, position_ - begin));
            if (!value || numbers.size() == 32) unexpected("a number of elements");
            if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // Python 2's long
            numbers.push_back(static_cast<std::uint64_t>(*value));
            if (!peek(')')) take(',');
        }
        take(')');
        return numbers;
    }
    void set_type(array_form& form) {
        if (peek('['))
            fail(from_, {at(), "descr", "a record of several fields", "one number an element",
                         "save one field: numpy.save(file, a['field'])"});
        std::uint64_t const place = at();
        std::string_view const text = quoted();
        if (text.size() > 1 && std::string_view("<>=|").find(text[0]) != std::string_view::npos)
            for (element_type const type : element_types)
                if (text.substr(1) == code_of(type) || (type == element_type::u8 && text.substr(1) == "b1")) {
                    form.type = type;
                    form.big_endian = text[0] == '>';
                    return;
                }
        bool const is_text = text.size() > 1 && (text[1] == 'U' || text[1] == 'S' || text[1] == 'a');
        std::string_view const advice = text.ends_with("O") ? "Python objects are not read: save an array of numbers"
                                        : is_text ? "number the texts first: names, y = numpy.unique(a, return_inverse=True); "
                                                    "numpy.save(file, y), and give --class-names"
                                                  : "convert it first: numpy.save(file, a.astype('float32'))";
        fail(from_, {place, "descr", fmt::format("'{}'", without_controls(text)), "integers of 1 to 8 bytes, float32 or float64",
                     std::string(advice)});
    }

    byte_source const& from_;
    std::string_view text_;
    std::uint64_t offset_;
    std::size_t position_ = 0;
};

}  // namespace

array_form read_npy_header(byte_source& from) {
    std::array<std::uint8_t, 12> head{};
    std::size_t const got = from.read(std::span(head).first(10));
    std::string_view const beginning(reinterpret_cast<char const*>(head.data()), got);
    if (!std::string_view("\x93NUMPY").starts_with(beginning.substr(0, 6)) || got == 0) {
        std::string_view const known = known_format(beginning);
        fail(from, {0, "magic", fmt::format("0x{:02x} 0x{:02x}", head[0], head[1]), "\\x93NUMPY",
                    known.empty() ? "this is no NumPy array: give the .npy file" : std::string(known)});
    }
    if (got < 10) fail(from, {got, "header", "the end of the file", "10 bytes", "the file is truncated: copy or save it again"});
    unsigned const version = head[6];
    if (version < 1 || version > 3 || head[7] != 0)
        fail(from, {6, "version", fmt::format("{}.{}", head[6], head[7]), "1.0, 2.0 or 3.0", "save it with a NumPy of today"});
    std::size_t length = head[8] | std::size_t{head[9]} << 8;
    if (version > 1) {
        if (from.read(std::span(head).subspan(10, 2)) < 2)
            fail(from, {10, "header", "the end of the file", "12 bytes", "the file is truncated: copy or save it again"});
        length |= std::size_t{head[10]} << 16 | std::size_t{head[11]} << 24;
    }
    std::uint64_t const begin = from.offset();
    if (length > longest_header)
        fail(from, {8, "header length", fmt::format("{}", length), fmt::format("at most {}", longest_header),
                    "the file is damaged: copy or save it again"});
    std::string text(length, '\0');
    std::size_t const read = from.read({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
    if (read < length)
        fail(from, {begin + read, "header", "the end of the file", fmt::format("{} bytes of header", length),
                    "the file is truncated: copy or save it again"});
    return header_reader(from, text, begin).read();
}

std::unique_ptr<item_array> open_npy(byte_source from) {
    array_form form = read_npy_header(from);
    if (form.dimensions.empty())
        fail(from, {from.offset(), "shape", "()", "an array of at least one dimension", "save an array, not a single number"});
    for (std::uint64_t const dimension : form.dimensions)
        if (dimension == 0)
            fail(from, {from.offset(), "shape", "a dimension of 0", "at least 1", "the array holds nothing: give another one"});
    return std::make_unique<stream_array>(std::move(from), std::move(form));
}

namespace {

constexpr std::size_t most_entries = 65536;

struct zip_closer {
    void operator()(void* zip) const noexcept { unzClose(zip); }
};

[[noreturn]] void damaged(std::string const& path, std::string_view what) {
    throw_error(errc::invalid_data, "{}: {}; copy or save it again with numpy.savez", path, what);
}

file_region region_of(void* zip, std::string const& path) {
    std::array<char, 4096> name{};
    unz_file_info64 info{};
    if (unzGetCurrentFileInfo64(zip, &info, name.data(), name.size() - 1, nullptr, 0, nullptr, 0) != UNZ_OK)
        damaged(path, "the zip archive's directory is damaged");
    file_region region{path,
                       without_controls(name.data()),
                       0,
                       info.compressed_size,
                       info.uncompressed_size,
                       static_cast<std::uint32_t>(info.crc),
                       info.compression_method == Z_DEFLATED};
    if ((info.flag & 1) != 0) damaged(path, fmt::format("its entry {} is encrypted", region.name));
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED)
        damaged(path, fmt::format("its entry {} is compressed by method {}, and only deflate is read", region.name,
                                  info.compression_method));
    if (!region.deflated && region.stored_bytes != region.bytes)
        damaged(path, fmt::format("its header claims that entry {} has {} bytes and takes {}", region.name, region.bytes,
                                  region.stored_bytes));
    int method = 0;
    int level = 0;
    if (unzOpenCurrentFile2(zip, &method, &level, 1) != UNZ_OK)
        damaged(path, fmt::format("its entry {} is not where the directory says", region.name));
    region.offset = unzGetCurrentFileZStreamPos64(zip);
    unzCloseCurrentFile(zip);
    if (region.offset == 0) damaged(path, fmt::format("its entry {} is not where the directory says", region.name));
    if (region.name.ends_with(".npy")) region.name.resize(region.name.size() - 4);
    return region;
}

}  // namespace

std::vector<file_region> npz_entries(std::string const& path) {
    byte_source const probe(path);  // tells a missing file, a folder or a pipe in words
    std::unique_ptr<void, zip_closer> const zip(unzOpen64(path.c_str()));
    if (!zip) damaged(path, "is no zip archive, or a damaged one");
    std::vector<file_region> entries;
    for (int code = unzGoToFirstFile(zip.get()); code != UNZ_END_OF_LIST_OF_FILE; code = unzGoToNextFile(zip.get())) {
        if (code != UNZ_OK) damaged(path, "the zip archive's directory is damaged");
        if (entries.size() == most_entries) damaged(path, fmt::format("has more than {} entries", most_entries));
        entries.push_back(region_of(zip.get(), path));
    }
    return entries;
}

}  // namespace muster
