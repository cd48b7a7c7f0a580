// The unpacking of archives that copy has brought: writes what is in them below one folder, and nothing outside of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::stage {

struct unpacked_archive {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
};

/// The folder that an archive is unpacked to: its name without .tar, .tar.gz, .tgz, .tar.zst, .tar.xz, .tar.bz2 or .zip; "" if it has no such
/// name. Pure.
std::string unpacked_name(std::string_view archive);

/// Unpacks `archive` into the folder `target`, an open file descriptor, which is empty. Files, folders, links within the folder and
/// hard links; modes without set-user-id and the like; times. Throws errc::invalid_data, naming the entry, for a path or a link
/// that leads out of the folder, for another kind of entry and for an archive that is damaged; errc::system; errc::unavailable where
/// this build has no libarchive. What was written until then stays.
unpacked_archive unpack_archive(std::string const& archive, int target);

}  // namespace muster::stage
