// A crowded machine: the work of other programs before and during a run, and their names.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/cpuset.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

/// A process of others that worked.
struct busy_process {
    std::string name;
    int pid = 0;
    double cpus = 0;  ///< CPUs that it kept busy
    bool operator==(busy_process const&) const = default;
};

/// The load of this machine before and during a run.
struct machine_load {
    double average = -1;                ///< of one minute, at the start; -1 if the system does not report it
    int cpus = 1;                       ///< that this process may run on
    double before = 0;                  ///< CPUs that other programs kept busy just before
    std::optional<double> during;       ///< the same over the run; nothing: the ranks were not all on this machine
    std::vector<busy_process> busiest;  ///< just before, the busiest first, those with a tenth of a CPU or more
    double stolen = 0;                  ///< CPUs that the hypervisor gave to others over the run, of those of this machine
    double clock_before_mhz = 0, clock_after_mhz = 0;  ///< mean of these CPUs; 0 if the system does not report it
    bool operator==(machine_load const&) const = default;
    /// Returns whether other programs used more than a tenth of the CPUs, and more than a quarter of one.
    bool crowded_before() const noexcept { return is_crowd(before); }
    bool crowded() const noexcept { return is_crowd(before) || is_crowd(during.value_or(0)); }

  private:
    bool is_crowd(double others) const noexcept { return others > 0.25 && others > 0.1 * cpus; }
};

/// Returns "other programs used 1.9 of 2 CPUs (cc1plus 0.98, python3 0.91; load average 8.9)". Pure.
std::string crowd_text(machine_load const& load);

/// Returns "busy: other programs used … before the runs; these figures mean little\n", or "" if it was not crowded. Pure.
std::string busy_line(machine_load const& load);

/// These write and read a load as every result has it. Throws errc::invalid_data.
nlohmann::json to_json(machine_load const& load);
machine_load read_load(checked_json const& from);

/// Every command that measures has this option.
inline constexpr option_row strict_option{"strict", 0, "", "refuse to run while other programs use more than a tenth of the CPUs",
                                          ""};

/// Throws errc::usage with the crowd's text if --strict is given and it was crowded before.
void refuse_crowd(given_options const& given, machine_load const& load);

/// A process's name, its ticks of work and the CPU that it ran on last, from the text of its /proc/PID/stat; nothing if the text
/// is invalid. Pure.
struct process_work {
    std::string name;
    double ticks = 0;
    int cpu = 0;
};
std::optional<process_work> read_process_work(std::string_view stat);

/// Returns those of `after`, at most five, the busiest first, that worked last on one of `cpus` (on any, if empty) and did a
/// tenth of a CPU's work or more since `before`. Pure.
std::vector<busy_process> busiest_of(std::map<int, process_work> const& before, std::map<int, process_work> const& after,
                                     cpuset const& cpus, double seconds, double ticks_per_s);

/// The CPU seconds of some CPUs since the machine started.
struct cpu_seconds {
    double worked = 0;  ///< all but idling and waiting
    double stolen = 0;  ///< of these, what the hypervisor gave to others ("steal")
};

/// Returns those of `cpus` from the text of /proc/stat and the clock ticks per second. Pure.
cpu_seconds cpu_seconds_of(std::string_view stat, std::span<int const> cpus, double ticks_per_s);

/// Returns the mean clock of these CPUs from the text of /proc/cpuinfo; 0 if it has none. Pure.
double mean_clock_mhz(std::string_view cpuinfo, std::span<int const> cpus);

/// Watches the CPUs that this process may run on for a quarter of a second, and then counts until load() is called. It sees no
/// work if the system does not report it.
class crowd_watch {
  public:
    crowd_watch();
    /// `local`: everything measured is an ended child of this process.
    machine_load load(bool local) const;
    /// The same if `measured_s` CPU seconds were those of the measured ranks, which started together and know their sum.
    machine_load load_of(double measured_s) const;
    /// Returns the CPU seconds of this process and its ended children, since it counts.
    double own_s() const;

  private:
    struct counts {
        cpu_seconds all;
        double own_s = 0;
        std::chrono::steady_clock::time_point at;
    };
    static counts count();
    static double seconds_between(counts const& first, counts const& last);

    machine_load load_;
    counts began_;  ///< what was counted when the runs began
};

}  // namespace muster
