// Finds the processes below this one, signals them, and ends them step by step.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// Returns all living descendants of this process (children, their children, …), without zombies. Needs only /proc.
std::vector<pid_t> descendants();

/// Sends the signal to each descendant; returns how many there were.
int signal_descendants(int signal_number) noexcept;

/// Sends the signal to the process of this number if it is a child of that parent, or of this process.
void signal_child(pid_t pid, pid_t parent, int signal_number) noexcept;

/// Returns whether the process was stopped by a signal, or is in a frozen cgroup; false if there is no such process.
bool is_held(pid_t pid) noexcept;

/// Returns whether the process was stopped by a signal; false if there is no such process.
bool is_stopped(pid_t pid) noexcept;

/// Returns whether the kernel has begun to remove it, which may take long, or it has ended.
bool is_exiting(pid_t pid) noexcept;

/// Returns whether the process exists and has not ended.
bool is_alive(pid_t pid) noexcept;

/// Returns the name of its program (at most 15 characters); empty if there is no such process.
std::string name_of_process(pid_t pid);

/// Returns its parent; 0 if there is no such process.
pid_t parent_of(pid_t pid) noexcept;

/// Kills the descendants whose program has this name (at most 15 characters of it).
void kill_descendants_called(std::string_view program) noexcept;

/// Says which of them get a notice.
enum class noticed { all, that_catch };

/// Sends a signal that is only a notice (is_notice) to all of them, or to those that have a handler for it, to which it does no
/// harm. Leaves out what muster-stage runs, which gets it from muster-stage.
void notify_descendants(int signal_number, noticed whom) noexcept;

/// The time that processes which a rank left behind have to end by themselves, and again after SIGTERM.
inline constexpr duration leftover_patience{0.2};

/// Sends the signal to every descendant, then SIGCONT: a stopped process takes no other signal except for SIGKILL.
void end_descendants(int signal_number) noexcept;

/// Returns how long to wait after `signal_number` before SIGKILL: a moment; after SIGTERM also the rest of the grace that ends at
/// `grace_ends`, since a program below a wrapper script that SIGTERM ended at once may be saving its state. Pure.
duration wait_before_kill(int signal_number, std::optional<event_loop::clock::time_point> grace_ends,
                          event_loop::clock::time_point now) noexcept;

/// Sets what follows a request to end: `terminate` after half the grace if that was SIGINT; `kill` after all of it.
void set_grace_timers(event_loop& loop, int signal_number, duration grace, std::function<void()> terminate,
                      std::function<void()> kill);

/// Waits for at most `most` until the child has ended, and reaps it.
void reap_within(pid_t child, duration most) noexcept;

/// Kills and reaps descendants until only `spared` and its own are left, for at most `most`. SIGCHLD must be blocked.
void kill_all_descendants(pid_t spared = 0, duration most = duration(5)) noexcept;

}  // namespace muster
