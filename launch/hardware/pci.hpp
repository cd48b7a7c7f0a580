// PCI: reads addresses, tells which devices are GPUs and how far apart two devices are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/hardware/topology.hpp"

namespace muster {

struct pci_address {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    auto operator<=>(pci_address const&) const = default;
    /// As in sysfs: "0000:07:00.0".
    std::string text() const;
    /// Reads that form, with a domain of up to eight digits. Nothing if it is another one.
    static std::optional<pci_address> parse(std::string_view text) noexcept;
};

/// The vendor of a GPU fit for computing, by PCI vendor and the 24 bits of the class (base, sub-class, interface); nothing for
/// other devices, such as a server's own display, a processor's built-in graphics, a GPU's sound or an NVSwitch.
std::optional<gpu_vendor> gpu_vendor_of(std::uint32_t pci_vendor, std::uint32_t pci_class) noexcept;

/// How near two devices are, from their paths ("pci0000:00", "0000:00:01.1", …, the device itself): the number of steps they
/// share. 0: not below one root complex; 1: only that; more: below a common bridge or switch.
int shared_steps(std::vector<std::string> const& a, std::vector<std::string> const& b) noexcept;

}  // namespace muster
