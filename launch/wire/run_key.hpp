// The secret key of a run, by which the launcher and its shims recognise each other, and its transport to them by munge.
#pragma once

#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "base/trust/key_proof.hpp"
#include "base/units.hpp"

namespace muster {

/// 256 random bits. They never go over the connections between launcher and shims: both ends prove that they have them
/// (secure_session.hpp). Other users of the machines and eavesdroppers on the network do not know them, unless the engine that
/// carries MUSTER_TOKEN to the shims lets them read it.
struct run_key {
    shared_key bytes{};
    bool operator==(run_key const&) const = default;
};

/// Uses the kernel's random numbers. Throws errc::system.
run_key make_run_key();

/// Returns 64 hexadecimal digits.
std::string to_text(run_key const& key);

/// Throws errc::parse, without showing `text`, if it has another form.
run_key parse_run_key(std::string_view text);

// The file in a folder that all nodes share. It brings the key of a run to the shims, not through an engine.

/// The file exists as long as this object.
class key_file {
  public:
    /// Writes into `folder`, which it makes (0700) if necessary. Removes what killed launchers left there. Throws errc::system if
    /// it cannot write the file, or if others could replace it.
    key_file(std::string const& folder, run_key const& key);
    ~key_file();
    key_file(key_file const&) = delete;
    key_file& operator=(key_file const&) = delete;

    std::string const& path() const noexcept { return path_; }

  private:
    std::string path_;
};

/// Returns its contents. The file must be this user's own and closed to all others. Waits for a missing file for at most
/// `patience`, since network file systems show new files late. Throws errc::system, or errc::parse.
run_key read_key_file(std::string const& path, duration patience = duration(5));

/// Returns "$XDG_CACHE_HOME/muster" or "$HOME/.cache/muster"; empty if neither variable is an absolute path.
std::string key_folder(environment const& variables);

/// Returns whether other machines see what is written into `folder` (or its closest existing parent): it lies on a network file
/// system, and on the same one as `needed`, a path that the run needs on every node in any case.
bool is_shared_with_nodes(std::string const& folder, std::string const& needed);

// The credential of MUNGE that carries the key of a run: text that only this user's processes can open, on every node of the
// site.

/// The beginning of a text that seal_by_munge() has made.
inline constexpr std::string_view munge_mark = "munge:";

/// Returns the key as munged seals it for only the effective user, for as long as munged allows (an hour, unless the site sets
/// another time): "munge:SOCKET:CREDENTIAL". An engine may carry it where others can read it. `socket` is munged's, on this node
/// and on those that open it; empty: libmunge's default. Throws errc::unavailable with the reason if there is no libmunge or no
/// munged.
std::string seal_by_munge(run_key const& key, std::string const& socket);

/// Returns the key, opened by this node's munged. A credential may be opened any number of times. Throws errc::unavailable, with
/// what to do, for one that is too old, that another site's munged or another user has made, or if this node's munged does not
/// answer.
run_key open_by_munge(std::string_view sealed);

}  // namespace muster
