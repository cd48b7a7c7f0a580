#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "comm/run_with_ranks.hpp"
#include "io/convert/convert.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/progress.hpp"

namespace muster::stage {

namespace {

constexpr option_row convert_options[]{
    {"images", 0, "FILE", "images of the split train", ""},
    {"labels", 0, "FILE", "labels of the split train", ""},
    {"test-images", 0, "FILE", "images of the split test", ""},
    {"test-labels", 0, "FILE", "labels of the split test", ""},
    {"output", 'o', "FILE", "the dataset file", ""},
    {"force", 0, "", "replace the dataset file if it exists", ""},
    {"name", 0, "NAME", "name of the dataset, for people", ""},
    {"classes", 0, "N", "labels are below N; default: the number of class names, else the largest label plus one", ""},
    {"class-names", 0, "A,B,…", "names of the classes", ""},
    {"chunk", 0, "N", "store chunks of N images; default: contiguous, which is fastest and can be mapped", ""},
    {"align", 0, "BYTES", "arrays begin at a multiple, such as the stripe of the file system; default: 1MiB", ""},
    {"json", 0, "", "report as JSON", ""},
};

convert_request request_of(given_options const& given) {
    convert_request request;
    request.splits.push_back({"train", given.needed("images"), given.needed("labels")});
    if (given.has("test-images") || given.has("test-labels"))
        request.splits.push_back({"test", given.needed("test-images"), given.needed("test-labels")});
    request.output = given.needed("output");
    if (given.has("classes")) request.classes = static_cast<std::size_t>(given.integer("classes", 1, 256));
    if (auto const names = given.text("class-names"); !names.empty())
        for (auto const& name : split(names, ',')) request.class_names.emplace_back(trim(name));
    if (given.has("chunk")) request.chunk_samples = static_cast<std::size_t>(given.integer("chunk", 1, 1'000'000'000));
    request.writer.name = given.text("name");
    if (given.has("align")) {
        try {
            request.writer.alignment_bytes = parse_bytes(given.text("align"), "--align");
        } catch (parse_error const& e) {
            throw error(errc::usage, e.what());
        }
    }
    request.writer.replace = given.has("force");
    return request;
}

void print(convert_request const& request, convert_report const& report, int ranks, double seconds, bool as_json) {
    if (!as_json) {
        for (auto const& split : report.splits)
            fmt::print("{}: /{}: {} images of {}, {} classes\n", request.output, split.name, split.samples,
                       to_string(split.shape), report.classes);
        fmt::print("{} converted in {} by {} rank{} ({:.0f} MB/s)\n", format_bytes(report.bytes),
                   format_duration(duration{seconds}), ranks, ranks == 1 ? "" : "s",
                   static_cast<double>(report.bytes) / 1e6 / seconds);
        return;
    }
    nlohmann::ordered_json splits = nlohmann::ordered_json::array();
    for (auto const& split : report.splits)
        splits.push_back({{"split", split.name},
                          {"samples", split.samples},
                          {"shape", {split.shape.channels, split.shape.height, split.shape.width}}});
    nlohmann::ordered_json const all{{"file", request.output}, {"splits", splits},   {"classes", report.classes},
                                     {"bytes", report.bytes},  {"seconds", seconds}, {"ranks", ranks}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

constexpr command_row convert_row{
    .name = "convert",
    .summary = "IDX files (MNIST, Fashion-MNIST, …) to one HDF5 dataset file",
    .synopsis = "--images FILE --labels FILE -o OUT.h5 [options]",
    .examples =
        "  muster-stage convert --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz -o mnist.h5\n"
        "  muster run -n 4 -- muster-stage convert …       the same on 4 ranks, each with its part\n",
    .options = convert_options,
    .description = "Reads plain or gzip files, seen from their contents. docs/dataset-format.md describes the dataset file.",
};

int convert_command(given_options const& given, identity const& who) {
    convert_request const request = request_of(given);
    return run_with_ranks("muster-stage", who, options_for_files(who), [&](communicator& ranks) {
        auto const begin = std::chrono::steady_clock::now();
        bool const shown = ranks.rank() == 0 && !given.has("json");
        std::function<void(std::uint64_t)> show;
        convert_report const report = convert(request, ranks, [&](std::uint64_t done, std::uint64_t total) {
            if (!show) show = progress("convert", total, shown);
            show(done);
        });
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (ranks.rank() == 0) print(request, report, ranks.size(), seconds, given.has("json"));
        return 0;
    });
}

}  // namespace muster::stage
