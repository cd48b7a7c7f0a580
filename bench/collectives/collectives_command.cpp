#include "bench/tools/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/units.hpp"
#include "bench/collectives/collectives_case.hpp"
#include "bench/collectives/collectives_job.hpp"
#include "bench/collectives/collectives_table.hpp"
#include "bench/collectives/collectives_values.hpp"
#include "bench/collectives/messages.hpp"
#include "bench/collectives/rank/ordered_rank.hpp"
#include "bench/peers/peer.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {

struct contender {
    collectives_job_facts facts;
    std::unique_ptr<ordered_ranks> job;
    std::string backend{};  ///< of muster's, whose ranks can send messages
};

namespace {

constexpr duration start_deadline{60};

using commands = std::vector<std::vector<std::string>>;

/// Writes one of this program's files into the folder; its path.
std::string write_peer_file(std::string const& folder, std::string const& file, std::string const& name) {
    auto const path = folder + "/" + name;
    write_output_file(path, find_text(peer_files(), file));
    return path;
}

/// True if that has made FOLDER/PEER or a part of it; false, with a message if the compiler is there, if not.
bool compile(std::string const& compiler, std::vector<std::string> const& words, std::string const& peer,
             environment const& variables) {
    std::vector<std::string> command{find_program_or_nothing(compiler, variables), "-O3"};
    if (command.front().empty()) return false;
    command.insert(command.end(), words.begin(), words.end());
    auto how = foreground();
    how.out_fd = STDERR_FILENO;
    auto const made = run_program(command, variables, how);
    if (made.exit_status == 0) return true;
    fmt::print(stderr, "muster-bench: note: {} does not compile the peer {} (exit code {}), which is left out\n", compiler, peer,
               made.exit_status);
    return false;
}

commands own_command(collectives_plan const& what, std::string const& name, std::string const& backend, std::string const& count,
                     std::string const& folder, memory_of_tensors memory) {
    int const nodes = backend == "hierarchical" ? what.nodes : 1;
    return {{what.muster, "run", "-q", "-n", count, "--slots-per-node", count, "--", what.self, "collectives-rank", folder, name,
             backend, std::to_string(nodes), std::string(to_string(memory))}};
}

/// True where the backend's allocate() gives memory that ranks share.
bool shares_memory(std::string const& backend) {
    return backend == "shm" || backend == "hierarchical";
}

commands gloo_commands(collectives_plan const& what, int ranks, std::string const& folder, environment const& variables) {
    auto const script = write_peer_file(folder, "gloo_collectives.py", "gloo_collectives.py");
    commands all;
    if (find_program_or_nothing(what.python, variables).empty()) return all;
    for (int rank = 0; rank < ranks; ++rank)
        all.push_back({what.python, script, folder, "gloo", std::to_string(rank), std::to_string(ranks)});
    return all;
}

/// Open MPI and MPICH by their compilers' wrappers, Intel MPI by what the prefix I_MPI_ROOT holds. Empty where the library is not here.
commands mpi_commands(std::string const& peer, std::string const& count, std::string const& folder,
                      environment const& variables) {
    std::string const root = variables.get_or("I_MPI_ROOT", ""), program = folder + "/" + peer;
    bool const open = peer == "openmpi", intel = peer == "impi";
    if (intel && root.empty()) return {};
    auto const launcher =
        intel ? root + "/bin/mpiexec.hydra" : find_program_or_nothing(open ? "mpirun.openmpi" : "mpiexec.hydra", variables);
    std::vector<std::string> words{"-o", program, write_peer_file(folder, "mpi_collectives.c", "mpi_collectives.c")};
    if (intel)
        words.insert(words.end(), {"-I" + root + "/include", "-L" + root + "/lib", "-lmpi", "-Wl,-rpath," + root + "/lib"});
    if (launcher.empty() || !compile(intel ? "cc" : open ? "mpicc.openmpi" : "mpicc.mpich", words, peer, variables)) return {};
    std::vector<std::string> command{launcher};
    if (open) command.emplace_back("--oversubscribe");
    if (open && ::getuid() == 0) command.emplace_back("--allow-run-as-root");
    command.insert(command.end(), {"-n", count, program, folder, peer});
    return {command};
}

/// Uses the oneCCL in the prefix CCL_ROOT: the caller's thread does its work, and its ranks meet over sockets.
commands oneccl_commands(int ranks, std::string const& folder, environment const& variables) {
    std::string const root = variables.get_or("CCL_ROOT", ""), program = folder + "/oneccl", bodies = folder + "/oneccl.o";
    if (root.empty()) return {};
    auto const header = write_peer_file(folder, "oneccl_mpi.h", "mpi.h"),
               source = write_peer_file(folder, "mpi_collectives.c", "oneccl.c");
    if (!compile("c++", {"-std=c++17", "-DONECCL_MPI_BODIES", "-I" + root + "/include", "-c", "-o", bodies, "-x", "c++", header},
                 "oneccl", variables) ||
        !compile("cc", {"-I" + folder, "-c", "-o", program + ".c.o", source}, "oneccl", variables) ||
        !compile("c++",
                 {"-o", program, program + ".c.o", bodies, "-L" + root + "/lib", "-lccl", "-Wl,-rpath," + root + "/lib",
                  "-Wl,--disable-new-dtags,--allow-shlib-undefined"},
                 "oneccl", variables))
        return {};
    commands all;
    for (int rank = 0; rank < ranks; ++rank)
        all.push_back({"/usr/bin/env", fmt::format("RANK={}", rank), fmt::format("RANKS={}", ranks), "PEER_FOLDER=" + folder,
                       "CCL_ATL_TRANSPORT=ofi", "CCL_WORKER_OFFLOAD=0", program, folder, "oneccl"});
    return all;
}

/// Empty where the library is not here.
commands peer_commands(std::string const& peer, collectives_plan const& what, int ranks, std::string const& folder,
                       environment const& variables) {
    auto const count = std::to_string(ranks);
    if (peer == "raw-nccl") return own_command(what, peer, peer, count, folder, memory_of_tensors::device);
    if (peer == "gloo") return gloo_commands(what, ranks, folder, variables);
    if (peer == "oneccl") return oneccl_commands(ranks, folder, variables);
    return mpi_commands(peer, count, folder, variables);
}

}  // namespace

/// Compiles the MPI peers with each compiler that is found and starts everything that the plan names; what cannot be started is
/// left out, with a note on standard error. `folder` is for their files.
std::vector<contender> start_contenders(collectives_plan const& what, int ranks, std::string const& folder,
                                        environment const& variables) {
    std::vector<contender> all;
    auto const add = [&](std::string const& name, bool own, memory_of_tensors memory, commands const& start) {
        if (start.empty()) return;
        bool const simulated = name.starts_with("hierarchical") && what.nodes > 1;
        contender next{{name, "", own, memory, simulated}, nullptr, {}};
        try {
            next.job = std::make_unique<collectives_job>(folder, name, ranks, start, variables);
            next.facts.version = next.job->version(start_deadline);
        } catch (error const& problem) {
            fmt::print(stderr, "muster-bench: note: a contender is left out: {}\n", problem.what());
            return;
        }
        all.push_back(std::move(next));
    };
    auto const count = std::to_string(ranks);
    auto const add_own = [&](std::string const& name, std::string const& backend, memory_of_tensors memory) {
        auto const before = all.size();
        add(name, true, memory, own_command(what, name, backend, count, folder, memory));
        if (all.size() > before && (backend == "shm" || backend == "mpi")) all.back().backend = backend;
    };
    for (auto const& backend : what.backends) {
        if (what.plain || !shares_memory(backend))
            add_own(backend, backend, backend == "nccl" ? memory_of_tensors::device : memory_of_tensors::plain);
        if (what.allocated && shares_memory(backend)) add_own(backend + "-allocated", backend, memory_of_tensors::allocated);
    }
    for (auto const& peer : what.peers)
        add(peer, false, peer == "raw-nccl" ? memory_of_tensors::device : memory_of_tensors::plain,
            peer_commands(peer, what, ranks, folder, variables));
    return all;
}

namespace {

constexpr option_row collectives_options[]{
    {"ranks", 0, "LIST", "numbers of ranks that it starts; not under muster run, as are not the options of peers", "2"},
    {"op", 0, "LIST", "allreduce, allgather, broadcast, reducescatter, alltoall, all, or none", "allreduce", false,
     "allreduce allgather broadcast reducescatter alltoall all none"},
    {"type", 'd', "LIST", "f32, f64, f16, bf16, i32, i64, u8, i8, or all", "f32", false, "f32 f64 f16 bf16 i32 i64 u8 i8 all"},
    {"reduction", 'o', "LIST", "of allreduce and reducescatter: sum, prod, min, max, avg, or all", "sum", false,
     "sum prod min max avg all"},
    {"root", 'r', "RANK", "of broadcast", "0"},
    {"backend", 0, "LIST",
     "muster's: shm, mpi, tcp, hierarchical, nccl, none, or all: shm, mpi, and nccl where there is a GPU; under muster run one "
     "of the first four, or what a program would get",
     "all", false, "shm mpi tcp hierarchical nccl none all"},
    {"memory", 0, "WHICH",
     "of shm's and hierarchical's tensors: plain, allocated (rows shm-allocated …), or both; under muster run plain", "both",
     false, "plain allocated both"},
    {"peers", 0, "LIST",
     "openmpi, mpich, impi (its prefix in I_MPI_ROOT), oneccl (in CCL_ROOT), gloo, raw-nccl, none, or all that are here", "all",
     false, "openmpi mpich impi oneccl gloo raw-nccl none all"},
    {"min", 'b', "SIZE", "smallest tensor: the larger of a rank's input and output, as nccl-tests counts", "8"},
    {"max", 'e', "SIZE", "largest tensor, and message", "128MiB"},
    {"factor", 'f', "N", "from one size to the next", "2"},
    {"time", 0, "TIME", "no further sizes of a table after this time; under muster run 30s", "2min"},
    {"pair", 0, "RANK,RANK", "two ranks that send each other messages, or none; default: the first and the last", ""},
    {"gradients", 0, "NAME", "the tensors of resnet50, cifar, cifar10, mnist or gpt2 instead of sizes", "", false,
     "resnet50 cifar cifar10 mnist gpt2"},
    {"repeats", 0, "N", "samples of each, taking turns", "7"},
    {"pretend-nodes", 0, "N", "the hierarchical backend's ranks behave as if on N nodes: simulated, and marked so", "1"},
    {"python", 0, "PATH", "an interpreter with torch, for gloo", "/usr/bin/python3"},
    {"muster", 0, "PATH", "the launcher; default: muster in this program's folder", ""},
    {"csv", 0, "FILE", "a line for each size", ""},
    {"json", 0, "FILE",
     "every sample: a document for each table, of schema muster.collectives/1, and of messages muster.messages/1", ""},
    strict_option,
};

constexpr double sample_s = 0.02;
constexpr std::size_t sample_bytes = std::size_t{32} << 20;
constexpr std::size_t bound_bytes = std::size_t{64} << 20;

/// "tensors 3 2 64 128": three sets of two.
std::string order_of(int sets, std::vector<std::size_t> const& tensors) {
    std::string order = fmt::format("tensors {} {}", sets, tensors.size());
    for (auto const each : tensors) order += fmt::format(" {}", each);
    return order;
}

/// Makes as many sets as fill a sample, tries them once, and returns their number.
int prepare(ordered_ranks& job, std::vector<std::size_t> const& tensors, int in_place) {
    auto const try_once = [&](int seed) { return job.ask(fmt::format("run {} {}", seed, in_place), order_deadline); };
    job.ask(order_of(1, tensors), order_deadline);
    try_once(1);
    double const us = std::max(try_once(2).first, 0.2);
    std::size_t const bytes = std::accumulate(tensors.begin(), tensors.end(), std::size_t{0});
    double const room = static_cast<double>(sample_bytes) / static_cast<double>(std::max(bytes, std::size_t{4096}));
    int const calls = static_cast<int>(std::clamp(std::min(sample_s * 1e6 / us, room), 1.0, 4000.0));
    job.ask(order_of(calls, tensors), order_deadline);
    try_once(3);
    return calls;
}

void measure_set(collectives_plan const& what, std::vector<contender*>& all, std::vector<std::size_t> const& tensors,
                 collectives_results& results) {
    std::vector<int> places;
    for (int const in_place : {0, 1})
        if (results.of.has_place(in_place != 0)) places.push_back(in_place);
    std::vector<collectives_cell> cells;
    std::erase_if(all, [&](contender* each) {
        try {
            int const calls = prepare(*each->job, tensors, places.front());
            std::size_t const bytes = std::accumulate(tensors.begin(), tensors.end(), std::size_t{0});
            cells.push_back({each->facts.name, bytes, tensors.size(), calls});
            return false;
        } catch (error const& problem) {
            if (each->facts.own) throw;
            // A peer may lack what others of its kind have; its job then ends.
            results.notes.push_back(fmt::format("{} is left out from here on: {}", each->facts.name, problem.what()));
            each->job.reset();
            return true;
        }
    });
    for (int repeat = 0; repeat < what.repeats; ++repeat)
        for (int const in_place : places)
            for (std::size_t i = 0; i < all.size(); ++i) {
                auto const told = all[i]->job->ask(fmt::format("run {} {}", repeat * 2 + in_place + 4, in_place), order_deadline);
                auto& samples = in_place != 0 ? cells[i].in : cells[i].out;
                samples.us.push_back(told.first);
                samples.min_us.push_back(told.least);
                samples.avg_us.push_back(told.mean);
                samples.wrong += told.second;
            }
    for (auto* each : all) each->job->ask(order_of(1, {std::size_t{64}}), order_deadline);  // frees the memory
    results.cells.insert(results.cells.end(), cells.begin(), cells.end());
}

std::size_t smallest(std::vector<std::size_t> const& tensors) {
    return tensors.front();
}
std::size_t smallest(std::size_t bytes) {
    return bytes;
}

/// Calls measure(size) from the smallest on, until the time is over.
template <typename Sizes, typename Measure>
void for_sizes(collectives_plan const& what, std::string_view of, Sizes const& sizes, std::vector<std::string>& notes,
               Measure&& measure) {
    auto const until = std::chrono::steady_clock::now() + what.time;
    for (auto const& size : sizes) {
        if (std::chrono::steady_clock::now() > until) {
            notes.push_back(fmt::format("{}: {} and larger were left out, since --time {} was over", of,
                                        format_bytes(smallest(size)), format_duration(what.time)));
            return;
        }
        measure(size);
    }
}

/// Takes results as they come: prints them at once, and writes files at the end.
class outcome {
  public:
    template <typename Results>
    void add(Results const& results) {
        fmt::print("{}\n", describe(results));
        std::fflush(stdout);
        documents_.push_back(to_json(results));
        csv_ += to_csv(results);
        if (!all_right(results)) good_ = false;
    }

    /// Writes the files that were asked for. The exit code.
    int end(collectives_plan const& what, machine_load const& load) {
        for (auto& each : documents_) each["load"] = to_json(load);
        fmt::print("{}", busy_line(load));
        if (!what.json.empty())
            write_output_file(what.json, documents_.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                              "give another file with --json");
        if (!what.csv.empty()) write_output_file(what.csv, csv_, "give another file with --csv");
        if (!good_) fmt::print(stderr, "muster-bench: error: results are wrong: see the columns #wrong\n");
        return good_ ? 0 : 1;
    }

  private:
    nlohmann::ordered_json documents_ = nlohmann::ordered_json::array();
    std::string csv_ = csv_head();
    bool good_ = true;
};

measured_place here_and_now(std::string const& command, std::vector<std::string> hosts) {
    return {utc_now(), command, describe_machine(), load_average(), std::move(hosts)};
}

/// The pair that was asked for, or the first and the last rank; where these are on two nodes, also one on the first's.
std::vector<std::pair<int, int>> pairs_of(collectives_plan const& what, std::vector<std::string> const& hosts) {
    if (!what.messages || hosts.size() < 2) return {};
    if (what.pair) return {*what.pair};
    std::vector<std::pair<int, int>> out{{0, static_cast<int>(hosts.size()) - 1}};
    auto const near = std::ranges::find(hosts.begin() + 1, hosts.end(), hosts.front());
    if (hosts.front() != hosts.back() && near != hosts.end()) out.emplace_back(0, static_cast<int>(near - hosts.begin()));
    return out;
}

/// Messages between two ranks of each of muster's backends that has them.
void measure_pairs(collectives_plan const& what, std::vector<contender>& all, measured_place const& at, outcome& found) {
    std::set<std::string> done{""};
    for (auto& each : all) {
        if (!done.insert(each.backend).second) continue;
        for (auto const& [first, second] : pairs_of(what, at.hosts)) {
            messages_results results{at, each.backend, each.facts.version, first, second, {}, {}};
            each.job->ask(fmt::format("pair {} {}", first, second), order_deadline);
            for_sizes(what, "messages", what.sizes, results.notes,
                      [&](std::size_t bytes) { results.sizes.push_back(measure_messages(*each.job, bytes, what.repeats)); });
            each.job->ask("pair -1 -1", order_deadline);  // frees the memory
            found.add(results);
        }
    }
}

/// Tells those that have such a collective the case; notes why the others are left out.
std::vector<contender*> choose_contenders(std::vector<contender>& all, collectives_results& results) {
    std::vector<contender*> chosen;
    for (auto& each : all) {
        if (!each.job) continue;
        if (auto const lack = each.facts.own ? std::string{} : peer_lacks(each.facts.name, results.of); !lack.empty()) {
            results.notes.push_back(fmt::format("{} is left out: {}", each.facts.name, lack));
            continue;
        }
        each.job->ask(to_order(results.of, rule_for(results.of, results.ranks)), order_deadline);
        results.jobs.push_back(each.facts);
        chosen.push_back(&each);
    }
    return chosen;
}

/// Measures all that the plan names with ranks that have been started. `common` is what all results share.
void measure(collectives_plan const& what, std::vector<contender>& all, collectives_results const& common, outcome& found) {
    for (auto const& of : what.cases) {
        auto results = common;
        results.of = of;
        auto chosen = choose_contenders(all, results);
        if (!chosen.empty())
            for_sizes(what, to_string(of.what), tensor_sets(what, of, common.ranks), results.notes,
                      [&](auto const& tensors) { measure_set(what, chosen, tensors, results); });
        found.add(results);
    }
    measure_pairs(what, all, common, found);
}

/// Measures the command's own ranks and those of the peers.
void measure_started(collectives_plan const& what, int ranks, std::string const& command, environment const& variables,
                     outcome& found) {
    temporary_folder const folder("muster-collectives", variables);
    collectives_results common{here_and_now(command, {}), {}, ranks, what.gradients, {}, {}, 0, 0, {}};
    common.hosts.assign(static_cast<std::size_t>(ranks), common.machine.host);
    auto all = start_contenders(what, ranks, folder.path(), variables);
    if (all.empty())
        throw error(errc::unavailable, "nothing to measure: no backend and no peer could be started; their messages are above");
    if (all.front().facts.own) {
        auto const told = all.front().job->ask(fmt::format("bound {}", bound_bytes), order_deadline);
        double const gigabytes = static_cast<double>(bound_bytes) * ranks / 1e9;
        common.memcpy_gbs = gigabytes / told.first * 1e6;
        common.triad_gbs = 3 * gigabytes / (told.second / ranks) * 1e6;
    }
    measure(what, all, common, found);
}

/// Returns the name. Orders and tensors of a job's ranks are in host memory. Throws errc::usage for a backend that takes none there.
std::string backend_of_job(std::string const& name) {
    constexpr std::string_view on_host[]{"shm", "mpi", "tcp", "hierarchical"};
    if (std::ranges::find(on_host, name) == std::end(on_host))
        throw_error(errc::usage,
                    "--backend {}: under muster run it is one of {}; without muster run, on one node, others are measured, too",
                    name, fmt::join(on_host, ", "));
    return name;
}

/// The ranks of a job, of which this is one. Rank 0 measures, and the others follow its orders.
int measure_job(given_options const& given, identity const& who, std::string const& command) {
    auto const what = read_collectives_plan(given, who.world_size);
    crowd_watch const crowd;
    if (who.local_rank == 0) refuse_crowd(given, crowd.load(false));
    comm_options options;
    if (given.has("backend")) options.backend = backend_of_job(given.text("backend"));
    auto const memory = what.allocated ? memory_of_tensors::allocated : memory_of_tensors::plain;
    ordered_rank mine(who, options, 1, memory);
    if (who.rank != 0) {
        follow_rank_0(mine);
        return 0;
    }
    auto ranks = std::make_unique<ranks_of_job>(mine);
    auto& others = *ranks;
    std::string const backend(mine.over().backend()), why = mine.over().why_backend();
    std::vector<contender> all;
    all.push_back({{backend, mine.version(), true, memory, false}, std::move(ranks), backend});
    std::vector<std::string> hosts;
    for (int rank = 0; rank < mine.size(); ++rank) hosts.push_back(mine.over().host_of(rank));
    collectives_results common{here_and_now(command, hosts), {}, mine.size(), what.gradients, {}, {}, 0, 0, {}};
    common.notes.push_back(why.substr(0, why.find(';')));
    if (mine.size() == 1) common.notes.emplace_back("one rank alone: nothing is sent; start it with muster run");
    outcome found;
    measure(what, all, common, found);
    others.end();
    return found.end(what, crowd.load(false));
}

}  // namespace

constexpr command_row collectives_row{
    .name = "collectives",
    .summary = "collectives compared with Open MPI, MPICH, Intel MPI, oneCCL, Gloo and NCCL, or among the ranks of a job",
    .synopsis = "[options]",
    .examples =
        "  muster-bench collectives                               allreduce of 8 B to 128 MiB on 2 ranks, with all peers here\n"
        "  muster-bench collectives --op all --type f32,bf16      every collective on two types\n"
        "  muster-bench collectives --gradients resnet50          the tensors of a network instead, one after the other\n"
        "  muster run -- muster-bench collectives                 collectives and messages over the nodes of an allocation\n",
    .options = collectives_options,
    .description =
        "Measures collectives of muster's backends. By itself it starts the ranks, and compares them with other libraries of\n"
        "this machine; under muster run it is each of the ranks that muster run has started.",
    .closing = R"(
Columns as in nccl-tests: busbw is algbw x 2(n-1)/n for allreduce, x (n-1)/n for all others except broadcast; 1 GB/s is 1e9 B/s.
A sample refills all buffers, calls once for each buffer and waits, and checks every element of the results; its time is that
of the slowest rank, divided by the calls. broadcast has no out of place, alltoall no in place. All ranks of all libraries stay
alive and sleep while another has its turn.
Peers have plain memory; the MPI ones are compiled by mpicc.openmpi and mpicc.mpich, or against I_MPI_ROOT. Gloo reduces in place only: out of place its
copy counts. Allocated memory is that of communicator::allocate(), which the ranks of a node share. The hierarchical backend
refuses one node: give --pretend-nodes. nccl and raw-nccl have not run on several GPUs yet.
The bound is the time of STREAM's triad, measured in the same run, over the bytes that must be moved; of an allreduce in allocated
memory that is only S 2P, so that more than 100% can come of it.
min, avg and max are over the ranks, of the mean time of a call in a sample, as in the OSU micro-benchmarks; each is a median of the
samples. Messages go by sendrecv: latency is half of there and back; for bandwidth a window of up to 64 messages is on its
way at a time (fewer where they exceed 64 MiB), each window answered by one byte; 1 MB/s is 1e6 bytes/s; both ways counts the bytes of
both.
)",
};

int collectives_command(given_options const& given, environment const& variables, std::string const& line) {
    if (auto const who = identify(variables); who.from != identity::source::singleton) return measure_job(given, who, line);
    auto const what = read_collectives_plan(given, {});
    crowd_watch const crowd;
    refuse_crowd(given, crowd.load(false));
    outcome found;
    for (int const ranks : what.ranks) measure_started(what, ranks, line, variables, found);
    return found.end(what, crowd.load(true));  // once all processes that were measured have ended
}

}  // namespace muster
