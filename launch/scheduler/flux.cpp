#include "launch/scheduler/flux.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

// A Flux instance (flux batch, flux alloc, flux start) or a job in one. R describes it; the instance itself or its parent has R.

namespace {

/// Returns the user who owns the instance; nothing if Flux does not answer.
std::optional<std::int64_t> instance_owner(scheduler_sources const& sources) {
    auto const answer = sources.run_command({"flux", "getattr", "security.owner"});
    return answer.exit_status == 0 ? parse_integer(trim(answer.out)) : std::nullopt;
}

/// Returns this instance's number as a job of its parent; empty if it has none. FLUX_ENCLOSING_ID is newer than flux-core 0.63.
std::string job_of_instance(scheduler_sources const& sources) {
    if (auto const id = sources.variables.get("FLUX_ENCLOSING_ID")) return std::string(*id);
    auto const level = sources.run_command({"flux", "getattr", "instance-level"});
    if (level.exit_status != 0 || trim(level.out) == "0") return {};
    auto const id = sources.run_command({"flux", "getattr", "jobid"});
    return id.exit_status == 0 ? std::string(trim(id.out)) : std::string();
}

/// Returns the end of such a job according to the parent: up to flux-core 0.63 an instance does not know when its own time is up.
std::optional<std::chrono::system_clock::time_point> end_in_parent(scheduler_sources const& sources, std::string const& id) {
    std::vector<std::string> const question{"flux", "--parent", "job", "info", id, "R"};
    auto const answer = sources.run_command(question);
    if (answer.exit_status != 0) return std::nullopt;
    try {
        return parse_flux_resources(answer.out, join(question, " ")).ends_at;
    } catch (parse_error const&) {
        return std::nullopt;
    }
}

}  // namespace

/// A shell opened by `flux proxy` has FLUX_URI, too, but a system instance is no job: its nodes are shared by all users.
std::optional<std::string> flux_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (!sources.variables.has("FLUX_URI")) return "FLUX_URI is not set";
    if (sources.variables.has("FLUX_JOB_ID") || sources.variables.has("FLUX_ENCLOSING_ID")) return std::nullopt;
    auto const owner = instance_owner(sources);
    if (!owner || *owner == static_cast<std::int64_t>(::geteuid())) return std::nullopt;
    return fmt::format("FLUX_URI leads to a whole instance, which belongs to user {}; this is no job in it", *owner);
}

allocation read_flux(scheduler_sources const& sources, allocation_choice const&) {
    auto const job = sources.variables.get("FLUX_JOB_ID");  // set in a task of a job; else this script owns the instance
    std::vector<std::string> command{"flux", "resource", "R"};
    if (job) command = {"flux", "job", "info", *job, "R"};
    auto const answer = sources.run_command(command);
    if (answer.exit_status != 0)
        throw_error(errc::unavailable, "{} failed ({}): {}; load Flux's commands, or give -H", join(command, " "),
                    answer.exit_status, trim(answer.err));
    auto resources = parse_flux_resources(answer.out, join(command, " "));
    auto const id = plain_flux_id(job ? std::string(*job) : job_of_instance(sources));
    if (!job && !id.empty() && !resources.ends_at) resources.ends_at = end_in_parent(sources, id);
    return {scheduler_kind::flux, id, std::move(resources.nodes), resources.ends_at, true};
}

namespace {

using json = nlohmann::json;

/// Holds the job's share of one broker's host, by number: RFC 20 counts from 0 on each host.
struct children {
    std::vector<std::string> cores;
    std::vector<std::string> gpus;
};

/// Returns the numbers of "0-3,8": an idset is written like the brackets of a hostlist.
std::vector<std::string> ids_of(json const& object, char const* key, std::string_view origin) {
    auto const found = object.find(key);
    if (found == object.end()) return {};
    auto const text = found->is_number_unsigned() ? found->dump() : found->get<std::string>();
    if (text.empty()) return {};
    return expand_hostlist("[" + text + "]", fmt::format("{}, {}", origin, key));
}

/// Reads the entries by Flux rank, which is the order of nodelist.
std::map<long, children> read_ranks(json const& lite, std::string_view origin) {
    std::map<long, children> ranks;
    for (auto const& entry : lite) {
        auto const& parts = entry.at("children");
        children const own{ids_of(parts, "core", origin), ids_of(parts, "gpu", origin)};
        for (auto const& rank : ids_of(entry, "rank", origin)) ranks[std::stol(rank)] = own;
    }
    return ranks;
}

/// Merges brokers of one host, such as those of `flux start -s 4`, which share its cores and GPUs, into one node, with a slot for
/// each core of each broker.
class nodes_by_host {
  public:
    void add(std::string const& host, children const& own) {
        auto const [found, is_new] = places_.try_emplace(host, nodes_.size());
        if (is_new) {
            nodes_.push_back({host, host, 0, std::nullopt, std::nullopt});
            parts_.emplace_back();
        }
        auto& one = nodes_[found->second];
        auto& [cores, gpus] = parts_[found->second];
        add_new(cores, own.cores);
        add_new(gpus, own.gpus);
        one.slots += std::max(static_cast<int>(own.cores.size()), 1);
        if (!cores.empty()) one.cpus = static_cast<int>(cores.size());
        one.gpus = static_cast<int>(gpus.size());
        one.gpu_ids = join(gpus, ",");
    }
    std::vector<node> take() { return std::move(nodes_); }

  private:
    static void add_new(std::vector<std::string>& ids, std::vector<std::string> const& more) {
        std::set<std::string, std::less<>> const known(ids.begin(), ids.end());
        std::copy_if(more.begin(), more.end(), std::back_inserter(ids), [&](auto const& id) { return !known.contains(id); });
    }

    std::map<std::string, std::size_t, std::less<>> places_;
    std::vector<node> nodes_;
    std::vector<children> parts_;  ///< those of the nodes
};

flux_resources read(json const& all, std::string_view origin) {
    auto const& execution = all.at("execution");
    auto const ranks = read_ranks(execution.at("R_lite"), origin);
    std::vector<std::string> hosts;
    for (auto const& list : execution.at("nodelist"))
        for (auto& host : expand_hostlist(list.get<std::string>(), fmt::format("{}, nodelist", origin)))
            hosts.push_back(std::move(host));
    if (hosts.empty() || hosts.size() != ranks.size())
        throw_error(errc::parse, "{}: {} hosts for {} ranks", origin, hosts.size(), ranks.size());
    flux_resources r;
    std::size_t i = 0;
    nodes_by_host nodes;
    for (auto const& [rank, own] : ranks) nodes.add(hosts[i++], own);
    r.nodes = nodes.take();
    double const end = execution.value("expiration", 0.0);
    if (end >= 1.0 && end < 1e10) r.ends_at = from_epoch(static_cast<std::int64_t>(end));
    return r;
}

}  // namespace

std::string plain_flux_id(std::string_view id) {
    constexpr std::string_view hooked = "\xc6\x92";
    return id.starts_with(hooked) ? "f" + std::string(id.substr(hooked.size())) : std::string(id);
}

flux_resources parse_flux_resources(std::string_view text, std::string_view origin) {
    try {
        return read(parse_json_as<json>(text, origin, errc::parse), origin);
    } catch (json::exception const& e) {
        throw parse_error(origin, text, 0, fmt::format("this is no resource set of Flux (R, version 1): {}", e.what()));
    }
}

}  // namespace muster
