#include "launch/scheduler/host_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/letters.hpp"
#include "base/throw_error.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

std::string short_key(std::string_view host) {
    return lower_case(short_name(host));
}

/// `host` is the host that both name. In a job, a host without slots has those of the job.
[[noreturn]] void refuse_two_names(host_entry const& a, host_entry const& b, std::string_view host, bool in_job) {
    auto const slots = in_job && !a.slots && !b.slots ? "" : fmt::format(":{}", a.slots.value_or(1) + b.slots.value_or(1));
    throw_error(errc::usage, "{} and {} are two names of one host, {}; write {}{} instead of both", a.name, b.name, host, a.name,
                slots);
}

/// Refuses two names of one host: they would become two nodes, and the ranks of the second would run on the first.
void check_for_two_names(std::span<host_entry const> entries) {
    std::unordered_map<std::string, std::vector<host_entry const*>> known;
    for (auto const& entry : entries) {
        auto const name = without_user(entry.name);
        auto& alike = known[short_key(name)];
        for (auto const* other : alike)
            if (same_host(without_user(other->name), name)) refuse_two_names(*other, entry, short_name(name), false);
        alike.push_back(&entry);
    }
}

void apply(host_entry const& entry, allocation const& job, node& n) {
    if (entry.slots) {
        if (*entry.slots > std::max(n.slots, n.cpus.value_or(*entry.slots)) && n.gpus.value_or(0) == 0)
            throw_error(errc::usage, "{} slots on {}: job {} ({}) has {} there; write {}:{}, or use --slots-per-node",
                        *entry.slots, n.name, job.job_id, to_string(job.scheduler), n.slots, n.name,
                        std::max(n.slots, n.cpus.value_or(0)));
        n.slots = *entry.slots;
        n.slots_named = true;
        if (n.gpus) n.gpus = std::min(*n.gpus, *entry.slots);
    }
    if (!entry.gpus) return;
    if (n.gpus && *entry.gpus > *n.gpus)
        throw_error(errc::usage, "gpus={} on {}: job {} ({}) has {} there; write gpus={}", *entry.gpus, n.name, job.job_id,
                    to_string(job.scheduler), *n.gpus, *n.gpus);
    n.gpus = entry.gpus;
}

bool is_this_machine(std::string_view name) {
    return name == "localhost" || name == "127.0.0.1";
}

}  // namespace

bool same_host(std::string_view a, std::string_view b) noexcept {
    auto const equal = [](std::string_view x, std::string_view y) {
        return x.size() == y.size() &&
               std::equal(x.begin(), x.end(), y.begin(), [](char c, char d) { return lower_case(c) == lower_case(d); });
    };
    auto const dot_a = a.find('.');
    auto const dot_b = b.find('.');
    if (dot_a != std::string_view::npos && dot_b != std::string_view::npos) return equal(a, b);
    return equal(a.substr(0, dot_a), b.substr(0, dot_b));
}

std::vector<host_entry> named_hosts(scheduler_sources const& sources, allocation_choice const& choice) {
    if (!choice.hosts.empty()) return parse_hosts(choice.hosts, "-H");
    auto const text = sources.read_file(choice.hostfile);
    if (!text) throw_error(errc::usage, "no host file {}; check --hostfile", choice.hostfile);
    return parse_hostfile(*text, choice.hostfile);
}

allocation choose_hosts(allocation const& job, std::span<host_entry const> chosen, std::string_view option) {
    std::unordered_map<std::string, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < job.nodes.size(); ++i) places[short_key(without_user(job.nodes[i].name))].push_back(i);
    allocation some = job;
    some.nodes.clear();
    std::vector<host_entry const*> taken(job.nodes.size());
    auto const place_of = [&](std::string const& name) {
        std::optional<std::size_t> found;
        for (auto const i : places[short_key(name)])
            if (same_host(name, without_user(job.nodes[i].name))) found = i;
        return found;
    };
    for (auto const& entry : chosen) {
        std::string const name(without_user(entry.name));
        auto found = place_of(name);
        // Lines written for one machine may say this; it may be one of the job's nodes.
        if (!found && is_this_machine(name)) found = place_of(short_host_name());
        if (!found)
            throw_error(errc::usage,
                        "{} is not in job {} ({}), whose nodes are {}; name some of these, or give --scheduler hostfile to use "
                        "hosts outside the job",
                        name, job.job_id, to_string(job.scheduler), list_nodes(job));
        if (taken[*found] != nullptr) refuse_two_names(*taken[*found], entry, job.nodes[*found].name, true);
        taken[*found] = &entry;
        some.nodes.push_back(job.nodes[*found]);
        auto& n = some.nodes.back();
        apply(entry, job, n);
        auto const& whole = job.nodes[*found];
        if (n.gpus < whole.gpus || (n.gpus.value_or(0) == 0 && n.slots < whole.slots)) some.narrowed_by = option;
    }
    if (some.nodes.size() < job.nodes.size()) some.narrowed_by = option;
    return some;
}

std::optional<std::string> hostfile_unavailable(scheduler_sources const&, allocation_choice const& choice) {
    if (choice.hostfile.empty() && choice.hosts.empty()) return "neither --hostfile nor -H is given";
    return std::nullopt;
}

allocation read_hostfile(scheduler_sources const& sources, allocation_choice const& choice) {
    allocation given;
    given.scheduler = scheduler_kind::hostfile;
    auto entries = named_hosts(sources, choice);
    check_for_two_names(entries);
    for (auto& entry : entries) {
        std::string const address(without_user(entry.name));
        int const slots = entry.slots.value_or(std::max(entry.gpus.value_or(1), 1));
        given.nodes.push_back({std::move(entry.name), address, slots, entry.gpus, std::nullopt, entry.slots.has_value()});
    }
    // The name is then that of its ranks' host.
    if (auto& only = given.nodes.front(); given.nodes.size() == 1 && is_this_machine(only.name)) only.name = short_host_name();
    return given;
}

std::optional<std::string> local_unavailable(scheduler_sources const&, allocation_choice const&) {
    return std::nullopt;
}

allocation read_local(scheduler_sources const& sources, allocation_choice const&) {
    return {scheduler_kind::local, "", {sources.this_node()}, std::nullopt, false};
}

}  // namespace muster
