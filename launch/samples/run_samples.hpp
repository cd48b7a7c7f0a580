// The samples of a run: what its ranks, their nodes and GPUs did when last looked at, and since the run began. The file samples.json in the run's folder holds
// the newest ones; `muster top`, `watch`, `show`, the scaling report and the metrics of a site all read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Values that a node cannot tell are absent, never 0. "now" is the time from the look before to this one; other sums are since the rank began.

/// The waits of a rank for another one.
struct waits_for_rank {
    int rank = 0;
    std::uint64_t times = 0;  ///< it came last
    double waited_s = 0;
    bool operator==(waits_for_rank const&) const = default;
};

/// A rank that uses muster's collectives counts these itself (pmix/wait_page.hpp).
struct wait_sample {
    std::uint64_t collectives = 0;  ///< for which it waited
    double waited_s = 0;            ///< for other ranks, in all of them
    std::optional<double> waiting;  ///< share of the last five looks' time that it waited: 0 to 1
    std::optional<double>
        kept_waiting_s;  ///< others waited while this rank came last, by their `longest`; absent: the backend cannot tell
    std::optional<std::uint64_t> came_last;  ///< collectives for which another rank waited while this one came last
    std::vector<waits_for_rank> longest;     ///< ranks that came last, those first for which it waited longest; at most 4
    bool operator==(wait_sample const&) const = default;
};

/// The cgroup that limits a rank, of either version.
struct cgroup_sample {
    std::optional<double> throttled_s;       ///< its quota of processor time held it back
    std::optional<double> throttled_of_run;  ///< share of the periods of its quota in which it did, since the first look: 0 to 1
    std::optional<double> throttled;         ///< share of the time now: 0 to 1
    std::optional<std::uint64_t> memory_bytes;        ///< without pages of files that the kernel would drop first
    std::optional<std::uint64_t> memory_limit_bytes;  ///< absent: none
    std::optional<double> cpu_pressure;               ///< share of the last 10 s in which some task waited for it (PSI): 0 to 1
    std::optional<double> memory_pressure;
    std::optional<double> io_pressure;
    bool operator==(cgroup_sample const&) const = default;
};

/// A rank with all processes below it.
struct rank_sample {
    int rank = -1;
    long pid = 0;                     ///< the process that works: the rank or, for a script that waits for one child, that child
    char state = '?';                 ///< its state, as in /proc/PID/stat
    std::string where;                ///< system call or kernel function in which it sleeps; empty: it runs, or not known
    std::optional<double> blocked_s;  ///< in state D at each look for so long; absent: not at this one
    double age_s = 0;                 ///< since it started
    std::optional<double> user_s;     ///< processor time
    std::optional<double> system_s;
    std::optional<double> cores;        ///< processor time per time, now
    std::optional<int> allowed_cores;   ///< hardware threads on which it may run
    std::optional<double> core_wait_s;  ///< the main thread of the process that works wanted to run and waited for a core
    std::optional<double> core_wait;    ///< share of the time now: 0 to 1
    std::optional<int> threads;
    std::optional<std::uint64_t> memory_bytes;       ///< resident; memory that processes share counts in each
    std::optional<std::uint64_t> most_memory_bytes;  ///< the highest of all looks
    std::optional<std::uint64_t> major_faults;       ///< page faults that read from a disk or from swap
    std::optional<double> faults_per_s;              ///< those now
    std::optional<std::uint64_t> read_bytes;         ///< from disks and network file systems (/proc/PID/io)
    std::optional<std::uint64_t> written_bytes;
    std::optional<double> silent_s;  ///< since it last wrote output
    std::string metric;              ///< its last muster-metric: "loss 0.25"; empty: none
    std::string gpu;                 ///< gpu_sample::number of its GPU; empty: it has none
    cgroup_sample cgroup;
    std::optional<wait_sample> waits;   ///< absent: its program does not use muster's collectives
    std::optional<double> data_wait_s;  ///< for batches of muster's loaders; absent: it has none
    std::optional<double> data_wait;    ///< share of the time now: 0 to 1
    bool operator==(rank_sample const&) const = default;
};

struct gpu_sample {
    std::string number;  ///< gpu::index; for a MIG slice with its GPU instance, "0/3"
    std::string name;
    std::optional<int> busy_percent;  ///< the share of the last second in which a kernel ran
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t> used_bytes;
    std::optional<int> watts;
    std::optional<int> clock_mhz;  ///< its multiprocessors'
    std::optional<int> most_clock_mhz;
    std::string slowed;  ///< why its clock is reduced ("heat (hardware), power brake"); empty: it is not, or not known
    std::optional<int> celsius;
    std::optional<std::int64_t>
        ecc_errors;  ///< uncorrected ones; in files since the run began, in a look since the driver was loaded
    std::optional<std::int64_t> remapped_rows;  ///< rows of its memory that are replaced, for errors
    std::optional<std::int64_t> link_replays;   ///< over PCIe and NVLink, likewise
    // since the run began
    std::optional<int> mean_busy_percent;
    std::optional<std::uint64_t> most_used_bytes;
    std::optional<int> mean_clock_mhz;   ///< of the looks at which it was busy
    std::optional<double> slowed_share;  ///< of those looks, at how many its clock was reduced: 0 to 1
    std::string was_slowed;              ///< the reason at the last of them
    bool operator==(gpu_sample const&) const = default;
};

struct node_sample {
    std::string host;
    double at_s = 0;                             ///< the look, in seconds since 1970 by the launcher's clock
    std::optional<double> load;                  ///< the mean of the last minute
    std::optional<std::uint64_t> memory_bytes;   ///< of the machine
    std::optional<int> cpus;                     ///< hardware threads of the machine
    std::optional<double> steal;                 ///< share of processor time now that the hypervisor gave to others: 0 to 1
    std::optional<double> steal_s;               ///< since the run began, the sum over all hardware threads
    std::string interface;                       ///< the network interface in use; empty: none
    std::optional<double> received_bytes_per_s;  ///< by it, now
    std::optional<double> sent_bytes_per_s;
    std::vector<gpu_sample> gpus;    ///< in the node's order
    std::vector<rank_sample> ranks;  ///< by number
    bool operator==(node_sample const&) const = default;
};

/// All of a run, or of the present generation of an elastic one.
struct run_samples {
    std::string job;      ///< the scheduler's number; empty: none
    std::string command;  ///< the program, as shown to people
    int generation = 0;
    int world_size = 0;
    double started_s = 0;            ///< in seconds since 1970
    double every_s = 2;              ///< between looks
    std::vector<node_sample> nodes;  ///< by host
    bool operator==(run_samples const&) const = default;
};

/// The file's name in the run's folder.
inline constexpr char const* samples_file = "samples.json";
inline constexpr std::size_t longest_samples_bytes = std::size_t{64} << 20;  ///< of that file: 1 KiB a rank

/// Returns the file's text (schema `muster.samples/1`), in one line; absent values are left out. Pure.
std::string samples_json(run_samples const& of);

/// Returns what can be read of any text; nothing if it is no such file: a file that another program has written is no error of the run. Texts lose their
/// control characters; numbers that are not finite are absent. Pure.
std::optional<run_samples> parse_samples(std::string_view text);

/// Does the same for a run's folder. Throws errc::config for one that this user may not read, or that is no regular file; returns
/// nothing if there is no file.
std::optional<run_samples> read_samples(std::string const& run_folder);

}  // namespace muster
