// Reads a PBS job: its node file, and what its server knows about it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/scheduler/allocation.hpp"

namespace muster {

// Reads what `qstat -f -F json` of OpenPBS and PBS Professional prints about a job.

struct pbs_host {
    std::string name;         ///< exec_host's spelling: mostly short
    std::optional<int> gpus;  ///< nothing: no chunk of the whole job names ngpus, so PBS may not count GPUs here
    std::optional<int> cpus;
    bool operator==(pbs_host const&) const = default;
};

struct pbs_job {
    std::vector<pbs_host> hosts;  ///< each once, in the order of exec_host: the first one is the mother superior
    std::optional<std::chrono::system_clock::time_point> ends_at;  ///< stime + walltime
    bool exclusive = false;                                        ///< no other job uses its hosts (place=excl, exclhost)
    std::string comment = {};                                      ///< "Job run at … and terminated by …"
    int runs = 0;                 ///< how often it was started, including this time; 0: not known
    int substate = 0;             ///< 60 to 63: it is being put back into the queue
    bool outlives_hosts = false;  ///< tolerate_node_failures=all
    bool operator==(pbs_job const&) const = default;
};

/// Returns hosts with the sums of their vnodes' resources: `exec_host` is "n1/0*6+n2/0*6+n1/1*2", `exec_vnode` has a group for
/// each of its items, "(n1:ncpus=6)+(v2[0]:ngpus=2:ncpus=4+v2[1]:ngpus=2)+(n1:ncpus=2)"; vnodes may have other names than their
/// hosts. Pure. Throws parse_error with a caret.
std::vector<pbs_host> parse_exec_hosts(std::string_view exec_host, std::string_view exec_vnode);

/// Returns the job `id` from qstat's answer, whatever it calls the server; nothing for any other text, or if the job has no hosts
/// yet. Reads stime as local time. Throws parse_error for damaged exec_host and exec_vnode.
std::optional<pbs_job> parse_qstat_job(std::string_view json, std::string_view id);

/// Returns the path of qstat in PBS, from the text of pbs.conf, since /usr/bin/qstat may be Slurm's wrapper; "qstat" if the text has
/// no path. Pure.
std::string pbs_qstat(std::string_view pbs_conf);

/// Reads "90", "1:30", "01:00:00"; returns nothing for any other text.
std::optional<std::chrono::seconds> parse_pbs_walltime(std::string_view text);

// Reads node files of schedulers, which name a host on one line for each of its slots.

/// Returns the file's hosts in the order of their first lines, with one slot for each line, under the first spelling: "n1" and
/// "n1.example" are one host. Skips blank lines and comments. A line "host-gpu3" (single GPUs of Cobalt and Torque) is a GPU of
/// "host", if `gpu_entries`. Throws parse_error with a caret, also for a file without hosts.
std::vector<node> parse_node_file(std::string_view text, std::string_view origin, bool gpu_entries = false);

}  // namespace muster
