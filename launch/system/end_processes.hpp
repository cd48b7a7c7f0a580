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

/// All living descendants of this process (children, their children, …), zombies left out. Needs only /proc.
std::vector<pid_t> descendants();

/// Sends the signal to each of them; returns how many there were.
int signal_descendants(int signal_number) noexcept;

/// Sends the signal to the process of this number if it is a child of that parent, or of this process.
void signal_child(pid_t pid, pid_t parent, int signal_number) noexcept;

/// Whether the process was stopped by a signal, or its cgroup is frozen; false if there is no such process.
bool is_stopped(pid_t pid) noexcept;

/// Whether the kernel has begun to clear it away, which may take long, or it has ended.
bool is_exiting(pid_t pid) noexcept;

/// Whether there is such a process, and it has not ended.
bool is_alive(pid_t pid) noexcept;

/// The name of its program (15 characters of it at most); empty if there is no such process.
std::string name_of_process(pid_t pid);

/// Its parent; 0 if there is no such process.
pid_t parent_of(pid_t pid) noexcept;

/// Kills the descendants whose program is called so (15 characters of it at most).
void kill_descendants_called(std::string_view program) noexcept;

/// Which of them get a notice.
enum class noticed { all, that_catch };

/// Sends a signal that only tells something (is_notice) to them, or to those that have a handler for it, to which it does no harm.
/// What muster-stage runs gets it from muster-stage, and so not twice.
void notify_descendants(int signal_number, noticed whom) noexcept;

/// How long processes that a rank left behind may take to end by themselves, and again after SIGTERM.
inline constexpr duration leftover_patience{0.2};

/// Sends the signal to every descendant, then SIGCONT: a stopped process takes no other signal but SIGKILL.
void end_descendants(int signal_number) noexcept;

/// How long to wait after `signal_number` before SIGKILL: a moment; after SIGTERM also what is left of the grace that ends at
/// `grace_ends`, since a program below a wrapper script that SIGTERM ended at once may be saving its state. Pure.
duration wait_before_kill(int signal_number, std::optional<event_loop::clock::time_point> grace_ends,
                          event_loop::clock::time_point now) noexcept;

/// Sets what follows a request to end: after SIGINT `terminate` when half the grace is over; `kill` when all of it is.
void set_grace_timers(event_loop& loop, int signal_number, duration grace, std::function<void()> terminate,
                      std::function<void()> kill);

/// Kills descendants until none is left but `spared` and its own, at most for so long, and reaps them. SIGCHLD must be blocked.
void kill_all_descendants(pid_t spared = 0, duration most = duration(5)) noexcept;

}  // namespace muster
