// Reads what an ELF file tells the dynamic loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Holds what a program or library requests from the dynamic loader.
struct elf_dynamic {
    std::vector<std::string> needed;       ///< DT_NEEDED, in order
    std::vector<std::string> search_path;  ///< DT_RUNPATH, else DT_RPATH, split at ':', "$ORIGIN" not yet replaced
    bool operator==(elf_dynamic const&) const = default;
};

/// Fills the whole span with the bytes at an offset; returns false if the file has fewer.
using byte_reader = std::function<bool(std::uint64_t offset, std::span<std::byte>)>;

/// Returns nothing for any file that is not 64-bit little-endian ELF, for one without a dynamic section (a static program), and
/// for a damaged one. Never throws, whatever the bytes; never reads or keeps more than 1 MiB. Cuts names at 4096 bytes, lists at
/// 1024 entries.
std::optional<elf_dynamic> read_elf_dynamic(byte_reader const& read);

/// Does the same for bytes in memory.
std::optional<elf_dynamic> read_elf_dynamic(std::span<std::byte const> bytes);

/// Does the same for a file; returns nothing if it is not readable.
std::optional<elf_dynamic> read_elf_dynamic(std::string const& path);

/// Returns the offset of an exported variable of that name from the beginning of a loaded library; nothing if there is no such
/// variable, or if the file is not 64-bit little-endian ELF, has no section headers or is damaged. Never throws, whatever the
/// bytes; looks at 65,536 symbols at most.
std::optional<std::uint64_t> find_elf_object(byte_reader const& read, std::string_view name);

/// Does the same for bytes in memory, and for a file.
std::optional<std::uint64_t> find_elf_object(std::span<std::byte const> bytes, std::string_view name);
std::optional<std::uint64_t> find_elf_object(std::string const& path, std::string_view name);

}  // namespace muster
