// A job of OpenPBS or PBS Professional: hosts and slots out of the node file, GPUs and the end out of qstat. The environment says
// nothing of either. Torque's PBS_GPUFILE is read where there is one.
#include <fmt/format.h>

#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/host_choice.hpp"
#include "launch/scheduler/node_file.hpp"
#include "launch/scheduler/pbs_job.hpp"
#include "launch/scheduler/scheduler_rows.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

namespace {

std::optional<pbs_job> ask_qstat(scheduler_sources const& sources, std::string const& job_id) {
    auto const conf = sources.read_file(sources.variables.get_or("PBS_CONF_FILE", "/etc/pbs.conf"));
    std::vector<std::string> const question{pbs_qstat(conf.value_or("")), "-f", "-F", "json", job_id};
    auto const answer = sources.run_command(question);
    if (answer.exit_status != 0) return std::nullopt;
    auto job = parse_qstat_job(answer.out, job_id);
    if (!job) tell_of_no_answer(sources, question, "its answer has nothing of this job");
    return job;
}

/// Node files spell hosts fully, exec_host shortly, and both forms can be in one file.
class by_short_name {
  public:
    explicit by_short_name(std::vector<node> const& nodes) {
        for (auto const& n : nodes) places_[short_name(n.name)].push_back(&n);
    }

    node const* find(std::string const& host) const {
        auto const found = places_.find(short_name(host));
        if (found == places_.end()) return nullptr;
        for (auto const* n : found->second)
            if (same_host(n->name, host)) return n;
        return nullptr;
    }

  private:
    std::unordered_map<std::string_view, std::vector<node const*>> places_;
};

/// The nodes of the file in the order of exec_host. What pbs_tmrsh and mpirun take is the name as the file spells it.
std::vector<node> join_with_job(std::vector<node> const& file, pbs_job const& job, std::string const& job_id,
                                std::string const& path) {
    by_short_name const known(file);
    std::vector<node> nodes;
    for (auto const& host : job.hosts) {
        auto const* const listed = known.find(host.name);
        if (listed == nullptr) {
            if (host.gpus.value_or(0) == 0) continue;  // such as a first chunk that only runs the script
            throw error(
                errc::placement,
                fmt::format("job {} (pbs): {} has {} GPUs but is not in PBS_NODEFILE={}, so nothing can be started there: its "
                            "chunk has mpiprocs=0; ask for mpiprocs=1 or more, or give --scheduler hostfile --hostfile {} to "
                            "do without it",
                            job_id, host.name, *host.gpus, path, path));
        }
        nodes.push_back(*listed);
        nodes.back().gpus = host.gpus;
        nodes.back().cpus = host.cpus;
    }
    // A file that was written anew may name other hosts as well.
    if (nodes.size() != file.size()) return {};
    return nodes;
}

std::vector<node> read_nodes(scheduler_sources const& sources, std::string const& path) {
    auto const text = sources.read_file(path);
    if (!text)
        throw error(errc::not_found,
                    fmt::format("PBS_NODEFILE={} is not there; start muster on a host of the job, in its script or shell", path));
    return parse_node_file(*text, path);
}

/// "/var/spool/torque/aux/12.servergpu". Torque sets it for jobs that ask for GPUs only: another job's file may be named by what qsub
/// -V has passed on.
void add_torque_gpus(scheduler_sources const& sources, std::string const& job_id, std::vector<node>& nodes) {
    auto const path = sources.variables.get("PBS_GPUFILE");
    if (path && path->find(job_id) == path->npos) return;
    auto const text = path ? sources.read_file(*path) : std::nullopt;
    if (!text || trim(*text).empty()) return;
    auto const listed = parse_node_file(*text, *path, true);
    by_short_name const gpus(listed);
    for (auto& n : nodes) {
        auto const* const found = gpus.find(n.name);
        n.gpus = found != nullptr ? found->gpus.value_or(0) : 0;
        n.gpu_ids = found != nullptr ? found->gpu_ids : "";
    }
}

}  // namespace

std::optional<std::string> pbs_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (sources.variables.has("PBS_JOBID")) return std::nullopt;
    return "PBS_JOBID is not set";
}

allocation read_pbs(scheduler_sources const& sources, allocation_choice const&) {
    allocation given;
    given.scheduler = scheduler_kind::pbs;
    given.job_id = sources.variables.get_or("PBS_JOBID", "");
    given.fixed = true;
    auto const path = sources.variables.get("PBS_NODEFILE");
    auto const job = ask_qstat(sources, given.job_id);
    if (job) {
        given.ends_at = job->ends_at;
        given.shares_nodes = !job->exclusive;
    }
    if (path) {
        auto const file = read_nodes(sources, *path);
        if (job) given.nodes = join_with_job(file, *job, given.job_id, *path);
        if (given.nodes.empty()) given.nodes = file;
        if (!job) add_torque_gpus(sources, given.job_id, given.nodes);
        return given;
    }
    if (!job)
        throw error(
            errc::not_found,
            fmt::format("job {} (pbs): PBS_NODEFILE is not set and qstat does not answer, so its nodes are not known; start "
                        "muster in the job's script or shell, or give -H",
                        given.job_id));
    for (auto const& host : job->hosts)
        given.nodes.push_back({host.name, host.name, std::max(host.cpus.value_or(1), 1), host.gpus, host.cpus});
    return given;
}

}  // namespace muster
