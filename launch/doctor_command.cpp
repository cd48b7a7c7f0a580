#include "launch/doctor_command.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "launch/cpuset.hpp"
#include "launch/options.hpp"
#include "launch/placement.hpp"
#include "launch/spawn.hpp"
#include "launch/table.hpp"
#include "pmix/library_version.hpp"

namespace muster {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

using state = finding::state;

constexpr char const* help = R"(muster doctor [--json]      what is here, what is missing, and what to do about it
)";
constexpr std::uint64_t shm_wanted_bytes = 64u << 20;
constexpr rlim_t files_wanted = 1024;

std::string find_on_path(std::string const& program, environment const& variables) {
    try {
        return find_program(program, variables, "");
    } catch (program_error const&) {
        return {};
    }
}

void examine_machine(std::vector<finding>& all, environment const& variables) {
    try {
        auto const visible = variables.get("CUDA_VISIBLE_DEVICES");
        auto const t = discover_topology(short_host_name(), current_affinity(), visible ? &*visible : nullptr);
        all.push_back({state::ok, "cores", fmt::format("{} usable, CPUs {}", t.cores.size(), t.allowed().to_list()), ""});
        if (t.gpus.empty())
            all.push_back({state::note, "GPUs", "none: " + t.gpu_note,
                           "ranks get cores as slots; on a GPU node install or load the NVIDIA driver"});
        for (auto const& g : t.gpus)
            all.push_back(
                {state::ok, fmt::format("GPU {}", g.index), fmt::format("{} {} {} NUMA {}", g.name, g.uuid, g.pci, g.numa), ""});
    } catch (error const& e) {
        all.push_back({state::missing, "machine", e.what(), "mend what the message names"});
    }
}

void examine_space(std::vector<finding>& all, std::string const& path) {
    struct statvfs info {};
    if (::statvfs(path.c_str(), &info) != 0 || ::access(path.c_str(), W_OK) != 0) {
        all.push_back({state::missing, path, "not writable", "ranks' sockets and shared memory go there: mount or open it"});
        return;
    }
    std::uint64_t const free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    bool const enough = free_bytes >= shm_wanted_bytes;
    all.push_back({enough ? state::ok : state::note, path, format_bytes(free_bytes) + " free",
                   enough ? "" : "MPI and data loaders may fail; in a container give --shm-size"});
}

void examine_limits(std::vector<finding>& all) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    bool const enough = files.rlim_max >= files_wanted;
    all.push_back({enough ? state::ok : state::note, "open files", fmt::format("{} (at most {})", files.rlim_cur, files.rlim_max),
                   enough ? "" : "128 ranks need about 1024: raise the hard limit"});
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
                       "harmless on one node (muster uses 127.0.0.1); else add it to /etc/hosts"});
}

struct program_row {
    char const* name;
    char const* what;
    char const* without;  ///< what to know if it is not there
};
constexpr program_row programs[]{
    {"mpirun", "Open MPI's launcher", "not needed on one node; apt-get install openmpi-bin"},
    {"srun", "Slurm's launcher", "not needed on one node"},
    {"qsub", "PBS' submission", "not needed on one node"},
    {"nvidia-smi", "NVIDIA's driver tools", "only on GPU nodes"},
    {"gnuplot", "plots in reports", "apt-get install gnuplot-nox"},
};

void examine_programs(std::vector<finding>& all, environment const& variables) {
    for (auto const& p : programs) {
        auto const path = find_on_path(p.name, variables);
        all.push_back({path.empty() ? state::note : state::ok, p.name,
                       path.empty() ? fmt::format("no {} ({})", p.name, p.what) : path, path.empty() ? p.without : ""});
    }
    std::error_code fault;
    auto const own = fs::read_symlink("/proc/self/exe", fault).parent_path();
    for (auto const* name : {"muster-stage", "muster-bench"}) {
        bool const there = fs::exists(own / name, fault);
        all.push_back({there ? state::ok : state::note, name, there ? (own / name).string() : "not beside muster",
                       there ? "" : "build with MPI and parallel HDF5: apt-get install libopenmpi-dev libhdf5-openmpi-dev"});
    }
}

void examine_job(std::vector<finding>& all, environment const& variables) {
    if (auto const several = several_nodes(variables))
        all.push_back({state::note, "job", *several, "this version runs on one node: muster run --scheduler local"});
    else
        all.push_back({state::ok, "job", "one node, this one", ""});
}

std::string_view mark(state how) {
    return how == state::ok ? "ok" : how == state::note ? "note" : "MISSING";
}

}  // namespace

std::vector<finding> examine(environment const& variables) {
    std::vector<finding> all{{state::ok, "muster", fmt::format("{}, PMIx {}", version(), pmix::library_version()), ""}};
    examine_machine(all, variables);
    examine_space(all, "/dev/shm");
    examine_space(all, "/tmp");
    examine_limits(all);
    examine_host_name(all);
    examine_job(all, variables);
    examine_programs(all, variables);
    return all;
}

int doctor_command(std::vector<std::string> const& args, environment const& variables) {
    po::options_description known;
    known.add_options()("json", po::bool_switch())("help,h", po::bool_switch());
    std::vector<std::string> rest;
    auto const values = parse_options(args, known, rest);
    if (!rest.empty()) throw error(errc::usage, fmt::format("muster doctor takes no argument '{}'", rest.front()));
    if (values["help"].as<bool>()) {
        fmt::print("{}", help);
        return 0;
    }
    bool missing = false;
    text_table table({"", "what", "found", "do"});
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (auto const& f : examine(variables)) {
        missing = missing || f.how == state::missing;
        table.add({std::string(mark(f.how)), f.what, f.detail, f.advice});
        rows.push_back({{"state", mark(f.how)}, {"what", f.what}, {"found", f.detail}, {"do", f.advice}});
    }
    if (values["json"].as<bool>())
        fmt::print("{}\n", nlohmann::ordered_json{{"schema", "muster.doctor/1"}, {"findings", rows}}.dump(2));
    else
        fmt::print("{}", table.text());
    return missing ? 1 : 0;
}

}  // namespace muster
