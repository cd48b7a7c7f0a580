#include "bench/tools/crowd.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/tools/machine.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

/// Returns the work of all processes except this one.
std::map<int, process_work> work_of_all() {
    std::map<int, process_work> out;
    std::error_code fault;
    for (std::filesystem::directory_iterator at("/proc", fault), end; !fault && at != end; at.increment(fault)) {
        auto const pid = parse_integer(at->path().filename().string());
        if (!pid || *pid == ::getpid()) continue;
        auto work = read_process_work(read_text_file(at->path().string() + "/stat"));
        if (work) out.emplace(static_cast<int>(*pid), std::move(*work));
    }
    return out;
}

double ticks_per_s() {
    return static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Returns the CPU seconds of this process and of its ended children.
double own_now() {
    auto const seconds_of = [](timeval const& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
    double sum = 0;
    for (auto const who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage used{};
        if (::getrusage(who, &used) == 0) sum += seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    }
    return sum;
}

/// Returns cpufreq's figures if there are any: those of /proc/cpuinfo are nominal on some machines.
double clock_now_mhz() {
    auto const cpus = allowed_cpus().cpus;
    double sum = 0;
    for (int const cpu : cpus) {
        auto const khz =
            parse_real(trim(read_text_file(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu))));
        if (!khz) return mean_clock_mhz(read_text_file("/proc/cpuinfo"), cpus);
        sum += *khz / 1000;
    }
    return cpus.empty() ? 0 : sum / static_cast<double>(cpus.size());
}

}  // namespace

cpu_seconds cpu_seconds_of(std::string_view stat, std::span<int const> cpus, double ticks_per_s) {
    constexpr std::size_t idle = 4, waiting = 5, stolen = 8;  // "cpu0 user nice system idle iowait irq softirq steal …"
    double worked_ticks = 0, stolen_ticks = 0;
    for (auto const line : split(stat, '\n')) {
        auto const fields = split(line, ' ');
        auto const cpu = line.starts_with("cpu") && fields.size() > stolen ? parse_integer(fields[0].substr(3)) : std::nullopt;
        if (!cpu || std::ranges::find(cpus, *cpu) == cpus.end()) continue;
        for (std::size_t i = 1; i <= stolen; ++i)
            if (i != idle && i != waiting) worked_ticks += parse_real(fields[i]).value_or(0);
        stolen_ticks += parse_real(fields[stolen]).value_or(0);
    }
    return {worked_ticks / ticks_per_s, stolen_ticks / ticks_per_s};
}

double mean_clock_mhz(std::string_view cpuinfo, std::span<int const> cpus) {
    double sum = 0;
    int count = 0;
    bool wanted = false;
    for (auto const line : split(cpuinfo, '\n')) {
        auto const colon = line.find(':');
        if (colon == line.npos) continue;
        auto const key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
        if (key == "processor") wanted = std::find(cpus.begin(), cpus.end(), parse_integer(value).value_or(-1)) != cpus.end();
        if (key != "cpu MHz" || !wanted) continue;
        sum += parse_real(value).value_or(0);
        ++count;
    }
    return count > 0 ? sum / count : 0;
}

std::string crowd_text(machine_load const& load) {
    double const most = std::min(std::max(load.before, load.during.value_or(0)), static_cast<double>(load.cpus));
    std::vector<std::string> details;
    for (auto const& p : load.busiest) details.push_back(fmt::format("{} {:.2f}", without_controls(p.name), p.cpus));
    auto inside = join(details, ", ");
    if (load.average >= 0) inside += fmt::format("{}load average {:.1f}", inside.empty() ? "" : "; ", load.average);
    return fmt::format("other programs used {:.1f} of {}{}", most, counted(load.cpus, "CPU"),
                       inside.empty() ? "" : fmt::format(" ({})", inside));
}

std::string busy_line(machine_load const& load) {
    if (!load.crowded()) return {};
    return fmt::format("busy: {} {} the runs; these figures mean little\n", crowd_text(load),
                       load.crowded_before() ? "before" : "during");
}

nlohmann::json to_json(machine_load const& load) {
    nlohmann::json out{{"average", load.average},
                       {"cpus", load.cpus},
                       {"others_before", load.before},
                       {"others_during", load.during ? nlohmann::json(*load.during) : nlohmann::json()},
                       {"stolen", load.stolen},
                       {"clock_before_mhz", load.clock_before_mhz},
                       {"clock_after_mhz", load.clock_after_mhz},
                       {"busiest", nlohmann::json::array()}};
    for (auto const& p : load.busiest) out["busiest"].push_back({{"name", p.name}, {"pid", p.pid}, {"cpus", p.cpus}});
    return out;
}

machine_load read_load(checked_json const& from) {
    machine_load out;
    out.average = from.at("average").number();
    out.cpus = static_cast<int>(from.at("cpus").integer(1, 1'000'000));
    out.before = from.at("others_before").number();
    if (!from.at("others_during").value().is_null()) out.during = from.at("others_during").number();
    if (from.has("stolen")) {  // earlier results have none of these
        out.stolen = from.at("stolen").number();
        out.clock_before_mhz = from.at("clock_before_mhz").number();
        out.clock_after_mhz = from.at("clock_after_mhz").number();
    }
    for (auto const& p : from.at("busiest").items())
        out.busiest.push_back({p.at("name").text(), static_cast<int>(p.at("pid").integer(0, INT32_MAX)), p.at("cpus").number()});
    return out;
}

void refuse_crowd(given_options const& given, machine_load const& load) {
    if (given.has("strict") && load.crowded_before())
        throw_error(errc::usage, "--strict: {}; end them or wait", crowd_text(load));
}

std::vector<busy_process> busiest_of(std::map<int, process_work> const& before, std::map<int, process_work> const& after,
                                     cpuset const& cpus, double seconds, double ticks_per_s) {
    std::vector<busy_process> out;
    for (auto const& [pid, work] : after) {
        if (!cpus.empty() && !cpus.contains(work.cpu)) continue;
        auto const found = before.find(pid);  // it may have worked elsewhere then
        double const ticks = work.ticks - (found == before.end() ? 0 : found->second.ticks);
        if (double const used = ticks / ticks_per_s / seconds; used >= 0.1) out.push_back({work.name, pid, used});
    }
    std::stable_sort(out.begin(), out.end(), [](auto const& a, auto const& b) { return a.cpus > b.cpus; });
    if (out.size() > 5) out.resize(5);
    return out;
}

std::optional<process_work> read_process_work(std::string_view stat) {
    auto const open = stat.find('('), close = stat.rfind(')');  // the name may hold both
    if (open == stat.npos || close == stat.npos || close < open) return {};
    auto const fields = split(trim(stat.substr(close + 1)), ' ');  // the fields from the third one on
    if (fields.size() < 37) return {};
    auto const user = parse_real(fields[11]), system = parse_real(fields[12]);
    auto const cpu = parse_integer(fields[36]);
    if (!user || !system || !cpu || *cpu < 0 || *cpu > 1'000'000) return {};
    return process_work{std::string(stat.substr(open + 1, close - open - 1)), *user + *system, static_cast<int>(*cpu)};
}

crowd_watch::crowd_watch() {
    auto const work_before = work_of_all();
    auto const before = count();
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    began_ = count();
    double const seconds = seconds_between(before, began_);
    double const others = began_.all.worked - before.all.worked - (began_.own_s - before.own_s);
    load_.average = load_average();
    load_.cpus = std::max(1, static_cast<int>(allowed_cpus().cpus.size()));
    load_.before = std::clamp(others / seconds, 0.0, static_cast<double>(load_.cpus));
    load_.busiest = busiest_of(work_before, work_of_all(), allowed_cpus(), seconds, ticks_per_s());
    load_.clock_before_mhz = clock_now_mhz();
    began_ = count();
}

crowd_watch::counts crowd_watch::count() {
    return {cpu_seconds_of(read_text_file("/proc/stat"), allowed_cpus().cpus, ticks_per_s()), own_now(), clock::now()};
}

double crowd_watch::seconds_between(counts const& first, counts const& last) {
    return std::chrono::duration<double>(last.at - first.at).count();
}

double crowd_watch::own_s() const {
    return own_now() - began_.own_s;
}

machine_load crowd_watch::load(bool local) const {
    if (local) return load_of(own_s());
    auto out = load_;
    auto const now = count();
    out.stolen = std::max(0.0, (now.all.stolen - began_.all.stolen) / seconds_between(began_, now));
    out.clock_after_mhz = clock_now_mhz();
    return out;
}

machine_load crowd_watch::load_of(double measured_s) const {
    auto out = load(false);
    auto const now = count();
    double const others = now.all.worked - began_.all.worked - measured_s;
    out.during = std::clamp(others / seconds_between(began_, now), 0.0, static_cast<double>(out.cpus));
    return out;
}

}  // namespace muster
