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
#include "io/stage/options.hpp"
#include "io/stage/progress.hpp"

namespace muster::stage {

namespace {

constexpr std::string_view help_text =
    R"(muster-stage convert --images FILE --labels FILE -o OUT.h5 [options]

Converts IDX files (the MNIST family; plain or gzip, seen from their contents) to one dataset file. docs/dataset-format.md describes it.

  muster-stage convert --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \
      --test-images t10k-images-idx3-ubyte.gz --test-labels t10k-labels-idx1-ubyte.gz -o fashion.h5
  muster run -n 4 -- muster-stage convert …       the same on 4 ranks, each with its part

  --images FILE         images of the split train
  --labels FILE         labels of the split train
  --test-images FILE    images of the split test
  --test-labels FILE    labels of the split test
  -o, --output FILE     the dataset file
  --force               replace the dataset file if it exists
  --name NAME           of the dataset, for people
  --classes N           labels must be below N; default: the number of class names, else the largest label plus one
  --class-names A,B,…   what the classes are called
  --chunk N             store chunks of N images; default: contiguous, which is fastest to read and can be mapped
  --align BYTES         arrays begin at a multiple, such as the file system's stripe; default: 1MiB
  --json                report as JSON
  -h, --help            this text
)";

std::vector<option> const known{{"images"},      {"labels"},     {"test-images"}, {"test-labels"}, {"output,o"},
                                {"name"},        {"classes"},    {"class-names"}, {"chunk"},       {"align"},
                                {"force", true}, {"json", true}, {"help,h", true}};

convert_request request_of(options const& given) {
    convert_request request;
    request.splits.push_back({"train", given.needed("images"), given.needed("labels")});
    if (given.has("test-images") || given.has("test-labels"))
        request.splits.push_back({"test", given.needed("test-images"), given.needed("test-labels")});
    request.output = given.needed("output");
    request.classes = given.number("classes", 1, 256, 0);
    if (auto const names = given.text("class-names"))
        for (auto const& name : split(*names, ',')) request.class_names.emplace_back(trim(name));
    request.chunk_samples = given.number("chunk", 1, 1'000'000'000, 0);
    request.writer.name = given.text("name").value_or("");
    if (auto const bytes = given.text("align")) {
        try {
            request.writer.alignment_bytes = parse_bytes(*bytes, "--align");
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

int convert_command(std::vector<std::string> const& args, identity const& who) {
    options const given("convert", known, args, 0);
    if (given.has("help")) {
        if (who.rank == 0) fmt::print("{}", help_text);
        return 0;
    }
    convert_request const request = request_of(given);
    return with_ranks("muster-stage", who, together::options_for_files(who), [&](communicator& ranks) {
        auto const begin = std::chrono::steady_clock::now();
        bool const shown = ranks.rank() == 0 && !given.has("json");
        std::function<void(std::uint64_t)> show;
        convert_report const report = convert(request, &ranks, [&](std::uint64_t done, std::uint64_t total) {
            if (!show) show = progress("convert", total, shown);
            show(done);
        });
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (ranks.rank() == 0) print(request, report, ranks.size(), seconds, given.has("json"));
        return 0;
    });
}

}  // namespace muster::stage
