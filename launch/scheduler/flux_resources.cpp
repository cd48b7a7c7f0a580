#include "launch/scheduler/flux_resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/epoch.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

namespace {

using json = nlohmann::json;

/// What the job has of one broker's host, by number: RFC 20 counts from 0 on each.
struct children {
    std::vector<std::string> cores;
    std::vector<std::string> gpus;
};

/// The numbers of "0-3,8": an idset is what a hostlist has between its brackets.
std::vector<std::string> ids_of(json const& object, char const* key, std::string_view origin) {
    auto const found = object.find(key);
    if (found == object.end()) return {};
    auto const text = found->is_number_unsigned() ? found->dump() : found->get<std::string>();
    if (text.empty()) return {};
    return expand_hostlist("[" + text + "]", fmt::format("{}, {}", origin, key));
}

/// By Flux rank, which is the order of nodelist.
std::map<long, children> read_ranks(json const& lite, std::string_view origin) {
    std::map<long, children> ranks;
    for (auto const& entry : lite) {
        auto const& parts = entry.at("children");
        children const own{ids_of(parts, "core", origin), ids_of(parts, "gpu", origin)};
        for (auto const& rank : ids_of(entry, "rank", origin)) ranks[std::stol(rank)] = own;
    }
    return ranks;
}

/// Brokers of one host, as those of `flux start -s 4`, share its cores and GPUs: one node, with a slot for each core of each broker.
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
    std::vector<children> parts_;  ///< of the nodes
};

flux_resources read(json const& all, std::string_view origin) {
    auto const& execution = all.at("execution");
    auto const ranks = read_ranks(execution.at("R_lite"), origin);
    std::vector<std::string> hosts;
    for (auto const& list : execution.at("nodelist"))
        for (auto& host : expand_hostlist(list.get<std::string>(), fmt::format("{}, nodelist", origin)))
            hosts.push_back(std::move(host));
    if (hosts.empty() || hosts.size() != ranks.size())
        throw error(errc::parse, fmt::format("{}: {} hosts for {} ranks", origin, hosts.size(), ranks.size()));
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
        return read(json::parse(text), origin);
    } catch (json::parse_error const& e) {
        throw parse_error(origin, text, e.byte > 0 ? e.byte - 1 : 0, "expected a resource set in JSON (R, version 1)");
    } catch (json::exception const& e) {
        throw parse_error(origin, text, 0, fmt::format("this is no resource set of Flux (R, version 1): {}", e.what()));
    }
}

}  // namespace muster
