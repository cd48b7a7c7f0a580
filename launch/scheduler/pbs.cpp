#include "launch/scheduler/pbs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/scheduler/host_choice.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/system/network.hpp"

namespace muster {

// A job of OpenPBS or PBS Professional: hosts and slots come from the node file, GPUs and the end from qstat, since the
// environment contains neither. Torque's PBS_GPUFILE is read if it is set.

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

/// Node files spell hosts in full, exec_host in short, and one file may contain both forms.
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

/// Returns the file's nodes in the order of exec_host. pbs_tmrsh and mpirun accept the name as the file spells it.
std::vector<node> join_with_job(std::vector<node> const& file, pbs_job const& job, std::string const& job_id,
                                std::string const& path) {
    by_short_name const known(file);
    std::vector<node> nodes;
    for (auto const& host : job.hosts) {
        auto const* const listed = known.find(host.name);
        if (listed == nullptr) {
            if (host.gpus.value_or(0) == 0) continue;  // such as a first chunk that only runs the script
            throw_error(errc::placement,
                        "job {} (pbs): {} has {} GPUs but is not in PBS_NODEFILE={}, so nothing can be started there: its chunk "
                        "has mpiprocs=0; ask for mpiprocs=1 or more, or give --scheduler hostfile --hostfile {} to do without it",
                        job_id, host.name, *host.gpus, path, path);
        }
        nodes.push_back(*listed);
        nodes.back().gpus = host.gpus;
        nodes.back().cpus = host.cpus;
    }
    // The user may have written another file, with other hosts.
    if (nodes.size() != file.size()) return {};
    return nodes;
}

std::vector<node> read_nodes(scheduler_sources const& sources, std::string const& path) {
    auto const text = sources.read_file(path);
    if (!text)
        throw_error(errc::not_found, "PBS_NODEFILE={} is not there; start muster on a host of the job, in its script or shell",
                    path);
    return parse_node_file(*text, path);
}

/// Adds GPUs from "/var/spool/torque/aux/12.servergpu". Torque sets the variable only for jobs that ask for GPUs, so the name may
/// be that of another job's file, which qsub -V has passed on.
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
        given.ends_with_node = !job->outlives_hosts;
        given.restarts = std::max(job->runs - 1, 0);
    }
    if (path) {
        auto const file = read_nodes(sources, *path);
        if (job) given.nodes = join_with_job(file, *job, given.job_id, *path);
        if (given.nodes.empty()) given.nodes = file;
        if (!job) add_torque_gpus(sources, given.job_id, given.nodes);
        return given;
    }
    if (!job)
        throw_error(errc::not_found,
                    "job {} (pbs): PBS_NODEFILE is not set and qstat does not answer, so its nodes are not known; start muster "
                    "in the job's script or shell, or give -H",
                    given.job_id);
    for (auto const& host : job->hosts)
        given.nodes.push_back({host.name, host.name, std::max(host.cpus.value_or(1), 1), host.gpus, host.cpus});
    return given;
}

namespace {

using json = nlohmann::json;
using time_point = std::chrono::system_clock::time_point;

constexpr std::int64_t most = 1'000'000;  // GPUs or CPUs of one chunk

struct chunk {
    std::optional<std::int64_t> gpus;
    std::optional<std::int64_t> cpus;
};

void add_resource(std::string_view text, std::string_view all, chunk& into) {
    auto const equals = text.find('=');
    auto const name = text.substr(0, equals);
    if (name != "ngpus" && name != "ncpus") return;
    auto const value = equals == std::string_view::npos ? std::nullopt : parse_integer(text.substr(equals + 1));
    if (!value || *value < 0 || *value > most)
        throw parse_error("exec_vnode", all, static_cast<std::size_t>(text.data() - all.data()),
                          "expected a number behind the '='");
    auto& sum = name == "ngpus" ? into.gpus : into.cpus;
    sum = sum.value_or(0) + *value;
}

/// Reads one group: vnodes joined by '+', each "name:resource=value:…".
chunk read_group(std::string_view group, std::string_view all) {
    chunk sum;
    for (auto const vnode : split(group, '+')) {
        auto const fields = split(vnode, ':');
        for (std::size_t i = 1; i < fields.size(); ++i) add_resource(fields[i], all, sum);
    }
    return sum;
}

/// Returns the chunks of exec_vnode, with or without parentheses around them.
std::vector<chunk> read_groups(std::string_view text) {
    std::vector<chunk> groups;
    std::size_t at = 0;
    while (at < text.size()) {
        bool const enclosed = text[at] == '(';
        std::size_t const start = enclosed ? at + 1 : at;
        auto const end = std::min(text.find(enclosed ? ')' : '+', start), text.size());
        if (enclosed && end == text.size()) throw parse_error("exec_vnode", text, at, "this '(' is never closed");
        groups.push_back(read_group(text.substr(start, end - start), text));
        if (groups.size() > max_hosts) throw parse_error("exec_vnode", text, at, fmt::format("more than {} chunks", max_hosts));
        at = end + (enclosed ? 1 : 0);
        if (at == text.size()) break;
        if (text[at] != '+') throw parse_error("exec_vnode", text, at, "expected '+' between two chunks");
        ++at;
    }
    return groups;
}

std::optional<time_point> parse_start(json const& value) {
    if (value.is_number_integer()) return from_epoch(value.get<std::int64_t>());
    if (!value.is_string()) return std::nullopt;
    return parse_local_time(value.get_ref<std::string const&>(), "%a %b %d %H:%M:%S %Y");
}

json const* member(json const& object, std::string_view name) {
    if (!object.is_object()) return nullptr;
    auto const found = object.find(name);
    return found == object.end() ? nullptr : &*found;
}

json const* find_job(json const& answer, std::string_view id) {
    auto const* const jobs = member(answer, "Jobs");
    if (jobs == nullptr || !jobs->is_object()) return nullptr;
    if (auto const* const job = member(*jobs, id)) return job;
    // The server's name has two forms: "12.head", "12.head.example"; the number comes first, "12" or "12[3]".
    if (jobs->size() != 1 || short_name(jobs->begin().key()) != short_name(id)) return nullptr;
    return &*jobs->begin();
}

std::optional<time_point> end_of(json const& job) {
    auto const* const start = member(job, "stime");
    auto const* const resources = member(job, "Resource_List");
    auto const* const walltime = resources != nullptr ? member(*resources, "walltime") : nullptr;
    if (start == nullptr || walltime == nullptr) return std::nullopt;
    auto const length = walltime->is_string()           ? parse_pbs_walltime(walltime->get_ref<std::string const&>())
                        : walltime->is_number_integer() ? parse_pbs_walltime(walltime->dump())
                                                        : std::nullopt;
    auto const started = parse_start(*start);
    if (!length || !started) return std::nullopt;
    return *started + *length;
}

}  // namespace

std::optional<std::chrono::seconds> parse_pbs_walltime(std::string_view text) {
    std::int64_t seconds = 0;
    auto const parts = split(text, ':');
    if (parts.size() > 3) return std::nullopt;
    for (auto const part : parts) {
        if (part.empty() || part.size() > 10 || part.find_first_not_of("0123456789") != std::string_view::npos)
            return std::nullopt;
        seconds = seconds * 60 + *parse_integer(part);
    }
    if (seconds > INT32_MAX) return std::nullopt;
    return std::chrono::seconds{seconds};
}

std::vector<pbs_host> parse_exec_hosts(std::string_view exec_host, std::string_view exec_vnode) {
    std::vector<pbs_host> hosts;
    std::unordered_map<std::string_view, std::size_t> places;
    auto const groups = read_groups(exec_vnode);
    bool const any_gpus = std::ranges::any_of(groups, [](auto const& g) { return g.gpus.has_value(); });
    auto const items = split(exec_host, '+');
    if (!groups.empty() && items.size() != groups.size())
        throw parse_error(
            "exec_vnode", exec_vnode, exec_vnode.size(),
            fmt::format("{} chunks for the {} of exec_host={}", groups.size(), items.size(), exec_host.substr(0, 80)));
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto const name = items[i].substr(0, items[i].find('/'));
        auto const offset = static_cast<std::size_t>(name.data() - exec_host.data());
        if (auto const fault = check_host_name(name))
            throw parse_error("exec_host", exec_host, offset + fault->offset, fault->message);
        auto const [place, is_new] = places.try_emplace(name, hosts.size());
        if (is_new) hosts.push_back({std::string(name), std::nullopt, std::nullopt});
        if (groups.empty()) continue;
        auto& host = hosts[place->second];
        if (any_gpus) host.gpus = static_cast<int>(std::min(most, host.gpus.value_or(0) + groups[i].gpus.value_or(0)));
        if (groups[i].cpus) host.cpus = static_cast<int>(std::min(most, host.cpus.value_or(0) + *groups[i].cpus));
    }
    return hosts;
}

std::string pbs_qstat(std::string_view pbs_conf) {
    for (auto const line : split(pbs_conf, '\n')) {
        auto const setting = trim(line);
        if (setting.starts_with("PBS_EXEC=")) return fmt::format("{}/bin/qstat", trim(setting.substr(9)));
    }
    return "qstat";
}

std::optional<pbs_job> parse_qstat_job(std::string_view text, std::string_view id) {
    auto const answer = parse_json_or_discard<json>(text);
    auto const* const found = find_job(answer, id);
    if (found == nullptr) return std::nullopt;
    auto const exec_host = text_at(*found, "/exec_host");
    if (exec_host.empty()) return std::nullopt;
    auto const* const resources = member(*found, "Resource_List");
    auto const place = resources != nullptr ? text_at(*resources, "/place") : std::string();
    auto const number = [&](std::string_view name) {
        auto const* const value = member(*found, name);
        return value != nullptr && value->is_number_integer() ? value->get<int>() : 0;
    };
    return pbs_job{.hosts = parse_exec_hosts(exec_host, text_at(*found, "/exec_vnode")),
                   .ends_at = end_of(*found),
                   .exclusive = place.find("excl") != std::string::npos,
                   .comment = text_at(*found, "/comment"),
                   .runs = number("run_count"),
                   .substate = number("substate"),
                   .outlives_hosts = text_at(*found, "/tolerate_node_failures") == "all"};
}

namespace {

/// Returns "thetagpu07" for "thetagpu07-gpu3"; nothing if the line names no single GPU.
std::optional<std::string_view> host_of_gpu(std::string_view line) {
    auto const dash = line.rfind("-gpu");
    if (dash == std::string_view::npos || dash == 0 || dash + 4 == line.size()) return std::nullopt;
    if (line.find_first_not_of("0123456789", dash + 4) != std::string_view::npos) return std::nullopt;
    return line.substr(0, dash);
}

/// Holds the hosts so far by their short names: a host that is spelled in two ways, short and in full, counts once.
class known_hosts {
  public:
    /// Returns its place in `nodes`, or the next place for a new host.
    std::size_t place_of(std::string_view host, std::vector<node> const& nodes) {
        auto const [exact, is_new] = places_.try_emplace(host, nodes.size());
        if (!is_new) return exact->second;
        auto& alike = alike_[short_name(host)];
        for (auto const place : alike)
            if (same_host(nodes[place].name, host)) return exact->second = place;
        alike.push_back(nodes.size());
        return nodes.size();
    }

  private:
    std::unordered_map<std::string_view, std::size_t> places_;
    std::unordered_map<std::string_view, std::vector<std::size_t>> alike_;
};

}  // namespace

std::vector<node> parse_node_file(std::string_view text, std::string_view origin, bool gpu_entries) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark of UTF-8
    std::vector<node> nodes;
    known_hosts known;
    for (auto const line : split(text, '\n')) {
        auto host = trim(line.substr(0, line.find('#')));
        if (host.empty()) continue;
        auto const line_of_gpu = host;
        auto const single = gpu_entries ? host_of_gpu(host) : std::nullopt;
        if (single) host = *single;
        auto const place = known.place_of(host, nodes);
        if (place == nodes.size()) {
            if (auto const fault = check_host_name(host))
                throw parse_error(origin, text, static_cast<std::size_t>(host.data() - text.data()) + fault->offset,
                                  fault->message);
            if (nodes.size() == max_hosts) throw parse_error(origin, text, 0, fmt::format("more than {} hosts", max_hosts));
            nodes.push_back({std::string(host), std::string(host), 0, std::nullopt, std::nullopt});
        }
        auto& n = nodes[place];
        ++n.slots;
        if (single) {
            n.gpus = n.gpus.value_or(0) + 1;
            n.gpu_ids += fmt::format("{}{}", n.gpu_ids.empty() ? "" : ",", line_of_gpu.substr(single->size() + 4));
        }
    }
    if (nodes.empty()) throw parse_error(origin, text, 0, "it names no host");
    return nodes;
}

}  // namespace muster
