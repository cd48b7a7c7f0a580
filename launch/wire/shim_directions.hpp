// The variables by which shims find the launcher and get the key of the run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/run_key.hpp"

namespace muster {

/// The ways of --pass-key: how the key gets to the nodes.
enum class key_way {
    automatic,   ///< by munge if the scheduler has it; in a file if that works for certain and others could read the engine;
                 ///< else in the environment
    file,        ///< in the user's home, which all nodes share
    munge,       ///< in MUSTER_TOKEN, as a credential that only this user can open
    environment  ///< in MUSTER_TOKEN, as the engine passes it on
};
/// Throws errc::usage.
key_way parse_key_way(std::string_view text);

struct shim_directions_request {
    std::string interface;  ///< --network-interface, or empty
    key_way pass_key = key_way::automatic;
    std::string engine;               ///< its name
    environment variables;            ///< the launcher's: contain its home
    std::vector<std::string> needed;  ///< paths that every node must have: those of muster and of the working directory
    std::optional<std::string>
        munge_socket;        ///< the munge socket of the scheduler; empty: munge's default socket; nothing: it has no munge
    std::string other_node;  ///< the name of one of the other nodes, or empty: addresses on the way there come first
};

/// Holds the file of the key, if there is one; keep it as long as shims may come.
class shim_directions {
  public:
    /// Throws errc::usage for an interface without addresses, errc::system.
    shim_directions(run_key const& key, int port, shim_directions_request const& request);

    /// Returns MUSTER_LAUNCHER: "ADDRESS:PORT,ADDRESS:PORT"; and MUSTER_TOKEN: the key itself, "file:PATH", or
    /// "munge:SOCKET:CREDENTIAL".
    std::vector<std::pair<std::string, std::string>> const& variables() const noexcept { return variables_; }
    /// Returns what --verbose says about them.
    std::vector<std::string> const& notes() const noexcept { return notes_; }

    /// Returns a note that appears without --verbose, too: the key goes a less protected way than this job would allow. Otherwise
    /// empty.
    std::string const& warning() const noexcept { return warning_; }

  private:
    void list_addresses(int port, shim_directions_request const& request);
    void take_unique(std::vector<interface_address>& own);
    std::string seal(run_key const& key, shim_directions_request const& request);
    void pass_key(run_key const& key, shim_directions_request const& request);

    std::vector<std::pair<std::string, std::string>> variables_;
    std::vector<std::string> notes_;
    std::string warning_;
    std::unique_ptr<key_file> file_;
};

/// Returns the key that MUSTER_TOKEN contains or names. Throws errc::parse, errc::system, errc::unavailable.
run_key take_key(std::string const& token);

}  // namespace muster
