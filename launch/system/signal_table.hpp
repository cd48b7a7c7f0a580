// The table of what each kind of muster's processes does with each signal that users and schedulers send.
#pragma once

#include <signal.h>

#include <string_view>
#include <vector>

namespace muster {

/// The processes of a run that belong to muster itself.
enum class process_kind {
    launcher,      ///< muster run
    guardian,      ///< its parent, which outlives launchers
    starter,       ///< muster remote, the engine that starts the hosts' agents
    remote_shell,  ///< the starter's way to a host: ssh, flux exec. srun has its own rules
    pbs_shell,     ///< muster tmrsh, the engines' way to a host in a PBS job
    agent,         ///< muster-agent, one on each host, which starts the shims there
    shim,          ///< one for each rank
    shim_guard,    ///< its parent below engines whose daemons kill what they have started
    keeper,        ///< for --keep-state, one on each node
    keepers,       ///< the process that leads the keepers
    probe,         ///< for --preflight, one on each node
    discovery,     ///< asks the host discovery script again and again
};

/// Says what a signal does.
enum class signal_deed {
    taken,    ///< the process handles it: passes it on, or acts on it
    ignored,  ///< nothing: those concerned learn of it in other ways
    usual,    ///< the system's default: the process ends, or stops and resumes
};

/// A scheduler sends USR1, USR2, ALRM and others to all processes of a job, or of a step: the ranks should get them, and the
/// processes above the ranks must not end. Only the launcher and its guardian end on signals that end a run; the launcher, or the
/// end of their connection to it, ends the other kinds.
signal_deed deed_of(process_kind kind, int signal_number) noexcept;

/// Return all kinds, and all signals of the table.
std::vector<process_kind> process_kinds();
std::vector<int> tabled_signals();
std::string_view name_of(process_kind kind) noexcept;

/// Returns the signals that a process of this kind takes, for take_signals.
std::vector<int> taken_signals(process_kind kind);
std::vector<int> ignored_signals(process_kind kind);

/// Ignores from now on what a process of this kind ignores. Leaves the signals that it takes unchanged.
void ignore_signals(process_kind kind) noexcept;

/// Returns the signals that a launcher handles: they must be held until it can, since they would end it before.
std::vector<int> signals_to_hold();

}  // namespace muster
