// The PMI-1 server. Serves programs of the MPICH family over a local port.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "pmix/library/peer_uid.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// Speaks PMI-1 ("cmd=init …") with every rank that asks for it, next to the PMIx server: a rank's environment carries both, so
/// that the launcher need not know which MPI the program uses. PMI_SIZE may not be set together with PMIX_NAMESPACE (MPICH 5 refuses to
/// start), and with an inherited descriptor (PMI_FD) there is no other way to tell the size; so ranks connect to a port of the
/// loopback device (PMI_PORT) and get rank and size over the wire. The port takes only this user's processes, and only those
/// that know a rank's random number (PMI_ID); of too many that have not said one the oldest goes, and after 100 wrong ones nobody is let
/// in for up to a second. Single-threaded: all work is done inside `poll`, a limited amount each time.
class pmi1_server {
  public:
    /// Listens. Only nspace and world_size of the job are used. Throws errc::system.
    explicit pmi1_server(job const& description);
    ~pmi1_server();
    pmi1_server(pmi1_server const&) = delete;
    pmi1_server& operator=(pmi1_server const&) = delete;

    /// Sets the variables that rank needs: PMI_PORT, PMI_ID, MPI_LOCALRANKID, MPI_LOCALNRANKS, and MPIR_CVAR_PMI_VERSION unless
    /// the user chose one. Removes PMI_FD, PMI_RANK and PMI_SIZE, which would be taken first.
    void set_client_environment(int rank, environment& variables);

    /// Returns, in a job of several nodes and after `poll`, what is to be given to the others' servers, if all local ranks wait for them.
    std::optional<std::string> take_part();
    /// The parts of all servers have come together.
    void finish_barrier(std::string_view parts);

    int event_fd() const noexcept;     ///< an epoll descriptor: readable while `poll` has something to do
    std::vector<server_event> poll();  ///< answers what clients asked; never blocks

  private:
    struct state;
    std::unique_ptr<state> state_;
};

// The port of the PMI-1 server: takes connections of this user's processes on this machine, some at a time, and refuses others.

/// A port of the loopback device. Any process of the machine may call there as often as it likes: each call of `accept_some` does
/// a limited amount of work. Single-threaded.
class pmi1_listener {
  public:
    /// Throws errc::system.
    pmi1_listener();

    int fd() const noexcept { return listener_.get(); }  ///< readable while somebody waits
    std::uint16_t port() const noexcept { return port_; }

    /// Accepts those of the next few callers who come from 127.0.0.1 and are processes of this user, as the kernel says; the others, and
    /// all for whom there is no file descriptor left, are closed. Of refused ones an event tells the first, the 10th, the 100th …
    std::vector<unique_fd> accept_some(std::vector<server_event>& events);

    static constexpr int callers_a_turn = 16;

  private:
    void refuse(std::optional<uid_t> who, std::vector<server_event>& events);
    bool shed_one() noexcept;

    unique_fd listener_;
    std::uint16_t port_;
    peer_uid_lookup users_;
    unique_fd spare_;  ///< given up for a moment to close a caller for whom there is no descriptor
    std::uint64_t refused_ = 0;
    std::uint64_t told_at_ = 1;
};

}  // namespace muster::pmix
