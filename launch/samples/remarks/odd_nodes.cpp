#include "launch/samples/remarks/odd_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/member_json.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/trust/trusted_file.hpp"
#include "launch/system/home_folder.hpp"

namespace muster {

namespace {

constexpr char const* file_name = "odd-nodes";

std::string folder_of(environment const& variables) {
    return folder_of_user(variables, "XDG_STATE_HOME", ".local/state");
}

std::vector<odd_node> read_all(std::string const& folder, std::time_t now) {
    if (folder.empty()) return {};
    auto const found = read_trusted_file(fmt::format("{}/{}", folder, file_name), "record of odd nodes");
    return found.text ? parse_odd_nodes(*found.text, now) : std::vector<odd_node>();
}

}  // namespace

std::string odd_nodes_text(std::vector<odd_node> const& nodes) {
    std::string text;
    for (auto const& node : nodes) text += member_json(node) + "\n";
    return text;
}

std::vector<odd_node> parse_odd_nodes(std::string_view text, std::time_t now) {
    std::vector<odd_node> nodes;
    for (auto const line : split(text, '\n')) {
        odd_node node;
        if (!read_members(parse_json_or_discard<nlohmann::ordered_json>(line), node)) continue;
        if (!node.host.empty() && node.at <= now && now - node.at <= odd_for_s) nodes.push_back(std::move(node));
    }
    std::ranges::stable_sort(nodes, std::ranges::greater(), &odd_node::at);
    if (nodes.size() > most_odd_nodes) nodes.resize(most_odd_nodes);
    return nodes;
}

void remember_odd_nodes(environment const& variables, std::vector<odd_node> const& nodes) noexcept try {
    auto const folder = folder_of(variables);
    if (nodes.empty() || folder.empty()) return;
    auto const now = std::ranges::max(nodes, {}, &odd_node::at).at;
    auto const all = parse_odd_nodes(odd_nodes_text(nodes) + odd_nodes_text(read_all(folder, now)), now);
    output_folder(folder).replace_file(file_name, odd_nodes_text(all), {}, 0600);
} catch (std::exception const&) {
    return;  // a run's end does not depend on it
}

std::vector<odd_node> recall_odd_nodes(environment const& variables, std::string_view cluster, std::time_t now) noexcept try {
    auto nodes = read_all(folder_of(variables), now);
    std::set<std::string> seen;
    std::erase_if(nodes, [&](odd_node const& node) { return node.cluster != cluster || !seen.insert(node.host).second; });
    return nodes;
} catch (std::exception const&) {
    return {};
}

std::string describe(odd_node const& node, std::time_t now) {
    auto const ago = std::max<std::time_t>(now - node.at, 0);
    auto const when = ago < 3600        ? fmt::format("{} min ago", ago / 60)
                      : ago < 48 * 3600 ? fmt::format("{} h ago", ago / 3600)
                                        : fmt::format("{} days ago", ago / (24 * 3600));
    return fmt::format("{}{}, {}", node.reason, node.job.empty() ? "" : " in job " + node.job, when);
}

}  // namespace muster
