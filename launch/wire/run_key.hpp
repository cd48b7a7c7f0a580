// The secret key of a run, by which the launcher and its shims recognise each other, and its way to them by munge.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "base/units.hpp"

namespace muster {

/// 256 random bits. They never go over the connections between launcher and shims: both ends prove that they have them
/// (secure_session.hpp). Other users of the machines and whoever listens on the network do not know them, unless the engine
/// that carries MUSTER_TOKEN to the shims lets them read it.
struct run_key {
    std::array<unsigned char, 32> bytes{};
    bool operator==(run_key const&) const = default;
};

/// From the kernel's random numbers. Throws errc::system.
run_key make_run_key();

/// 64 hexadecimal digits.
std::string to_text(run_key const& key);

/// Throws errc::parse, without showing `text`, if it is not of that form.
run_key parse_run_key(std::string_view text);

// The file in a folder that all nodes share by which the key of a run reaches the shims without passing through an engine.

/// Written for as long as this lives.
class key_file {
  public:
    /// Into `folder`, which is made (0700) if it is not there. Sweeps away what killed launchers left there. Throws errc::system if
    /// the file cannot be written, or others could replace it.
    key_file(std::string const& folder, run_key const& key);
    ~key_file();
    key_file(key_file const&) = delete;
    key_file& operator=(key_file const&) = delete;

    std::string const& path() const noexcept { return path_; }

  private:
    std::string path_;
};

/// Its contents. The file must be this user's own and closed to all others. One that is not there is waited for, for at most `patience`:
/// network file systems show new files late. Throws errc::system, or errc::parse.
run_key read_key_file(std::string const& path, duration patience = duration(5));

/// "$XDG_CACHE_HOME/muster", "$HOME/.cache/muster"; empty if neither variable is an absolute path.
std::string key_folder(environment const& variables);

/// Whether other machines see what is written into `folder` (or the closest folder above that is there): it lies on a network file
/// system, and on the same one as `needed`, a path that the run needs on every node in any case.
bool is_shared_with_nodes(std::string const& folder, std::string const& needed);

// The credential of MUNGE that carries the key of a run: text that only this user's processes can open, on every node of the site.

/// How a text begins that seal_by_munge() has made.
inline constexpr std::string_view munge_mark = "munge:";

/// The key as munged seals it for the effective user alone, for as long as munged allows (an hour, unless the site says otherwise):
/// "munge:SOCKET:CREDENTIAL". An engine may carry it where others read it. `socket` is munged's, on this node and on those that are to open
/// it; empty: the one that libmunge knows. Throws errc::unavailable where there is no libmunge or no munged, and why.
std::string seal_by_munge(run_key const& key, std::string const& socket);

/// The key, by the munged of this node. A credential may be opened any number of times. Throws errc::unavailable for one that is too old, that
/// another site's munged or another user has made, or that this node's munged cannot be asked about, with what to do.
run_key open_by_munge(std::string_view sealed);

}  // namespace muster
