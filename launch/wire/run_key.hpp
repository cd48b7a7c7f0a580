// The secret key of a run, by which the launcher and its shims recognise each other.
#pragma once

#include <array>
#include <string>
#include <string_view>

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

}  // namespace muster
