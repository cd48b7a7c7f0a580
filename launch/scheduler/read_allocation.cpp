#include "launch/scheduler/read_allocation.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/process/process.hpp"
#include "base/throw_error.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/host_choice.hpp"

namespace muster {

namespace {

constexpr std::array rows{
    scheduler_row{scheduler_kind::hostfile, hostfile_unavailable, read_hostfile},
    scheduler_row{scheduler_kind::slurm, slurm_unavailable, read_slurm},
    scheduler_row{scheduler_kind::pbs, pbs_unavailable, read_pbs},
    scheduler_row{scheduler_kind::cobalt, cobalt_unavailable, read_cobalt},
    scheduler_row{scheduler_kind::lsf, lsf_unavailable, read_lsf},
    scheduler_row{scheduler_kind::flux, flux_unavailable, read_flux},
    scheduler_row{scheduler_kind::local, local_unavailable, read_local},
};

/// Returns whether a job of this kind has nodes, so that hosts that the user names select among them.
bool owns_nodes(scheduler_kind kind) {
    return kind != scheduler_kind::hostfile && kind != scheduler_kind::local;
}

void check(allocation_choice const& choice) {
    if (!choice.hostfile.empty() && !choice.hosts.empty())
        throw error(errc::usage, "--hostfile and -H both say where the ranks go; give one of them");
    if (choice.scheduler == scheduler_kind::local && !(choice.hostfile.empty() && choice.hosts.empty()))
        throw error(errc::usage,
                    "--scheduler local is this node alone; leave out --hostfile and -H, or give --scheduler hostfile");
}

/// A scheduler that allocates whole nodes may not count their GPUs.
void add_gpus_of_site(allocation& given, std::optional<int> gpus_of_each) {
    bool const told = std::ranges::any_of(given.nodes, [](node const& n) { return n.gpus || n.slots_named; });
    if (!gpus_of_each || !owns_nodes(given.scheduler)) return;
    given.shares_nodes = false;
    if (told) return;
    for (auto& n : given.nodes) {
        n.gpus = gpus_of_each;
        n.gpus_counted = true;
    }
}

}  // namespace

std::span<scheduler_row const> schedulers() noexcept {
    return rows;
}

allocation read_allocation(scheduler_sources const& sources, allocation_choice const& choice, std::vector<std::string>* tried) {
    check(choice);
    bool const hosts_named = !choice.hostfile.empty() || !choice.hosts.empty();
    for (auto const& row : rows) {
        if (choice.scheduler && row.kind != *choice.scheduler) continue;
        // Hosts named inside a job: the job's row comes first, and the hosts select among its nodes.
        if (!choice.scheduler && hosts_named && row.kind == scheduler_kind::hostfile) continue;
        if (auto const why = row.unavailable(sources, choice)) {
            if (choice.scheduler) throw_error(errc::unavailable, "--scheduler {}: {}", to_string(row.kind), *why);
            if (tried != nullptr) tried->push_back(fmt::format("{}: {}", to_string(row.kind), *why));
            continue;
        }
        if (hosts_named && row.kind == scheduler_kind::local) break;
        auto given = row.read(sources, choice);
        add_gpus_of_site(given, choice.gpus_of_each);
        if (hosts_named && owns_nodes(row.kind))
            given = choose_hosts(given, named_hosts(sources, choice), choice.hosts.empty() ? "--hostfile" : "-H");
        return given;
    }
    return read_hostfile(sources, choice);
}

namespace {

/// A configuration that comes from the controller lies under /run.
bool slurm_is_configured(environment const& variables) {
    if (variables.has("SLURM_CONF")) return true;
    constexpr std::array paths{"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                               "/usr/local/etc/slurm.conf"};
    return std::ranges::any_of(paths, [](auto const* path) { return ::access(path, F_OK) == 0; });
}

bool pbs_is_configured(environment const& variables) {
    return ::access(variables.get_or("PBS_CONF_FILE", "/etc/pbs.conf").c_str(), R_OK) == 0;
}

}  // namespace

bool prefers_pbs(environment const& variables) {
    return pbs_is_configured(variables) && !slurm_is_configured(variables);
}

std::string_view cluster_of(environment const& variables) {
    if (slurm_is_configured(variables) && !find_program_or_nothing(slurm_program(slurm_ask::submit), variables).empty())
        return "Slurm";
    if (pbs_is_configured(variables) && !find_program_or_nothing("qsub", variables).empty()) return "PBS";
    return {};
}

bool prefers_flux(environment const& variables) {
    return !variables.get_or("FLUX_URI", "").empty() || ::access("/run/flux/local", F_OK) == 0;
}

std::optional<std::chrono::system_clock::time_point> parse_local_time(std::string const& text, char const* form) {
    std::tm when{};
    char const* const end = ::strptime(text.c_str(), form, &when);
    if (end == nullptr || *end != '\0') return std::nullopt;
    when.tm_isdst = -1;
    return from_epoch(::mktime(&when));
}

}  // namespace muster
