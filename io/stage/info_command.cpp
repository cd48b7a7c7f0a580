#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/dataset.hpp"
#include "io/stage/commands.hpp"

namespace muster::stage {

namespace {

constexpr option_row info_options[]{{"json", 0, "", "as JSON", ""}};

void print_table(std::vector<dataset_info> const& splits) {
    auto const row = [](std::string_view name, std::string_view value) { fmt::print("  {:<14}{}\n", name, value); };
    fmt::print("{}\n", splits.front().path);
    if (!splits.front().name.empty()) row("name", splits.front().name);
    row("created by", splits.front().created_by);
    row("format", fmt::format("muster.dataset version {}", splits.front().format_version));
    for (dataset_info const& split : splits) {
        fmt::print("/{}\n", split.split);
        row("samples", fmt::format("{} of {} unsigned bytes ({})", split.samples, to_string(split.shape),
                                   format_bytes(static_cast<std::uint64_t>(split.samples) * split.shape.bytes())));
        row("classes", split.class_names.empty() ? fmt::format("{}", split.classes)
                                                 : fmt::format("{}: {}", split.classes, join(split.class_names, ", ")));
        std::string const offset = split.image_offset ? fmt::format(", images at byte {}", *split.image_offset) : std::string();
        row("layout", split.chunk_samples == 0 ? "contiguous" + offset : fmt::format("chunks of {} images", split.chunk_samples));
        row("images from", split.source_images);
        row("labels from", split.source_labels);
        row("checksums",
            fmt::format("images {}, labels {} (xxh3-64, blocks of {} samples)", format_checksum(split.checksum_images),
                        format_checksum(split.checksum_labels), split.checksum_block_samples));
    }
}

void print_json(std::vector<dataset_info> const& splits) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (dataset_info const& split : splits) {
        nlohmann::ordered_json part{{"split", split.split},
                                    {"samples", split.samples},
                                    {"shape", {split.shape.channels, split.shape.height, split.shape.width}},
                                    {"bytes", static_cast<std::uint64_t>(split.samples) * split.shape.bytes()},
                                    {"classes", split.classes},
                                    {"class_names", split.class_names},
                                    {"chunk_samples", split.chunk_samples},
                                    {"image_offset", nullptr},
                                    {"source_images", split.source_images},
                                    {"source_labels", split.source_labels},
                                    {"checksum_block_samples", split.checksum_block_samples},
                                    {"checksum_images", format_checksum(split.checksum_images)},
                                    {"checksum_labels", format_checksum(split.checksum_labels)}};
        if (split.image_offset) part["image_offset"] = *split.image_offset;
        parts.push_back(std::move(part));
    }
    nlohmann::ordered_json const all{{"file", splits.front().path},
                                     {"name", splits.front().name},
                                     {"created_by", splits.front().created_by},
                                     {"format_version", splits.front().format_version},
                                     {"splits", parts}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

constexpr command_row info_row{
    .name = "info",
    .summary = "show what a dataset file says about itself",
    .synopsis = "FILE [--json]",
    .examples =
        "  muster-stage info fashion.h5\n"
        "  muster-stage info fashion.h5 --json | jq '.splits[].samples'\n",
    .options = info_options,
    .description = "Does not read the samples; muster-stage verify does.",
    .most_words = 1,
};

int info_command(given_options const& given, identity const& who) {
    if (who.rank != 0) return 0;  // rank 0 alone reads and prints
    if (given.words().empty()) throw error(errc::usage, "muster-stage info: the dataset file is missing; give its name");
    auto const& file = given.words().front();
    std::vector<dataset_info> splits;
    for (std::string const& split : dataset::splits(file)) splits.push_back(dataset::open(file, split).info());
    if (given.has("json"))
        print_json(splits);
    else
        print_table(splits);
    return 0;
}

}  // namespace muster::stage
