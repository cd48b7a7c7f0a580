#include "launch/placement/job_lease.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/placement/binding_steps.hpp"

namespace muster {

namespace {

constexpr char const* lease_name = "lease";
constexpr std::string_view of_several_nodes = "*";  ///< stands for GPUs
constexpr int most_tries = 100;
constexpr std::chrono::milliseconds pause{20};

/// Takes a name that only one process at a time can have, until it closes the socket or ends.
unique_fd take_turn(std::string const& job_id) {
    unique_fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    auto const text = fmt::format("muster-lease-{}-{}", ::getuid(), job_id).substr(0, sizeof name.sun_path - 1);
    std::memcpy(name.sun_path + 1, text.data(), std::min(text.size(), sizeof name.sun_path - 1));  // an abstract name: no file
    auto const size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    for (int i = 0; socket && i < most_tries; ++i) {
        if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), size) == 0) return socket;
        if (errno != EADDRINUSE) break;
        std::this_thread::sleep_for(pause);
    }
    return {};  // perhaps another user's: then runs do not wait for each other
}

/// Returns whether the session lives: its maker then holds a lock on its folder.
bool lives(std::filesystem::path const& session) {
    unique_fd const folder(::open(session.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0;
}

}  // namespace

job_leases::job_leases(std::string job_id, std::vector<std::string> folders)
    : job_id_(std::move(job_id)), folders_(std::move(folders)), turn_(take_turn(job_id_)) {}

leased_parts job_leases::others(std::string const& own_session, std::vector<std::string> const& nodes) const {
    leased_parts all;
    auto const beginning = fmt::format("muster-{}-", ::getuid());
    for (auto const& base : folders_) {
        for (auto const& session : folder_entries(base)) {
            if (!session.filename().string().starts_with(beginning) || session == own_session || !is_folder(session)) continue;
            auto const text = read_text_file((session / lease_name).string());
            auto const lines = split(text, '\n');
            if (lines.size() < 4 || lines[0] != job_id_ || !lives(session)) continue;
            auto const its_nodes = split(lines[3], ' ');
            if (std::find_first_of(its_nodes.begin(), its_nodes.end(), nodes.begin(), nodes.end()) == its_nodes.end()) continue;
            ++all.runs;
            if (lines[1] == of_several_nodes) {
                ++all.wide;
                continue;
            }
            for (auto const name : split(lines[1], ' '))
                if (!name.empty()) all.gpus.emplace_back(name);
            all.cpus.add(cpuset::from_list_or_none(lines[2]));  // another program may have written it
        }
    }
    return all;
}

void job_leases::write(std::string const& own_session, std::vector<std::string> const& nodes, std::string const& gpus,
                       std::string const& cpus) const noexcept try {
    write_output_file(own_session + "/" + lease_name, fmt::format("{}\n{}\n{}\n{}\n", job_id_, gpus, cpus, join(nodes, " ")));
} catch (...) {
}

void job_leases::take(std::string const& own_session, std::vector<std::string> const& nodes,
                      std::vector<binding> const& ranks) const noexcept try {
    std::string gpus;
    cpuset cpus;
    for (auto const& rank : ranks) {
        if (rank.device) gpus += visible_name(*rank.device) + ' ';
        cpus.add(rank.cores);
    }
    write(own_session, nodes, gpus, cpus.to_list());
} catch (...) {
}

void job_leases::take_wide(std::string const& own_session, std::vector<std::string> const& nodes) const noexcept {
    write(own_session, nodes, std::string(of_several_nodes), "");
}

namespace {

bool binds(topology const& machine, placement_request const& wanted, int ranks) {
    try {
        bind_ranks(machine, wanted, ranks);
        return true;
    } catch (error const&) {
        return false;
    }
}

/// Takes away the GPUs that others have, unless too few are left, or the user has chosen: by a map, or by letting ranks share.
bool leave_gpus(placement_beside& here, leased_parts const& others, int ranks) {
    if (!here.wanted.gpu_map.empty() || here.wanted.ranks_per_gpu != 1 || here.wanted.slots_per_node) return false;
    auto all = here;
    std::erase_if(all.machine.gpus,
                  [&](gpu const& g) { return std::ranges::find(others.gpus, visible_name(g)) != others.gpus.end(); });
    all.wanted.lists_gpus = true;
    if (all.machine.gpus.size() < static_cast<std::size_t>(ranks) || !binds(all.machine, all.wanted, ranks)) return false;
    here = std::move(all);
    return true;
}

bool leave_cores(placement_beside& here, leased_parts const& others, int ranks) {
    auto rest = here.wanted;
    rest.reserved_cpus += (rest.reserved_cpus.empty() ? "" : ",") + others.cpus.to_list();
    auto const needed = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(rest.cpus_per_rank.value_or(1));
    if (!binds(here.machine, rest, ranks) || usable_cores(here.machine, rest).size() < needed) return false;
    here.wanted = std::move(rest);
    return true;
}

}  // namespace

placement_beside place_beside(topology machine, placement_request wanted, leased_parts const& others, int ranks,
                              bool has_other_nodes) {
    placement_beside result{std::move(machine), std::move(wanted), {}};
    if (others.runs == 0) return result;
    std::vector<std::string> own, shared;
    if (!result.machine.gpus.empty() && !others.gpus.empty())
        (leave_gpus(result, others, ranks) ? own : shared).emplace_back("GPUs");
    auto const& place = result.wanted;
    if (place.cpu_map.empty() && (place.bind_to == bind_policy::share || place.bind_to == bind_policy::core) &&
        !others.cpus.cpus.empty())
        (leave_cores(result, others, ranks) ? own : shared).emplace_back("cores");
    auto const who =
        fmt::format("{} of this job on {}", others.runs == 1 ? "another run" : fmt::format("{} other runs", others.runs),
                    result.machine.host);
    if (!shared.empty())
        result.note = fmt::format("{} too: this one uses the same {}; give each run {}", who, join(shared, " and "),
                                  has_other_nodes ? "nodes of its own by -H"
                                                  : fmt::format("-n{}, so that there is room for all",
                                                                shared.back() == "cores" ? " and --cpus-per-rank" : ""));
    else if (others.wide > 0)
        result.note = fmt::format(
            "another run of this job uses several nodes, and perhaps GPUs and cores that this one uses on {}; give each run "
            "nodes of its own by -H, or GPUs by CUDA_VISIBLE_DEVICES",
            result.machine.host);
    else if (!own.empty())
        result.note = fmt::format("{}: this one gets its own {}", who, join(own, " and "));
    return result;
}

}  // namespace muster
