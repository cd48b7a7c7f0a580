// The options of `muster run` as plain values.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "launch/elastic/discovery.hpp"
#include "launch/elastic/restart_policy.hpp"
#include "launch/placement/placement_request.hpp"
#include "launch/scheduler/scheduler_sources.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

/// --signal-before-end USR1@120: the signal that ranks get, and how long before the job's time is up.
struct early_signal {
    int number = 0;
    duration before{0};
    bool operator==(early_signal const&) const = default;
};

struct run_options {
    placement_request place;
    allocation_choice from;
    std::string engine;                    ///< --engine; empty: muster chooses
    std::vector<std::string> engine_args;  ///< --engine-args (--mpi-args), one word each
    bool engine_args_typed = false;        ///< given on the command line, for this run
    std::string network_interface;
    std::string ports;                     ///< --ports, checked; empty: any
    std::vector<std::string> login_nodes;  ///< patterns of hosts on which no ranks start outside of a job
    std::string remote_shell;              ///< --remote-shell; empty: ssh, or TM in a PBS job
    std::string pass_key = "auto";         ///< --pass-key: auto, munge, file or environment
    bool nested = false;                   ///< start ranks even if this is one task of several
    bool dry_run = false;                  ///< print the engine's command and start nothing
    std::optional<int> print_env;          ///< print the environment of this rank and start nothing
    bool preflight = false;
    bool exclude_bad_nodes = false;
    bool verbose = false;
    std::vector<std::string> command;
    std::vector<std::string> exports;     ///< -x: "NAME" or "NAME=value"
    std::vector<std::string> unexported;  ///< --env-exclude: patterns of names that engines and nodes do not get
    std::string working_dir;
    bool input = true;  ///< rank 0 gets standard input
    std::string output_dir;
    bool tag_output = false;
    bool timestamp_output = false;
    std::vector<int> shown_ranks;  ///< those whose output is passed on; empty: every rank's
    bool shows(int rank) const { return shown_ranks.empty() || std::ranges::find(shown_ranks, rank) != shown_ranks.end(); }
    bool as_horovod = false;        ///< ranks find the package `horovod` that is made of muster's
    bool allow_singletons = false;  ///< ranks may use MPI without meeting their world
    bool quiet = false;
    std::optional<duration> timeout;
    std::optional<duration> start_timeout;
    std::optional<duration> idle_timeout;          ///< 124 after no rank has written anything for this long
    std::optional<duration> elastic_timeout{600};  ///< how long to wait for enough slots
    std::string on_hang;                           ///< command to run about each rank when a time limit ends the run
    std::optional<early_signal> signal_before_end;
    restart_policy restarts;         ///< --max-restarts, --restart-on
    int spares = 0;                  ///< nodes that are kept idle; on one node: slots
    bool warm_spares = false;        ///< these slots have waiting processes
    bool keep_state = false;         ///< --keep-state node
    bool keep_at_neighbour = false;  ///< --keep-state node,neighbour
    std::optional<int> least_ranks;  ///< --min-np
    std::optional<int> most_ranks;   ///< --max-np
    discovery_script discovery;      ///< --host-discovery-script
    cool_down_range cool_down;       ///< --blacklist-cooldown-range
    std::string must_grow;           ///< a file; or empty
    std::string success_file;        ///< made when the run ends with 0; or empty
    int saved_code = 75;             ///< --saved-code; 0: no code says that a rank has saved
    std::string lives_file;          ///< the file that records the program's lives over several jobs; or empty
    bool requeue_saved = false;      ///< after the code of --saved-code the scheduler starts the job again
    duration grace{5};
    duration heartbeat{5};                                    ///< a node that has not answered for this long, plus 10 s, is lost
    std::string metrics_dir;                                  ///< for files that Prometheus' node_exporter reads; or empty
    duration sample{2};                                       ///< between looks at ranks, nodes and GPUs; 0: none
    std::map<std::string, setting_value, std::less<>> asked;  ///< every setting that somebody has given, and its source
    /// Returns whether the run may go on after a failure: all ranks start again, or the remaining ones go on.
    bool is_elastic() const noexcept { return restarts.most > 0 || least_ranks || discovery.given(); }
    /// Returns the number of processes that wait for the places of lost ranks.
    int waiting_spares() const noexcept { return warm_spares && is_elastic() ? spares : 0; }
    duration lost_after() const noexcept { return heartbeat + duration(10); }
    bool operator==(run_options const&) const = default;
};

}  // namespace muster
