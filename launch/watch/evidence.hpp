// The evidence on which failures are judged: all that is known about a run's ranks while they run.
#pragma once

#include <sys/wait.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/observe/memory_kills.hpp"
#include "launch/watch/job_end.hpp"
#include "launch/watch/rank_table.hpp"

namespace muster {

/// One rank. Whoever watches it records facts here as they become known.
struct rank_evidence {
    /// placing: its watcher has come; ready: it waits for all others; ended: its program has ended, and its watcher ends what is
    /// left of it; gone: nothing is left; lost: its watcher no longer answers.
    enum class state { absent, placing, ready, running, ended, gone, lost };
    /// rank: it is one of the present generation; left_out: that generation goes on without it; coming: it is a spare, which has not
    /// come to init(); waiting: it is a spare that can be taken in at once.
    enum class part { rank, left_out, coming, waiting };
    /// Says what it has to do with its world's server of PMIx or PMI-1, if that is muster's own.
    enum class world { outside, inside, left };
    /// Says whether the engine or the scheduler had asked its watcher to end, or killed the watcher's guard without asking before.
    enum class request { none, asked, guard_killed };

    int rank = 0;
    int number = -1;     ///< its rank in the present generation, if the run goes on in place; else below 0
    int spare = -1;      ///< its number as a spare, also once it is a rank; below 0: it started as a rank
    int node = 0;        ///< index into evidence::hosts
    int gpu_index = -1;  ///< -1: it has no GPU
    std::string gpu_uuid;
    state now = state::absent;
    part plays = part::rank;
    world mpi = world::outside;
    request to_end = request::none;

    std::optional<int> wait_status;  ///< set when its program has ended
    memory_verdict memory = memory_verdict::unknown;
    std::string last_lines;   ///< those of its standard error
    bool saved = false;       ///< it ended with the code for a saved state
    bool left_early = false;  ///< it ended well before anything had gone wrong
    bool settled = false;     ///< it has ended, and its world's server will report nothing more about it

    bool uses_mpi = false;           ///< seen from outside, with engines whose server reports nothing
    std::string mpi_elsewhere;       ///< the MPI library that it uses without having connected; empty: none was seen
    std::string daemon_lost;         ///< the name of the engine's daemon on its node, if that died
    bool cut = false;                ///< the other end closed its watcher's connection: the watcher has ended, and the node lives
    bool killed_as_stopped = false;  ///< muster killed it after it had been stopped for long (stop_watch.hpp)

    int shown() const noexcept { return number < 0 ? rank : number; }
    bool over() const noexcept { return now == state::gone || now == state::lost; }
    bool here() const noexcept { return !over() && now != state::absent; }
    /// Returns whether its watcher has come and its program has not ended.
    bool running() const noexcept { return now == state::running || now == state::ready || now == state::placing; }
    bool is_rank() const noexcept { return plays == part::rank || plays == part::left_out; }
    bool in_generation() const noexcept { return plays == part::rank; }
    bool left_out() const noexcept { return plays == part::left_out; }
    bool connected() const noexcept { return mpi != world::outside; }
    bool in_world() const noexcept { return mpi == world::inside; }
    bool was_asked() const noexcept { return to_end != request::none; }
    /// Returns whether it ended with code 0, or with the code for a saved state.
    bool ended_well() const noexcept { return wait_status && (*wait_status == 0 || saved); }
    void note_end(int status, int saved_code) noexcept {
        wait_status = status;
        saved = saved_code != 0 && WIFEXITED(status) && WEXITSTATUS(status) == saved_code;
    }
};

/// Holds the scheduler's answer about the job, if it was asked.
struct scheduler_word {
    job_end end = job_end::unknown;
    std::vector<int> down_nodes;  ///< nodes that it has lost
};

/// Holds all that is known about a run. Plain values: no judgement, no I/O.
struct evidence {
    /// A rank's request to abort all.
    struct abort_word {
        int rank = 0;
        int code = 0;
        std::string_view by = "MPI_Abort";
        std::string said;  ///< its stated reason; or empty
    };

    std::deque<rank_evidence> ranks;  ///< in order of rank, then spares; a deque: adding one does not move the others
    std::vector<int> stuck;           ///< ranks that did not end with the run and were given up
    std::vector<int> members;         ///< their members' numbers in a run that may start again; else empty
    std::vector<std::string> hosts;   ///< names of nodes: the plan's until a rank there has reported its own
    std::string job_id;
    bool in_job = false;       ///< a scheduler owns the nodes, and may end all ranks at any time
    bool keeps_nodes = false;  ///< a job of Slurm, in which the run would go on, or start again, without a lost node
    bool allow_singletons = false;
    bool started = false;  ///< all ranks got the order to start
    duration lived{0};     ///< the time since then
    bool quotes = false;   ///< a rank's last lines are part of the report

    std::string engine;  ///< the engine that started the watchers; empty: the ranks are this process' own children
    std::optional<int> engine_status;
    wire_up speaks = wire_up::none;  ///< how ranks meet, as the engine serves it
    std::string cancelled_step;      ///< a step of Slurm's with ranks in it that, according to Slurm, somebody has cancelled
    std::vector<std::string> unknown_hosts;  ///< hosts of ranks that have not come: names without an address here

    bool asked = false;           ///< the engine or the scheduler has asked watchers to end
    bool deciding = false;        ///< an end is held until its cause is known
    bool engine_awaited = false;  ///< muster has waited for the engine's end
    bool reader_gone = false;     ///< nobody reads standard output any more
    int suspect = -1;             ///< this rank's end is held: it may be a consequence
    int first_lost = -1;          ///< the first rank whose watcher was lost
    int first_killed = -1;        ///< the first rank whose watcher's guard was killed
    int first_orphan = -1;        ///< the first rank whose daemon died, if no watcher had been lost before
    std::optional<abort_word> abort;
    std::optional<scheduler_word> scheduler;

    rank_evidence& operator[](int rank) { return ranks[static_cast<std::size_t>(rank)]; }
    rank_evidence const& operator[](int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
    bool is_rank(int rank) const noexcept { return rank >= 0 && rank < static_cast<int>(ranks.size()); }
    std::string const& host_of(rank_evidence const& rank) const { return hosts[static_cast<std::size_t>(rank.node)]; }
    /// Returns "rank 3 on node2 (GPU 1, GPU-3f2a…)".
    std::string name_of(rank_evidence const& rank) const;

    using condition = std::function<bool(rank_evidence const&)>;
    /// Returns "ranks 8-11 on node3, rank 14 on node4, spare 0 on node5"; after the first four nodes, "and 60 more nodes".
    std::string list(condition const& of) const;
    std::string list(rank_evidence::state now) const;
    std::size_t count(condition const& of) const;
    std::size_t count(rank_evidence::state now) const;
    std::size_t size() const;     ///< ranks, without spares
    std::size_t running() const;  ///< ranks that run
    /// Returns "3 ranks and 1 spare", those that run; may be empty.
    std::string count_running() const;
    bool any_connected() const;
    /// Returns "; ending 3 ranks"; empty if no rank is left.
    std::string ending() const;
    /// Returns ranks that have ended well, "rank 1 on node2 had ended with code 0 before that"; or an empty text.
    std::string list_early_ends() const;
    /// Returns a rank of an MPI program, other than `suspect` (or -1), that has ended well while most others had not. It has not
    /// called MPI_Finalize, in which it would have waited for them; because of that they fail, are killed or wait. Returns null
    /// if there is no such rank.
    rank_evidence const* find_leaver(int suspect) const;
    /// Returns the table of the present generation's ranks, in their order, and of the spares. `sight_of` returns what the
    /// inspection of a running rank has shown; null: its watcher has not answered.
    std::vector<rank_row> rows(std::function<process_sight const*(int rank)> const& sight_of) const;
};

/// Makes these ranks, in this order, those of the present generation; `members` are their members' numbers. The others are left
/// out. Pure.
void number_anew(evidence& known, std::vector<int> const& members, std::vector<int> const& seats);

}  // namespace muster
