// Reads the dynamic section of an ELF file, which names the libraries that a program needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster {

/// What a program or library asks the dynamic loader for.
struct elf_dynamic {
    std::vector<std::string> needed;       ///< DT_NEEDED, in order
    std::vector<std::string> search_path;  ///< DT_RUNPATH, else DT_RPATH, split at ':', "$ORIGIN" not yet replaced
    bool operator==(elf_dynamic const&) const = default;
};

/// Fills the whole span with the bytes at an offset; false if they are not there.
using byte_reader = std::function<bool(std::uint64_t offset, std::span<std::byte>)>;

/// Nothing for what is no 64-bit little-endian ELF file, for one without a dynamic section (a static program), and for a damaged
/// one: never throws on any bytes, never reads or keeps more than 1 MiB. Names are cut at 4096 bytes, lists at 1024 entries.
std::optional<elf_dynamic> read_elf_dynamic(byte_reader const& read);

/// The same for bytes in memory.
std::optional<elf_dynamic> read_elf_dynamic(std::span<std::byte const> bytes);

/// The same for a file; nothing where it cannot be read.
std::optional<elf_dynamic> read_elf_dynamic(std::string const& path);

}  // namespace muster
