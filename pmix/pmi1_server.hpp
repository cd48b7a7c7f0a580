// A PMI-1 wire server, for programs of the MPICH family.
#pragma once

#include <memory>
#include <vector>

#include "base/environment.hpp"
#include "pmix/server.hpp"

namespace muster::pmix {

/// Speaks PMI-1 ("cmd=init …") with every rank that asks for it. Single-threaded: all work is done inside `poll`.
class pmi1_server {
  public:
    explicit pmi1_server(job const& description);
    ~pmi1_server();
    pmi1_server(pmi1_server const&) = delete;
    pmi1_server& operator=(pmi1_server const&) = delete;

    /// Sets the variables that rank needs. Never PMI_SIZE, since MPICH refuses to start with both that and PMIX_NAMESPACE.
    void set_client_environment(int rank, environment& variables);

    int event_fd() const noexcept;     ///< an epoll descriptor: readable while `poll` has something to do
    std::vector<server_event> poll();  ///< answers what clients asked; never blocks

  private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace muster::pmix
