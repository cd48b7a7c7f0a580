// A crowded machine: counts the work of other programs before and during a run, and names them.
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

/// CPU seconds that these CPUs have worked since the machine started, by the text of /proc/stat and the clock ticks a second.
/// Pure.
double worked_s(std::string_view stat, std::span<int const> cpus, double ticks_per_s);

/// Counts on the CPUs that this process may run on. Where the system tells nothing, no work is seen.
class other_work {
  public:
    /// Sleeps for a quarter of a second and takes what is done meanwhile for the work of others before the runs, which begin now.
    other_work();

    /// CPU seconds of this process and of its children that have ended, since the runs began.
    double own_s() const;

    /// Counts anew from now: what was done until now belongs to no run.
    void begin();
    /// CPUs that others kept busy before the runs, and since these began.
    double before() const noexcept { return before_; }
    double during(double measured_s) const;
    std::size_t cpus() const noexcept { return cpus_.size(); }

  private:
    std::vector<int> cpus_;
    double before_ = 0;  ///< CPUs that others used
    double worked_at_start_ = 0, own_at_start_ = 0;
    std::chrono::steady_clock::time_point start_;
};

/// A process of others that worked.
struct busy_process {
    std::string name;
    int pid = 0;
    double cpus = 0;  ///< that it kept busy
    bool operator==(busy_process const&) const = default;
};

/// The load of this machine before and during a run.
struct machine_load {
    double average = -1;                ///< of one minute, when it began; -1 if the system does not tell
    int cpus = 1;                       ///< that this process may run on
    double before = 0;                  ///< of these, kept busy by other programs, just before
    std::optional<double> during;       ///< the same over the run; nothing: the ranks were not all on this machine
    std::vector<busy_process> busiest;  ///< just before, the busiest first, those of a tenth of a CPU or more
    double stolen = 0;                  ///< CPUs that the hypervisor gave to others over the run, of this machine's
    double clock_before_mhz = 0, clock_after_mhz = 0;  ///< mean of these CPUs; 0 if the system does not tell
    bool operator==(machine_load const&) const = default;
    /// Other programs used more than a tenth of the CPUs, and more than a quarter of one.
    bool crowded_before() const noexcept { return is_crowd(before); }
    bool crowded() const noexcept { return is_crowd(before) || is_crowd(during.value_or(0)); }

  private:
    bool is_crowd(double others) const noexcept { return others > 0.25 && others > 0.1 * cpus; }
};

/// "other programs used 1.9 of 2 CPUs (cc1plus 0.98, python3 0.91; load average 8.9)". Pure.
std::string crowd_text(machine_load const& load);

/// "busy: other programs used … before the runs; these figures mean little\n", or "" where it was not crowded. Pure.
std::string busy_line(machine_load const& load);

/// A load as every result has it. Throws errc::invalid_data.
nlohmann::json to_json(machine_load const& load);
machine_load read_load(checked_json const& from);

/// The option of every command that measures.
inline constexpr option_row strict_option{"strict", 0, "", "refuse to run while other programs use more than a tenth of the CPUs",
                                          ""};

/// Throws errc::usage with the crowd's text where --strict is given and it was crowded before.
void refuse_crowd(given_options const& given, machine_load const& load);

/// A process' name and ticks of work by the text of its /proc/PID/stat, and the CPU that it ran on last; nothing if the text is
/// none. Pure.
struct process_work {
    std::string name;
    double ticks = 0;
    int cpu = 0;
};
std::optional<process_work> read_process_work(std::string_view stat);

/// Of `after`, those that worked last on one of `cpus` (on any, if empty) and did a tenth of a CPU's work or more since
/// `before`, at most five, the busiest first. Pure.
std::vector<busy_process> busiest_of(std::map<int, process_work> const& before, std::map<int, process_work> const& after,
                                     cpuset const& cpus, double seconds, double ticks_per_s);

/// CPU seconds that the hypervisor gave to others ("steal") since the machine started, of these CPUs, by the text of /proc/stat and
/// the clock ticks a second. Pure.
double stolen_s(std::string_view stat, std::span<int const> cpus, double ticks_per_s);

/// The mean clock of these CPUs by the text of /proc/cpuinfo; 0 if it tells none. Pure.
double mean_clock_mhz(std::string_view cpuinfo, std::span<int const> cpus);

/// Looks at this machine for a quarter of a second, and then counts until load() is called.
class crowd_watch {
  public:
    crowd_watch();
    /// `local`: all that is measured are children of this process that have ended.
    machine_load load(bool local) const;
    /// The same where `measured_s` CPU seconds were those of what is measured: ranks that started together and know their sum.
    machine_load load_of(double measured_s) const;
    /// CPU seconds of this process and its children that have ended, since it counts.
    double own_s() const { return others_.own_s(); }

  private:
    std::map<int, process_work> before_;  // first, as it is read before the work of others is counted
    std::chrono::steady_clock::time_point began_;
    other_work others_;
    machine_load load_;
    double stolen_before_ = 0;
    std::chrono::steady_clock::time_point measured_from_;
};

}  // namespace muster
