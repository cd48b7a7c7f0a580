#include "bench/loading/io_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/units.hpp"
#include "bench/loading/io_set.hpp"
#include "bench/loading/loader_set.hpp"
#include "bench/peers/peer.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/other_work.hpp"
#include "bench/tools/statistics.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {

namespace {

constexpr option_row io_options_table[]{
    {"size", 0, "BYTES", "bytes of the made-up set, in records of 3136 bytes", "512MiB"},
    {"batch", 0, "N", "samples a batch", "64"},
    {"workers", 0, "N", "threads of the loader that put batches together", "1"},
    {"compute", 0, "TIME", "time of a step where training is imitated", "1ms"},
    {"repetitions", 0, "N", "repetitions", "5"},
    {"python", 0, "FILE", "interpreter of the peers in Python", "/usr/bin/python3"},
    {"no-peers", 0, "", "without h5py and torch", ""},
    {"json", 0, "", "the results as JSON", ""},
};

/// Rows and versions of the peers in Python; why there are none in `missing`.
struct peer_rows {
    std::vector<reading_row> rows;
    nlohmann::ordered_json versions = nlohmann::ordered_json::object();
    std::string missing;
};

peer_rows run_peers(std::string const& python, std::string const& path, std::string const& batch, int repetitions,
                    environment const& variables) {
    peer_rows found;
    auto own = variables;
    own.set("PYTHONDONTWRITEBYTECODE", "1");
    auto how = foreground();
    how.input = find_text(peer_files(), "io_peers.py");
    int const cores = describe_machine().cores;
    std::vector<std::string> command{python, "-", path, batch, std::to_string(repetitions), "1", "0"};
    for (int workers = 1; workers <= std::min(cores, 8); workers *= 2) command.push_back(std::to_string(workers));
    auto const result = run_program(command, own, how);
    if (result.exit_status != 0) {
        found.missing = fmt::format("no peers: {} ended with exit code {} (they need h5py, and torch for two of them)", python,
                                    result.exit_status);
        return found;
    }
    std::string const origin = "what the peers printed";
    auto const document = parse_json(result.out, origin);
    found.versions = document.at("versions");
    for (auto const& [name, values] : document.at("rows").items()) {
        bool const cold = name.find("cold") != std::string::npos;
        found.rows.push_back({name, cold ? "pread, sequential, cold" : "memcpy", {}, values.template get<std::vector<double>>()});
    }
    return found;
}

double bound_of(reading_row const& row, std::vector<reading_row> const& rows) {
    for (reading_row const& each : rows)
        if (each.name == row.bound) return median(each.mb_per_s);
    return 0;
}

nlohmann::ordered_json to_json(std::vector<reading_row> const& rows) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (reading_row const& row : rows) {
        summary const of = summarise(row.mb_per_s);
        nlohmann::ordered_json one{{"name", row.name},       {"median_mb_per_s", of.median},       {"low", of.spread.low},
                                   {"high", of.spread.high}, {"confidence", of.spread.confidence}, {"mb_per_s", row.mb_per_s}};
        if (double const bound = bound_of(row, rows); bound > 0) {
            one["bound"] = row.bound;
            one["of_bound"] = of.median / bound;
        }
        all.push_back(one);
    }
    return all;
}

void print_table(std::vector<reading_row> const& rows) {
    fmt::print("  {:<40}{:>10}{:>20}{:>8}  {}\n", "", "MB/s", "interval", "part", "of");
    for (reading_row const& row : rows) {
        summary const of = summarise(row.mb_per_s);
        double const bound = bound_of(row, rows);
        fmt::print("  {:<40}{:>10.0f}{:>20}{:>8}  {}\n", row.name, of.median,
                   fmt::format("{:.0f} - {:.0f}", of.spread.low, of.spread.high),
                   bound > 0 ? fmt::format("{:.2f}", of.median / bound) : "", row.bound);
    }
}

}  // namespace

constexpr command_row io_row{
    .name = "io",
    .summary = "reading and loading a dataset, beside pread, dd, cp, h5py and torch",
    .synopsis = "[options]",
    .examples = "  TMPDIR=/local muster-bench io --size 4GiB --json\n",
    .options = io_options_table,
    .description =
        "Measures how fast a dataset file is read in its order and shuffled, from disk and from memory, by the loader and by "
        "other\n"
        "programs in the same run. The file is made in TMPDIR: that disk is measured.",
    .closing = R"(
One repetition runs every row once, in turns; the peers in Python follow. MB/s is 1e6 image bytes a second. "cold": the file's pages were
dropped from the page cache before (posix_fadvise); a note says if some stayed. The last columns are a row's median as a part of its
bound's: of the disk's, which is pread of the whole file in pieces of 4 MiB, or of memcpy of the set. Below, training is imitated by
sleeping each step, once from memory and once by windows from a cold disk: accelerator utilisation as MLPerf Storage defines it, and
DLIO's summary (its keys in the JSON).
)",
};

int io_command(given_options const& given, environment const& variables) {
    auto const batch = static_cast<std::size_t>(given.integer("batch", 1, 1'000'000));
    auto const workers = static_cast<std::size_t>(given.integer("workers", 1, 1024));
    auto const repetitions = static_cast<int>(given.integer("repetitions", 1, 1'000'000));
    auto const size = parse_bytes(given.text("size"), "--size");
    double const compute_s = parse_duration(given.text("compute"), "--compute").count();
    temporary_folder const folder("muster-io", variables);
    std::string const path = make_synthetic(folder.path(), size);
    other_work const others;
    io_set set(path, folder.path(), batch, workers);
    set.measure(repetitions);
    auto const trained = set.train(compute_s);
    std::vector<reading_row> rows = set.rows();
    peer_rows peers;
    if (!given.has("no-peers")) peers = run_peers(given.text("python"), path, std::to_string(batch), repetitions, variables);
    rows.insert(rows.end(), peers.rows.begin(), peers.rows.end());
    std::string note = others.note();
    if (set.warm_part() > 0.05)
        note +=
            fmt::format("warm: {:.0f} % of the file stayed in the page cache where it was to be cold\n", 100 * set.warm_part());
    if (!peers.missing.empty()) note += peers.missing + "\n";

    machine_facts const machine = describe_machine();
    if (given.has("json")) {
        nlohmann::ordered_json training = nlohmann::ordered_json::array();
        for (training_summary const& each : trained)
            training.push_back({{"memory", each.memory},
                                {"compute_s", compute_s},
                                {"train_au_percentage", each.train_au_percentage},
                                {"train_throughput_samples_per_second", each.train_throughput_samples_per_second},
                                {"train_io_mean_MB_per_second", each.train_io_mean_MB_per_second}});
        nlohmann::ordered_json const all{{"created", utc_now()},
                                         {"processor", machine.processor},
                                         {"cores", machine.cores},
                                         {"kernel", machine.kernel},
                                         {"versions", peers.versions},
                                         {"bytes", set.bytes()},
                                         {"record_bytes", set.data().image_bytes()},
                                         {"batch", batch},
                                         {"workers", workers},
                                         {"repetitions", repetitions},
                                         {"rows", to_json(rows)},
                                         {"metric", training},
                                         {"notes", note}};
        fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
        return 0;
    }
    fmt::print("{} records of {} bytes ({}) in {}, batches of {}\n", set.data().size(), set.data().image_bytes(),
               format_bytes(set.bytes()), folder.path(), batch);
    print_table(rows);
    for (training_summary const& each : trained)
        fmt::print("training with steps of {}, memory mode {}: accelerator utilisation {:.1f} %, {:.0f} samples/s, {:.0f} MB/s\n",
                   given.text("compute"), each.memory, each.train_au_percentage, each.train_throughput_samples_per_second,
                   each.train_io_mean_MB_per_second);
    fmt::print("medians of {} interleaved repetitions; {}; columns: --help\n{}", repetitions, peers.versions.dump(), note);
    return 0;
}

}  // namespace muster
