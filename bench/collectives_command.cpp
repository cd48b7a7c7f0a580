#include "bench/collectives_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "bench/child.hpp"
#include "bench/collectives_job.hpp"
#include "bench/collectives_table.hpp"
#include "bench/gradient_sets.hpp"
#include "bench/options.hpp"
#include "bench/peer.hpp"

namespace muster {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

constexpr char const* help = R"(muster-bench collectives [options]      allreduce, beside the libraries of this machine

  muster-bench collectives                                 muster's shm and mpi, Open MPI, MPICH, Gloo; 2 ranks, 8 B to 64 MiB
  muster-bench collectives --gradients resnet50            the tensors of a network instead, one after the other

  --ranks LIST       numbers of ranks (2)
  --backend LIST     muster's backends, or all, or none (all: shm,mpi)
  --peers LIST       openmpi,mpich,gloo, or all, or none (all that are here; MPI ones are compiled by mpicc.openmpi and mpicc.mpich)
  --min, --max SIZE  of a tensor (8, 64MiB)
  --factor N         from one size to the next (4)
  --gradients NAME   resnet50, cifar, mnist, gpt2
  --repeats N        samples of each, taking turns (7)
  --python PATH      that has torch (/usr/bin/python3)
  --muster PATH      the launcher (the muster beside this program)
  --json FILE        every sample, schema muster.collectives/1

Columns as in nccl-tests: busbw is algbw x 2(n-1)/n; 1 GB/s is 1e9 bytes/s. A sample fills all buffers anew, calls once for each buffer,
and checks every element of the results; its time is that of the slowest rank, divided by the calls. Gloo works in place only: out of
place its copy counts. All ranks of all libraries stay alive and sleep while another has its turn.
)";

constexpr duration start_deadline{60}, order_deadline{120};
constexpr double sample_s = 0.02;
constexpr std::size_t sample_bytes = std::size_t{32} << 20;
constexpr std::size_t bound_bytes = std::size_t{64} << 20;

struct plan {
    std::vector<std::vector<std::size_t>> sets;  // tensors in bytes, each
    std::string gradients;
    int repeats = 7;
    std::vector<std::string> backends, peers;
    std::string muster, self, python;
};

/// A folder that goes with what is in it.
class temporary_folder {
  public:
    temporary_folder() {
        path_ = (fs::temp_directory_path() / "muster-collectives-XXXXXX").string();
        if (::mkdtemp(path_.data()) == nullptr) throw_system("mkdtemp", path_);
    }
    temporary_folder(temporary_folder const&) = delete;
    temporary_folder& operator=(temporary_folder const&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    std::string const& path() const noexcept { return path_; }

  private:
    std::string path_;
};

struct contender {
    collectives_job_facts facts;
    std::unique_ptr<collectives_job> job;
};

/// The peer's path, compiled by that compiler; "" with a word about it if that fails.
std::string compile(std::string const& compiler, std::string const& folder, environment const& variables) {
    std::string const path = find_program(compiler, variables);
    if (path.empty()) return {};
    std::string const source = folder + "/mpi_allreduce.c", program = folder + "/" + compiler;
    std::ofstream(source) << mpi_peer_source;
    auto const made = run_child({path, "-O2", "-o", program, source}, variables);
    if (made.exit_code == 0) return program;
    fmt::print(stderr, "muster-bench: {} does not compile the peer (exit code {}): left out\n", compiler, made.exit_code);
    return {};
}

std::vector<contender> start_all(plan const& what, int ranks, std::string const& folder, environment const& variables) {
    std::vector<contender> all;
    auto const count = std::to_string(ranks);
    auto const add = [&](std::string const& name, bool own, std::vector<std::vector<std::string>> const& commands) {
        contender next{{name, "", own}, nullptr};
        try {
            next.job = std::make_unique<collectives_job>(folder, name, ranks, commands, variables);
            next.facts.version = next.job->version(start_deadline);
        } catch (error const& problem) {
            fmt::print(stderr, "muster-bench: left out: {}\n", problem.what());
            return;
        }
        all.push_back(std::move(next));
    };
    for (auto const& backend : what.backends)
        add(backend, true,
            {{what.muster, "run", "-q", "-n", count, "--slots-per-node", count, "--", what.self,
              "collectives-rank", folder, backend, backend}});
    for (auto const& peer : what.peers) {
        if (peer == "openmpi") {
            auto const launcher = find_program("mpirun.openmpi", variables),
                       program = compile("mpicc.openmpi", folder, variables);
            std::vector<std::string> command{launcher, "--oversubscribe"};
            if (::getuid() == 0) command.emplace_back("--allow-run-as-root");
            command.insert(command.end(), {"-n", count, program, folder, peer});
            if (!launcher.empty() && !program.empty()) add(peer, false, {command});
        } else if (peer == "mpich") {
            auto const launcher = find_program("mpiexec.hydra", variables), program = compile("mpicc.mpich", folder, variables);
            if (!launcher.empty() && !program.empty()) add(peer, false, {{launcher, "-n", count, program, folder, peer}});
        } else {
            std::string const script = folder + "/gloo_allreduce.py";
            std::ofstream(script) << gloo_peer_script;
            std::vector<std::vector<std::string>> commands;
            for (int rank = 0; rank < ranks; ++rank)
                commands.push_back({what.python, script, folder, peer, std::to_string(rank), count});
            if (!find_program(what.python, variables).empty()) add(peer, false, commands);
        }
    }
    return all;
}

void measure_set(plan const& what, std::vector<contender>& all, std::vector<std::size_t> const& tensors,
                 collectives_results& results) {
    std::size_t bytes = 0;
    std::string list;
    for (auto const each : tensors) {
        bytes += each;
        list += fmt::format(" {}", each);
    }
    std::vector<collectives_cell> cells;
    for (auto& each : all) {
        // One set, twice, tells how many fill a sample.
        auto const order = [&](int calls) { return fmt::format("tensors {} {}{}", calls, tensors.size(), list); };
        each.job->ask(order(1), order_deadline);
        each.job->ask("run 1 0", order_deadline);
        double const us = std::max(each.job->ask("run 2 0", order_deadline).first, 0.2);
        double const room = static_cast<double>(sample_bytes) / static_cast<double>(std::max(bytes, std::size_t{4096}));
        int const calls = static_cast<int>(std::clamp(std::min(sample_s * 1e6 / us, room), 1.0, 4000.0));
        each.job->ask(order(calls), order_deadline);
        each.job->ask("run 3 0", order_deadline);
        cells.push_back({each.facts.name, bytes, tensors.size(), calls, {}, {}, 0, 0});
    }
    for (int repeat = 0; repeat < what.repeats; ++repeat)
        for (int in_place = 0; in_place < 2; ++in_place)
            for (std::size_t i = 0; i < all.size(); ++i) {
                auto const told = all[i].job->ask(fmt::format("run {} {}", repeat * 2 + in_place + 4, in_place), order_deadline);
                (in_place != 0 ? cells[i].in_place_us : cells[i].out_of_place_us).push_back(told.first);
                (in_place != 0 ? cells[i].wrong_in : cells[i].wrong_out) += told.second;
            }
    for (auto& each : all) each.job->ask("tensors 1 1 8", order_deadline);  // lets the memory go
    results.cells.insert(results.cells.end(), cells.begin(), cells.end());
}

collectives_results measure(plan const& what, int ranks, std::string const& command, environment const& variables) {
    temporary_folder const folder;
    collectives_results results;
    results.created = utc_now();
    results.command = command;
    results.machine = describe_machine();
    results.load = load_average();
    results.ranks = ranks;
    results.gradients = what.gradients;
    auto all = start_all(what, ranks, folder.path(), variables);
    if (all.empty()) throw error(errc::unavailable, "nothing to measure: no backend and no peer could be started");
    for (auto const& each : all) results.jobs.push_back(each.facts);
    if (all.front().facts.own) {
        auto const told = all.front().job->ask(fmt::format("bound {}", bound_bytes), order_deadline);
        double const gigabytes = static_cast<double>(bound_bytes) * ranks / 1e9;
        results.memcpy_gbs = gigabytes / told.first * 1e6;
        results.triad_gbs = 3 * gigabytes / (told.second / ranks) * 1e6;
    }
    for (auto const& tensors : what.sets) measure_set(what, all, tensors, results);
    return results;
}

std::vector<std::string> choose(std::string const& text, std::vector<std::string> const& known, char const* option) {
    if (text == "all") return known;
    std::vector<std::string> chosen;
    if (text == "none") return chosen;
    for (auto const piece : split(text, ',')) {
        std::string const word(trim(piece));
        if (std::find(known.begin(), known.end(), word) == known.end())
            throw error(errc::usage, fmt::format("{} {}: there are {}, all and none", option, word, join(known, ", ")));
        chosen.push_back(word);
    }
    return chosen;
}

plan read_plan(po::variables_map const& values) {
    plan what;
    std::error_code fault;
    what.self = fs::read_symlink("/proc/self/exe", fault).string();
    what.muster = values.count("muster") != 0 ? values["muster"].as<std::string>()
                                              : (fs::path(what.self).parent_path() / "muster").string();
    if (::access(what.muster.c_str(), X_OK) != 0)
        throw error(errc::not_found, fmt::format("no launcher {}; give --muster PATH", what.muster));
    what.python = values["python"].as<std::string>();
    what.repeats = values["repeats"].as<int>();
    if (what.repeats < 1) throw error(errc::usage, fmt::format("--repeats {}: must be at least 1", what.repeats));
    what.backends = choose(values["backend"].as<std::string>(), {"shm", "mpi"}, "--backend");
    what.peers = choose(values["peers"].as<std::string>(), {"openmpi", "mpich", "gloo"}, "--peers");
    if (values.count("gradients") != 0) {
        auto const set = gradients_of(values["gradients"].as<std::string>());
        what.gradients =
            fmt::format("{}: {} tensors, {} parameters ({})", set.name, set.elements.size(), set.parameters(), set.source);
        auto& tensors = what.sets.emplace_back();
        for (auto const count : set.elements) tensors.push_back(count * 4);
        return what;
    }
    auto const least = parse_bytes(values["min"].as<std::string>(), "--min"),
               most = parse_bytes(values["max"].as<std::string>(), "--max");
    int const factor = values["factor"].as<int>();
    if (factor < 2) throw error(errc::usage, fmt::format("--factor {}: must be at least 2", factor));
    if (least < 4 || most < least) throw error(errc::usage, "--min must be at least 4 bytes, and --max not below it");
    for (auto bytes = least; bytes < most; bytes *= static_cast<unsigned>(factor)) what.sets.push_back({bytes / 4 * 4});
    what.sets.push_back({most / 4 * 4});
    return what;
}

}  // namespace

int collectives_command(std::vector<std::string> const& args, environment const& variables) {
    po::options_description known;
    known.add_options()("ranks", po::value<std::string>()->default_value("2"))(
        "backend", po::value<std::string>()->default_value("all"))("peers", po::value<std::string>()->default_value("all"))(
        "min", po::value<std::string>()->default_value("8"))("max", po::value<std::string>()->default_value("64MiB"))(
        "factor", po::value<int>()->default_value(4))("gradients", po::value<std::string>())(
        "repeats", po::value<int>()->default_value(7))("python", po::value<std::string>()->default_value("/usr/bin/python3"))(
        "muster", po::value<std::string>())("json", po::value<std::string>())("help,h", po::bool_switch());
    auto const values = read_options(args, known);
    if (values["help"].as<bool>()) {
        fmt::print("{}", help);
        return 0;
    }
    plan const what = read_plan(values);
    auto documents = nlohmann::ordered_json::array();
    bool good = true;
    for (int const ranks : parse_list(values["ranks"].as<std::string>(), "--ranks", 1, 1024)) {
        auto const results = measure(what, ranks, "muster-bench collectives " + shell_join(args), variables);
        fmt::print("{}\n", describe(results));
        std::fflush(stdout);
        for (auto const& cell : results.cells) good = good && cell.wrong_out == 0 && cell.wrong_in == 0;
        documents.push_back(to_json(results));
    }
    if (values.count("json") != 0) {
        auto const path = values["json"].as<std::string>();
        std::ofstream file(path);
        file << documents.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        file.close();
        if (!file) throw error(errc::io, fmt::format("cannot write {}; check --json", path));
    }
    if (!good) fmt::print(stderr, "muster-bench: wrong results: see #wrong\n");
    return good ? 0 : 1;
}

}  // namespace muster
