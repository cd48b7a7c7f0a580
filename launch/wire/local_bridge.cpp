#include "launch/wire/local_bridge.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::array local_prefixes{"docker", "virbr", "cni", "podman", "lxcbr", "lxdbr"};

/// Whether a device of this machine carries it: its own, or one below it (of a bond, a VLAN, a bridge).
bool has_hardware(fs::path const& interface, int depth = 0) {
    std::error_code fault;
    if (fs::exists(interface / "device", fault)) return true;
    if (depth > 4) return false;
    for (auto const& entry : fs::directory_iterator(interface, fault))
        if (auto const name = entry.path().filename().string(); name.starts_with("lower_"))
            if (has_hardware(interface.parent_path() / name.substr(6), depth + 1)) return true;
    return false;
}

}  // namespace

std::string why_not_unique(std::string_view interface, std::string_view address, std::string const& sysfs) {
    if (address.starts_with("169.254.")) return "a link-local address";
    if (std::any_of(local_prefixes.begin(), local_prefixes.end(), [&](auto const* p) { return interface.starts_with(p); }))
        return "a network of containers or virtual machines of this machine";
    fs::path const here = fs::path(sysfs) / interface;
    std::error_code fault;
    if (fs::exists(here / "bridge", fault) && !has_hardware(here)) return "a bridge without a physical port";
    return {};
}

}  // namespace muster
