#include "bench/loading/loader_command.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "bench/loading/loader_set.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/other_work.hpp"
#include "bench/tools/statistics.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {

namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr std::string_view help_text = R"(muster-bench loader [options]

Measures how fast the loader delivers shuffled samples, beside memcpy of the same bytes, on Fashion-MNIST and on a made-up set larger than the caches.

  --batch N          samples a batch; default 64
  --repetitions N    default 9
  --size BYTES       of the made-up set, in records of 3136 bytes; default 512MiB, 0 for none
  --images FILE      IDX files of the real set; default those of the package dataset-fashion-mnist, left out if they are not there
  --labels FILE
  --json             the results as JSON
  -h, --help         this text

One repetition runs every row once, in turns. GB/s is 1e9 image bytes delivered a second, each counted once. Rows of the loader are whole shuffled epochs; memcpy in
batches copies the same bytes in their order into one buffer of a batch, as the loader without thread does; memcpy at once copies them into an array as large as the set. The last two
columns are a row's median as a part of these two's.
All bytes are checked by XXH3: where there is no thread, batch by batch with the clock stopped; with a thread, in a second delivery of the same epoch.
)";

struct request {
    std::size_t batch = 64;
    int repetitions = 9;
    std::uint64_t synthetic_bytes = std::uint64_t{512} << 20;
    std::string images = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
    std::string labels = "/usr/share/datasets/fashion-mnist/train-labels-idx1-ubyte.gz";
    bool named = false;  ///< the files were asked for, so they must be there
    bool json = false;
};

std::uint64_t number(po::variables_map const& given, char const* name, std::uint64_t least, std::uint64_t otherwise) {
    if (given.count(name) == 0) return otherwise;
    std::string const text = given[name].as<std::string>();
    auto const value = parse_integer(text);
    if (!value || *value < static_cast<std::int64_t>(least) || *value > 1'000'000)
        throw parse_error(fmt::format("--{}", name), text, 0, fmt::format("expected a whole number from {} to 1000000", least),
                          errc::usage);
    return static_cast<std::uint64_t>(*value);
}

std::optional<request> read_request(std::vector<std::string> const& args) {
    po::options_description known;
    for (char const* name : {"batch", "repetitions", "size", "images", "labels"})
        known.add_options()(name, po::value<std::string>(), "");
    known.add_options()("json", "")("help,h", "");
    po::variables_map given;
    try {
        auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(args).options(known).positional({}).style(style).run(), given);
    } catch (po::unknown_option const& e) {
        std::vector<std::string> names;
        for (auto const& option : known.options()) names.push_back("--" + option->long_name());
        auto const near = nearest(e.get_option_name(), names);
        throw error(errc::usage, fmt::format("muster-bench loader: no option '{}'{}; --help lists them", e.get_option_name(),
                                             near ? fmt::format(", did you mean '{}'?", *near) : ""));
    } catch (po::error const& e) {
        throw error(errc::usage, fmt::format("muster-bench loader: {}; --help lists the options", e.what()));
    }
    if (given.count("help") != 0) return std::nullopt;
    request asked;
    asked.batch = number(given, "batch", 1, asked.batch);
    asked.repetitions = static_cast<int>(number(given, "repetitions", 1, 9));
    if (given.count("size") != 0) asked.synthetic_bytes = parse_bytes(given["size"].as<std::string>(), "--size");
    if (given.count("images") != given.count("labels"))
        throw error(errc::usage, "muster-bench loader: give --images and --labels together");
    if (given.count("images") != 0) {
        asked.images = given["images"].as<std::string>();
        asked.labels = given["labels"].as<std::string>();
        asked.named = true;
    }
    asked.json = given.count("json") != 0;
    return asked;
}

nlohmann::ordered_json to_json(loader_set const& set, std::string const& name) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (loader_row const& row : set.rows()) {
        summary const all = summarise(row.gbps);
        rows.push_back({{"name", row.name},
                        {"median_gbps", all.median},
                        {"low_gbps", all.spread.low},
                        {"high_gbps", all.spread.high},
                        {"confidence", all.spread.confidence},
                        {"of_memcpy_at_once", all.median / set.memcpy_at_once()},
                        {"of_memcpy_in_batches", all.median / set.memcpy_in_batches()},
                        {"gbps", row.gbps}});
    }
    return {{"set", name},          {"samples", set.info().samples}, {"record_bytes", set.info().shape.bytes()},
            {"bytes", set.bytes()}, {"batch", set.batch_size()},     {"rows", rows}};
}

void print_table(loader_set const& set, std::string const& name) {
    fmt::print("{}: {} records of {} bytes ({}), batches of {}\n", name, set.info().samples, set.info().shape.bytes(),
               format_bytes(set.bytes()), set.batch_size());
    fmt::print("  {:<24}{:>8}{:>18}{:>14}{:>14}\n", "", "GB/s", "interval", "of at once", "of batches");
    for (loader_row const& row : set.rows()) {
        summary const all = summarise(row.gbps);
        fmt::print("  {:<24}{:>8.2f}{:>18}{:>14.2f}{:>14.2f}\n", row.name, all.median,
                   fmt::format("{:.2f} - {:.2f}", all.spread.low, all.spread.high), all.median / set.memcpy_at_once(),
                   all.median / set.memcpy_in_batches());
    }
}

}  // namespace

int loader_command(std::vector<std::string> const& args, environment const& variables) {
    auto const asked = read_request(args);
    if (!asked) {
        fmt::print("{}", help_text);
        return 0;
    }
    temporary_folder const folder("muster-loader", variables);
    nlohmann::ordered_json sets = nlohmann::ordered_json::array();
    double const load = load_average();
    other_work const others;
    auto const run = [&](std::string const& path, std::string const& name) {
        loader_set set(path, asked->batch);
        set.measure(asked->repetitions);
        if (asked->json)
            sets.push_back(to_json(set, name));
        else
            print_table(set, name);
    };
    if (asked->named || fs::exists(asked->images))
        run(make_real(folder.path(), asked->images, asked->labels),
            asked->named ? fs::path(asked->images).filename().string() : "fashion-mnist");
    if (asked->synthetic_bytes != 0) run(make_synthetic(folder.path(), asked->synthetic_bytes), "synthetic");
    if (asked->json) {
        machine_facts const machine = describe_machine();
        nlohmann::ordered_json const all{{"created", utc_now()}, {"processor", machine.processor},    {"cores", machine.cores},
                                         {"load_before", load},  {"repetitions", asked->repetitions}, {"sets", sets}};
        fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
        fmt::print(
            "medians of {} interleaved repetitions, load average {:.2f} before; every byte checked; --help defines the "
            "numbers\n{}",
            asked->repetitions, load, others.note());
    }
    return 0;
}

}  // namespace muster
