// The unpacking of archives that copy has brought: writes what is in them below one folder, and nothing outside of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::stage {

/// The folder that an archive is unpacked to: its name without .tar, .tar.gz, .tgz, .tar.zst, .tar.xz, .tar.bz2 or .zip; "" if it has no such
/// name. Pure.
std::string unpacked_name(std::string_view archive);

/// The most that an archive may become.
struct unpack_limits {
    std::uint64_t bytes = 0;
    std::uint64_t entries = 0;
    bool operator==(unpack_limits const&) const = default;
};

/// Returns what is believed of an archive of so many bytes, since a small one can become any number of them: 1100 times as much, which no
/// deflated one exceeds, or 64 MiB; an entry for each 4 bytes, or 10,000. Pure.
unpack_limits default_limits(std::uint64_t archive_bytes) noexcept;

/// Unpacks `archive` into the folder `target`, an open file descriptor, which is empty. Files, folders, links within the folder and
/// hard links; modes without set-user-id and the like; times. Before the first byte an archive that is not compressed as a whole
/// (tar, zip) is asked how large it becomes, of any other each entry before that is written. Throws errc::invalid_data, naming the
/// entry, for a path or a link that leads out of the folder, for another kind of entry, for an archive that is damaged and for one
/// that exceeds the limits; errc::io where it exceeds what is free in the file system; errc::system; errc::unavailable where this
/// build has no libarchive. What was written until then stays.
void unpack_archive(std::string const& archive, int target, unpack_limits const& limits);

}  // namespace muster::stage
