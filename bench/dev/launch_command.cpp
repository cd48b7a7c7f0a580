#include "bench/dev/dev_commands.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

struct timed_result {
    duration wall{0};
    int exit_code = 0;        ///< 128+n for signal n
    bool timed_out = false;   ///< killed, with its process group, at the deadline
    std::string last_line{};  ///< of its standard error, where it did not end well
};

namespace {

using clock = std::chrono::steady_clock;

/// Starts it in its own process group, so that all of it can be killed; a descriptor that is not given is /dev/null.
pid_t start(std::vector<std::string> const& command, environment const& variables, int output_fd = -1, int error_fd = -1) {
    return start_process({.path = command.front(),
                          .arguments = &command,
                          .variables = &variables,
                          .working_dir = "",
                          .stdout_fd = output_fd,
                          .stderr_fd = error_fd,
                          .cores = {},
                          .open_files = {},
                          .death_signal = SIGTERM});
}

/// The last line of what was written there that holds anything, without control characters.
std::string last_line_of(int file) {
    char text[4096];
    auto const size = ::lseek(file, 0, SEEK_END);
    auto const from = std::max<off_t>(0, size - static_cast<off_t>(sizeof text));
    auto const got = ::pread(file, text, sizeof text, from);
    std::string last;
    for (auto const line : split(std::string_view(text, static_cast<std::size_t>(std::max<ssize_t>(0, got))), '\n'))
        if (!trim(line).empty()) last = without_controls(std::string(trim(line)));
    return last;
}

int shell_code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

unique_fd pidfd_of(pid_t pid, std::string const& name) {
    unique_fd end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (end) return end;
    int const code = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw_system("pidfd_open", "of " + name, code, "this needs Linux 5.3 or later");
}

bool readable(int fd, std::chrono::time_point<clock, duration> limit) {
    pollfd wait{fd, POLLIN, 0};
    int ready = 0;
    do {
        duration const left = limit - clock::now();
        ready = ::poll(&wait, 1, std::max(0, static_cast<int>(std::ceil(left.count() * 1000))));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return shell_code(status);
}

}  // namespace

/// "exit code 127: sh: no such program", "hung: …". Pure.
std::string failure_text(timed_result const& ended) {
    auto const how = ended.timed_out ? std::string("hung") : fmt::format("exit code {}", ended.exit_code);
    return ended.last_line.empty() ? how : fmt::format("{}: {}", how, ended.last_line);
}

/// Starts `command` (argv[0] is a path), with its output thrown away and its standard error kept in memory, and waits. The clock runs from before vfork to after waitpid.
/// Throws errc::system, program_error.
timed_result run_timed(std::vector<std::string> const& command, environment const& variables, duration deadline) {
    unique_fd const errors(::memfd_create("standard error", MFD_CLOEXEC));
    auto const before = clock::now();
    pid_t const pid = start(command, variables, -1, errors.get());
    timed_result result;
    auto const end = pidfd_of(pid, command.front());
    if (!readable(end.get(), before + deadline)) {
        result.timed_out = true;
        ::kill(-pid, SIGKILL);
    }
    result.exit_code = wait_for(pid);
    result.wall = clock::now() - before;
    if (errors && (result.timed_out || result.exit_code != 0)) result.last_line = last_line_of(errors.get());
    return result;
}

/// The same, but the clock runs from the first byte of its standard output, a pipe to this program; its standard error is thrown
/// away. A command that ends without having printed anything has the `wall` 0.
timed_result run_timed_from_output(std::vector<std::string> const& command, environment const& variables, duration deadline) {
    auto [output, input] = make_pipe();
    auto const limit = clock::now() + deadline;
    pid_t const pid = start(command, variables, input.get());
    input.reset();
    auto const end = pidfd_of(pid, command.front());
    timed_result result;
    auto first = clock::time_point::max();
    char bytes[4096];
    while (readable(output.get(), limit)) {
        auto const n = ::read(output.get(), bytes, sizeof bytes);
        if (n > 0 && first == clock::time_point::max()) first = clock::now();
        if (n == 0 || (n < 0 && errno != EINTR)) break;
    }
    if (!readable(end.get(), limit)) {
        result.timed_out = true;
        ::kill(-pid, SIGKILL);
    }
    result.exit_code = wait_for(pid);
    if (first != clock::time_point::max()) result.wall = clock::now() - first;
    return result;
}

/// The least that any launcher can take: `count` times vfork and exec of `command`, then waiting for all. Wall time.
duration run_bare(std::vector<std::string> const& command, environment const& variables, int count) {
    auto const before = clock::now();
    std::vector<pid_t> pids;
    for (int i = 0; i < count; ++i) pids.push_back(start(command, variables));
    for (auto const pid : pids) ::waitpid(pid, nullptr, 0);
    return clock::now() - before;
}

/// The first line or sentence of what MPI says of itself, for example "Open MPI v4.1.4". May be called without MPI being
/// initialised.
std::string mpi_library_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
    std::string_view const whole(text.data());
    return std::string(whole.substr(0, whole.find_first_of(",\n")));
}

namespace {

constexpr option_row launch_options[]{
    {"ranks", 0, "LIST", "numbers of ranks for /bin/true", "32"},
    {"mpi-ranks", 0, "LIST", "numbers of ranks for MPI_Init + MPI_Finalize; 0: without it", "8"},
    {"output-mib", 0, "N", "MiB of text lines that a rank prints, through muster and through a pipe alone; 0: without it", "256"},
    {"repeats", 0, "N", "runs of each, taking turns", "15"},
    {"slurm", 0, "", "inside a Slurm job: over its nodes, compared with a bare srun of the same programs and layout", ""},
    {"endurance", 0, "N", "N runs of muster run -- /bin/true with a deadline of 15 s each, and nothing else", ""},
    {"muster", 0, "PATH", "the launcher; default: muster in this program's folder", ""},
    {"json", 0, "FILE", "every run (schema muster.launch/1)", ""},
    strict_option,
};

constexpr duration deadline{15};

struct peer {
    std::string name;
    std::vector<std::string> before;  ///< command up to the number of ranks
    std::vector<std::string> after;   ///< between that and the program
    environment variables;
};

struct measured {
    std::vector<double> wall_s;
    int failed = 0;
    int hung = 0;
    std::string failure;  ///< why the first that did not end well did not
};

std::string beside_this(std::string const& name) {
    return (self_program().parent_path() / name).string();
}

/// Returns muster-bench-mpi in the folder of this program; "" if it was not built, with the reason on standard error: there is then no table of MPI programs.
std::string mpi_start_program() {
    auto const own = beside_this("muster-bench-mpi");
    if (::access(own.c_str(), X_OK) == 0) return own;
    fmt::print(
        stderr,
        "muster-bench-dev: error: MPI_Init + MPI_Finalize is left out: there is no muster-bench-mpi at {}; "
        "build the target muster-bench-mpi, or give --mpi-ranks 0\n",
        own);
    return {};
}

std::vector<peer> find_peers(std::string const& muster_path, environment const& variables) {
    std::vector<peer> peers{{fmt::format("muster {}", version()), {muster_path, "run", "-q", "-n"}, {"--"}, variables}};
    if (auto const path = find_program_or_nothing("mpirun.openmpi", variables); !path.empty()) {
        peer p{"mpirun (" + mpi_library_version() + ")", {path, "--oversubscribe"}, {}, variables};
        if (::getuid() == 0) p.before.emplace_back("--allow-run-as-root");
        p.before.emplace_back("-n");
        peers.push_back(p);
    }
    if (auto const path = find_program_or_nothing("mpiexec.hydra", variables); !path.empty())
        peers.push_back({"mpiexec.hydra", {path, "-n"}, {}, variables});
    return peers;
}

/// Removes what salloc and sbatch have set for an srun that is given nothing else: SLURM_CPUS_PER_TASK, SLURM_TRES_BIND,
/// SLURM_DISTRIBUTION and their like would make of this step another one than muster's. It asks Slurm for the job by its number.
environment variables_of_srun(environment variables) {
    auto const job = variables.get_or("SLURM_JOB_ID", ""), conf = variables.get_or("SLURM_CONF", "");
    for (auto const* const prefix : {"SLURM_", "SRUN_"}) variables.unset_prefix(prefix);
    if (!job.empty()) variables.set("SLURM_JOB_ID", job);
    if (!conf.empty()) variables.set("SLURM_CONF", conf);
    return variables;
}

/// muster, and srun with the layout that muster chooses: the same number of ranks on each node.
std::vector<peer> slurm_peers(std::string const& muster_path, int ranks, environment const& variables) {
    auto const told = variables.get("SLURM_JOB_NUM_NODES");
    auto const path = find_program_or_nothing("srun", variables);
    if (!told || path.empty())
        throw error(errc::unavailable, fmt::format("--slurm: this is no Slurm job ({}); start it by salloc or sbatch",
                                                   path.empty() ? "there is no srun" : "SLURM_JOB_NUM_NODES is not set"));
    int const nodes = parse_list(*told, "SLURM_JOB_NUM_NODES", 1, 100'000).front();
    if (ranks % nodes != 0)
        throw error(errc::usage, fmt::format("{} ranks on {} nodes: give a multiple of {}", ranks, nodes, nodes));
    auto const each = std::to_string(ranks / nodes);
    return {{fmt::format("muster {}", version()), {muster_path, "run", "-q", "--ranks-per-node", each, "-n"}, {"--"}, variables},
            {"srun",
             {path, "-Q", "--mpi=pmix", "--overlap", "--nodes=" + *told, "--ntasks-per-node=" + each, "-n"},
             {},
             variables_of_srun(variables)}};
}

std::vector<std::string> command_of(peer const& p, int ranks, std::string const& program) {
    auto command = p.before;
    command.push_back(std::to_string(ranks));
    command.insert(command.end(), p.after.begin(), p.after.end());
    command.push_back(program);
    return command;
}

/// One rank in the middle prints a line and kills itself while the others sleep: wall time from its line to the end of the run.
void compare_deaths(int ranks, std::vector<peer> peers, int repeats, nlohmann::ordered_json& records) {
    peers.back().before.insert(peers.back().before.end() - 1, "--kill-on-bad-exit=1");  // srun's option for the same
    auto const script = fmt::format("[ \"$SLURM_PROCID\" = {} ] || exec sleep 1000; sleep 1; echo dying; kill -9 $$", ranks / 2);
    std::map<std::string, std::vector<double>> times;
    for (int i = 0; i < repeats; ++i)
        for (auto const& p : peers) {
            auto command = command_of(p, ranks, "sh");
            command.insert(command.end(), {"-c", script});
            auto const r = run_timed_from_output(command, p.variables, deadline);
            if (r.timed_out || r.wall.count() == 0) {
                fmt::print(stderr, "muster-bench-dev: note: {} ended with exit code {}: {}\n", p.name, r.exit_code,
                           r.timed_out ? "it hung" : "the rank did not run");
                continue;
            }
            times[p.name].push_back(r.wall.count());
            records.push_back({{"what", "death"},
                               {"ranks", ranks},
                               {"launcher", p.name},
                               {"repetition", i},
                               {"wall_s", r.wall.count()},
                               {"exit_code", r.exit_code},
                               {"simulated", false}});
        }
    std::vector<std::vector<std::string>> rows{
        {"a rank kills itself: ms to the end of the run", "median", "smallest", "largest"}};
    for (auto const& p : peers) {
        if (times[p.name].empty()) continue;
        auto const s = summarise(times[p.name]);
        rows.push_back({p.name, fmt::format("{:.1f}", s.median * 1e3), fmt::format("{:.1f}", s.smallest * 1e3),
                        fmt::format("{:.1f}", s.largest * 1e3)});
    }
    fmt::print("{} rank{}, medians of {} run{} taking turns\n{}\n", ranks, s_of(ranks), repeats, s_of(repeats),
               align_columns(rows));
}

void record(measured& m, timed_result const& r) {
    if ((r.timed_out || r.exit_code != 0) && m.failure.empty()) m.failure = failure_text(r);
    if (r.timed_out)
        ++m.hung;
    else if (r.exit_code != 0)
        ++m.failed;
    else
        m.wall_s.push_back(r.wall.count());
}

/// One table: a program on a number of ranks by each launcher, taking turns. Returns false if a run of muster's did not end well.
bool compare(std::string const& title, std::string const& program, int ranks, bool bare, std::vector<peer> const& peers,
             int repeats, environment const& variables, nlohmann::ordered_json& records) {
    std::map<std::string, measured> results;
    for (int i = 0; i <= repeats; ++i) {  // the first round is not counted
        if (bare) {
            auto const wall = run_bare({program}, variables, ranks);
            if (i > 0) results["bare"].wall_s.push_back(wall.count());
        }
        for (auto const& p : peers) {
            auto const r = run_timed(command_of(p, ranks, program), p.variables, deadline);
            if (i == 0 && r.exit_code == 0) continue;
            record(results[p.name], r);
            records.push_back({{"what", title},
                               {"ranks", ranks},
                               {"launcher", p.name},
                               {"repetition", i},
                               {"wall_s", r.wall.count()},
                               {"exit_code", r.exit_code},
                               {"hung", r.timed_out},
                               {"last_line", r.last_line},
                               {"simulated", false}});
        }
    }
    fmt::print("{}, {} rank{}: wall ms, medians of {} run{} taking turns\n", title, ranks, s_of(ranks), repeats, s_of(repeats));
    std::vector<std::vector<std::string>> rows{{"launcher", "median", "smallest", "largest", "muster/this", "failed", "hung"}};
    auto const own = results[peers.front().name].wall_s;
    auto const row = [&](std::string const& name) {
        auto const& m = results[name];
        if (m.wall_s.empty()) {
            rows.push_back({name, "-", "-", "-", "-", std::to_string(m.failed), std::to_string(m.hung)});
            return;
        }
        auto const s = summarise(m.wall_s);
        rows.push_back({name, fmt::format("{:.1f}", s.median * 1e3), fmt::format("{:.1f}", s.smallest * 1e3),
                        fmt::format("{:.1f}", s.largest * 1e3),
                        own.empty() || name == peers.front().name ? "-" : format_ratio(ratio_of(summarise(own), s)),
                        std::to_string(m.failed), std::to_string(m.hung)});
    };
    if (bare) row("bare");
    for (auto const& p : peers) row(p.name);
    fmt::print("{}", align_columns(rows));
    for (auto const& p : peers)
        if (auto const& m = results[p.name]; !m.failure.empty())
            fmt::print("{}: {} of {} runs did not end well; the first: {}\n", p.name, m.failed + m.hung,
                       m.failed + m.hung + static_cast<int>(m.wall_s.size()), m.failure);
    fmt::print("\n");
    if (auto const& other = results[peers.back().name].wall_s; peers.back().name == "srun" && !own.empty() && !other.empty())
        fmt::print("muster run adds {:.0f} ms to srun\n\n", (median(own) - median(other)) * 1e3);
    std::fflush(stdout);
    auto const& muster_runs = results[peers.front().name];
    return muster_runs.failed == 0 && muster_runs.hung == 0;
}

/// The cost of forwarding for a rank that prints as fast as it can: the same program read through a pipe with and without muster.
void compare_output(std::string const& muster_path, int mib, int repeats, environment const& variables,
                    nlohmann::ordered_json& records) {
    std::string const program =
        fmt::format("yes 'epoch 3 step 1200 loss 0.5193 images/s 15612.3 wait 0.4 ms' | head -c {}M", mib);
    std::vector<std::string> const plain{"sh", "-c", program};
    std::vector<std::string> const through{muster_path, "run", "-q", "-n", "1", "--", "sh", "-c", program};
    std::vector<std::string> const tagged{muster_path, "run", "-q", "-n", "1", "--tag-output", "--", "sh", "-c", program};
    std::vector<std::pair<std::string, std::vector<std::string>>> const ways{
        {"a pipe alone", plain}, {"muster run", through}, {"muster run --tag-output", tagged}};
    auto how = foreground();
    how.output_limit = (static_cast<std::size_t>(mib) + 1) << 20;
    std::map<std::string, std::vector<double>> rates;
    for (int i = 0; i < repeats; ++i)
        for (auto const& [name, command] : ways) {
            auto const r = run_program(command, variables, how);
            if (r.exit_status != 0 || r.out.size() < static_cast<std::size_t>(mib) << 20)
                throw error(errc::internal, fmt::format("{}: exit code {}, and {} bytes of {} MiB were received", name,
                                                        r.exit_status, r.out.size(), mib));
            rates[name].push_back(static_cast<double>(mib) * 1.048576 / r.wall.count());
            records.push_back({{"what", "output"},
                               {"launcher", name},
                               {"repetition", i},
                               {"mib", mib},
                               {"wall_s", r.wall.count()},
                               {"simulated", false}});
        }
    std::vector<std::vector<std::string>> rows{{"one rank prints through", "MB/s", "smallest", "largest", "this/pipe"}};
    for (auto const& [name, command] : ways) {
        auto const s = summarise(rates[name]);
        rows.push_back({name, fmt::format("{:.0f}", s.median), fmt::format("{:.0f}", s.smallest),
                        fmt::format("{:.0f}", s.largest), fmt::format("{:.2f}", s.median / median(rates["a pipe alone"]))});
    }
    fmt::print("{} MiB of lines, medians of {} run{} taking turns (1 MB = 1e6 bytes)\n{}\n", mib, repeats, s_of(repeats),
               align_columns(rows));
}

int endure(peer const& muster_peer, std::vector<int> const& ranks, int runs) {
    int bad = 0;
    for (int const n : ranks) {
        measured m;
        for (int i = 0; i < runs; ++i)
            record(m, run_timed(command_of(muster_peer, n, "/bin/true"), muster_peer.variables, deadline));
        bad += m.failed + m.hung;
        auto const s = m.wall_s.empty() ? summary{} : summarise(m.wall_s);
        fmt::print("{} run{} of {} rank{}: {} hung, {} failed; median {:.1f} ms, longest {:.1f} ms\n", runs, s_of(runs), n,
                   s_of(n), m.hung, m.failed, s.median * 1e3, s.largest * 1e3);
        if (!m.failure.empty()) fmt::print("the first that did not end well: {}\n", m.failure);
    }
    return bad == 0 ? 0 : 1;
}

void write_json(std::string const& path, machine_load const& load, nlohmann::ordered_json const& records) {
    auto const machine = describe_machine();
    nlohmann::ordered_json const document{{"schema", "muster.launch/1"},
                                          {"created", utc_now()},
                                          {"context", machine_json(machine)},
                                          {"load", to_json(load)},
                                          {"runs", records}};
    write_output_file(path, document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                      "give another file with --json");
}

}  // namespace

constexpr command_row launch_row{
    .name = "launch",
    .summary = "start and end of ranks by muster, mpirun and Hydra, taking turns",
    .synopsis = "[options]",
    .examples =
        "  muster-bench-dev launch                                  /bin/true on 32 ranks, MPI_Init + MPI_Finalize on 8\n"
        "  muster-bench-dev launch --endurance 200 --ranks 128      only muster, looking for hangs\n",
    .options = launch_options,
    .description = "Measures how long it takes to start and end ranks.",
    .closing = R"(
Wall time from before the launcher is started until it has ended. bare: vfork and exec of the same processes by this program, the
least that any launcher can take. A run that has not ended after 15 s counts as hung and is killed; mpirun 4.1 hangs now and then
on ranks that end at once.
With --slurm it also measures how long a run lasts after the death of one rank. Each node gets as many ranks: give --ranks and
--mpi-ranks (a rank a GPU: nodes x GPUs).
)",
};

int launch_command(given_options const& given, environment const& variables) {
    auto const ranks = parse_list(given.text("ranks"), "--ranks", 1, 1024);
    auto const mpi_ranks =
        given.text("mpi-ranks") == "0" ? std::vector<int>{} : parse_list(given.text("mpi-ranks"), "--mpi-ranks", 1, 1024);
    int const repeats = count_of(given, "repeats");
    auto const muster_path = launcher_of(given);
    auto const peers = find_peers(muster_path, variables);
    crowd_watch const crowd;
    refuse_crowd(given, crowd.load(false));
    if (given.has("endurance")) return endure(peers.front(), ranks, count_of(given, "endurance"));

    auto const machine = describe_machine();
    bool const slurm = given.has("slurm");
    fmt::print("{}, {} cores, load {:.1f}\n\n", machine.processor, machine.cores, load_average());
    auto records = nlohmann::ordered_json::array();
    bool good = true;
    auto const table = [&](std::string const& title, std::string const& program, int n, std::vector<peer> const& by) {
        good = compare(title, program, n, !slurm && program == "/bin/true", by, repeats, variables, records) && good;
    };
    for (int const n : ranks) table("/bin/true", "/bin/true", n, slurm ? slurm_peers(muster_path, n, variables) : peers);
    if (!mpi_ranks.empty()) {
        auto const program = mpi_start_program();
        // Hydra starts MPICH programs; this one is Open MPI's.
        std::vector<peer> const open_mpi_peers(
            peers.begin(), peers.begin() + std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(peers.size())));
        good = good && !program.empty();
        if (!program.empty())
            for (int const n : mpi_ranks)
                table("MPI_Init + MPI_Finalize", program, n, slurm ? slurm_peers(muster_path, n, variables) : open_mpi_peers);
    }
    if (slurm)
        compare_deaths(ranks.front(), slurm_peers(muster_path, ranks.front(), variables), repeats, records);
    else if (int const mib = count_of(given, "output-mib", 0); mib > 0)
        compare_output(muster_path, mib, std::min(repeats, 5), variables, records);
    auto const load = crowd.load(!slurm);
    fmt::print("{}", busy_line(load));
    if (given.has("json")) write_json(given.text("json"), load, records);
    return good ? 0 : 1;
}

}  // namespace muster
