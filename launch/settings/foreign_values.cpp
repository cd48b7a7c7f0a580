// Rewrites values of options from other tools as muster's own.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/settings/foreign_options.hpp"

namespace muster {

namespace {

using meant = std::vector<std::pair<std::string, std::string>>;

[[noreturn]] void refuse(setting const& row, std::string const& value, std::size_t offset, std::string const& why) {
    throw parse_error(fmt::format("--{}", row.name), value, offset, why, errc::usage);
}

/// Rewrites torchrun's "2:2" as 2; "1:4" would be elastic.
meant nodes_meant(setting const& row, std::string const& value) {
    auto const colon = value.find(':');
    if (colon == std::string::npos) return {{"nnodes", value}};
    if (value.substr(0, colon) != value.substr(colon + 1))
        refuse(row, value, colon,
               "muster run starts on a fixed number of nodes: give one number, and --min-np N to go on with fewer ranks, or "
               "--host-discovery-script CMD where hosts come and go");
    return {{"nnodes", value.substr(0, colon)}};
}

/// Rewrites mpirun's "slot:pe=2", "ppr:4:node", "ppr:4:node:pe=2".
meant map_meant(setting const& row, std::string const& value) {
    auto const parts = split(value, ':');
    if (parts.size() == 1 && parts[0] != "core" && parts[0] != "numa" && parts[0] != "socket" && parts[0] != "package")
        return {{"map-by", value}};
    auto const offset_of = [&](std::size_t i) { return static_cast<std::size_t>(parts[i].data() - value.data()); };
    meant result;
    std::size_t next = 1;
    if (parts[0] == "ppr") {
        if (parts.size() < 3) refuse(row, value, value.size(), "the part 'node' is missing; write ppr:N:node");
        if (parts[2] != "node")
            refuse(row, value, offset_of(2),
                   "muster counts ranks by node; write ppr:N:node, and --bind-to for what each gets there");
        result = {{"map-by", "slot"}, {"ranks-per-node", std::string(parts[1])}};
        next = 3;
    } else if (parts[0] == "slot" || parts[0] == "node") {
        result = {{"map-by", std::string(parts[0])}};
    } else {
        refuse(row, value, 0, "--map-by chooses the node of a rank; write slot or node, and --bind-to for what it gets there");
    }
    for (; next < parts.size(); ++next) {
        if (parts[next].size() < 4 || (!parts[next].starts_with("pe=") && !parts[next].starts_with("PE=")))
            refuse(row, value, offset_of(next), "this modifier is unknown; use PE=N, which is --cpus-per-rank N");
        result.emplace_back("cpus-per-rank", std::string(parts[next].substr(3)));
    }
    return result;
}

}  // namespace

std::vector<std::string> read_exports(std::string const& word, std::string const& value) {
    auto const names = split(value, ',');
    if (std::ranges::find(names, "ALL") == names.end() || value.find_first_of("'\"") != std::string::npos)
        throw_error(
            errc::usage,
            "{}={} is an option of srun: all of your variables reach the ranks; write --env NAME=VALUE for each that you add",
            word, value);
    std::vector<std::string> added;
    for (auto const name : names)
        if (name.find('=') != std::string_view::npos) added.emplace_back(name);
    return added;
}

std::vector<std::pair<std::string, std::string>> rewrite_foreign_value(setting const& row, std::string const& value) {
    if (row.name == "nnodes") return nodes_meant(row, value);
    if (row.name == "map-by") return map_meant(row, value);
    // torchrun's words for muster's default: one for each GPU, or each core.
    if (row.name == "ranks-per-node" && (value == "gpu" || value == "cpu" || value == "auto")) return {};
    if (row.name == "stdin" && value == "0") return {{"stdin", "rank0"}};
    if (row.name == "bind-to" && value == "package") return {{"bind-to", "socket"}};
    return {{std::string(row.name), value}};
}

}  // namespace muster
