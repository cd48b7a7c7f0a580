#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/dataset.hpp"
#include "io/sources/image_file.hpp"
#include "io/sources/sample_source.hpp"
#include "io/stage/commands.hpp"

namespace muster::stage {

namespace {

constexpr std::size_t widest_sheet = 4096;
constexpr std::size_t most_elements = std::size_t{1} << 24;  ///< of a sample to show

/// The samples shown, as bytes.
std::vector<std::uint8_t> as_bytes(element_type type, std::vector<std::uint8_t> elements) {
    if (type == element_type::u8) return elements;
    value_range const range = range_of(type, elements);
    double const span = range.most > range.least ? range.most - range.least : 1;
    std::vector<std::uint8_t> shown(elements.size() / bytes_of(type));
    for (std::size_t i = 0; i < shown.size(); ++i) {
        double const value = (element_at(type, elements, i) - range.least) / span;
        shown[i] = static_cast<std::uint8_t>(std::isfinite(value) ? std::clamp(value * 255 + 0.5, 0.0, 255.0) : 0);
    }
    return shown;
}

/// At most `most` samples at even distances through the split, row by row, each with one gray line around it. Elements of other types
/// than uint8 are spread from the smallest to the largest of those shown. Samples of more than one channel and less than three show
/// their first channel; of more than three their first three.
picture contact_sheet(dataset const& from, std::size_t most = 100) {
    image_shape const shape = from.shape();
    if (shape.is_row)
        throw error(errc::usage,
                    from.info().path + ": /" + from.info().split + ": its samples are rows of a table; --preview is for images");
    if (shape.elements() > most_elements || shape.width > widest_sheet || shape.height > widest_sheet)
        throw error(errc::usage, from.info().path + ": /" + from.info().split + ": its samples of " + to_string(shape) +
                                     " are too large for a contact sheet; convert it with --resize to see it");
    std::size_t const fits = std::max<std::size_t>(1, widest_sheet / (shape.width + 1));
    std::size_t const count = std::min(from.size(), std::min(most, std::max<std::size_t>(1, most_elements / shape.elements())));
    auto const columns = std::min(fits, static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count)))));
    std::size_t const rows = (count + columns - 1) / columns;
    std::vector<std::uint8_t> elements(count * from.image_bytes());
    for (std::size_t i = 0; i < count; ++i)
        from.read(i * from.size() / count, 1, std::span(elements).subspan(i * from.image_bytes(), from.image_bytes()), {});
    std::vector<std::uint8_t> const shown = as_bytes(from.info().type, std::move(elements));

    std::size_t const channels = shape.channels >= 3 ? 3 : 1;
    picture sheet{columns * (shape.width + 1) + 1, rows * (shape.height + 1) + 1, channels, {}};
    sheet.pixels.assign(sheet.width * sheet.height * channels, 128);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < channels; ++c)
            for (std::size_t y = 0; y < shape.height; ++y)
                for (std::size_t x = 0; x < shape.width; ++x) {
                    std::size_t const row = i / columns * (shape.height + 1) + 1 + y;
                    std::size_t const column = i % columns * (shape.width + 1) + 1 + x;
                    sheet.pixels[(row * sheet.width + column) * channels + c] =
                        shown[(i * shape.channels + c) * shape.height * shape.width + y * shape.width + x];
                }
    return sheet;
}

constexpr option_row info_options[]{
    {"preview", 0, "OUT.png", "draw samples side by side into a picture", ""},
    {"split", 0, "NAME", "only this split; of --preview: default the first", ""},
    {"json", 0, "", "as JSON", ""},
};

constexpr std::size_t most_classes = std::size_t{1} << 20;
constexpr std::size_t shown_classes = 20;
constexpr std::size_t shown_columns = 20;
constexpr std::size_t shown_sources = 8;

struct split_info {
    dataset_info is;
    std::vector<std::uint64_t> class_counts;  ///< samples of each class; empty where they are not counted
    value_range targets;                      ///< smallest and largest
};

/// Counts the samples of each class, or finds which targets there are: only the labels are read.
void count_classes(dataset const& from, split_info& into) {
    std::size_t const size = from.label_bytes();
    if (size == 0 || from.classes() > most_classes) return;
    std::vector<std::uint64_t>& counts = into.class_counts;
    counts.assign(from.classes(), 0);
    std::vector<std::uint8_t> labels;
    constexpr std::size_t piece = 1 << 20;
    for (std::size_t first = 0; first < from.size(); first += piece) {
        std::size_t const count = std::min(piece, from.size() - first);
        labels.resize(count * size);
        from.read(first, count, {}, labels);
        if (is_real(*from.info().label_type)) into.targets.add(range_of(*from.info().label_type, labels));
        for (std::size_t i = 0; i < count && !counts.empty(); ++i) {
            auto const label = static_cast<std::size_t>(element_at(*from.info().label_type, labels, i));
            if (label < counts.size()) ++counts[label];  // any other is verify's to tell
        }
    }
}

std::string class_text(split_info const& split) {
    std::string text;
    for (std::size_t i = 0; i < std::min(split.class_counts.size(), shown_classes); ++i)
        text +=
            fmt::format("{}{} {}", i == 0 ? "" : ", ",
                        split.is.class_names.empty() ? fmt::format("{}:", i) : split.is.class_names[i], split.class_counts[i]);
    return split.class_counts.size() > shown_classes ? text + ", …" : text;
}

std::string layout_text(dataset_info const& is) {
    if (is.chunk_samples == 0)
        return is.image_offset ? fmt::format("contiguous, images at byte {}", *is.image_offset) : "contiguous";
    return fmt::format("chunks of {} images ({}){}", is.chunk_samples, format_bytes(is.chunk_samples * is.image_bytes()),
                       is.compressed ? ", compressed" : "");
}

void row(std::string_view name, std::string_view value) {
    fmt::print("  {:<14}{}\n", name, without_controls(value));
}

void print_split(split_info const& split) {
    dataset_info const& is = split.is;
    fmt::print("/{}\n", without_controls(is.split));
    std::string const type = is.type == element_type::u8 ? "unsigned bytes" : std::string(to_string(is.type));
    row("samples", fmt::format("{} of {} {} ({})", is.samples, to_string(is.shape), type,
                               format_bytes(static_cast<std::uint64_t>(is.samples) * is.image_bytes())));
    if (is.values.any) row("values", fmt::format("{} to {}", is.values.least, is.values.most));
    if (!is.label_type)
        row("labels", "none");
    else if (is_real(*is.label_type))
        row("targets", fmt::format("{}, {} to {}", to_string(*is.label_type), split.targets.least, split.targets.most));
    else
        row("classes", is.class_names.empty() || is.class_names.size() > shown_classes
                           ? fmt::format("{}", is.classes)
                           : fmt::format("{}: {}", is.classes, join(is.class_names, ", ")));
    if (!is.columns.empty()) row("columns", some_of(is.columns, shown_columns));
    if (!split.class_counts.empty()) row("samples each", class_text(split));
    row("layout", layout_text(is));
    row("images from", is.source_images);
    if (is.label_type) row("labels from", is.source_labels);
    for (std::size_t i = 0; i < std::min(is.sources.size(), shown_sources); ++i) row(i == 0 ? "sources" : "", is.sources[i]);
    if (is.sources.size() > shown_sources)
        row("", fmt::format("and {} more (--json lists them)", is.sources.size() - shown_sources));
    std::string const labels = !is.label_type ? "" : fmt::format(", labels {}", format_checksum(is.checksum_labels));
    row("checksums", fmt::format("images {}{} (xxh3-64, blocks of {} samples)", format_checksum(is.checksum_images), labels,
                                 is.checksum_block_samples));
}

void print_table(std::vector<split_info> const& splits) {
    dataset_info const& first = splits.front().is;
    fmt::print("{}\n", without_controls(first.path));
    if (!first.name.empty()) row("name", first.name);
    row("created by", first.created_by);
    if (!first.command.empty()) row("command", first.command);
    row("format", fmt::format("muster.dataset version {}", first.format_version));
    for (split_info const& split : splits) print_split(split);
}

nlohmann::ordered_json json_of(split_info const& split) {
    dataset_info const& is = split.is;
    nlohmann::ordered_json part{{"split", is.split},
                                {"samples", is.samples},
                                {"shape", is.shape.dimensions()},
                                {"type", to_string(is.type)},
                                {"bytes", static_cast<std::uint64_t>(is.samples) * is.image_bytes()},
                                {"value_min", nullptr},
                                {"value_max", nullptr},
                                {"label_type", nullptr},
                                {"classes", is.classes},
                                {"class_names", is.class_names},
                                {"columns", is.columns},
                                {"class_counts", split.class_counts},
                                {"chunk_samples", is.chunk_samples},
                                {"compressed", is.compressed},
                                {"image_offset", nullptr},
                                {"label_offset", nullptr},
                                {"source_images", is.source_images},
                                {"source_labels", is.source_labels},
                                {"sources", is.sources},
                                {"checksum_block_samples", is.checksum_block_samples},
                                {"checksum_images", format_checksum(is.checksum_images)},
                                {"checksum_labels", nullptr}};
    if (is.values.any) {
        part["value_min"] = is.values.least;
        part["value_max"] = is.values.most;
    }
    if (split.targets.any) {
        part["target_min"] = split.targets.least;
        part["target_max"] = split.targets.most;
    }
    if (is.label_type) {
        part["label_type"] = to_string(*is.label_type);
        part["checksum_labels"] = format_checksum(is.checksum_labels);
    }
    if (is.image_offset) part["image_offset"] = *is.image_offset;
    if (is.label_offset) part["label_offset"] = *is.label_offset;
    return part;
}

void print_json(std::vector<split_info> const& splits) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (split_info const& split : splits) parts.push_back(json_of(split));
    dataset_info const& first = splits.front().is;
    nlohmann::ordered_json const all{{"file", first.path},
                                     {"name", first.name},
                                     {"created_by", first.created_by},
                                     {"command", first.command},
                                     {"format_version", first.format_version},
                                     {"splits", parts}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

constexpr command_row info_row{
    .name = "info",
    .summary = "show what a dataset file says about itself",
    .synopsis = "FILE [options]",
    .examples =
        "  muster-stage info fashion.h5\n"
        "  muster-stage info fashion.h5 --preview sheet.png\n"
        "  muster-stage info fashion.h5 --json | jq '.splits[].samples'\n",
    .options = info_options,
    .description = "Reads the labels, and not the samples; muster-stage verify does.",
    .most_words = 1,
};

int info_command(given_options const& given, identity const& who) {
    if (who.rank != 0) return 0;  // rank 0 alone reads and prints
    if (given.words().empty()) throw error(errc::usage, "muster-stage info: the dataset file is missing; give its name");
    auto const& file = given.words().front();
    std::vector<std::string> const names =
        given.has("split") ? std::vector<std::string>{given.text("split")} : dataset::splits(file);
    if (given.has("preview")) {
        write_png(contact_sheet(dataset::open(file, names.front())), given.text("preview"));
        fmt::print("{}: images of /{}, in their order from the first to the last\n", given.text("preview"), names.front());
        return 0;
    }
    std::vector<split_info> splits;
    for (std::string const& name : names) {
        dataset const opened = dataset::open(file, name);
        splits.push_back({opened.info(), {}, {}});
        count_classes(opened, splits.back());
    }
    if (given.has("json"))
        print_json(splits);
    else
        print_table(splits);
    return 0;
}

}  // namespace muster::stage
