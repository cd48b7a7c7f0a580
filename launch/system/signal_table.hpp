// The table of what each kind of muster's processes does with each signal that users and schedulers send.
#pragma once

#include <signal.h>

#include <string_view>
#include <vector>

namespace muster {

/// The processes of a run that are muster's own.
enum class process_kind {
    launcher,      ///< muster run
    guardian,      ///< its parent, which outlives launchers
    starter,       ///< muster remote, the engine that calls the hosts' agents
    remote_shell,  ///< what the starter calls a host by: ssh, flux exec. srun has its own ways
    pbs_shell,     ///< muster tmrsh, by which engines call a host in a PBS job
    agent,         ///< muster-agent, one a host, which starts the shims there
    shim,          ///< one a rank
    shim_guard,    ///< its parent below engines whose daemons kill what they have started
    keeper,        ///< of --keep-state, one a node
    keepers,       ///< the process that leads the keepers
    probe,         ///< of --preflight, one a node
    discovery,     ///< asks the host discovery script again and again
};

/// What comes of a signal.
enum class signal_deed {
    taken,    ///< the process handles it: passes it on, or acts on it
    ignored,  ///< nothing: whom it is for hears it by other ways
    usual,    ///< what the system does: the process ends, or stops and goes on
};

/// A scheduler sends USR1, USR2, ALRM and others to all processes of a job, or of a step, whatever they are: the ranks are to hear it, and what holds the ranks must not end of it.
/// Of all kinds but the launcher and its guardian those that end a run are ended by the launcher, or by the end of their connection to it.
signal_deed deed_of(process_kind kind, int signal_number) noexcept;

/// All kinds, and all signals of the table.
std::vector<process_kind> process_kinds();
std::vector<int> tabled_signals();
std::string_view name_of(process_kind kind) noexcept;

/// Those that a process of this kind takes: for take_signals.
std::vector<int> taken_signals(process_kind kind);
std::vector<int> ignored_signals(process_kind kind);

/// Ignores from now on what a process of this kind ignores. What it takes is left as it is.
void ignore_signals(process_kind kind) noexcept;

/// What a launcher takes and does not end of: it must wait until the launcher can take it, since it would end one that is not there yet.
std::vector<int> signals_to_hold();

}  // namespace muster
