#include "io/sources/csv_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "io/sources/csv_cells.hpp"
#include "io/sources/image_file.hpp"

namespace muster {

namespace {

constexpr std::size_t marked_every = 1024;
constexpr std::size_t most_names = 65536;

std::size_t label_rank(std::string const& name) {
    return static_cast<std::size_t>(std::ranges::find(csv_label_names, lower_case(name)) - csv_label_names.begin());
}

bool is_label_name(std::string const& name) {
    return label_rank(name) < csv_label_names.size();
}

bool is_class_number(double value) {
    return value >= 0 && value < 4294967295.0 && value == std::floor(value);
}

/// "0,1,2" or "1,2,3": what pandas calls columns that have no names.
bool counts_up(std::vector<std::string> const& fields) {
    std::optional<double> before;
    std::size_t numbers = 0;
    for (std::string const& field : fields) {
        auto const value = cell_number(field);
        if (!value) continue;
        if (before ? *value != *before + 1 : *value != 0 && *value != 1) return false;
        before = value;
        ++numbers;
    }
    return numbers > 0;
}

std::vector<std::string> fields_of(std::string_view row, char separator) {
    std::vector<std::string> fields;
    std::string buffer;
    each_field(row, separator, [&](std::string_view field, std::size_t, std::size_t) {
        fields.emplace_back(unquoted(field, buffer));
        return true;
    });
    return fields;
}

constexpr std::string_view no_file_names =
    "names a picture, and a table of file names is not read: put the pictures, or links to them, into one folder a class, and "
    "convert the folder of these (docs/datasets.md has the command)";

bool ends_as_tsv(std::string name) {
    name = lower_case(name);
    return name.ends_with(".tsv") || name.ends_with(".tsv.gz");
}

/// "2024-01-31", "31.01.2024 12:00", "1/31/24T…": numbers joined as in a date. Pure.
bool looks_like_date(std::string_view text) noexcept {
    int numbers = 0, digits = 0;
    char joint = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        char const c = i < text.size() ? text[i] : ' ';
        if (is_digit(c)) {
            if (++digits > 4) return false;
            continue;
        }
        if (digits == 0) return false;
        digits = 0;
        if (++numbers == 3) return c == ' ' || c == 'T';
        if ((c != '-' && c != '/' && c != '.') || (joint != 0 && c != joint)) return false;
        joint = c;
    }
    return false;
}

}  // namespace

csv_source::csv_source(std::string path, source_options const& options) : path_(std::move(path)), lines_(path_, 0) {
    facts_.type = options.type.value_or(element_type::f32);
    facts_.images = std::filesystem::path(path_).filename().string();
    facts_.labels = facts_.images;
    read_beginning(options);
    find_label_column(options);
    choose_columns(options);
    index(options.labels_are);
}

void csv_source::fail(std::string_view row, std::size_t column, std::string_view message) const {
    fail({std::string(row), lines_.place().line, column, {}, 0}, message);
}

/// Fails because of a cell of the labels, and says which column this is and that nobody named it.
void csv_source::fail_cell(seen const& at, std::string_view message) const {
    std::string const name = names_.empty() ? "" : fmt::format(", '{}'", without_controls(names_[*label_column_]));
    fail(at, fmt::format("{} (the labels are column {}{}{})", message, *label_column_ + 1, name,
                         label_guessed_ ? ", guessed by its name; --label-column takes another" : ""));
}

void csv_source::fail_cell(std::string_view row, std::size_t column, std::string_view message) const {
    fail_cell({std::string(row), lines_.place().line, column, {}, 0}, message);
}

/// A row may have several lines, of which the one with the fault is shown.
void csv_source::fail(seen const& at, std::string_view message) const {
    std::size_t const before = at.column == 0 ? std::string::npos : at.row.rfind('\n', at.column - 1);
    std::size_t const start = before == std::string::npos ? 0 : before + 1;
    std::size_t const line =
        at.line + static_cast<std::size_t>(std::count(at.row.begin(), at.row.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
    std::string const shown = at.row.substr(start, at.row.find('\n', start) - start);
    throw error(errc::invalid_data,
                render_caret(fmt::format("{}:{}:{}", path_, line, at.column - start + 1), shown, at.column - start, message));
}

void csv_source::read_beginning(source_options const& options) {
    auto const beginning = lines_.next();
    if (!beginning) throw_error(errc::invalid_data, "{}: holds no line; give another file", path_);
    std::string const row(*beginning);
    if (row.find('\0') != std::string::npos)
        throw_error(errc::invalid_data, "{}: holds binary data, no CSV text; give the right file, or --from", path_);
    if (row.find('\r') != std::string::npos)
        throw_error(errc::invalid_data, "{}: its lines end with a carriage return alone; make them lines with `tr '\\r' '\\n'`",
                    path_);
    separator_ = separator_of(row, ends_as_tsv(path_));
    lines_.set_separator(separator_);
    first_ = lines_.place();
    refuse_file_names(row, first_.line, options);
    std::vector<std::string> first = fields_of(row, separator_);
    columns_ = first.size();
    auto const second = lines_.next();
    csv_place const behind = lines_.place();
    if (second) refuse_file_names(*second, behind.line, options);
    if (!is_header(first, second ? fields_of(*second, separator_) : std::vector<std::string>(), options)) {
        first_row_ = row.substr(0, 60);
        return;
    }
    if (!second) throw_error(errc::invalid_data, "{}: holds no sample; give another file", path_);
    for (std::size_t i = 0; i < first.size(); ++i)
        if (auto const at = not_utf8_at(first[i]))
            throw_error(errc::invalid_data,
                        "{}:1: column {}: '{}' is no UTF-8 (byte {}); convert the file, as `iconv -f latin1 -t UTF-8` does",
                        path_, i + 1, without_controls(first[i]), *at + 1);
    first_ = behind;
    names_ = std::move(first);
}

/// Refuses names of pictures before anything is asked about columns that could not be read anyway.
void csv_source::refuse_file_names(std::string_view row, std::size_t line, source_options const& options) const {
    if (!options.drop.empty() || !options.columns.empty()) return;
    each_field(row, separator_, [&](std::string_view field, std::size_t column, std::size_t) {
        std::string buffer;
        auto const text = unquoted(field, buffer);
        if (is_picture_name(text))
            fail({std::string(row), line, column, {}, 0},
                 fmt::format("'{}' {}", without_controls(text.substr(0, 40)), no_file_names));
        return true;
    });
}

/// Tells a header from a sample by what cannot be one; where both are likely, neither is taken silently.
bool csv_source::is_header(std::vector<std::string> const& first, std::vector<std::string> const& second,
                           source_options const& options) const {
    if (options.header) return *options.header;
    auto const numbers = static_cast<std::size_t>(std::count_if(first.begin(), first.end(), is_number));
    if (numbers == 0) return true;
    auto const ask = [&](std::string_view why) {
        throw_error(errc::usage, "{}: the first line may name the columns or be a sample: {}; give --header yes or --header no",
                    path_, why);
    };
    if (numbers == first.size()) {
        if (first.size() > 2 && counts_up(first) && cell_number(first[0]) == 0.0) ask("it counts its columns");
        return false;
    }
    bool const named = std::any_of(first.begin(), first.end(), [&](std::string const& name) {
        return is_label_name(name) || (!name.empty() && name == options.label_column && !is_number(name));
    });
    if (named || counts_up(first)) return true;
    for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i)
        if (!first[i].empty() && !is_number(first[i]) && is_number(second[i]))
            ask(fmt::format("it has numbers, and '{}' where the next line has {}", without_controls(first[i].substr(0, 40)),
                            second[i]));
    return false;
}

std::size_t csv_source::column_of(std::string const& wanted, std::string_view option) const {
    if (auto const at = std::find(names_.begin(), names_.end(), wanted); at != names_.end())
        return static_cast<std::size_t>(at - names_.begin());
    if (auto const number = parse_integer(wanted); number && *number >= 1 && static_cast<std::size_t>(*number) <= columns_)
        return static_cast<std::size_t>(*number - 1);
    auto const near = nearest(wanted, names_);
    throw_error(errc::usage, "{}: {}: has no column '{}'{}; give a name of its header, or a number from 1 to {}{}", path_, option,
                wanted, near ? fmt::format(", but {}", *near) : "", columns_, option == "--label-column" ? ", or none" : "");
}

void csv_source::find_label_column(source_options const& options) {
    std::string const& wanted = options.label_column;
    if (wanted == "none") return;
    if (!wanted.empty()) {
        label_column_ = column_of(wanted, "--label-column");
    } else if (auto const at = std::ranges::min_element(names_, {}, label_rank); at != names_.end() && is_label_name(*at)) {
        label_column_ = static_cast<std::size_t>(at - names_.begin());
        label_guessed_ = true;
        std::string others;
        for (auto other = names_.begin(); (other = std::find_if(other, names_.end(), is_label_name)) != names_.end(); ++other)
            if (other != at) others += fmt::format("{} '{}'", others.empty() ? "" : ",", *other);
        add_note(fmt::format("labels: column {} of {}, '{}', by its name{}; --label-column takes another, or none",
                             *label_column_ + 1, facts_.images, *at,
                             others.empty() ? "" : fmt::format(" ({} could be labels too)", others.substr(1))));
    } else {
        std::string there = " (it has ";
        for (std::size_t i = 0; i < std::min<std::size_t>(names_.size(), 12); ++i)
            there += fmt::format("{}{}", i == 0 ? "" : ", ", without_controls(names_[i]));
        there += names_.size() > 12 ? ", …)" : ")";
        std::string const data =
            !names_.empty()  ? there
            : options.header ? ""
                             : fmt::format(" (the first line, {}, was taken for a sample; --header yes if it names the columns)",
                                           without_controls(first_row_));
        throw_error(errc::usage,
                    "{}: no column has one of the names {}{}; give --label-column with a name, a number from 1 to {}, or none",
                    path_, fmt::join(csv_label_names, ", "), data, columns_);
    }
}

void csv_source::choose_columns(source_options const& options) {
    slots_.assign(columns_, not_taken);
    std::vector<std::size_t> taken;
    for (std::string const& name : options.columns) {
        std::size_t const column = column_of(name, "--columns");
        if (column != label_column_ && std::find(taken.begin(), taken.end(), column) == taken.end()) taken.push_back(column);
    }
    for (std::size_t i = 0; options.columns.empty() && i < columns_; ++i)
        if (i != label_column_) taken.push_back(i);
    for (std::string const& name : options.drop) {
        std::size_t const column = column_of(name, "--drop");
        if (column == label_column_)
            throw_error(errc::usage, "{}: --drop: '{}' is the column of labels; give another --label-column, or none", path_,
                        name);
        std::erase(taken, column);
    }
    if (options.columns.empty() && !names_.empty() && (names_[0].empty() || names_[0] == "Unnamed: 0") &&
        std::erase(taken, std::size_t{0}) > 0)
        notes_.words.push_back(
            fmt::format("the first column of {} has no name, as pandas' index, and was left out", facts_.images));
    if (taken.empty()) throw_error(errc::invalid_data, "{}: has no column beside the labels; give a file with samples", path_);
    for (std::size_t i = 0; i < taken.size(); ++i) {
        slots_[taken[i]] = i;
        if (!names_.empty()) facts_.columns.push_back(names_[taken[i]]);
    }
    if (label_column_) slots_[*label_column_] = of_label;
    facts_.labelled = label_column_.has_value();
    facts_.shape = {1, 1, taken.size(), true};
}

void csv_source::order_columns(std::vector<std::string> const& names) {
    std::vector<std::size_t> place(names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        place[static_cast<std::size_t>(std::find(facts_.columns.begin(), facts_.columns.end(), names[i]) -
                                       facts_.columns.begin())] = i;
    for (std::size_t& slot : slots_)
        if (slot < names.size()) slot = place[slot];
    facts_.columns = names;
}

/// Holds what is seen of the labels on the way through the file.
struct csv_source::label_index {
    std::optional<label_kind> asked;
    std::set<std::string, std::less<>> names;
    seen number, name;
    seen fraction, outside;  ///< numbers that are no classes: targets; whole ones below 0 or too large, which may be either
    double largest = 0;
    label_scan classes;
};

void csv_source::note_label(std::string_view text, std::string_view row, std::size_t column, label_index& labels) const {
    if (text.empty()) fail_cell(row, column, "an empty label; give every sample one");
    auto const note = [&](seen& of) {
        if (of.count++ == 0) of = {std::string(row), lines_.place().line, column, std::string(text), 1};
    };
    auto const value = labels.asked == label_kind::name ? std::nullopt : cell_number(text);
    if (!value) {
        if (labels.asked && *labels.asked != label_kind::name)
            fail_cell(row, column,
                      fmt::format("the label '{}' is no number; correct it, or give another --label-column or --label-type",
                                  without_controls(text.substr(0, 40))));
        if (auto const at = not_utf8_at(text))
            fail_cell(row, column,
                      fmt::format("the label '{}' is no UTF-8 (byte {}); convert the file, as `iconv -f latin1 -t UTF-8` does",
                                  without_controls(text.substr(0, 40)), *at + 1));
        note(labels.name);
        if (labels.names.size() < most_names && labels.names.find(text) == labels.names.end()) labels.names.emplace(text);
        return;
    }
    if (!std::isfinite(*value) || std::abs(*value) > std::numeric_limits<float>::max())
        fail_cell(
            row, column,
            labels.asked == label_kind::target
                ? fmt::format("'{}' is no target; correct it, or leave the line out", text)
                : fmt::format("'{}' is no label; correct it, or give --label-type name if it is the name of a class", text));
    note(labels.number);
    labels.largest = std::max(labels.largest, *value);
    if (is_class_number(*value)) labels.classes.add(static_cast<std::uint32_t>(*value));
    if (is_class_number(*value) || labels.asked == label_kind::target) return;
    if (labels.asked == label_kind::number)
        fail_cell(row, column,
                  fmt::format("the label {} is no class, a whole number from 0; correct it, or give another --label-type", text));
    note(*value == std::floor(*value) ? labels.outside : labels.fraction);
}

/// A column that is called y may hold dates: nobody wants each day to be a class.
void csv_source::refuse_dates(label_index const& labels) const {
    if (!label_guessed_ || labels.asked || labels.name.count == 0 || !std::ranges::all_of(labels.names, looks_like_date)) return;
    fail_cell(labels.name,
              fmt::format("the label '{}' looks like a date, as do all labels of this column, which was taken by its name; give "
                          "--label-column with another or none, or --label-type name if each date is a class",
                          without_controls(labels.name.text.substr(0, 40))));
}

void csv_source::settle_labels(label_index const& labels) {
    refuse_dates(labels);
    seen const& odd = labels.number.count < labels.name.count ? labels.number : labels.name;
    if (labels.number.count > 0 && labels.name.count > 0) {
        bool const name = &odd == &labels.name;
        auto const others = name ? labels.number.count : labels.name.count;
        fail_cell(odd,
                  fmt::format("the label '{}' is {}, {} of the file {}; correct {}, or give --label-type name if all are names",
                              without_controls(odd.text.substr(0, 40)), name ? "no number" : "a number",
                              others == 1 ? "another" : fmt::format("{} others", others),
                              others == 1 ? (name ? "is one" : "is a name") : (name ? "are numbers" : "are names"),
                              others == 1 ? "the wrong one" : "it"));
    }
    if (labels.name.count == 0) {
        kind_ = labels.asked.value_or(label_kind::number);
        if (!labels.asked && labels.outside.count > 0 && labels.fraction.count == 0)
            fail_cell(labels.outside,
                      fmt::format("the label {} is no class: these are numbered from 0; give --label-type float if the labels "
                                  "are targets of a regression, or name if they are names of classes",
                                  labels.outside.text));
        scan_.present = labels.classes.present;
        scan_.no_class = labels.asked == label_kind::target ? labels.number.text : labels.fraction.text;
        scan_.largest = static_cast<std::uint32_t>(std::min(labels.largest, 4294967294.0));
        return;
    }
    if (!labels.asked && has_decimal_comma(labels.name.text))
        fail_cell(labels.name,
                  fmt::format("'{}' has a decimal comma; write a point, or give --label-type name", labels.name.text));
    if (labels.names.size() >= most_names)
        throw_error(errc::invalid_data,
                    "{}: column {} has {} different texts and more; give the column of labels (--label-column)", path_,
                    *label_column_ + 1, most_names);
    kind_ = label_kind::name;
    facts_.class_names.assign(labels.names.begin(), labels.names.end());
    facts_.classes = labels.names.size();
}

void csv_source::index(std::optional<label_kind> asked) {
    lines_.go_to(first_);
    label_index labels;
    labels.asked = asked;
    while (auto const row = lines_.next()) {
        if (facts_.samples % marked_every == 0) marks_.push_back(lines_.place());
        ++facts_.samples;
        if (!label_column_) continue;
        bool found = false;
        each_field(*row, separator_, [&](std::string_view field, std::size_t column, std::size_t number) {
            if (number < *label_column_) return true;
            found = true;
            note_label(unquoted(field, buffer_), *row, column, labels);
            return false;
        });
        if (!found) fail_cell(*row, row->size(), "the row ends before its label; correct the line");
    }
    if (facts_.samples == 0) throw_error(errc::invalid_data, "{}: holds no sample; give another file", path_);
    if (label_column_) settle_labels(labels);
    next_sample_ = SIZE_MAX;
}

std::uint32_t csv_source::label_of(std::string_view field, std::string_view row) const {
    std::string buffer;
    std::string_view const text = unquoted(field, buffer);
    auto const column = static_cast<std::size_t>(field.data() - row.data());
    if (kind_ == label_kind::name) {
        auto const found = std::lower_bound(facts_.class_names.begin(), facts_.class_names.end(), text);
        if (found == facts_.class_names.end() || *found != text)
            fail_cell(row, column, "a label that was not there before: the file changed");
        return static_cast<std::uint32_t>(found - facts_.class_names.begin());
    }
    auto const value = cell_number(text);
    if (value && kind_ == label_kind::target) return std::bit_cast<std::uint32_t>(static_cast<float>(*value));
    if (!value || !is_class_number(*value))
        fail_cell(row, column, "the label is no whole number from 0; correct the line, or give another --label-column");
    return static_cast<std::uint32_t>(*value);
}

void csv_source::fail_feature(std::string_view text, std::string_view row, std::size_t column, std::size_t place) const {
    std::string const name = names_.empty() || names_[place].empty() ? fmt::format("{}", place + 1) : names_[place];
    std::string_view const unknown = is_real(facts_.type) ? " (nan stands for what is not known)" : "";
    if (text.empty())
        fail(row, column,
             fmt::format("an empty cell of column {0}; fill it{1}, or leave the column out: --drop {0}", without_controls(name),
                         unknown));
    if (has_decimal_comma(text)) fail(row, column, fmt::format("'{}' has a decimal comma; write a point", text));
    if (is_picture_name(text))
        fail(row, column,
             fmt::format("'{}' {}; to leave the column out: --drop {}", without_controls(text.substr(0, 40)), no_file_names,
                         without_controls(name)));
    fail(row, column,
         fmt::format("'{}' is no {}; correct it{}, give another --type or --label-column, or leave the column out: --drop {}",
                     without_controls(text.substr(0, 40)), to_string(facts_.type), unknown, without_controls(name)));
}

/// Numbers of customers and the like, up to 19 digits without a point, which float32 holds up to 16777216 only.
void csv_source::note_rounding(std::string_view text, std::string_view row, std::size_t column, std::uint8_t const* stored) {
    constexpr std::size_t exact_digits = 7;
    if (text.size() <= exact_digits) return;
    auto const value = parse_integer(text);
    if (!value) return;
    long double const kept = element_at(facts_.type, {stored, bytes_of(facts_.type)}, 0);
    if (kept == static_cast<long double>(*value)) return;
    auto const before = static_cast<std::ptrdiff_t>(column);
    auto const line = lines_.place().line + static_cast<std::size_t>(std::count(row.begin(), row.begin() + before, '\n'));
    notes_.rounded.add(fmt::format("{} in line {}", text, line));
}

void csv_source::parse_row(std::string_view row, std::uint8_t* elements, std::uint32_t* label) {
    std::size_t const size = bytes_of(facts_.type);
    std::size_t fields = 0;
    each_field(row, separator_, [&](std::string_view field, std::size_t column, std::size_t place) {
        if (place >= columns_)
            fail(row, column, fmt::format("more fields than the {} of the first line; correct the line", columns_));
        ++fields;
        std::size_t const slot = slots_[place];
        if (slot == of_label) {
            *label = label_of(field, row);
        } else if (slot != not_taken) {
            std::string_view const text = unquoted(field, buffer_);
            if (!store_as(facts_.type, text, elements + slot * size)) fail_feature(text, row, column, place);
            if (is_real(facts_.type)) note_rounding(text, row, column, elements + slot * size);
        }
        return true;
    });
    if (fields < columns_)
        fail(row, row.size(), fmt::format("{} fields, and the first line has {}; correct the line", fields, columns_));
}

void csv_source::read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) {
    std::size_t const mark = rows.first / marked_every;
    if (next_sample_ > rows.first || next_sample_ < mark * marked_every) {
        lines_.go_to(marks_.at(mark));
        next_sample_ = mark * marked_every;
    }
    std::size_t const sample_bytes = facts_.shape.elements() * bytes_of(facts_.type);
    std::uint32_t ignored = 0;
    for (; next_sample_ < rows.end(); ++next_sample_) {
        auto const row = lines_.next();
        if (!row)
            throw_error(errc::invalid_data, "{}: ends after {} samples: it changed while it was read; convert it again", path_,
                        next_sample_);
        if (next_sample_ < rows.first) continue;
        std::size_t const to = next_sample_ - rows.first;
        parse_row(*row, images.data() + to * sample_bytes, label_column_ ? &labels[to] : &ignored);
    }
}

void csv_source::look_at(hyperslab rows, std::span<std::int32_t>) {
    constexpr std::size_t step = 1024;
    std::vector<std::uint8_t> elements(std::min(step, rows.count) * facts_.shape.elements() * bytes_of(facts_.type));
    std::vector<std::uint32_t> labels(step);
    for (std::size_t first = rows.first; first < rows.end(); first += step)
        read(intersect(rows, {first, step}), elements, labels);
}

void csv_source::fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const {
    throw_error(
        errc::invalid_data,
        "{}: label: found {} for item {}, expected below {}, the number of classes; give the right --classes, or another file",
        path_, label, sample, classes);
}

}  // namespace muster
