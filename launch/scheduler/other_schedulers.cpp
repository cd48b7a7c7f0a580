#include <fmt/format.h>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/pbs.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

// A job of Cobalt. Its node file names hosts, or single GPUs of them: "thetagpu07-gpu3".

std::optional<std::string> cobalt_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (sources.variables.has("COBALT_JOBID")) return std::nullopt;
    return "COBALT_JOBID is not set";
}

allocation read_cobalt(scheduler_sources const& sources, allocation_choice const&) {
    auto const job = sources.variables.get_or("COBALT_JOBID", "");
    auto const path = sources.variables.get("COBALT_NODEFILE");
    auto const text = path ? sources.read_file(*path) : std::nullopt;
    if (!text)
        throw_error(errc::not_found,
                    "job {} (cobalt): COBALT_NODEFILE{} is not {}; start muster in the job's script or shell, or give -H", job,
                    path ? "=" + *path : "", path ? "there" : "set");
    allocation given{scheduler_kind::cobalt, job, parse_node_file(*text, *path, true), std::nullopt, true};
    if (auto const end = parse_integer(sources.variables.get_or("COBALT_ENDTIME", ""))) given.ends_at = from_epoch(*end);
    return given;
}

// A job of LSF. The code follows the documentation; nobody has tried it with LSF.

namespace {

/// Reads "host n host n" like a node file.
std::vector<node> parse_mcpu_hosts(std::string_view text) {
    constexpr std::string_view origin = "LSB_MCPU_HOSTS";
    std::vector<node> nodes;
    std::size_t at = 0;
    while ((at = text.find_first_not_of(" \t", at)) != std::string_view::npos) {
        auto const end = std::min(text.find_first_of(" \t", at), text.size());
        auto const number = text.find_first_not_of(" \t", end);
        auto const number_end =
            number == std::string_view::npos ? number : std::min(text.find_first_of(" \t", number), text.size());
        auto const slots =
            number == std::string_view::npos ? std::nullopt : parse_integer(text.substr(number, number_end - number));
        if (!slots || *slots < 1 || *slots > 1'000'000)
            throw parse_error(origin, text, number == std::string_view::npos ? text.size() : number,
                              "expected a number of slots behind the host");
        auto n = parse_node_file(text.substr(at, end - at), origin).front();
        n.slots = static_cast<int>(*slots);
        nodes.push_back(std::move(n));
        if (nodes.size() > max_hosts) throw parse_error(origin, text, at, fmt::format("more than {} hosts", max_hosts));
        at = number_end;
    }
    if (nodes.empty()) throw parse_error(origin, text, 0, "it names no host");
    return nodes;
}

/// Removes the launch node of machines that run jobs from one (Summit): it comes first, has one slot, and takes no ranks.
void drop_launch_node(std::vector<node>& nodes) {
    if (nodes.size() < 2 || nodes.front().slots != 1 || nodes[1].slots < 2) return;
    for (auto const* prefix : {"batch", "login", "launch"})
        if (nodes.front().name.starts_with(prefix)) {
            nodes.erase(nodes.begin());
            return;
        }
}

}  // namespace

std::optional<std::string> lsf_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (sources.variables.has("LSB_JOBID")) return std::nullopt;
    return "LSB_JOBID is not set";
}

allocation read_lsf(scheduler_sources const& sources, allocation_choice const&) {
    auto const& variables = sources.variables;
    allocation given;
    given.scheduler = scheduler_kind::lsf;
    given.job_id = variables.get_or("LSB_JOBID", "");
    given.fixed = true;
    auto const path = variables.get("LSB_DJOB_HOSTFILE");
    auto const text = path ? sources.read_file(*path) : std::nullopt;
    auto const list = variables.get("LSB_MCPU_HOSTS");
    if (text)
        given.nodes = parse_node_file(*text, *path);
    else if (list)
        given.nodes = parse_mcpu_hosts(*list);
    else
        throw_error(errc::not_found,
                    "job {} (lsf): neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS tells its hosts; start muster in the job's "
                    "script or shell, or give -H",
                    given.job_id);
    drop_launch_node(given.nodes);
    return given;
}

}  // namespace muster
