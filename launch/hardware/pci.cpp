#include "launch/hardware/pci.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster {

namespace {

/// Returns the hexadecimal number in `text` before `end`, and removes both from `text`.
std::optional<unsigned> take_hex(std::string_view& text, char end) noexcept {
    auto const stop = end == '\0' ? text.size() : text.find(end);
    if (stop == std::string_view::npos || stop == 0 || stop > 8) return std::nullopt;
    unsigned value = 0;
    auto const [last, fault] = std::from_chars(text.data(), text.data() + stop, value, 16);
    if (fault != std::errc() || last != text.data() + stop) return std::nullopt;
    text.remove_prefix(std::min(stop + 1, text.size()));
    return value;
}

}  // namespace

std::string pci_address::text() const {
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::optional<pci_address> pci_address::parse(std::string_view text) noexcept {
    auto const domain = take_hex(text, ':');
    if (!domain) return std::nullopt;
    auto const bus = take_hex(text, ':');
    if (!bus || *bus > 0xff) return std::nullopt;
    auto const device = take_hex(text, '.');
    if (!device || *device > 0x1f) return std::nullopt;
    auto const function = take_hex(text, '\0');
    if (!function || *function > 7) return std::nullopt;
    return pci_address{*domain, *bus, *device, *function};
}

std::optional<gpu_vendor> gpu_vendor_of(std::uint32_t pci_vendor, std::uint32_t pci_class) noexcept {
    auto const kind = pci_class >> 8;
    constexpr std::uint32_t vga = 0x0300, three_d = 0x0302, other_display = 0x0380, accelerator = 0x1200;
    switch (pci_vendor) {
        case 0x10de:
            if (kind == vga || kind == three_d) return gpu_vendor::nvidia;
            break;
        case 0x1002:
            if (kind == vga || kind == other_display || kind == accelerator) return gpu_vendor::amd;
            break;
        case 0x8086:
            if (kind == other_display || kind == accelerator) return gpu_vendor::intel;
            break;
        default: break;
    }
    return std::nullopt;
}

int shared_steps(std::vector<std::string> const& a, std::vector<std::string> const& b) noexcept {
    auto const [first, second] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    return static_cast<int>(first - a.begin());
}

}  // namespace muster
