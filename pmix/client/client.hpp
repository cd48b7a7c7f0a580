// The PMIx client of a rank: puts and gets keys, and waits in fences.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "pmix/identity.hpp"

namespace muster::pmix {

/// Returns whether this process could be a client: the PMIx library is there. Asks no server.
bool client_is_available() noexcept;

/// A PMIx client. One per process at a time; an MPI library in the same process may use PMIx as well. Not thread safe. Every call
/// that waits has a deadline and throws errc::timeout after it, and library_error naming the PMIx call on other failures.
class client {
  public:
    static constexpr duration default_deadline{60};

    /// Connects to the server that this process' environment names. Throws errc::unavailable if it names none, errc::usage if
    /// there is a client already.
    explicit client(duration deadline = default_deadline);
    ~client();  ///< finalises, unless that is done; waits at most 2 s and drops errors
    client(client const&) = delete;
    client& operator=(client const&) = delete;

    /// This rank's place, as the server tells it (not the environment).
    identity const& who() const noexcept;

    /// Keeps a value under a key (1 to 511 bytes, own to this rank) until `commit`. A value may hold any bytes.
    void put(std::string_view key, std::span<std::byte const> value);
    /// Hands what was put to the server; others see it after a fence, or as soon as they ask for it.
    void commit(duration deadline = default_deadline);

    /// Collective over the whole job: returns once every rank is here. Throws errc::peer_failed if a rank ended meanwhile.
    void fence(duration deadline = default_deadline);

    /// The value a rank committed under a key; waits for it to do so. Throws errc::not_found if the key will not come, and
    /// errc::invalid_data if it is no such value.
    std::vector<std::byte> get_bytes(int rank, std::string_view key, duration deadline = default_deadline);

    /// Leaves the job in order; the destructor then does nothing. Not collective.
    void finalize(duration deadline = default_deadline);

  private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace muster::pmix
