// The agent of one host starts the shims of a remote run there, and serves their ranks' MPI.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/run_key.hpp"
#include "pmix/pmi1/pmi1_server.hpp"
#include "pmix/server/server.hpp"

namespace muster {

/// The name of an agent's process.
inline constexpr char agent_process[] = "muster-agent";

/// Says which of the hosts this is.
struct agent_place {
    int number = 0;  ///< below 0: the starter sends it, by Slurm's name of this node
    int count = 0;
    std::string addresses;  ///< the starter's, "ADDRESS:PORT,ADDRESS:PORT"
    std::string ticket;     ///< agent_ticket.cpp
};

/// remote_starter starts one on each host, over a remote shell. Each shim has its own session, out of reach of a scheduler that
/// ends the session of what it started, and notices when this process is gone. This process ends what a killed shim leaves. When
/// the starter is gone this process ends, and the shims notice that and end their ranks.
class host_agent {
  public:
    host_agent(environment variables, agent_place place);
    ~host_agent();

    /// Runs until all shims have ended and the starter has agreed. Returns the exit code. Throws as connect_to_launcher.
    int run();

  private:
    struct shim {
        int rank = 0;
        pid_t pid = -1;                       ///< -1: it has ended
        std::unique_ptr<frame_channel> link;  ///< to its descriptor 1; null for a probe, which connects to the launcher itself
    };

    void connect();
    void on_message(wire::meet_launcher const& launcher);
    void on_launcher_frame(std::string_view frame);
    void on_launcher_lost();
    void give_job(wire::job job);
    void on_starter_lost(std::string const& reason);
    void on_frame(std::string_view frame);
    void on_message(wire::start_shims const& order);
    void on_message(wire::input const& input);
    void on_message(wire::bye const& bye);
    template <typename Other>
    void on_message(Other const&) {}
    void on_message(wire::exchange const& exchange);
    void on_message(wire::modex const& modex);
    void serve_mpi(wire::start_shims const& order, std::vector<std::vector<int>> const& ranks_of_hosts);
    void poll_servers();
    void pass_on(pmix::server_event const& event) const;
    void on_shim_frame(std::size_t which, std::string_view frame);
    void on_shim_gone(std::size_t which);
    unique_fd open_link(std::size_t which);
    void start(wire::start_shims const& order, std::vector<int> const& ranks, int local_rank);
    void write_input();
    void on_signal();
    void on_request_to_end();
    void end_strays() const;
    void tell_end();
    void tell(wire::message const& message);

    unique_fd signals_;  // first: they must be blocked before any member starts a thread, which would take them away
    environment variables_;
    agent_place place_;
    std::time_t started_;
    event_loop loop_;
    std::unique_ptr<frame_channel> starter_;
    std::unique_ptr<frame_channel> launcher_;  ///< for messages between the shims here and the launcher; null in a probe's agent
    int launcher_fd_ = -1;                     ///< that of `launcher_`
    int starter_fd_ = -1;                      ///< that of `starter_`
    std::string session_dir_;
    unique_fd session_lock_;
    std::optional<pmix::server> pmix_server_;
    std::optional<pmix::pmi1_server> pmi1_server_;
    std::size_t hosts_ = 0;  ///< those with ranks of the run
    std::vector<shim> shims_;
    unique_fd input_;      ///< rank 0's, if it is here and has not closed it
    std::string pending_;  ///< the rest of a block that it has not taken
    bool any_started_ = false;
    bool told_ = false;
    int waits_for_strays_ = 0;
    int exit_code_ = 1;
};

// The ticket of a host's agent: its command line's form of the key by which it and the starter recognise each other.

/// Returns "job:…": the key, sealed (libsodium's secretbox) with the secret that PBS gives only to processes of the job
/// (PBS_JOBCOOKIE), so that a command line may contain it. Throws errc::unavailable without that variable.
std::string seal_for_job(run_key const& key, environment const& variables);

/// Returns the key of a ticket: "stdin" (the first line there), "file:PATH", "munge:…", "job:…". Throws errc::usage for any
/// other, errc::parse, errc::system, and errc::unavailable without the cookie that sealed it.
run_key redeem_ticket(std::string const& ticket, environment const& variables);

// The commands that start a remote run: `muster remote`, which the launcher runs as its engine, and `muster agent`, once on each
// host.

/// Runs `muster remote HOSTS [OPTIONS] -- SHIM…`: see remote_starter. Throws errc::usage.
int remote_command(std::vector<std::string> const& args, environment const& variables);

/// Runs `muster agent NUMBER COUNT ADDRESSES TICKET`: see host_agent. Throws errc::usage.
int agent_command(std::vector<std::string> const& args, environment const& variables);

}  // namespace muster
