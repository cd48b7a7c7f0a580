// The identity of this process as a rank, for the C interface: from its variables, and in an elastic run from the launcher.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/environment.hpp"
#include "comm/backend/peer_loss.hpp"
#include "comm/c_api/c_call.hpp"
#include "comm/membership/member_link.hpp"

namespace muster::c_api {

/// What a communicator is made with. `variables` are NAME=VALUE, end with a null, and go before those of the environment; where they name another world
/// (MUSTER_NSPACE), the launcher's word is none on it.
class rank_setting {
  public:
    explicit rank_setting(char const* const* variables = nullptr);

    environment variables() const;  ///< with this rank's place in the present generation
    member_link* link() const noexcept { return link_; }
    /// Null outside of an elastic run.
    std::shared_ptr<peer_loss> watch(std::span<int const> members = {}) const;

  private:
    environment inherited_, given_;
    member_link* link_ = nullptr;
};

/// Where this process listens for ranks on other nodes, by the interface that `variables` name (GLOO_SOCKET_IFNAME). Throws as tcp_address().
std::string own_address(std::string const& host, environment const& variables);

/// Makes the communicator of all ranks. Where some are lost meanwhile in an elastic run, that of the next generation.
muster_comm* join_world(rank_setting const& setting);

}  // namespace muster::c_api
