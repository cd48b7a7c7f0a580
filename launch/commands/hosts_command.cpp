#include "base/command/print_note.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/commands/commands.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ctime>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/throw_error.hpp"
#include "launch/help/help.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/scheduler/hosts/bracketed_address.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/site_placement.hpp"

namespace muster {

namespace {

struct hosts_format {
    std::string_view name;
    std::string (*text)(allocation const& given);
};

constexpr hosts_format formats[]{
    {"table", hosts_table}, {"json", hosts_json}, {"hostfile", hosts_hostfile}, {"slurm", hosts_slurm}, {"pbs", hosts_pbs},
};

hosts_format const& find_format(std::string const& name) {
    std::vector<std::string> names;
    for (auto const& f : formats) {
        if (name == f.name) return f;
        names.emplace_back(f.name);
    }
    throw_error(errc::usage, "--format {} is unknown; use {}", name, join(names, ", "));
}

std::string number(std::optional<int> value) {
    return value ? std::to_string(*value) : "?";
}

std::string utc(std::chrono::system_clock::time_point when) {
    std::time_t const seconds = std::chrono::system_clock::to_time_t(when);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                       parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/// Returns the number of ranks that a node takes: one for each GPU if it has GPUs.
int slots_of(node const& n) {
    return n.gpus.value_or(0) > 0 ? *n.gpus : n.slots;
}

/// Returns whether only nodes with a GPU take ranks.
bool has_gpus(allocation const& given) {
    for (auto const& n : given.nodes)
        if (n.gpus.value_or(0) > 0) return true;
    return false;
}

bool takes_ranks(node const& n, bool gpus) {
    return !gpus || !n.gpus || *n.gpus > 0;
}

}  // namespace

std::string hosts_table(allocation const& given) {
    text_table table({"host", "GPUs", "slots", "CPUs", "address"});
    for (auto const& n : given.nodes)
        table.add({n.name, number(n.gpus), std::to_string(n.slots), number(n.cpus), n.address == n.name ? "" : n.address});
    return table.text();
}

std::string hosts_json(allocation const& given) {
    nlohmann::ordered_json all{{"schema", "muster.hosts/1"}, {"scheduler", to_string(given.scheduler)}, {"job_id", given.job_id}};
    all["fixed"] = given.fixed;
    all["ends_at"] = nullptr;
    if (given.ends_at) all["ends_at"] = utc(*given.ends_at);
    all["nodes"] = nlohmann::ordered_json::array();
    for (auto const& n : given.nodes) {
        nlohmann::ordered_json one{
            {"name", n.name}, {"address", n.address}, {"slots", n.slots}, {"gpus", nullptr}, {"cpus", nullptr}};
        if (n.gpus) one["gpus"] = *n.gpus;
        if (n.cpus) one["cpus"] = *n.cpus;
        if (!n.gpu_ids.empty()) one["gpu_ids"] = n.gpu_ids;
        all["nodes"].push_back(std::move(one));
    }
    return json_text(all, 2) + "\n";
}

std::string hosts_hostfile(allocation const& given) {
    std::string text;
    bool const gpus = has_gpus(given);
    for (auto const& n : given.nodes)
        if (takes_ranks(n, gpus)) text += fmt::format("{} slots={}\n", is_ipv6_address(n.name) ? fmt::format("[{}]", n.name) : n.name, slots_of(n));
    return text;
}

std::string hosts_slurm(allocation const& given) {
    std::vector<std::string> names;
    for (auto const& n : given.nodes) names.push_back(n.name);
    return compress_hosts(names) + "\n";
}

std::string hosts_pbs(allocation const& given) {
    std::string text;
    bool const gpus = has_gpus(given);
    for (auto const& n : given.nodes)
        if (takes_ranks(n, gpus))
            for (int i = 0; i < slots_of(n); ++i) text += n.name + "\n";
    return text;
}

int hosts_command(std::vector<std::string> const& args, environment const& variables) {
    auto const values = resolve_settings("hosts", args, real_settings(variables));
    if (print_help_if_asked("hosts", values)) return 0;
    print_notes(values);
    if (!values.command.empty())
        throw_error(errc::usage, "muster hosts takes no argument '{}'; leave it out", values.command.front());
    std::string const wanted = values.flag("json") ? "json" : values.text("format");
    auto const& format = find_format(wanted);
    std::vector<std::string> tried;
    auto const sources = telling_sources(real_sources(variables, [&] { return node_of(discover_here(variables)); }),
                                         [](std::string const& what) { print_note(what); });
    auto const given =
        read_allocation(sources, choice_with_site(make_allocation_choice(values), values.text("site"), variables), &tried);
    if (values.flag("verbose"))
        for (auto const& line : tried) print_note("not {}", line);
    print_note(describe(given));
    if (auto const why = explain_unknown_gpus(given); !why.empty()) print_note(why);
    fmt::print("{}", format.text(given));
    return 0;
}

}  // namespace muster
