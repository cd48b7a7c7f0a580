// The PMIx client of a rank: puts and gets keys, waits in fences, and reports peers that ended.
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

/// An event of another rank.
struct peer_event {
    enum class kind {
        aborted,     ///< exited with a code other than 0
        killed,      ///< ended by a signal
        left_early,  ///< exited with 0 before it finalised
        other,       ///< a code that the program registered itself
    };
    kind what = kind::other;
    int code = 0;        ///< PMIx's own
    int rank = -1;       ///< the affected rank, or -1
    std::string nspace;  ///< the affected rank's
    int exit_code = 0;   ///< 128 + n for signal n
    bool operator==(peer_event const&) const = default;
};

/// Whether this process could be a client: the PMIx library is there. Asks no server.
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
    void put(std::string_view key, std::string_view text);
    /// Hands what was put to the server; others see it after a fence, or as soon as they ask for it.
    void commit(duration deadline = default_deadline);

    /// Collective over the whole job: returns once every rank is here. Throws errc::peer_failed if a rank ended meanwhile.
    void fence(duration deadline = default_deadline);

    /// The value a rank committed under a key; waits for it to do so. Throws errc::not_found if the key will not come, and
    /// errc::invalid_data if it is of the other kind.
    std::vector<std::byte> get_bytes(int rank, std::string_view key, duration deadline = default_deadline);
    std::string get_string(int rank, std::string_view key, duration deadline = default_deadline);

    /// Asks the launcher to end the whole job with `code` (taken modulo 256 by exit codes). Returns once it has been asked: this
    /// rank lives until it is killed with the others.
    void abort(int code, std::string_view text, duration deadline = default_deadline);

    /// From now on `poll` reports ranks that end. A handler for all codes would get nothing, so they are registered one
    /// by one.
    void watch_peers(duration deadline = default_deadline);
    /// The same for PMIx codes of the program's own choice.
    void watch(std::span<int const> codes, duration deadline = default_deadline);

    int event_fd() const noexcept;   ///< readable while `poll` has something
    std::vector<peer_event> poll();  ///< all events since the last call; never blocks

    /// Leaves the job in order; the destructor then does nothing. Not collective.
    void finalize(duration deadline = default_deadline);

  private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace muster::pmix
