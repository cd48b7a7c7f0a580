#include "launch/engine/engine_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/hostlist.hpp"
#include "launch/system/mpi_library.hpp"

namespace muster {

namespace {

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

/// The number at `at`, which moves behind it.
std::optional<std::int64_t> take_number(std::string_view text, std::size_t& at) noexcept {
    auto const from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return parse_integer(text.substr(from, std::min<std::size_t>(at - from, 9)));
}

template <typename Value>
std::optional<int> common_value(engine_job const& job, Value value_of) {
    std::optional<int> common;
    for (int const node : used_nodes(job)) {
        std::optional<int> const here = value_of(static_cast<std::size_t>(node));
        if (!here || (common && *common != *here)) return std::nullopt;
        common = here;
    }
    return common;
}

}  // namespace

std::optional<program_version> find_version(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        if (!is_digit(text[at])) {
            ++at;
            continue;
        }
        auto const major = take_number(text, at);
        if (at + 1 >= text.size() || text[at] != '.' || !is_digit(text[at + 1])) continue;
        ++at;
        auto const minor = take_number(text, at);
        if (major && minor) return program_version{static_cast<int>(*major), static_cast<int>(*minor)};
    }
    return std::nullopt;
}

mpi_family family_of(std::string_view library) noexcept {
    auto const name = library.substr(library.rfind('/') + 1);
    if (name.empty()) return mpi_family::none;
    for (auto const cray : {"cray", "libmpi_gnu", "libmpi_intel", "libmpi_nvidia", "libmpi_amd", "libmpi_aocc"})
        if (name.find(cray) != std::string_view::npos) return mpi_family::cray;
    if (name.starts_with("libmpich") || name.ends_with(".so.12") || name.find(".so.12.") != std::string_view::npos)
        return mpi_family::mpich;
    return mpi_family::open_mpi;
}

bool is_foreign(mpi_family family, wire_up speaks) noexcept {
    if (family == mpi_family::none) return false;
    return speaks != (family == mpi_family::open_mpi ? wire_up::pmix : wire_up::pmi);
}

std::string_view engines_for(mpi_family family) noexcept {
    return family == mpi_family::open_mpi ? "--engine srun or mpirun" : "--engine mpiexec (MPICH's Hydra)";
}

program_mpi find_mpi(engine_job const& job) {
    if (job.program.empty()) return {};
    std::vector<std::string> folders;
    auto const library_path = job.variables.get_or("LD_LIBRARY_PATH", "");
    for (auto const folder : split(library_path, ':'))
        if (!folder.empty()) folders.emplace_back(folder);
    auto const path = pmix::links_mpi(job.program, folders);
    if (!path) return {};
    auto const name = path->substr(path->rfind('/') + 1);
    return {family_of(name), name};
}

std::vector<int> used_nodes(engine_job const& job) {
    expect(job.map.ranks_per_node.size() <= job.given.nodes.size(), "a mapping of this allocation");
    std::vector<int> nodes;
    for (std::size_t n = 0; n < job.map.ranks_per_node.size(); ++n)
        if (job.map.ranks_per_node[n] > 0) nodes.push_back(static_cast<int>(n));
    return nodes;
}

int ranks_of(engine_job const& job) {
    return job.probe ? job.map.nodes_used() : job.map.world_size();
}

std::vector<std::string> rank_hosts(engine_job const& job) {
    std::vector<std::string> hosts;
    auto const add = [&](int node) { hosts.push_back(job.given.nodes.at(static_cast<std::size_t>(node)).name); };
    if (job.probe) {
        for (int const node : used_nodes(job)) add(node);
        return hosts;
    }
    for (auto const& place : job.map.places()) add(place.node);
    return hosts;
}

std::optional<int> ranks_on_each(engine_job const& job) {
    if (job.probe) return 1;
    return common_value(job, [&](std::size_t n) { return std::optional(job.map.ranks_per_node[n]); });
}

std::optional<int> gpus_on_each(engine_job const& job) {
    return common_value(job, [&](std::size_t n) {
        auto const& node = job.given.nodes.at(n);
        return node.gpus_counted ? std::nullopt : node.gpus;
    });
}

std::optional<std::string> beyond_first_component(engine_job const& job, environment const& variables) {
    auto const size = variables.get_int("SLURM_HET_SIZE").value_or(1);
    auto const name = "SLURM_JOB_NODELIST_HET_GROUP_0";
    if (job.given.scheduler != scheduler_kind::slurm || size < 2 || !variables.has(name)) return std::nullopt;
    auto const list = expand_hostlist(variables.get_or(name, ""), name);
    std::set<std::string, std::less<>> const first(list.begin(), list.end());
    for (int const node : used_nodes(job))
        if (auto const& host = job.given.nodes.at(static_cast<std::size_t>(node)).name; !first.contains(host))
            return fmt::format(
                "this is a heterogeneous Slurm job of {} components, and {} is not in the first one ({}); muster starts "
                "steps in that one only: use its nodes (--nodes {})",
                size, host, variables.get_or(name, ""), first.size());
    return std::nullopt;
}

std::string first_line(command_output const& said) {
    for (auto const* text : {&said.err, &said.out})
        for (auto const line : split(*text, '\n'))
            if (auto const words = trim(line); !words.empty()) return std::string(words);
    return "it printed nothing";
}

std::string as_lines(std::vector<std::string> const& lines) {
    std::string text;
    for (auto const& line : lines) text += line + "\n";
    return text;
}

}  // namespace muster
