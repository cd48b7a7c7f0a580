#include "bench/dev/dev_commands.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"
#include "bench/dev/loader_set.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/statistics.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr char const* fashion_images = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
constexpr char const* fashion_labels = "/usr/share/datasets/fashion-mnist/train-labels-idx1-ubyte.gz";

constexpr option_row loader_options_table[]{
    {"batch", 0, "N", "samples a batch", "64"},
    {"repetitions", 0, "N", "repetitions", "9"},
    {"size", 0, "BYTES", "bytes of the made-up set, in records of 3136 bytes; 0: without it", "512MiB"},
    {"images", 0, "FILE", "IDX images; default: those of the package dataset-fashion-mnist, left out if they are not there", ""},
    {"labels", 0, "FILE", "IDX labels of these images", ""},
    {"json", 0, "", "the results as JSON", ""},
    strict_option,
};

nlohmann::ordered_json to_json(loader_set const& set, std::string const& name) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (delivery_row const& row : set.rows()) {
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
    return {{"set", name},          {"samples", set.info().samples}, {"record_bytes", set.info().image_bytes()},
            {"bytes", set.bytes()}, {"batch", set.batch_size()},     {"rows", rows}};
}

void print_table(loader_set const& set, std::string const& name) {
    fmt::print("{}: {} records of {} bytes ({}), batches of {}\n", name, set.info().samples, set.info().image_bytes(),
               format_bytes(set.bytes()), set.batch_size());
    fmt::print("  {:<24}{:>8}{:>18}{:>19}{:>19}\n", "", "GB/s", "interval", "of at once", "of batches");
    auto const& copies = set.rows();
    auto const in_batches = summarise(copies[0].gbps), at_once = summarise(copies[1].gbps);
    for (delivery_row const& row : set.rows()) {
        summary const all = summarise(row.gbps);
        fmt::print("  {:<24}{:>8.2f}{:>18}{:>19}{:>19}\n", row.name, all.median,
                   all.count < 2 ? "one run" : fmt::format("{:.2f} - {:.2f}", all.spread.low, all.spread.high),
                   &row == &copies[1] ? "1.00" : format_ratio(ratio_of(all, at_once)),
                   &row == &copies[0] ? "1.00" : format_ratio(ratio_of(all, in_batches)));
    }
}

}  // namespace

constexpr command_row loader_row{
    .name = "loader",
    .summary = "shuffled samples from memory, compared with memcpy",
    .synopsis = "[options]",
    .examples = "  muster-bench-dev loader --size 1GiB\n",
    .options = loader_options_table,
    .description =
        "Measures how fast the loader delivers shuffled samples, compared with memcpy of the same bytes, on Fashion-MNIST and on "
        "a\n"
        "made-up set larger than the caches.",
    .closing = R"(
One repetition runs every row once, in turns. GB/s is 1e9 image bytes delivered a second, each counted once. Rows of the loader
are whole shuffled epochs; memcpy in batches copies the same bytes in their order into one buffer of a batch, as the loader
without thread does; memcpy at once copies them into an array as large as the set. The last two columns are a row's median as a
part of these two's. All bytes are checked by XXH3: where there is no thread, batch by batch with the clock stopped; with a
thread, in a second delivery of the same epoch.
)",
};

int loader_command(given_options const& given, environment const& variables) {
    auto const batch = static_cast<std::size_t>(given.integer("batch", 1, 1'000'000));
    auto const repetitions = static_cast<int>(given.integer("repetitions", 1, 1'000'000));
    auto const synthetic_bytes = parse_bytes(given.text("size"), "--size");
    bool const named = given.has("images");
    if (named != given.has("labels"))
        throw error(errc::usage, "muster-bench-dev loader: only one of --images and --labels is given; give both");
    std::string const images = named ? given.text("images") : fashion_images,
                      labels = named ? given.text("labels") : fashion_labels;
    temporary_folder const folder("muster-loader", variables);
    nlohmann::ordered_json sets = nlohmann::ordered_json::array();
    crowd_watch const crowd;
    refuse_crowd(given, crowd.load(false));
    auto const run = [&](std::string const& path, std::string const& name) {
        loader_set set(path, batch);
        set.measure(repetitions);
        if (given.has("json"))
            sets.push_back(to_json(set, name));
        else
            print_table(set, name);
    };
    if (named || fs::exists(images))
        run(make_real(folder.path(), images, labels), named ? fs::path(images).filename().string() : "fashion-mnist");
    if (synthetic_bytes != 0) run(make_synthetic(folder.path(), synthetic_bytes), "synthetic");
    if (given.has("json")) {
        machine_facts const machine = describe_machine();
        nlohmann::ordered_json const all{{"schema", "muster.loader/1"},      {"created", utc_now()},
                                         {"context", machine_json(machine)}, {"load", to_json(crowd.load(true))},
                                         {"repetitions", repetitions},       {"sets", sets}};
        fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
        auto const load = crowd.load(true);
        fmt::print("medians of {} interleaved repetitions, load average {:.2f} before; every byte checked; columns: --help\n{}",
                   repetitions, load.average, busy_line(load));
    }
    return 0;
}

}  // namespace muster
