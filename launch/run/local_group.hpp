// Ranks that are children of this process, on this node.
#pragma once

#include <ctime>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/elastic/host_pool.hpp"
#include "launch/observe/memory_kills.hpp"
#include "launch/observe/mpi_use.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/ranks/member_socket.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/run/members/member_world.hpp"
#include "launch/run/members/spare_log.hpp"
#include "launch/run/rank_group.hpp"
#include "launch/samples/rank_reader.hpp"
#include "launch/samples/rank_waits.hpp"
#include "launch/system/event_loop.hpp"
#include "pmix/identity.hpp"
#include "pmix/pmi1/pmi1_server.hpp"
#include "pmix/server/server.hpp"

namespace muster {

/// The process and the output of one rank; evidence::ranks has what they say about it.
struct child_rank {
    identity who;
    int planned =
        0;  ///< whose place it has: a rank's of the start or, with a higher number, a spare's; not who.rank if it replaces one
    int spare =
        -1;  ///< its number as a process that waits for a lost rank's place, also after it got one; below 0: it started as a rank
    binding place;
    pid_t pid = -1;
    bool group_gone = false;              ///< no process is left in its group
    bool spoke = false;                   ///< it has written something
    rank_stream* last_written = nullptr;  ///< the stream that it wrote to last
    event_loop::clock::time_point last_output{};
    mpi_sight mpi{};  ///< what the last look found
    event_loop::clock::time_point looked_at{};
    member_socket events = {};  ///< connects to it in an elastic run
    rank_waits waits = {};
    rank_stream out;
    rank_stream err;
};

/// run_embedded starts these ranks one after the other. This process contains their servers of PMIx and PMI-1, which know who has
/// met.
class local_group final : public rank_group {
  public:
    /// All arguments must outlive it.
    local_group(run_context const& run, event_loop& loop, output_writer& writer, group_events& events);

    /// Call it before the ranks start: later counts are compared with this one.
    void note_memory_kills() { memory_ = count_memory_kills(); }
    /// Takes over the ranks as they are started, in order of rank.
    void add(child_rank rank);
    /// Notes that a rank could not be started: the others will be ended, and the run exits with this code.
    void start_failed(std::string const& message, int code) { unstarted_ = blame_run(failure_cause::never_came, message, code); }
    /// `master_port` is the ranks' MASTER_PORT.
    void serve(pmix::server& pmix, pmix::pmi1_server& pmi1, int master_port);

    /// Returns the ranks that run, and spares, for a look at them.
    std::vector<sampled_rank> ranks_to_sample() const;

    /// Starts a spare with this number in the place of a lost rank or an ended spare, or in an additional place on a slot of this
    /// host.
    using replacement = std::function<child_rank(int planned, int spare, std::string const& host)>;
    /// Makes the ranks and then the waiting spares, which have all been added, go on in place after a loss.
    void go_on_in_place(replacement start);

    void start() override;
    bool goes_on_without(verdict const& judged) override;
    bool take_hosts(host_pool const& hosts) override;
    void signal(int number, bool notice) override;
    void end(int signal_number) override;
    void kill() override;
    void give_up_rest() override;
    void end_spares() override;
    void close(bool failed, int exit_code, int culprit) override;
    verdict finish(bool failed) override;
    void on_child() override;
    void resume_output() override;
    void read_last_lines(int rank) override;
    void inspect(rows_taker then) override;
    void ask_about(std::string const& command, std::vector<int> const& whom, rows_taker then) override;
    void look_at_stopped(std::vector<int> const& seats, stopped_taker then) override;
    void kill_one(int seat) override { kill_rank(seat); }

  private:
    void poll_pmix();
    void on_pmi_events(std::vector<pmix::server_event> const& events);
    void on_pmi_event(pmix::server_event const& event);
    void on_rank_end(child_rank& rank);
    void on_spare_end(child_rank& spare);
    void on_leaver_end(child_rank& rank);
    void replace_spare(int planned);
    void note_end(child_rank const& rank);
    member_world::group calls_of_members();
    child_rank& start_spare(int planned);
    slot slot_of(int planned) const;
    void start_newcomer(slot const& at);
    void watch(child_rank& rank);
    void begin(generation const& now, std::vector<int> const& seats, std::string const& why);
    void on_output(child_rank& rank, rank_stream& stream);
    void detect_mpi();
    void detect_mpi(child_rank& rank);
    void signal_ranks(int signal_number) noexcept;
    void signal_spares(int signal_number) noexcept;
    void close_world();
    void kill_late();
    void end_leftovers(int signal_number);
    void leave_rest();
    void kill_rank(int seat);
    void give_up(child_rank& rank);
    void give_up_killed(event_loop::clock::time_point since);
    void say_unkillable(std::vector<int> const& seats);
    duration patience_with_killed() const;

    run_context const& run_;
    event_loop& loop_;
    output_writer& writer_;
    std::deque<child_rank> ranks_;  ///< a deque: adding one does not move the others
    output_pump output_;            ///< declared after the ranks, whose streams it refers to
    pmix::server* pmix_ = nullptr;
    pmix::pmi1_server* pmi1_ = nullptr;
    int master_port_ = 0;
    std::optional<member_world> world_;  ///< nothing: all ranks end together
    replacement replace_;
    std::vector<slot> places_;  ///< by number in the plan; slots that came later follow those of the plan
    int spares_ = 0;            ///< the number started so far
    spare_log spare_log_;
    host_pool spare_slots_;  ///< records which of their places cool down
    bool any_lost_ = false;  ///< ranks were lost, and the others went on
    std::optional<verdict> unstarted_;
    memory_kills memory_;                                        ///< the count before the ranks were started
    bool forget_due_ = false;                                    ///< the PMIx server will forget ranks soon
    std::optional<event_loop::clock::time_point> grace_ends_;    ///< a stopped run's
    std::optional<event_loop::clock::time_point> killed_since_;  ///< when what ranks have left behind was killed
    std::time_t wall_start_ = std::time(nullptr);
};

}  // namespace muster
