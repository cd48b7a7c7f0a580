// Inspects a running rank from outside: its state, where it sleeps, its processor time, and whether it has met the others.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"

namespace muster {

/// The result of one look at one rank.
struct process_sight {
    long pid = 0;          ///< the process looked at: the rank or, for a script that waits for one child, that child; 0: none
    char state = '?';      ///< as in /proc/PID/stat
    std::string where;     ///< system call or kernel function in which it sleeps; empty: not known
    double cpu_s = 0;      ///< processor time of the rank and all below it
    bool at_port = false;  ///< one of its sockets is connected to MASTER_PORT, or listens there
    double silent_s = -1;  ///< since it last wrote; negative: it has not been seen to write
    std::string last_line;
    bool traceback = false;    ///< its last lines contain a traceback of Python's
    std::string said;          ///< what --on-hang printed about it
    bool leaving = false;      ///< it has been killed or has exited, and the kernel still removes it
    std::uint64_t waits = 0;   ///< the number of its uninterruptible wait (blocked_wait), in an answer to who stands still
    std::uint64_t caught = 0;  ///< signals for which the rank or a process below it has a handler (caught_signals)
    bool operator==(process_sight const&) const = default;
};

/// Returns "running", "asleep in futex", "stopped", "in an uninterruptible wait in nfs_wait".
std::string describe_state(process_sight const& sight);

/// Holds all processes of this machine, read once, and the connections of each network namespace, also read once.
/// Single-threaded.
class process_table {
  public:
    process_table();

    /// Inspects the rank with this process id, without what only its launcher knows (output). `port` 0: no port.
    process_sight inspect(pid_t rank, int port) const;

  private:
    struct entry {
        char state = '?';
        bool leaving = false;
        double cpu_s = 0;
    };
    std::vector<pid_t> children_of(pid_t parent) const;
    std::vector<pid_t> tree_of(pid_t root) const;
    pid_t working_process(pid_t rank) const;
    std::vector<unsigned long> const& sockets_at(pid_t pid, int port) const;
    std::map<pid_t, entry> entries_;
    std::map<pid_t, std::vector<pid_t>> children_;  ///< living ones, by parent
    /// by network namespace and port, if asked for
    mutable std::map<std::pair<std::string, int>, std::vector<unsigned long>> sockets_;
};

/// Sets what the last lines of a rank's output show.
void add_output(process_sight& sight, std::string_view last_lines, double silent_s);

/// Returns the inodes of the sockets in this /proc/net/tcp that are connected to `port` of any machine, or that listen there.
/// Pure.
std::vector<unsigned long> sockets_at_port(std::string_view net_tcp, int port);

/// Returns the name of the call in /proc/PID/syscall: "futex"; empty if it runs, or if programs do not wait in this call. Pure.
std::string name_of_call(std::string_view syscall);

/// Returns the system call or kernel function in which the process sleeps; empty: it runs, or not known.
std::string place_of_sleep(pid_t pid);

// Runs the user's command about a rank that hangs (--on-hang).

inline constexpr std::chrono::milliseconds hang_command_limit{10'000};

/// Runs `command` by the shell with each {pid} in it replaced; returns its output, and how it ended unless with 0. Kills it at
/// `limit`.
std::string ask_about(std::string const& command, long pid, environment const& variables, std::chrono::milliseconds limit);

}  // namespace muster
