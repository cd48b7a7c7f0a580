#include "launch/scheduler/pbs_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/scheduler/epoch.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

namespace {

using json = nlohmann::json;
using time_point = std::chrono::system_clock::time_point;

constexpr std::int64_t most = 1'000'000;  // of GPUs or CPUs of one chunk

struct chunk {
    std::optional<std::int64_t> gpus;
    std::optional<std::int64_t> cpus;
};

void add_resource(std::string_view text, std::string_view all, chunk& into) {
    auto const equals = text.find('=');
    auto const name = text.substr(0, equals);
    if (name != "ngpus" && name != "ncpus") return;
    auto const value = equals == std::string_view::npos ? std::nullopt : parse_integer(text.substr(equals + 1));
    if (!value || *value < 0 || *value > most)
        throw parse_error("exec_vnode", all, static_cast<std::size_t>(text.data() - all.data()),
                          "expected a number behind the '='");
    auto& sum = name == "ngpus" ? into.gpus : into.cpus;
    sum = sum.value_or(0) + *value;
}

/// One group: vnodes joined by '+', each "name:resource=value:…".
chunk read_group(std::string_view group, std::string_view all) {
    chunk sum;
    for (auto const vnode : split(group, '+')) {
        auto const fields = split(vnode, ':');
        for (std::size_t i = 1; i < fields.size(); ++i) add_resource(fields[i], all, sum);
    }
    return sum;
}

/// The chunks of exec_vnode, with or without parentheses around them.
std::vector<chunk> read_groups(std::string_view text) {
    std::vector<chunk> groups;
    std::size_t at = 0;
    while (at < text.size()) {
        bool const enclosed = text[at] == '(';
        std::size_t const start = enclosed ? at + 1 : at;
        auto const end = std::min(text.find(enclosed ? ')' : '+', start), text.size());
        if (enclosed && end == text.size()) throw parse_error("exec_vnode", text, at, "this '(' is never closed");
        groups.push_back(read_group(text.substr(start, end - start), text));
        if (groups.size() > max_hosts) throw parse_error("exec_vnode", text, at, fmt::format("more than {} chunks", max_hosts));
        at = end + (enclosed ? 1 : 0);
        if (at == text.size()) break;
        if (text[at] != '+') throw parse_error("exec_vnode", text, at, "expected '+' between two chunks");
        ++at;
    }
    return groups;
}

std::optional<time_point> parse_start(json const& value) {
    if (value.is_number_integer()) return from_epoch(value.get<std::int64_t>());
    if (!value.is_string()) return std::nullopt;
    std::tm when{};
    char const* const end = ::strptime(value.get_ref<std::string const&>().c_str(), "%a %b %d %H:%M:%S %Y", &when);
    if (end == nullptr || *end != '\0') return std::nullopt;
    when.tm_isdst = -1;
    return from_epoch(::mktime(&when));
}

json const* member(json const& object, std::string_view name) {
    if (!object.is_object()) return nullptr;
    auto const found = object.find(name);
    return found == object.end() ? nullptr : &*found;
}

std::string text_of(json const& job, std::string_view name) {
    auto const* const value = member(job, name);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

json const* find_job(json const& answer, std::string_view id) {
    auto const* const jobs = member(answer, "Jobs");
    if (jobs == nullptr || !jobs->is_object()) return nullptr;
    if (auto const* const job = member(*jobs, id)) return job;
    // The server's name may be written in two ways: "12.head", "12.head.example"; the number comes first, "12" or "12[3]".
    if (jobs->size() != 1 || short_name(jobs->begin().key()) != short_name(id)) return nullptr;
    return &*jobs->begin();
}

std::optional<time_point> end_of(json const& job) {
    auto const* const start = member(job, "stime");
    auto const* const resources = member(job, "Resource_List");
    auto const* const walltime = resources != nullptr ? member(*resources, "walltime") : nullptr;
    if (start == nullptr || walltime == nullptr) return std::nullopt;
    auto const length = walltime->is_string()           ? parse_pbs_walltime(walltime->get_ref<std::string const&>())
                        : walltime->is_number_integer() ? parse_pbs_walltime(walltime->dump())
                                                        : std::nullopt;
    auto const started = parse_start(*start);
    if (!length || !started) return std::nullopt;
    return *started + *length;
}

}  // namespace

std::optional<std::chrono::seconds> parse_pbs_walltime(std::string_view text) {
    std::int64_t seconds = 0;
    auto const parts = split(text, ':');
    if (parts.size() > 3) return std::nullopt;
    for (auto const part : parts) {
        if (part.empty() || part.size() > 10 || part.find_first_not_of("0123456789") != std::string_view::npos)
            return std::nullopt;
        seconds = seconds * 60 + *parse_integer(part);
    }
    if (seconds > INT32_MAX) return std::nullopt;
    return std::chrono::seconds{seconds};
}

std::vector<pbs_host> parse_exec_hosts(std::string_view exec_host, std::string_view exec_vnode) {
    std::vector<pbs_host> hosts;
    std::unordered_map<std::string_view, std::size_t> places;
    auto const groups = read_groups(exec_vnode);
    bool const any_gpus = std::any_of(groups.begin(), groups.end(), [](auto const& g) { return g.gpus.has_value(); });
    auto const items = split(exec_host, '+');
    if (!groups.empty() && items.size() != groups.size())
        throw parse_error(
            "exec_vnode", exec_vnode, exec_vnode.size(),
            fmt::format("{} chunks for the {} of exec_host={}", groups.size(), items.size(), exec_host.substr(0, 80)));
    for (std::size_t i = 0; i < items.size(); ++i) {
        auto const name = items[i].substr(0, items[i].find('/'));
        auto const offset = static_cast<std::size_t>(name.data() - exec_host.data());
        if (auto const fault = check_host_name(name))
            throw parse_error("exec_host", exec_host, offset + fault->offset, fault->message);
        auto const [place, is_new] = places.try_emplace(name, hosts.size());
        if (is_new) hosts.push_back({std::string(name), std::nullopt, std::nullopt});
        if (groups.empty()) continue;
        auto& host = hosts[place->second];
        if (any_gpus) host.gpus = static_cast<int>(std::min(most, host.gpus.value_or(0) + groups[i].gpus.value_or(0)));
        if (groups[i].cpus) host.cpus = static_cast<int>(std::min(most, host.cpus.value_or(0) + *groups[i].cpus));
    }
    return hosts;
}

std::string pbs_qstat(std::string_view pbs_conf) {
    for (auto const line : split(pbs_conf, '\n')) {
        auto const setting = trim(line);
        if (setting.starts_with("PBS_EXEC=")) return fmt::format("{}/bin/qstat", trim(setting.substr(9)));
    }
    return "qstat";
}

std::optional<pbs_job> parse_qstat_job(std::string_view text, std::string_view id) {
    auto const answer = json::parse(text, nullptr, false);
    auto const* const found = find_job(answer, id);
    if (found == nullptr) return std::nullopt;
    auto const exec_host = text_of(*found, "exec_host");
    if (exec_host.empty()) return std::nullopt;
    auto const* const resources = member(*found, "Resource_List");
    auto const place = resources != nullptr ? text_of(*resources, "place") : std::string();
    auto const* const substate = member(*found, "substate");
    return pbs_job{.hosts = parse_exec_hosts(exec_host, text_of(*found, "exec_vnode")),
                   .ends_at = end_of(*found),
                   .exclusive = place.find("excl") != std::string::npos,
                   .comment = text_of(*found, "comment"),
                   .substate = substate != nullptr && substate->is_number_integer() ? substate->get<int>() : 0};
}

}  // namespace muster
