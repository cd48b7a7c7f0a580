#include "launch/samples/rank_reader.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/process/files.hpp"
#include "base/process/kernel_files.hpp"
#include "base/text.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/observe/working_process.hpp"
#include "launch/system/cgroup.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace {

constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;  ///< version 1 writes such a number

using file_text = std::function<std::string(std::string const& path)>;

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
        auto const throttled = count_in(stat, place.first_version ? "throttled_time" : "throttled_usec");
        if (throttled) to.sample.throttled_s = static_cast<double>(*throttled) * (place.first_version ? 1e-9 : 1e-6);
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

rank_sample sample_of(sampled_rank const& rank, process_status const& root, brief_look& look) {
    static auto const page_bytes = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PAGESIZE)));
    rank_sample now = rank;
    now.pid = look.working_process(static_cast<pid_t>(rank.pid));
    now.age_s = std::max(seconds_since_boot() - static_cast<double>(root.start_ticks) / ticks_per_s(), 0.0);
    process_status sum;
    for (auto const pid : look.tree_of(static_cast<pid_t>(rank.pid))) {
        bool const is_root = pid == rank.pid;
        auto const stat = is_root ? std::optional(root) : read_process_stat(pid);
        if (!stat) continue;  // it has just ended
        sum.user_ticks += stat->user_ticks;
        sum.system_ticks += stat->system_ticks;
        sum.threads += stat->threads;
        sum.major_faults += stat->major_faults;
        sum.resident_pages += stat->resident_pages;
        if (pid == now.pid) now.state = stat->state;
        if (!is_root && !now.read_bytes) continue;
        auto const io = read_text_file(fmt::format("/proc/{}/io", pid));
        auto const read = count_in(io, "read_bytes"), written = count_in(io, "write_bytes");
        if (!read || !written) continue;
        now.read_bytes = now.read_bytes.value_or(0) + *read;
        now.written_bytes = now.written_bytes.value_or(0) + *written;
    }
    if (now.state != 'R') now.where = place_of_sleep(static_cast<pid_t>(now.pid));
    now.user_s = static_cast<double>(sum.user_ticks) / ticks_per_s();
    now.system_s = static_cast<double>(sum.system_ticks) / ticks_per_s();
    now.allowed_cores = count_allowed_cores(static_cast<pid_t>(now.pid));
    now.core_wait_s = parse_core_wait(read_text_file(fmt::format("/proc/{}/schedstat", now.pid)));
    now.threads = static_cast<int>(std::min<std::uint64_t>(sum.threads, 1'000'000'000));
    now.memory_bytes = sum.resident_pages * page_bytes;
    now.major_faults = sum.major_faults;
    return now;
}

/// The quota counts in periods: their share says how long the cgroup was held back, however many processors it uses.
std::optional<double> throttled_share(cgroup_counts const& now, cgroup_counts const& since) {
    if (!now.periods || !since.periods || *now.periods <= *since.periods || now.throttled_periods < since.throttled_periods)
        return std::nullopt;
    return std::min(
        static_cast<double>(now.throttled_periods - since.throttled_periods) / static_cast<double>(*now.periods - *since.periods),
        1.0);
}

/// A cgroup may be older than the rank.
void add_throttling(cgroup_sample& to, cgroup_counts const& now, cgroup_counts const& before, cgroup_counts const& first) {
    to.throttled = throttled_share(now, before);
    to.throttled_of_run = throttled_share(now, first);
    if (to.throttled_s) to.throttled_s = std::max(*to.throttled_s - first.sample.throttled_s.value_or(0), 0.0);
}

}  // namespace

std::optional<double> parse_core_wait(std::string_view text) {
    auto const words = split(trim(text), ' ');
    auto const ns = words.size() == 3 ? parse_count(words[1]) : std::nullopt;
    return ns ? std::optional(static_cast<double>(*ns) * 1e-9) : std::nullopt;
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
        nothing.user_s = nothing.system_s = nothing.core_wait_s = nothing.data_wait_s = 0;
        nothing.major_faults = 0;
        return nothing;
    }();
    auto const& from = before != nullptr ? *before : start;
    // The time of a child that has ended is nowhere until its parent has waited for it.
    auto const keep_from_falling = [&](auto... members) {
        ((now.*members = now.*members ? std::max(now.*members, from.*members) : std::nullopt), ...);
    };
    keep_from_falling(&rank_sample::user_s, &rank_sample::system_s, &rank_sample::core_wait_s, &rank_sample::data_wait_s,
                      &rank_sample::major_faults, &rank_sample::read_bytes, &rank_sample::written_bytes);
    double const passed = now.age_s - from.age_s;
    if (now.state == 'D') now.blocked_s = before != nullptr && before->blocked_s ? *before->blocked_s + passed : 0;
    auto const set_share = [&](auto share, auto sum) {
        if (passed > 0 && now.*sum && from.*sum) now.*share = std::clamp((*(now.*sum) - *(from.*sum)) / passed, 0.0, 1.0);
    };
    set_share(&rank_sample::core_wait, &rank_sample::core_wait_s);
    set_share(&rank_sample::data_wait, &rank_sample::data_wait_s);
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
        auto const root = read_process_stat(static_cast<pid_t>(one.pid));
        if (!root || !root->lives()) continue;
        auto const [cgroup, is_new] = cgroups.try_emplace(read_text_file(fmt::format("/proc/{}/cgroup", one.pid)));
        if (is_new)
            cgroup->second = read_cgroup(cgroup->first, mounts_, [](std::string const& path) { return read_text_file(path); });
        auto known = last_.extract(one.rank);
        bool const same = !known.empty() && known.mapped().start_ticks == root->start_ticks;
        auto& last = looks[one.rank] =
            same ? std::move(known.mapped()) : last_look{root->start_ticks, {}, cgroup->second, cgroup->second, {}};
        auto& now = all.emplace_back(sample_of(one, *root, look));
        add_rates(now, same ? &last.sample : nullptr);
        add_waiting(now, last.waits);
        now.cgroup = cgroup->second.sample;
        add_throttling(now.cgroup, cgroup->second, last.limits, last.limits_at_first);
        last.limits = cgroup->second;
        last.sample = now;
    }
    last_ = std::move(looks);
    return all;
}

}  // namespace muster
