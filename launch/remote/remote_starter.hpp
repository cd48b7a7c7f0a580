// The starter of a remote run starts an agent on each host over a remote shell, and carries rank 0's input and the data with
// which MPI connects.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_directions.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

struct remote_order {
    std::vector<host_ranks> hosts;
    std::vector<std::string> shell;  ///< the first words of "SHELL HOST COMMAND…": ssh and its options, or muster tmrsh
    bool by_scheduler = false;       ///< the shell passes on no standard input (TM)
    bool at_once = false;            ///< the shell is an srun that runs its command on all hosts
    bool in_steps = false;           ///< the shell is an srun for one host, given by --nodelist=HOST
    std::string blame_file = {};     ///< gets the name of the host that prevented the start; or empty
    std::optional<std::string> munge_socket = {};  ///< that Slurm's, see shim_directions_request
    std::vector<std::string> shim;                 ///< argv
    std::string interface;                         ///< --network-interface, or empty
    std::string pass_key;                          ///< --pass-key
    std::string working_dir;
    duration lost_after{15};      ///< a host that is silent for this long is lost
    duration try_for{0};          ///< how long to repeat a remote shell that fails
    std::size_t first_agent = 0;  ///< the number of the first host's agent: the run's other agents have other starters
    bool probe = false;           ///< the shims are probes: no MPI, and an unreachable host does not end the others

    /// Returns the number of agents up to the last one of these, in digits.
    std::string agents() const { return std::to_string(first_agent + hosts.size()); }
};

/// Does what mpirun does for orted: one process, which the launcher starts as its engine, and whose standard input is rank 0's.
/// The ranks' output goes from their shims to the launcher. Single-threaded.
class remote_starter {
  public:
    remote_starter(environment variables, remote_order order);
    ~remote_starter();

    /// Runs until all agents have ended. Returns the exit code: 0 if all hosts' shims have ended.
    int run();

  private:
    struct host {
        enum class state { waiting, called, pausing, there, over, lost };  ///< pausing: before its shell is tried again
        state now = state::waiting;
        pid_t shell = -1;  ///< its remote shell; -1: no shell runs
        event_loop::clock::time_point called_at{};
        bool noted = false;   ///< it was reported as absent
        bool failed = false;  ///< its shell has failed and is tried again
        std::string name;     ///< its own name for itself
        std::unique_ptr<frame_channel> link;
    };

    void call_some();
    void call(std::size_t which);
    void call_all();
    pid_t start_shell(std::vector<std::string> const& argv, bool gets_key, bool own_session, int death_signal);
    std::vector<std::string> agent_words(std::string const& number) const;
    std::size_t place_of(wire::hello const& hello) const;
    void on_shell_of_all_ended(int status);
    void note_absent();
    void wait_for_agents();
    void on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void on_frame(std::size_t which, std::string_view frame);
    void on_message(std::size_t which, wire::taken const& taken);
    void on_message(std::size_t which, wire::shims_ended const&);
    void on_message(std::size_t which, wire::exchange const& exchange);
    void on_message(std::size_t which, wire::modex const& modex);
    void on_message(std::size_t which, wire::failed const& failed);
    template <typename Other>
    void on_message(std::size_t, Other const&) {}
    void on_lost(std::size_t which, std::string const& reason);
    void leave_out(std::size_t which, std::string const& why);
    void give_up(std::size_t which, std::string const& why, int code);
    void start_shims(std::size_t which);
    wire::start_shims order_for_agents() const;
    void on_signal();
    void on_child();
    bool try_again(std::size_t which, int wait_status);
    void read_input();
    void watch_input();
    void say_lost();
    void give_up(std::string const& why, int code);
    void stop_once_quiet();
    void end_if_over();
    void say(std::string const& line);

    unique_fd signals_;  // first: they must be blocked before any member starts a thread, which would take them away
    environment variables_;
    remote_order order_;
    event_loop loop_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    std::string ticket_;
    std::string nspace_;
    std::vector<host> hosts_;
    event_loop::clock::time_point start_ = event_loop::clock::now();
    std::size_t in_world_ = 0;  ///< the number of the first hosts, which have ranks
    pid_t shell_of_all_ = -1;
    std::optional<rlimit> inherited_files_;  ///< what the remote shells get
    struct gathering {
        std::size_t parts = 0;
        std::vector<int> nodes;  ///< those that take part; empty: all
        std::string data;
    };
    std::map<std::string, gathering> exchanges_;      ///< exchanges that wait for the parts of more hosts
    std::shared_ptr<std::string const> start_order_;  ///< the same for all agents
    std::size_t input_host_ = 0;                      ///< rank 0's host
    std::vector<std::string> lost_;                   ///< hosts that no message has named yet
    std::string lost_why_;                            ///< the first one's reason
    bool all_there_ = false;
    bool giving_up_ = false;  ///< agents that come get the order to end
    bool input_ended_ = false;
    bool asked_to_end_ = false;
    int exit_code_ = 0;
};

}  // namespace muster
