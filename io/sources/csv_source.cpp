#include "io/sources/csv_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <type_traits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "io/arrays/byte_source.hpp"
#include "io/dataset/file_bytes.hpp"

namespace muster {

namespace {

constexpr std::size_t marked_every = 1024;
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::size_t longest_line = std::size_t{64} << 20;
constexpr std::size_t most_names = 65536;
constexpr std::array<std::string_view, 8> label_names{"label", "labels",  "class",    "target",
                                                      "y",     "species", "category", "variety"};

bool is_blank(std::string_view line) {
    return trim(line).empty();
}

std::string_view unquoted(std::string_view field) {
    field = trim(field);
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"') field = field.substr(1, field.size() - 2);
    return field;
}

/// Calls each(field, its offset in the line, its number); stops where that returns false.
template <typename Each>
void each_field(std::string_view line, char separator, Each&& each) {
    std::size_t begin = 0;
    for (std::size_t number = 0;; ++number) {
        std::size_t end = begin;
        bool quoted = false;
        while (end < line.size() && (quoted || line[end] != separator)) quoted ^= line[end++] == '"';
        if (!each(line.substr(begin, end - begin), begin, number) || end == line.size()) return;
        begin = end + 1;
    }
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::optional<std::uint32_t> whole_number(std::string_view text) {
    std::uint32_t value = 0;
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

template <typename Number>
bool store(std::string_view text, std::uint8_t* to) {
    Number value{};
    if constexpr (std::is_floating_point_v<Number>) {
        if (text.starts_with('+')) text.remove_prefix(1);
        auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (code != std::errc() || end != text.data() + text.size() || text.empty()) return false;
    } else {
        auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool whole = code == std::errc() && !text.empty();
        for (char const* rest = end; whole && rest != text.data() + text.size(); ++rest)  // "255.0" is a whole number too
            whole = *rest == '0' || (rest == end && *rest == '.');
        if (!whole) return false;
    }
    std::memcpy(to, &value, sizeof value);
    return true;
}

bool store_as(element_type type, std::string_view text, std::uint8_t* to) {
    switch (type) {
        case element_type::u8: return store<std::uint8_t>(text, to);
        case element_type::i8: return store<std::int8_t>(text, to);
        case element_type::u16: return store<std::uint16_t>(text, to);
        case element_type::i16: return store<std::int16_t>(text, to);
        case element_type::u32: return store<std::uint32_t>(text, to);
        case element_type::i32: return store<std::int32_t>(text, to);
        case element_type::u64: return store<std::uint64_t>(text, to);
        case element_type::i64: return store<std::int64_t>(text, to);
        case element_type::f32: return store<float>(text, to);
        case element_type::f64: return store<double>(text, to);
    }
    return false;
}

bool is_number(std::string_view text) {
    std::uint8_t ignored[8];
    return store_as(element_type::f64, unquoted(text), ignored);
}

}  // namespace

/// Goes through the lines from a mark on.
struct csv_source::reader {
    reader(csv_source const& from_, mark start) : from(from_), next(start.offset), number(start.line) {}

    /// The next line that is not blank, without its end; nothing at the end of the file. Good until the next call.
    std::optional<std::string_view> line() {
        for (;;) {
            std::size_t end = text.find('\n', position);
            while (end == std::string::npos && next < from.bytes_) {
                refill();
                end = text.find('\n', position);
            }
            if (end == std::string::npos && position == text.size()) return std::nullopt;
            std::string_view found(text.data() + position, (end == std::string::npos ? text.size() : end) - position);
            offset = next - (text.size() - position);
            position = end == std::string::npos ? text.size() : end + 1;
            ++number;
            if (found.ends_with('\r')) found.remove_suffix(1);
            if (!is_blank(found)) return found;
        }
    }

    void refill() {
        text.erase(0, position);
        position = 0;
        if (text.size() > longest_line)
            throw error(errc::invalid_data,
                        fmt::format("{}:{}: a line of more than {} bytes; this is no CSV file: give another one", from.path_,
                                    number, longest_line));
        std::size_t const old = text.size();
        text.resize(old + static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, from.bytes_ - next)));
        std::span<std::uint8_t> const part(reinterpret_cast<std::uint8_t*>(text.data()) + old, text.size() - old);
        read_exactly(from.fd_.get(), from.path_, next, part);
        next += part.size();
    }

    csv_source const& from;
    std::string text;
    std::size_t position = 0;
    std::uint64_t next;        ///< offset of what is not read yet
    std::uint64_t offset = 0;  ///< of the line given last
    std::size_t number;        ///< of the line to give next; of the line given last plus one
};

csv_source::csv_source(std::string path, source_options const& options)
    : path_(std::move(path)), fd_(open_regular(path_, bytes_)) {
    facts_.type = options.type.value_or(element_type::f32);
    facts_.images = std::filesystem::path(path_).filename().string();
    facts_.labels = facts_.images;
    read_beginning(options);
    index();
}

void csv_source::fail(std::string_view line, std::size_t number, std::size_t column, std::string_view message) const {
    throw error(errc::invalid_data, render_caret(fmt::format("{}:{}:{}", path_, number, column + 1), line, column, message));
}

void csv_source::read_beginning(source_options const& options) {
    reader lines(*this, {0, 1});
    auto const beginning = lines.line();
    if (!beginning) throw error(errc::invalid_data, fmt::format("{}: holds no line; give another file", path_));
    std::string const line(*beginning);
    if (line.find('\0') != std::string::npos)
        throw error(errc::invalid_data, fmt::format("{}: holds binary data, no CSV text; give the right file, or --from", path_));
    separator_ = line.find(',') != std::string::npos ? ',' : line.find(';') != std::string::npos ? ';' : '\t';
    std::vector<std::string> names;
    bool any_number = false;
    each_field(line, separator_, [&](std::string_view field, std::size_t, std::size_t) {
        names.emplace_back(unquoted(field));
        any_number = any_number || is_number(field);
        return true;
    });
    columns_ = names.size();
    bool const has_header = options.header.value_or(!any_number);
    first_ =
        has_header ? mark{lines.next - (lines.text.size() - lines.position), lines.number} : mark{lines.offset, lines.number - 1};
    if (!has_header) names.clear();
    find_label_column(names, options);
    facts_.labelled = label_column_.has_value();
    std::size_t const numbers = columns_ - (label_column_ ? 1 : 0);
    if (numbers == 0)
        throw error(errc::invalid_data, fmt::format("{}: has no column beside the labels; give a file with samples", path_));
    facts_.shape = {1, 1, numbers};
}

void csv_source::find_label_column(std::vector<std::string> const& names, source_options const& options) {
    std::string const& wanted = options.label_column;
    if (wanted == "none") return;
    if (auto const number = whole_number(wanted); number && *number >= 1 && *number <= columns_) {
        label_column_ = *number - 1;
        return;
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        if (wanted.empty() ? std::find(label_names.begin(), label_names.end(), lower(names[i])) != label_names.end()
                           : names[i] == wanted) {
            label_column_ = i;
            return;
        }
    if (wanted.empty())
        throw error(
            errc::usage,
            fmt::format("{}: no column is named label, class, target or y; give --label-column with a name, a number from 1 "
                        "to {}, or none",
                        path_, columns_));
    auto const near = nearest(wanted, names);
    throw error(errc::usage, fmt::format("{}: has no column '{}'{}; give a name of its header, a number from 1 to {}, or none",
                                         path_, wanted, near ? fmt::format(", but {}", *near) : "", columns_));
}

void csv_source::index() {
    reader lines(*this, first_);
    std::set<std::string, std::less<>> names;
    bool all_numbers = true;
    while (auto const line = lines.line()) {
        if (facts_.samples % marked_every == 0) marks_.push_back({lines.offset, lines.number - 1});
        ++facts_.samples;
        if (!label_column_) continue;
        each_field(*line, separator_, [&](std::string_view field, std::size_t column, std::size_t number) {
            if (number < *label_column_) return true;
            std::string_view const text = unquoted(field);
            auto const value = whole_number(text);
            if (value) largest_ = std::max(largest_, *value);
            all_numbers = all_numbers && value;
            if (text.empty()) fail(*line, lines.number - 1, column, "an empty label; give every sample one");
            if (names.size() < most_names && names.find(text) == names.end()) names.emplace(text);
            return false;
        });
    }
    if (facts_.samples == 0) throw error(errc::invalid_data, fmt::format("{}: holds no sample; give another file", path_));
    if (all_numbers || !label_column_) return;
    if (names.size() >= most_names)
        throw error(errc::invalid_data, fmt::format("{}: column {} has {} different texts and more; give the column of labels "
                                                    "(--label-column)",
                                                    path_, *label_column_ + 1, most_names));
    facts_.class_names.assign(names.begin(), names.end());
    facts_.classes = names.size();
}

std::uint32_t csv_source::label_of(std::string_view field, std::string_view line, std::size_t number) const {
    std::string_view const text = unquoted(field);
    auto const column = static_cast<std::size_t>(field.data() - line.data());
    if (facts_.class_names.empty()) {
        if (auto const value = whole_number(text)) return *value;
        fail(line, number, column, "the label is no whole number from 0; mend the line, or give another --label-column");
    }
    auto const found = std::lower_bound(facts_.class_names.begin(), facts_.class_names.end(), text);
    if (found == facts_.class_names.end() || *found != text)
        fail(line, number, column, "a label that was not there before: the file changed");
    return static_cast<std::uint32_t>(found - facts_.class_names.begin());
}

void csv_source::parse_line(std::string_view line, std::size_t number, std::uint8_t* elements, std::uint32_t* label) const {
    std::size_t const size = bytes_of(facts_.type);
    std::size_t fields = 0;
    each_field(line, separator_, [&](std::string_view field, std::size_t column, std::size_t place) {
        if (place >= columns_)
            fail(line, number, column, fmt::format("more fields than the {} of the first line; mend the line", columns_));
        ++fields;
        if (label_column_ && place == *label_column_) {
            *label = label_of(field, line, number);
            return true;
        }
        if (!store_as(facts_.type, unquoted(field), elements))
            fail(line, number, column,
                 fmt::format("'{}' is no {}; mend it, or give another --type or --label-column",
                             without_controls(unquoted(field).substr(0, 40)), to_string(facts_.type)));
        elements += size;
        return true;
    });
    if (fields < columns_)
        fail(line, number, line.size(), fmt::format("{} fields, and the first line has {}; mend the line", fields, columns_));
}

void csv_source::read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) {
    std::size_t const from = rows.first / marked_every;
    reader lines(*this, marks_.at(from));
    std::size_t const sample_bytes = facts_.shape.elements() * bytes_of(facts_.type);
    std::uint32_t ignored = 0;
    for (std::size_t sample = from * marked_every; sample < rows.end(); ++sample) {
        auto const line = lines.line();
        if (!line)
            throw error(errc::invalid_data,
                        fmt::format("{}: ends after {} samples: it changed while it was read; convert it again", path_, sample));
        if (sample < rows.first) continue;
        std::size_t const to = sample - rows.first;
        parse_line(*line, lines.number - 1, images.data() + to * sample_bytes, label_column_ ? &labels[to] : &ignored);
    }
}

void csv_source::fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const {
    throw error(errc::invalid_data,
                fmt::format("{}: label: found {} for item {}, expected below {}, the number of classes; give the right "
                            "--classes, or another file",
                            path_, label, sample, classes));
}

}  // namespace muster
