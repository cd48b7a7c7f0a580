#include "launch/samples/rank_reader.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/observe/working_process.hpp"
#include "launch/system/cgroup.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace {

constexpr std::size_t most_processes = 4096;                ///< of one rank
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;  ///< version 1 writes such a number

using file_text = std::function<std::string(std::string const& path)>;

std::optional<std::uint64_t> parse_count(std::string_view text) {
    auto const number = parse_integer(trim(text));
    return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

/// Returns the number of the line "NAME NUMBER" or "NAME: NUMBER".
std::optional<std::uint64_t> count_in(std::string_view text, std::string_view name) {
    for (auto const line : split(text, '\n')) {
        auto const blank = line.find(' ');
        if (blank == std::string_view::npos) continue;
        auto const key = line.substr(0, blank);
        if (key == name || (key.ends_with(':') && key.substr(0, key.size() - 1) == name))
            return parse_count(line.substr(blank + 1));
    }
    return std::nullopt;
}

/// Returns 0.12 for "some avg10=12.00 avg60=…" (PSI: Documentation/accounting/psi.rst).
std::optional<double> pressure_in(std::string_view text) {
    constexpr std::string_view before = "some avg10=";
    if (!text.starts_with(before)) return std::nullopt;
    text.remove_prefix(before.size());
    auto const percent = parse_real(text.substr(0, text.find(' ')));
    return percent && *percent >= 0 && *percent <= 100 ? std::optional(*percent / 100) : std::nullopt;
}

void add_quota(cgroup_counts& to, cgroup_place const& place, file_text const& read) {
    for (auto const& folder : place.folders()) {
        if (!find_cpu_quota({folder, folder, place.first_version}, read)) continue;
        auto const stat = read(folder + "/cpu.stat");
        to.periods = count_in(stat, "nr_periods");
        to.throttled_periods = count_in(stat, "nr_throttled").value_or(0);
        auto const us = count_in(stat, "throttled_usec"), ns = count_in(stat, "throttled_time");
        if (us) to.sample.throttled_s = static_cast<double>(*us) * 1e-6;
        if (ns) to.sample.throttled_s = static_cast<double>(*ns) * 1e-9;
        return;
    }
}

void add_memory(cgroup_sample& to, cgroup_place const& place, file_text const& read) {
    auto const* const used = place.first_version ? "/memory.usage_in_bytes" : "/memory.current";
    auto const* const most = place.first_version ? "/memory.limit_in_bytes" : "/memory.max";
    auto const in_use = [&](std::string const& folder) {
        auto const all = parse_count(read(folder + used));
        auto const stat = read(folder + "/memory.stat");
        auto const cached = count_in(stat, place.first_version ? "total_inactive_file" : "inactive_file").value_or(0);
        return all ? std::optional(*all - std::min(cached, *all)) : all;
    };
    to.memory_bytes = in_use(place.folder);
    for (auto const& folder : place.folders()) {
        auto const limit = parse_count(read(folder + most));
        if (!limit || *limit >= no_limit) continue;
        to.memory_limit_bytes = limit;
        to.memory_bytes = in_use(folder);
        return;
    }
}

/// The uppermost cgroup is the machine, whose figures are elsewhere.
void add_pressure(cgroup_sample& to, cgroup_place const& place, file_text const& read) {
    auto const of = [&](std::string const& what) {
        auto text = read(fmt::format("{}/{}.pressure", place.folder, what));
        if (text.empty() && place.folder == place.root) text = read("/proc/pressure/" + what);
        return pressure_in(text);
    };
    to.cpu_pressure = of("cpu");
    to.memory_pressure = of("memory");
    to.io_pressure = of("io");
}

double ticks_per_s() {
    return static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
}

/// The clock of process_status::start_ticks.
double seconds_since_boot() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::optional<int> count_allowed_cores(pid_t pid) {
    std::array<cpu_set_t, 8> sets{};
    if (::sched_getaffinity(pid, sizeof sets, sets.data()) != 0) return std::nullopt;
    return CPU_COUNT_S(sizeof sets, sets.data());
}

/// A rank with all living processes below it.
struct process_tree {
    std::vector<pid_t> pids;
    pid_t working = 0;
};

process_tree look_at_tree(pid_t root, brief_look& look) {
    process_tree tree{{root}, root};
    std::map<pid_t, std::vector<pid_t>> children;
    for (std::size_t i = 0; i < tree.pids.size() && tree.pids.size() < most_processes; ++i) {
        auto below = look.children_of(tree.pids[i]);
        tree.pids.insert(tree.pids.end(), below.begin(), below.end());
        children[tree.pids[i]] = std::move(below);
    }
    tree.working = working_process(root, [&](pid_t parent) { return children[parent]; });
    return tree;
}

rank_sample sample_of(process_tree const& tree, process_status const& root) {
    static double const ticks = ticks_per_s();
    static auto const page_bytes = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
    rank_sample now;
    now.pid = tree.working;
    now.age_s = std::max(seconds_since_boot() - static_cast<double>(root.start_ticks) / ticks, 0.0);
    process_status sum;
    process_io io;
    bool knows_io = true;
    for (auto const pid : tree.pids) {
        auto const stat = pid == tree.pids.front() ? std::optional(root) : read_process_stat(pid);
        if (!stat) continue;  // it has just ended
        sum.user_ticks += stat->user_ticks;
        sum.system_ticks += stat->system_ticks;
        sum.threads += stat->threads;
        sum.major_faults += stat->major_faults;
        sum.resident_pages += stat->resident_pages;
        if (pid == tree.working) now.state = stat->state;
        auto const own = knows_io ? parse_process_io(read_text_file(fmt::format("/proc/{}/io", pid))) : std::nullopt;
        knows_io = knows_io && (own || pid != tree.pids.front());
        if (own) io.read_bytes += own->read_bytes, io.written_bytes += own->written_bytes;
    }
    if (now.state != 'R') now.where = place_of_sleep(tree.working);
    now.user_s = static_cast<double>(sum.user_ticks) / ticks;
    now.system_s = static_cast<double>(sum.system_ticks) / ticks;
    now.allowed_cores = count_allowed_cores(tree.working);
    now.threads = static_cast<int>(std::min<std::uint64_t>(sum.threads, 1'000'000'000));
    now.memory_bytes = sum.resident_pages * page_bytes;
    now.major_faults = sum.major_faults;
    if (knows_io) now.read_bytes = io.read_bytes, now.written_bytes = io.written_bytes;
    return now;
}

/// A cgroup may be older than the rank.
void count_from(cgroup_sample& to, cgroup_counts const& now, cgroup_counts const& first) {
    if (to.throttled_s) to.throttled_s = std::max(*to.throttled_s - first.sample.throttled_s.value_or(0), 0.0);
    if (now.periods && first.periods && *now.periods > *first.periods && now.throttled_periods >= first.throttled_periods)
        to.throttled_of_run = std::min(static_cast<double>(now.throttled_periods - first.throttled_periods) /
                                           static_cast<double>(*now.periods - *first.periods),
                                       1.0);
}

/// The quota counts in periods: their share says how long the cgroup was held back, however many processors it uses.
void add_share(cgroup_counts& now, cgroup_counts const& before) {
    if (!now.periods || !before.periods || *now.periods <= *before.periods || now.throttled_periods < before.throttled_periods)
        return;
    auto const share = static_cast<double>(now.throttled_periods - before.throttled_periods) /
                       static_cast<double>(*now.periods - *before.periods);
    now.sample.throttled = std::min(share, 1.0);
}

}  // namespace

std::optional<process_io> parse_process_io(std::string_view text) {
    auto const read = count_in(text, "read_bytes"), written = count_in(text, "write_bytes");
    return read && written ? std::optional(process_io{*read, *written}) : std::nullopt;
}

cgroup_counts read_cgroup(std::string_view cgroup, std::string_view mountinfo, file_text const& read) {
    cgroup_counts counts;
    if (auto const cpu = find_cgroup(cgroup, mountinfo, "cpu")) add_quota(counts, *cpu, read);
    if (auto const memory = find_cgroup(cgroup, mountinfo, "memory")) add_memory(counts.sample, *memory, read);
    // No controller of version 1 has this name: its hierarchies may be there besides.
    if (auto const pressure = find_cgroup(cgroup, mountinfo, "pressure")) add_pressure(counts.sample, *pressure, read);
    return counts;
}

void add_rates(rank_sample& now, rank_sample const* before) {
    static rank_sample const start = [] {
        rank_sample nothing;
        nothing.user_s = nothing.system_s = 0;
        nothing.major_faults = 0;
        return nothing;
    }();
    auto const& from = before != nullptr ? *before : start;
    // The time of a child that has ended is nowhere until its parent has waited for it.
    auto const keep_from_falling = [&](auto member) {
        if (auto& value = now.*member; value) value = std::max(value, from.*member);
    };
    keep_from_falling(&rank_sample::user_s), keep_from_falling(&rank_sample::system_s);
    keep_from_falling(&rank_sample::major_faults), keep_from_falling(&rank_sample::read_bytes);
    keep_from_falling(&rank_sample::written_bytes);
    double const passed = now.age_s - from.age_s;
    if (passed > 0 && now.user_s && now.system_s && from.user_s && from.system_s)
        now.cores = std::max((*now.user_s + *now.system_s - *from.user_s - *from.system_s) / passed, 0.0);
    if (passed > 0 && now.major_faults && from.major_faults)
        now.faults_per_s = static_cast<double>(std::max(*now.major_faults, *from.major_faults) - *from.major_faults) / passed;
    if (now.cores && now.allowed_cores) now.cores = std::min(*now.cores, static_cast<double>(*now.allowed_cores));
    now.most_memory_bytes = std::max(now.memory_bytes, from.most_memory_bytes);
}

void add_waiting(rank_sample& now, std::deque<wait_mark>& marks) {
    constexpr std::size_t most_marks = 5;
    if (!now.waits) return;
    if (!marks.empty() && now.age_s > marks.front().age_s)
        now.waits->waiting =
            std::clamp((now.waits->waited_s - marks.front().waited_s) / (now.age_s - marks.front().age_s), 0.0, 1.0);
    marks.push_back({now.age_s, now.waits->waited_s});
    if (marks.size() > most_marks) marks.pop_front();
}

std::vector<rank_sample> rank_reader::read(std::vector<sampled_rank> const& ranks) {
    if (mounts_.empty()) mounts_ = read_text_file("/proc/self/mountinfo");
    std::vector<rank_sample> all;
    std::map<int, last_look> looks;
    std::map<std::string, cgroup_counts> cgroups;  // mostly all ranks are in one
    brief_look look;
    for (auto const& one : ranks) {
        auto const root = read_process_stat(one.pid);
        if (!root || !root->lives()) continue;
        last_look now{root->start_ticks, sample_of(look_at_tree(one.pid, look), *root), {}, {}, {}};
        auto const [known, is_new] = cgroups.try_emplace(read_text_file(fmt::format("/proc/{}/cgroup", one.pid)));
        if (is_new)
            known->second = read_cgroup(known->first, mounts_, [](std::string const& path) { return read_text_file(path); });
        now.limits = known->second;
        now.sample.waits = one.waits;
        auto const last = last_.find(one.rank);
        bool const same = last != last_.end() && last->second.start_ticks == now.start_ticks;
        add_rates(now.sample, same ? &last->second.sample : nullptr);
        now.limits_at_first = same ? last->second.limits_at_first : now.limits;
        if (same) {
            add_share(now.limits, last->second.limits);
            now.waits = last->second.waits;
        }
        count_from(now.limits.sample, now.limits, now.limits_at_first);
        add_waiting(now.sample, now.waits);
        now.sample.rank = one.rank;
        now.sample.gpu = one.gpu;
        now.sample.silent_s = one.silent_s;
        now.sample.metric = one.metric;
        now.sample.cgroup = now.limits.sample;
        all.push_back(now.sample);
        looks.emplace(one.rank, std::move(now));
    }
    last_ = std::move(looks);
    return all;
}

}  // namespace muster
