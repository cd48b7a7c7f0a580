#include "launch/scheduler/node_file.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

namespace {

/// "thetagpu07" of "thetagpu07-gpu3"; nothing if the line names no single GPU.
std::optional<std::string_view> host_of_gpu(std::string_view line) {
    auto const dash = line.rfind("-gpu");
    if (dash == std::string_view::npos || dash == 0 || dash + 4 == line.size()) return std::nullopt;
    if (line.find_first_not_of("0123456789", dash + 4) != std::string_view::npos) return std::nullopt;
    return line.substr(0, dash);
}

}  // namespace

std::vector<node> parse_node_file(std::string_view text, std::string_view origin, bool gpu_entries) {
    std::vector<node> nodes;
    std::unordered_map<std::string_view, std::size_t> places;
    for (auto const line : split(text, '\n')) {
        auto host = trim(line.substr(0, line.find('#')));
        if (host.empty()) continue;
        auto const single = gpu_entries ? host_of_gpu(host) : std::nullopt;
        if (single) host = *single;
        auto const [place, is_new] = places.try_emplace(host, nodes.size());
        if (is_new) {
            if (auto const fault = check_host_name(host))
                throw parse_error(origin, text, static_cast<std::size_t>(host.data() - text.data()) + fault->offset,
                                  fault->message);
            if (nodes.size() == max_hosts) throw parse_error(origin, text, 0, fmt::format("more than {} hosts", max_hosts));
            nodes.push_back({std::string(host), std::string(host), 0, std::nullopt, std::nullopt});
        }
        auto& n = nodes[place->second];
        ++n.slots;
        if (single) n.gpus = n.gpus.value_or(0) + 1;
    }
    if (nodes.empty()) throw parse_error(origin, text, 0, "it names no host");
    return nodes;
}

}  // namespace muster
