#include "pmix/identity.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "base/throw_error.hpp"
#include "pmix/slurm_step.hpp"

namespace muster {
namespace {

using source = identity::source;

/// One number, and the variable that told it.
struct reading {
    int value = 0;
    std::string_view variable;
};

/// Holds what one source knows; a source may know only part of an identity.
struct partial {
    source from = source::singleton;
    std::string nspace;
    std::string host;
    std::optional<reading> rank, world_size, local_rank, local_size, node_rank, node_count;
};

/// The variables of one source. An empty name: this source does not tell it.
struct source_row {
    source from;
    std::string_view rank, world_size, local_rank, local_size, node_rank, node_count, nspace, host;
};

// The rows are in order of trust. Slurm is not in this table: it needs more than names (slurm_step.hpp).
constexpr std::array rows{
    source_row{source::muster, "MUSTER_RANK", "MUSTER_WORLD_SIZE", "MUSTER_LOCAL_RANK", "MUSTER_LOCAL_SIZE", "MUSTER_NODE_RANK",
               "MUSTER_NODE_COUNT", "MUSTER_NSPACE", "MUSTER_HOST"},
    source_row{source::pmix, "PMIX_RANK", "", "", "", "", "", "PMIX_NAMESPACE", "PMIX_HOSTNAME"},
    source_row{source::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", "", "PMI_JOBID", ""},
    source_row{source::pals, "PALS_RANKID", "", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_NODEID", "", "PALS_APID", ""},
    // OMPI_COMM_WORLD_NODE_RANK is no node's number: it counts the ranks on the node over all jobs.
    source_row{source::ompi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
               "OMPI_COMM_WORLD_LOCAL_SIZE", "", "", "OMPI_MCA_ess_base_jobid", ""},
};

std::optional<reading> read_number(environment const& variables, std::string_view name) {
    if (name.empty()) return std::nullopt;
    auto const value = variables.get_int(name);
    if (!value) return std::nullopt;
    if (*value < 0) throw_error(errc::parse, "{}={} is negative; unset it or start with muster run", name, *value);
    return reading{*value, name};
}

std::optional<partial> read_row(source_row const& row, environment const& variables) {
    if (!variables.has(row.rank)) return std::nullopt;
    partial result;
    result.from = row.from;
    result.rank = read_number(variables, row.rank);
    result.world_size = read_number(variables, row.world_size);
    result.local_rank = read_number(variables, row.local_rank);
    result.local_size = read_number(variables, row.local_size);
    result.node_rank = read_number(variables, row.node_rank);
    result.node_count = read_number(variables, row.node_count);
    if (!row.nspace.empty()) result.nspace = variables.get_or(row.nspace, "");
    if (!row.host.empty()) result.host = variables.get_or(row.host, "");
    return result;
}

std::optional<partial> read_slurm(environment const& variables) {
    auto const step = read_slurm_step(variables);
    if (!step) return std::nullopt;
    partial result;
    result.from = source::slurm;
    result.nspace = step->name;
    result.host = step->host;
    result.rank = reading{step->rank, "SLURM_PROCID"};
    if (step->tasks) result.world_size = reading{*step->tasks, step->tasks_variable};
    if (step->local_rank) result.local_rank = reading{*step->local_rank, "SLURM_LOCALID"};
    if (step->local_tasks) result.local_size = reading{*step->local_tasks, "SLURM_STEP_TASKS_PER_NODE"};
    if (step->node_rank) result.node_rank = reading{*step->node_rank, "SLURM_NODEID"};
    if (step->nodes) result.node_count = reading{*step->nodes, "SLURM_STEP_NUM_NODES"};
    return result;
}

[[noreturn]] void contradiction(reading const& a, reading const& b) {
    throw_error(errc::singleton,
                "{}={} and {}={} contradict each other: this process was started by one launcher inside another, or by one that "
                "its MPI library does not know; start it with muster run, or unset the variables that are left over",
                a.variable, a.value, b.variable, b.value);
}

bool differ(std::optional<reading> const& a, std::optional<reading> const& b) {
    return a && b && a->value != b->value;
}

/// mpirun, Hydra and PRRTE inside a Slurm job start one daemon a node as a step, and what the daemon starts inherits the daemon's
/// step variables: they tell about the daemon, not about the rank. A step of a rank that came up alone has MORE tasks than the
/// other source.
bool is_daemon_step(partial const& slurm, partial const& other) {
    if (!slurm.world_size || !slurm.node_count || slurm.world_size->value != slurm.node_count->value) return false;
    if (other.nspace.starts_with("slurm.pmix.")) return false;
    return !other.world_size || other.world_size->value >= slurm.world_size->value;
}

/// Sources in order of trust, those that speak of an outer launcher left out.
std::vector<partial> gather(environment const& variables) {
    std::vector<partial> found;
    for (auto const& row : rows) {
        if (auto entry = read_row(row, variables)) found.push_back(std::move(*entry));
        // An identity that muster itself set is complete, and whatever else is there was set for it or is left over from outside.
        if (row.from == source::muster && !found.empty()) return found;
    }
    if (auto slurm = read_slurm(variables)) {
        bool daemon = false;
        for (auto const& other : found)
            if (differ(slurm->rank, other.rank) || differ(slurm->world_size, other.world_size))
                daemon = daemon || is_daemon_step(*slurm, other);
        auto const place = found.begin() + (!found.empty() && found.front().from == source::pmix ? 1 : 0);
        if (!daemon) found.insert(place, std::move(*slurm));
    }
    return found;
}

std::string where_told(std::optional<reading> const& told) {
    return told ? fmt::format("{}={}", told->variable, told->value) : std::string("no variable");
}

void check_range(std::optional<reading> const& index, int size, std::optional<reading> const& size_told) {
    if (!index || index->value < size) return;
    throw_error(errc::parse, "{}={} lies outside of its world of {} ({}); unset what is left over, or start with muster run",
                index->variable, index->value, size, where_told(size_told));
}

/// Where nothing tells the node, ranks are taken to fill one node after the other, which is what every launcher does by default.
void derive_nodes(partial const& known, identity& who) {
    who.local_size = known.local_size ? known.local_size->value : who.world_size;
    who.local_rank = known.local_rank ? known.local_rank->value : who.rank % who.local_size;
    who.node_rank = known.node_rank ? known.node_rank->value : who.rank / who.local_size;
    who.node_count = known.node_count ? known.node_count->value : (who.world_size - 1) / who.local_size + 1;
    if (!known.node_count && who.node_rank >= who.node_count) who.node_count = who.node_rank + 1;
}

}  // namespace

std::string_view to_string(identity::source from) noexcept {
    switch (from) {
        case source::muster: return "muster";
        case source::pmix: return "pmix";
        case source::slurm: return "slurm";
        case source::pmi: return "pmi";
        case source::pals: return "pals";
        case source::ompi: return "ompi";
        case source::singleton: return "singleton";
    }
    return "unknown";
}

identity identify(environment const& variables, std::string_view host) {
    auto const found = gather(variables);
    identity who;
    who.host = host;
    if (found.empty()) {
        who.nspace = "singleton";
        return who;
    }
    partial known = found.front();
    for (auto const& other : std::span(found).subspan(1)) {
        if (differ(known.rank, other.rank)) contradiction(*known.rank, *other.rank);
        if (differ(known.world_size, other.world_size)) contradiction(*known.world_size, *other.world_size);
        auto const fill = [](auto& mine, auto const& theirs) {
            if (!mine) mine = theirs;
        };
        fill(known.world_size, other.world_size);
        fill(known.local_rank, other.local_rank);
        fill(known.local_size, other.local_size);
        fill(known.node_rank, other.node_rank);
        fill(known.node_count, other.node_count);
        if (known.nspace.empty()) known.nspace = other.nspace;
        if (known.host.empty()) known.host = other.host;
    }
    if (!known.world_size)
        throw_error(errc::parse, "{} is set but no variable tells the size of its world; start the program with muster run",
                    where_told(known.rank));
    who.from = known.from;
    who.rank = known.rank->value;
    who.world_size = known.world_size->value;
    check_range(known.rank, who.world_size, known.world_size);
    for (auto const& count : {known.local_size, known.node_count})
        if (count && count->value == 0)
            throw_error(errc::parse, "{}=0: a rank's node holds at least that rank; unset it", count->variable);
    check_range(known.local_size ? std::optional(reading{known.local_size->value - 1, known.local_size->variable}) : std::nullopt,
                who.world_size, known.world_size);
    derive_nodes(known, who);
    check_range(known.local_rank, who.local_size, known.local_size);
    check_range(known.node_rank, who.node_count, known.node_count);
    who.nspace = known.nspace.empty() ? std::string(to_string(known.from)) : known.nspace;
    if (!known.host.empty()) who.host = known.host;
    return who;
}

identity identify(environment const& variables) {
    std::array<char, HOST_NAME_MAX + 1> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) throw_system("gethostname", "");
    return identify(variables, name.data());
}

void set_place(environment& variables, identity const& who) {
    auto const set = [&](std::initializer_list<std::string_view> names, int value) {
        for (auto const name : names) variables.set(name, std::to_string(value));
    };
    variables.set("MUSTER_NSPACE", who.nspace);
    variables.set("MUSTER_HOST", who.host);
    variables.set("HOROVOD_HOSTNAME", who.host);
    set({"MUSTER_RANK", "RANK", "ROLE_RANK", "HOROVOD_RANK"}, who.rank);
    set({"MUSTER_WORLD_SIZE", "WORLD_SIZE", "ROLE_WORLD_SIZE", "HOROVOD_SIZE"}, who.world_size);
    set({"MUSTER_LOCAL_RANK", "LOCAL_RANK", "HOROVOD_LOCAL_RANK"}, who.local_rank);
    set({"MUSTER_LOCAL_SIZE", "LOCAL_WORLD_SIZE", "HOROVOD_LOCAL_SIZE"}, who.local_size);
    set({"MUSTER_NODE_RANK", "GROUP_RANK", "HOROVOD_CROSS_RANK"}, who.node_rank);
    set({"MUSTER_NODE_COUNT", "GROUP_WORLD_SIZE", "HOROVOD_CROSS_SIZE"}, who.node_count);
}

}  // namespace muster
