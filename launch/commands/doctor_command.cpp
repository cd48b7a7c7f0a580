#include "launch/commands/commands.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>

#include "base/command/command_set.hpp"
#include "base/cpuset.hpp"
#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "launch/commands/doctor_job.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/help/help.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/run/guardian.hpp"
#include "launch/settings/parts.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/site_placement.hpp"
#include "launch/system/network.hpp"
#include "launch/system/session_dir.hpp"
#include "pmix/library/open_library.hpp"

namespace muster {

namespace {

using state = finding::state;

constexpr std::uint64_t shm_wanted_bytes = 64u << 20;
constexpr rlim_t files_wanted = 1024;
constexpr std::size_t widest_page = 80;
constexpr std::chrono::milliseconds python_limit{60'000};  ///< torch on a slow file system

void examine_machine(std::vector<finding>& all, environment const& variables, std::optional<int> gpus_of_job, bool verbose) {
    try {
        auto const t = discover_topology(short_host_name(), current_affinity(), variables);
        all.push_back({state::ok, "cores",
                       fmt::format("{} usable, CPUs {}{}", t.cores.size(), t.allowed().to_list(),
                                   t.cpu_quota ? fmt::format("; a CPU quota (cgroup) allows {} at a time", *t.cpu_quota) : ""),
                       t.cpu_quota
                           ? "ranks are counted by the quota and not bound; raise it (docker --cpus, Kubernetes' limits) for more"
                           : ""});
        if (t.gpus.empty()) all.push_back(describe_no_gpu(t, gpus_of_job, verbose));
        for (auto const& g : t.gpus)
            all.push_back(
                {state::ok, fmt::format("GPU {}", g.index), fmt::format("{} {} {} NUMA {}", g.name, g.uuid, g.pci, g.numa), ""});
    } catch (error const& e) {
        all.push_back({state::missing, "machine", e.what(), ""});
    }
}

/// Binds this process to what it may run on, which changes nothing. Returns errno of a refusal, or 0.
int try_affinity() {
    std::vector<cpu_set_t> mask(64);  // as many CPUs as no kernel has
    auto const bytes = mask.size() * sizeof(cpu_set_t);
    bool const bound = ::sched_getaffinity(0, bytes, mask.data()) > -1 && ::sched_setaffinity(0, bytes, mask.data()) == 0;
    return bound ? 0 : errno;
}

void examine_space(std::vector<finding>& all, std::string const& path) {
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0 || ::access(path.c_str(), W_OK) != 0) {
        all.push_back({state::missing, path, "not writable",
                       "mount it, or make it writable: the ranks keep sockets and shared memory there"});
        return;
    }
    std::uint64_t const free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    bool const enough = free_bytes >= shm_wanted_bytes;
    all.push_back({enough ? state::ok : state::note, path, format_bytes(free_bytes) + " free",
                   enough ? "" : "free some space, or give --shm-size to the container: MPI and data loaders may fail"});
}

void examine_limits(std::vector<finding>& all) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    bool const enough = files.rlim_max >= files_wanted;
    all.push_back({enough ? state::ok : state::note, "open files", fmt::format("{} (at most {})", files.rlim_cur, files.rlim_max),
                   enough ? "" : "raise the hard limit: 128 ranks need about 1024"});
}

void examine_host_name(std::vector<finding>& all) {
    auto const host = short_host_name();
    addrinfo* found = nullptr;
    int const rc = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
    if (found != nullptr) ::freeaddrinfo(found);
    if (rc == 0)
        all.push_back({state::ok, "host name", host + " resolves", ""});
    else
        all.push_back({state::note, "host name", fmt::format("{} does not resolve: {}", host, ::gai_strerror(rc)),
                       "add it to /etc/hosts: muster does not need it, other programs may"});
}

void examine_loopback(std::vector<finding>& all) {
    auto const interface = interface_that_has("127.0.0.1");
    bool const up = !interface.empty();
    all.push_back({up ? state::ok : state::note, "loopback",
                   up ? "127.0.0.1 on " + interface : "no interface that is up has 127.0.0.1",
                   up ? "" : "ip link set lo up: ranks and MPI programs of one node meet over it"});
}

struct program_row {
    char const* name;
    char const* what;
    char const* without;  ///< the advice if the program is missing
};
constexpr program_row programs[]{
    {"ssh", "how mpirun and mpiexec reach other nodes outside of a job", "install it if you use -H or --hostfile"},
    {"nvidia-smi", "NVIDIA's driver tools", "install the driver if this is a GPU node"},
};

/// Starts a program in this one's folder: its libraries may be missing, or be those of another system.
finding examine_own(command_row const& row, environment const& variables) {
    auto const name = fmt::format("muster-{}", row.name);
    auto const path = self_program().parent_path() / name;
    if (!path_exists(path)) {
        if (has_part(row.part))
            return {state::note, name, "not in muster's folder",
                    fmt::format("install it there, too: the package muster-{}, or cmake --install BUILD --component {}", row.name,
                                row.part)};
        return {state::note, name, fmt::format("muster was built without the part {}", row.part),
                row.part == "data" ? "build with MPI and parallel HDF5: apt-get install libopenmpi-dev libhdf5-openmpi-dev"
                                   : "build with -DMUSTER_PARTS=all: docs/install.md"};
    }
    auto const said = run_captured({path.string(), "--version"}, variables);
    if (said.exit_status == 0) return {state::ok, name, path.string(), ""};
    auto const why = without_controls(trim(said.err.substr(0, said.err.find('\n'))));
    return {state::missing, name,
            fmt::format("{} does not start (code {}){}{}", path.string(), said.exit_status, why.empty() ? "" : ": ", why),
            "install what its message names, or build muster on this system"};
}

void examine_programs(std::vector<finding>& all, environment const& variables) {
    for (auto const& p : programs) {
        auto const path = find_program_or_nothing(p.name, variables);
        all.push_back({path.empty() ? state::note : state::ok, p.name,
                       path.empty() ? fmt::format("no {} ({})", p.name, p.what) : path, path.empty() ? p.without : ""});
    }
    for (auto const& row : commands_of_all_parts())
        if (row.is_program && !row.part.empty()) all.push_back(examine_own(row, variables));
}

/// Prints a line for Python itself and for each package: its version and file, or "-" and why it cannot be imported.
constexpr char const* look_at_python = R"PY(
import sys
sys.path = [one for one in sys.path if one]  # not the folder that this is run in
print(sys.version.split()[0], sys.executable)
for name in ("torch", "muster"):
    try:
        found = __import__(name)
        print(getattr(found, "__version__", ""), found.__file__)
    except BaseException as why:
        print("-", type(why).__name__ + ":", " ".join(str(why).split()))
)PY";

/// Examines Python as ranks find it: the package muster comes after the folders in PYTHONPATH.
void examine_python(std::vector<finding>& all, environment const& variables) {
    constexpr char const* name = "python3";
    if (find_program_or_nothing(name, variables).empty()) {
        all.push_back({state::note, name, "no python3 on PATH",
                       "load Python's module, or activate an environment, if your programs are Python"});
        return;
    }
    auto ranks = variables;
    add_python_folders(ranks, find_python_folders(self_program(), false));
    auto const said = run_captured({name, "-c", look_at_python}, ranks, python_limit);
    auto const lines = split(said.out, '\n');
    if (said.exit_status != 0 || lines.size() < 3) {
        all.push_back({state::note, name,
                       fmt::format("does not work (code {}): {}", said.exit_status,
                                   without_controls(trim(said.err.substr(0, said.err.find('\n'))))),
                       "check which Python is first on PATH"});
        return;
    }
    all.push_back({state::ok, name, std::string(lines[0]), ""});
    struct package_row {
        char const* name;
        std::string advice;
    };
    auto const wheel = wheel_folder(self_program());
    package_row const packages[]{
        {"torch", "install it in this Python if your programs need it: pip install torch"},
        {"muster", wheel.empty() ? "use the muster of an installation that has its Python package: docs/python.md"
                                 : fmt::format("install the wheel in this Python too if your programs import muster: this "
                                               "muster's package is in {}, for the Python there",
                                               wheel)},
    };
    for (std::size_t i = 0; i < std::size(packages); ++i) {
        auto const line = trim(lines[i + 1]);
        bool const missing = line.starts_with("- ");
        all.push_back({missing ? state::note : state::ok, fmt::format("package {}", packages[i].name),
                       std::string(missing ? line.substr(2) : line), missing ? packages[i].advice : ""});
    }
}

std::string_view mark(state how) {
    return how == state::ok ? "ok" : how == state::note ? "note" : "MISSING";
}

/// Returns text that is safe to print, with its lines: it may quote variables and what programs print.
std::string printable(std::string_view text) {
    std::vector<std::string> lines;
    for (auto const line : split(text, '\n')) lines.push_back(without_controls(line));
    return join(lines, "\n");
}

std::string text_of(std::vector<finding> const& findings, std::size_t width) {
    text_table table({"", "what", "found, and what to do"});
    for (auto const& f : findings) {
        table.add({std::string(mark(f.how)), f.what, printable(f.detail)});
        if (!f.advice.empty()) table.add({"", "", "-> " + printable(f.advice)});
    }
    return table.text(width);
}

/// Sorts the worst first; equally bad ones stay in their order.
std::vector<finding> worst_first(std::vector<finding> findings) {
    std::ranges::stable_sort(findings, [](finding const& a, finding const& b) { return a.how > b.how; });
    return findings;
}

/// Returns 80 columns, which every terminal and every mail has, or the terminal's if those are fewer.
std::size_t page_width(environment const& variables) {
    auto const terminal = terminal_width(variables);
    return terminal == 0 ? widest_page : std::min(terminal, widest_page);
}

nlohmann::ordered_json json_of(std::vector<finding> const& findings) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (auto const& f : findings)
        rows.push_back({{"state", mark(f.how)}, {"what", f.what}, {"found", f.detail}, {"do", f.advice}});
    return rows;
}

/// Describes settings that cannot be read: everything else is examined without them.
finding describe_fault(std::string_view why) {
    return {state::missing, "settings", std::string(why.substr(0, why.find('\n'))),
            "correct it: no command takes its settings before that; what is shown here is without any of a file or a variable"};
}

run_options options_of(settings_result const& given, environment const& variables) {
    run_options options;
    options.from = choice_with_site(make_allocation_choice(given), given.text("site"), variables);
    options.place.bind_to = parse_bind_policy(given.text("bind-to"));
    options.verbose = given.flag("verbose");
    options.engine = given.text("engine");
    options.engine_args = given.list("engine-args");
    options.network_interface = given.text("network-interface");
    options.ports = given.text("ports");
    if (!options.ports.empty()) use_ports(parse_port_range(options.ports, "--ports"));
    options.remote_shell = given.text("remote-shell");
    options.pass_key = given.text("pass-key");
    if (given.flag("allocation")) options.command = given.command;
    return options;
}

int print_all(std::vector<finding> const& examined, examined_nodes const* nodes, settings_result const& given,
              environment const& variables) {
    bool const json = given.flag("json");
    auto const own = worst_first(examined);
    nlohmann::ordered_json all{{"schema", "muster.doctor/1"}, {"findings", json_of(own)}};
    if (nodes != nullptr) all["nodes"] = parse_json_as<nlohmann::ordered_json>(nodes->json, "the examined nodes");
    if (json)
        fmt::print("{}\n", json_text(all, 2));
    else
        fmt::print("{}{}{}", text_of(own, page_width(variables)), nodes != nullptr ? "\n" : "",
                   nodes != nullptr ? nodes->text : "");
    bool const missing = std::ranges::any_of(own, [](finding const& f) { return f.how == state::missing; });
    return missing || (nodes != nullptr && nodes->bad > 0) ? 1 : 0;
}

}  // namespace

std::vector<finding> examine(run_options const& options, environment const& variables) {
    std::vector<finding> all{{state::ok, "muster", fmt::format("{}, PMIx {}", version(), pmix::library_version()), ""}};
    if (auto const parts = parts_text(); parts.find("without") != std::string_view::npos)
        all.push_back(
            {state::note, "parts", std::string(parts), "build with -DMUSTER_PARTS=all for the others: docs/install.md"});
    std::vector<finding> job;
    auto const gpus_of_job = examine_job(job, options, variables);
    examine_machine(all, variables, gpus_of_job, options.verbose);
    all.push_back(describe_binding(try_affinity(), options.place.bind_to));
    examine_space(all, "/dev/shm");
    examine_space(all, "/tmp");
    examine_limits(all);
    examine_host_name(all);
    examine_loopback(all);
    all.insert(all.end(), job.begin(), job.end());
    examine_programs(all, variables);
    examine_python(all, variables);
    return all;
}

int doctor_command(std::vector<std::string> const& args, environment const& variables, part_functions const& parts) {
    auto given = resolve_options("doctor", args, variables);
    if (print_help_if_asked("doctor", given)) return 0;
    std::optional<finding> fault;
    try {
        given = resolve_settings("doctor", args, real_settings(variables));
    } catch (error const& e) {  // a fault of a file or a variable is a finding, too
        fault = describe_fault(e.what());
    }
    bool const allocation = given.flag("allocation");
    if (!allocation && !given.command.empty())
        throw_error(errc::usage, "muster doctor takes no argument '{}'; give --allocation too to examine a program",
                    given.command.front());
    print_notes(given);
    auto const options = options_of(given, variables);
    auto const examine_all = [&] {
        auto all = examine(options, variables);
        if (fault) all.push_back(*fault);
        return all;
    };
    if (!allocation) return print_all(examine_all(), nullptr, given, variables);
    return run_guarded(run_options{}.grace, session_places(variables), [&](launcher_start const& start) {
        try {
            auto const nodes = parts.examine_nodes(options, variables, start.session_dir, terminal_width(variables));
            return print_all(examine_all(), &nodes, given, variables);
        } catch (error const& e) {
            print_error("muster", e.what());
            return exit_code(e.code());
        }
    });
}

}  // namespace muster
