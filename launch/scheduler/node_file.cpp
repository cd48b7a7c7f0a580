#include "launch/scheduler/node_file.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/host_choice.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

namespace {

/// "thetagpu07" of "thetagpu07-gpu3"; nothing if the line names no single GPU.
std::optional<std::string_view> host_of_gpu(std::string_view line) {
    auto const dash = line.rfind("-gpu");
    if (dash == std::string_view::npos || dash == 0 || dash + 4 == line.size()) return std::nullopt;
    if (line.find_first_not_of("0123456789", dash + 4) != std::string_view::npos) return std::nullopt;
    return line.substr(0, dash);
}

/// The hosts so far, by their short names: a host whose lines spell it in two ways, short and in full, is one.
class known_hosts {
  public:
    /// Its place in `nodes`; where it is new, that of the next one.
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
