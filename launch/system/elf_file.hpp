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

/// How far behind the beginning of a loaded library a variable of that name lies, of those that it lets others see; nothing if
/// there is no such variable, or if it is not a 64-bit little-endian ELF file, has no section headers or is damaged: never
/// throws on any bytes, looks at 65,536 symbols at most.
std::optional<std::uint64_t> find_elf_object(byte_reader const& read, std::string_view name);

/// The same for bytes in memory, and for a file.
std::optional<std::uint64_t> find_elf_object(std::span<std::byte const> bytes, std::string_view name);
std::optional<std::uint64_t> find_elf_object(std::string const& path, std::string_view name);

}  // namespace muster
