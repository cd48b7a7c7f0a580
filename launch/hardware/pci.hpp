// Reads PCI addresses, and says which devices are GPUs and how far apart two devices are.
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
    /// Returns the form of sysfs: "0000:07:00.0".
    std::string text() const;
    /// Reads that form, with a domain of up to eight digits. Returns nothing for another form.
    static std::optional<pci_address> parse(std::string_view text) noexcept;
};

/// Returns the vendor of a GPU that can compute, from the PCI vendor and the 24 bits of the class (base, sub-class, interface);
/// nothing for other devices, such as a server's own display, graphics built into a processor, a GPU's sound or an NVSwitch.
std::optional<gpu_vendor> gpu_vendor_of(std::uint32_t pci_vendor, std::uint32_t pci_class) noexcept;

/// Returns how near two devices are: the number of steps that their paths ("pci0000:00", "0000:00:01.1", …, the device itself)
/// share. 0: they have no common root complex; 1: they share only that; more: a common bridge or switch.
int shared_steps(std::vector<std::string> const& a, std::vector<std::string> const& b) noexcept;

}  // namespace muster
