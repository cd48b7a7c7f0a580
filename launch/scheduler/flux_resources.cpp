#include "launch/scheduler/flux_resources.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "launch/scheduler/epoch.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

namespace {

using json = nlohmann::json;

struct children {
    int cores = 0;
    int gpus = 0;
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
        children const own{static_cast<int>(ids_of(parts, "core", origin).size()),
                           static_cast<int>(ids_of(parts, "gpu", origin).size())};
        for (auto const& rank : ids_of(entry, "rank", origin)) ranks[std::stol(rank)] = own;
    }
    return ranks;
}

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
    for (auto const& [rank, own] : ranks) {
        r.nodes.push_back(
            {hosts[i], hosts[i], std::max(own.cores, 1), own.gpus, own.cores > 0 ? std::optional(own.cores) : std::nullopt});
        ++i;
    }
    double const end = execution.value("expiration", 0.0);
    if (end >= 1.0 && end < 1e10) r.ends_at = from_epoch(static_cast<std::int64_t>(end));
    return r;
}

}  // namespace

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
