// The credential of MUNGE that carries the key of a run: text that only this user's processes can open, on every node of the site.
#pragma once

#include <string>
#include <string_view>

#include "launch/wire/run_key.hpp"

namespace muster {

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
