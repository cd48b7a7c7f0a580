#include "bench/communication/measured_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

constexpr char const* what_to_give = "give the --json of muster-bench collectives or collectives-here, with allreduces of f32";

/// The times in place, else the others; those of collectives-here are of the slowest rank.
std::optional<timed_size> time_of(checked_json const& size) {
    std::vector<double> us;
    for (auto const* place : {"in_place_us", "out_of_place_us"})
        if (us.empty())
            for (auto const& sample : size.at(place).items())
                us.push_back(sample.value().is_number() ? sample.number() : sample.at("max").number());
    double const bytes = size.at("bytes").number();
    if (us.empty() || !(bytes > 0)) return {};
    return timed_size{bytes, median(us)};
}

bool is_averaging(checked_json const& table) {
    auto const reduction = table.at("redop").text();
    return table.at("collective").text() == "allreduce" && table.at("type").text() == "f32" &&
           (reduction == "sum" || reduction == "avg");
}

/// What a document holds.
struct found_sets {
    std::vector<measured_allreduce> all;
    std::size_t without_fit = 0;  ///< sets of three sizes or more whose times do not grow with the size
};

void add(std::string const& backend, int ranks, bool between_nodes, std::vector<timed_size> const& sizes, found_sets& sets) {
    if (auto const fitted = fit_link(sizes))
        sets.all.push_back({backend, ranks, between_nodes, *fitted});
    else
        sets.without_fit += sizes.size() >= 3 ? 1 : 0;
}

/// Of `collectives`, whose ranks are on one node.
void add_table(checked_json const& from, found_sets& sets) {
    if (!is_averaging(from) || from.at("simulated").boolean() || !from.at("gradients").text().empty()) return;
    std::map<std::string, std::vector<timed_size>> by;
    for (auto const& job : from.at("jobs").items())
        if (job.at("own").boolean() && !job.at("simulated").boolean()) by[job.at("name").text()];
    for (auto const& cell : from.at("cells").items()) {
        auto const found = by.find(cell.at("by").text());
        if (found == by.end()) continue;
        if (auto const time = time_of(cell)) found->second.push_back(*time);
    }
    for (auto const& [name, sizes] : by) add(name, static_cast<int>(from.at("ranks").integer(1, 10'000'000)), false, sizes, sets);
}

void add_job(checked_json const& from, found_sets& sets) {
    auto const hosts = from.at("hosts").items();
    bool between_nodes = false;
    for (auto const& host : hosts) between_nodes |= host.text() != hosts.front().text();
    for (auto const& table : from.at("tables").items()) {
        if (!is_averaging(table)) continue;
        std::vector<timed_size> sizes;
        for (auto const& size : table.at("sizes").items())
            if (auto const time = time_of(size)) sizes.push_back(*time);
        add(from.at("backend").text(), static_cast<int>(hosts.size()), between_nodes, sizes, sets);
    }
}

void add_document(checked_json const& from, found_sets& sets) {
    if (from.value().is_array()) {
        for (auto const& each : from.items()) add_document(each, sets);
        return;
    }
    auto const schema = from.at("schema").text();
    if (schema == "muster.collectives-here/1") return add_job(from, sets);
    if (schema == "muster.collectives/1") return add_table(from, sets);
    from.at("schema").fail(fmt::format("is '{}'; {}", schema, what_to_give));
}

}  // namespace

measured_allreduce const* allreduce_measurements::find(std::string_view backend, int ranks, bool between_nodes) const noexcept {
    auto const found = std::ranges::find_if(all, [&](auto const& each) {
        return each.backend == backend && each.ranks == ranks && each.between_nodes == between_nodes;
    });
    return found == all.end() ? nullptr : &*found;
}

allreduce_measurements read_allreduces(nlohmann::json const& document, std::string const& file) {
    allreduce_measurements out{std::filesystem::path(file).filename().string(), {}};
    found_sets sets;
    add_document(checked_json(document, file), sets);
    out.all = std::move(sets.all);
    if (out.all.empty() && sets.without_fit > 0)
        throw error(errc::invalid_data,
                    fmt::format("{}: the times of its allreduces do not grow with their size, so they have no latency and rate; "
                                "measure again while nothing else runs, up to larger sizes",
                                file));
    if (out.all.empty())
        throw error(
            errc::invalid_data,
            fmt::format("{}: holds no allreduces of f32 in three sizes or more by a backend of muster; {}", file, what_to_give));
    return out;
}

allreduce_measurements read_allreduce_file(std::string const& path) {
    return read_allreduces(read_json_file(path, what_to_give), path);
}

}  // namespace muster
