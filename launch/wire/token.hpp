// The token by which the launcher and its shims recognise each other.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace muster {

/// Two secrets of a run, in MUSTER_TOKEN as "LAUNCHER:SHIM", 32 hexadecimal digits each. The launcher shows its half first, so
/// that a shim never shows its own to another program; the launcher sends nothing more where the shim's half is not known.
/// Neither withstands an attacker who listens on the network: the cluster's network is trusted, other users on it are not.
struct token {
    std::string launcher;
    std::string shim;
    std::string text() const { return launcher + ":" + shim; }
    bool operator==(token const&) const = default;
};

/// From the kernel's random numbers. Throws errc::system.
token make_token();

/// Throws errc::parse if MUSTER_TOKEN is not of that form (without showing it).
token parse_token(std::string_view text);

/// Comparison in a time that does not depend on where the two differ.
bool same_secret(std::string_view a, std::string_view b) noexcept;

}  // namespace muster
