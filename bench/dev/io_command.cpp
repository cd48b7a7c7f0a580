#include "bench/dev/dev_commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/units.hpp"
#include "bench/dev/io_set.hpp"
#include "bench/dev/staging_set.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/statistics.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {

namespace {

constexpr option_row io_options_table[]{
    {"only", 0, "WHAT", "reading or staging (with converting); default: both", ""},
    {"size", 0, "BYTES", "bytes of the made-up set, in records of 3136 bytes; the one file to stage has half of it", "256MiB"},
    {"files", 0, "N", "small files to stage, of 4 KiB", "2000"},
    {"batch", 0, "N", "samples a batch", "64"},
    {"workers", 0, "N", "threads of the loader that put batches together", "1"},
    {"compute", 0, "TIME", "time of a step where training is imitated", "1ms"},
    {"repetitions", 0, "N", "repetitions", "3"},
    {"python", 0, "FILE", "interpreter of the peers in Python", "/usr/bin/python3"},
    {"no-peers", 0, "", "without those in Python: h5py, torch, Pillow", ""},
    {"json", 0, "", "the results as JSON", ""},
    strict_option,
};

/// Rows and versions of the peers in Python, and which are not there.
struct peer_rows {
    std::vector<reading_row> rows;
    nlohmann::ordered_json versions = nlohmann::ordered_json::object();
    std::vector<std::string> missing;
};

/// Returns the JSON that a script prints; if the script fails, null, and says so.
nlohmann::json run_script(std::vector<std::string> const& command, std::string_view script, environment const& variables,
                          std::string const& what, peer_rows& found) {
    auto how = foreground();
    how.input = script;
    if (find_program_or_nothing(command[0], variables).empty()) {
        found.missing.push_back(fmt::format("{}: {} is not there; install it, or give --python", what, command[0]));
        return nullptr;
    }
    auto const result = run_program(command, variables, how);
    if (result.exit_status == 0) return parse_json(result.out, "what " + what + " printed");
    found.missing.push_back(
        fmt::format("{}: {} ended with exit code {}; its messages are above", what, command[0], result.exit_status));
    return nullptr;
}

void add_mpi_peer(std::string const& python, std::string const& path, std::string const& folder, int repetitions,
                  environment const& variables, peer_rows& found) {
    auto own = variables;
    own.set("H5PY_ALWAYS_USE_MPI", "1");
    std::string const file = folder + "/io_mpi_peer.py", what = "h5py over MPI";
    write_output_file(file, find_text(dev_files(), "io_mpi_peer.py"));
    std::string const muster = (self_program().parent_path() / "muster").string();
    auto const told = run_script({muster, "run", "-q", "--timeout", "120s", "-n", "2", "--slots-per-node", "2", "--", python,
                                  file, path, std::to_string(repetitions)},
                                 "", own, what, found);
    if (told.is_null()) return;
    if (told.contains("missing"))
        found.missing.push_back(what + ": " + told["missing"].get<std::string>());
    else
        found.rows.push_back({fmt::format("h5py over MPI, collective, {} ranks, warm", told.at("ranks").get<int>()),
                              "memcpy",
                              {},
                              {},
                              told.at("rates").get<std::vector<double>>()});
}

peer_rows run_peers(std::string const& python, std::string const& path, std::string const& folder, std::string const& batch,
                    int repetitions, environment const& variables) {
    peer_rows found;
    auto own = variables;
    own.set("PYTHONDONTWRITEBYTECODE", "1");
    int const cores = describe_machine().cores;
    std::vector<std::string> command{python, "-", path, batch, std::to_string(repetitions), "0.5", "0"};
    for (int workers = 1; workers <= std::min(cores, 8); workers *= 2) command.push_back(std::to_string(workers));
    auto const document = run_script(command, find_text(dev_files(), "io_peers.py"), own, "h5py and torch", found);
    if (!document.is_null()) {
        found.versions = document.at("versions");
        for (auto const& each : document.at("missing")) found.missing.push_back(each.get<std::string>());
        for (auto const& [name, values] : document.at("rows").items()) {
            bool const cold = name.find("cold") != std::string::npos;
            found.rows.push_back(
                {name, cold ? "pread, sequential, cold" : "memcpy", {}, {}, values.template get<std::vector<double>>()});
        }
    }
    add_mpi_peer(python, path, folder, repetitions, own, found);
    return found;
}

double bound_of(reading_row const& row, std::vector<reading_row> const& rows) {
    for (reading_row const& each : rows)
        if (each.name == row.bound) return median(each.mb_per_s);
    return 0;
}

void add_json(nlohmann::ordered_json& all, std::string const& group, std::vector<reading_row> const& rows) {
    for (reading_row const& row : rows) {
        summary const of = summarise(row.mb_per_s);
        nlohmann::ordered_json one{{"group", group},          {"name", row.name},       {"median_mb_per_s", of.median},
                                   {"low", of.spread.low},    {"high", of.spread.high}, {"confidence", of.spread.confidence},
                                   {"mb_per_s", row.mb_per_s}};
        if (double const bound = bound_of(row, rows); bound > 0) {
            one["bound"] = row.bound;
            one["of_bound"] = of.median / bound;
        }
        all.push_back(one);
    }
}

void print_table(std::vector<reading_row> const& rows) {
    fmt::print("  {:<40}{:>10}{:>20}{:>8}  {}\n", "", "MB/s", "interval", "part", "of");
    for (reading_row const& row : rows) {
        summary const of = summarise(row.mb_per_s);
        double const bound = bound_of(row, rows);
        fmt::print("  {:<40}{:>10.0f}{:>20}{:>8}  {}\n", row.name, of.median,
                   of.count < 2 ? "one run" : fmt::format("{:.0f} - {:.0f}", of.spread.low, of.spread.high),
                   bound > 0 ? fmt::format("{:.2f}", of.median / bound) : "", row.bound);
    }
}

}  // namespace

constexpr command_row io_row{
    .name = "io",
    .summary = "converting, staging, reading and loading, compared with cp, dd, pread, tar, h5py and torch",
    .synopsis = "[options]",
    .examples = "  TMPDIR=/local muster-bench-dev io --size 4GiB --json\n",
    .options = io_options_table,
    .description =
        "Measures how fast a dataset file is read in its order and shuffled, from disk and from memory, and how fast samples "
        "are\n"
        "converted and files staged, and compares other programs in the same run. Files are made in TMPDIR, whose disk is "
        "measured.",
    .closing = R"(
One repetition runs every row once, in turns; the peers in Python follow. MB/s is 1e6 image or file bytes a second. "cold": the file's pages were
dropped from the page cache before (posix_fadvise); a note says if some stayed. What is staged and converted is read warm and written
without fsync. The last columns are a row's median as a part of its bound's: of the disk's, which is pread of the whole file in pieces of 4 MiB,
or writing from memory; or of memcpy of the set. There is no bound of a network: this is one node. The bytes of each row are compared with
what they should be, with the clock stopped: what was made, or the same delivered once more; of the peers in Python one batch a
repetition. Programs start within the time, but not Python. Below, training is imitated by sleeping each step, once from memory and once by
windows from a cold disk: accelerator utilisation as MLPerf Storage defines it, and DLIO's summary (its keys in the JSON).
)",
};

namespace {

struct io_results {
    std::vector<reading_row> reading, staging;
    std::vector<training_summary> trained;
    nlohmann::ordered_json versions = nlohmann::ordered_json::object();
    std::string notes;
    machine_load load;
    std::uint64_t bytes = 0, samples = 0, record_bytes = 0;
};

void read_and_load(given_options const& given, std::string const& folder, environment const& variables, io_results& out) {
    auto const repetitions = static_cast<int>(given.integer("repetitions", 1, 1'000'000));
    std::string const path = make_synthetic(folder, parse_bytes(given.text("size"), "--size"));
    peer_rows peers;
    {
        io_set set(path, folder, static_cast<std::size_t>(given.integer("batch", 1, 1'000'000)),
                   static_cast<std::size_t>(given.integer("workers", 1, 1024)));
        set.measure(repetitions);
        out.trained = set.train(parse_duration(given.text("compute"), "--compute").count());
        out.reading = set.rows();
        out.bytes = set.bytes();
        out.samples = set.data().size();
        out.record_bytes = set.data().image_bytes();
        for (std::string const& each : set.missing()) out.notes += each + "\n";
        if (set.warm_part() > 0.05)
            out.notes += fmt::format("warm: {:.0f} % of the file stayed in the page cache where it was to be cold\n",
                                     100 * set.warm_part());
    }
    if (given.has("no-peers")) return;
    peers = run_peers(given.text("python"), path, folder, std::to_string(given.integer("batch", 1, 1'000'000)), repetitions,
                      variables);
    out.reading.insert(out.reading.end(), peers.rows.begin(), peers.rows.end());
    out.versions = peers.versions;
    for (std::string const& each : peers.missing) out.notes += "not measured: " + each + "\n";
}

void convert_and_stage(given_options const& given, std::string const& folder, environment const& variables, io_results& out) {
    staging_sizes sizes;
    sizes.file_bytes = std::max<std::uint64_t>(1, parse_bytes(given.text("size"), "--size") / 16) * 8;
    sizes.small_files = static_cast<std::size_t>(given.integer("files", 1, 1'000'000));
    staging_set set(folder, sizes, given.has("no-peers") ? std::string() : given.text("python"), variables);
    measure_rows(set.rows(), static_cast<int>(given.integer("repetitions", 1, 1'000'000)));
    out.staging = set.rows();
    for (std::string const& each : set.missing()) out.notes += each + "\n";
}

void print_json(given_options const& given, io_results const& of) {
    machine_facts const machine = describe_machine();
    nlohmann::ordered_json training = nlohmann::ordered_json::array(), rows = nlohmann::ordered_json::array();
    for (training_summary const& each : of.trained)
        training.push_back({{"memory", each.memory},
                            {"compute_s", parse_duration(given.text("compute"), "--compute").count()},
                            {"train_au_percentage", each.train_au_percentage},
                            {"train_throughput_samples_per_second", each.train_throughput_samples_per_second},
                            {"train_io_mean_MB_per_second", each.train_io_mean_MB_per_second}});
    add_json(rows, "reading", of.reading);
    add_json(rows, "staging", of.staging);
    nlohmann::ordered_json const all{{"schema", "muster.io/1"},
                                     {"created", utc_now()},
                                     {"context", machine_json(machine)},
                                     {"load", to_json(of.load)},
                                     {"versions", of.versions},
                                     {"bytes", of.bytes},
                                     {"record_bytes", of.record_bytes},
                                     {"batch", given.integer("batch", 1, 1'000'000)},
                                     {"workers", given.integer("workers", 1, 1024)},
                                     {"repetitions", given.integer("repetitions", 1, 1'000'000)},
                                     {"rows", rows},
                                     {"metric", training},
                                     {"notes", of.notes}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_tables(given_options const& given, io_results const& of, std::string const& folder) {
    if (!of.reading.empty()) {
        fmt::print("reading: {} records of {} bytes ({}) in {}, batches of {}\n", of.samples, of.record_bytes,
                   format_bytes(of.bytes), folder, given.text("batch"));
        print_table(of.reading);
    }
    if (!of.staging.empty()) {
        fmt::print("staging and converting in {}\n", folder);
        print_table(of.staging);
    }
    for (training_summary const& each : of.trained)
        fmt::print("training with steps of {}, memory mode {}: accelerator utilisation {:.1f} %, {:.0f} samples/s, {:.0f} MB/s\n",
                   given.text("compute"), each.memory, each.train_au_percentage, each.train_throughput_samples_per_second,
                   each.train_io_mean_MB_per_second);
    fmt::print("medians of {} interleaved repetitions;{} columns: --help\n{}", given.text("repetitions"),
               of.versions.empty() ? "" : fmt::format(" {};", of.versions.dump()), of.notes);
}

}  // namespace

int io_command(given_options const& given, environment const& variables) {
    std::string const only = given.text("only");
    if (!only.empty() && only != "reading" && only != "staging")
        throw error(errc::usage, fmt::format("muster-bench-dev io: --only: '{}' is neither reading nor staging", only));
    temporary_folder const folder("muster-io", variables);
    crowd_watch const crowd;
    refuse_crowd(given, crowd.load(false));
    io_results results;
    if (only != "reading") convert_and_stage(given, folder.path(), variables, results);
    if (only != "staging") read_and_load(given, folder.path(), variables, results);
    results.load = crowd.load(true);
    results.notes += busy_line(results.load);
    if (given.has("json"))
        print_json(given, results);
    else
        print_tables(given, results, folder.path());
    return 0;
}

}  // namespace muster
