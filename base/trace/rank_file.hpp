// The names of the files that ranks leave in one folder: by kind, generation and rank, so that no generation of a run overwrites an earlier one's.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A rank's file of a kind. Files are ordered by generation, then by rank.
struct rank_file {
    int generation = 0;  ///< MUSTER_GENERATION; 0 in runs that are neither elastic nor restarted
    int rank = 0;
    auto operator<=>(rank_file const&) const = default;
};

/// Returns "timeline-3.json" for rank 3 of generation 0, "timeline-g2-3.json" for that of generation 2. Pure.
std::string name_of(std::string_view kind, rank_file const& file);

/// Returns the file that a name stands for; nothing for other names. Pure.
std::optional<rank_file> parse_rank_file(std::string_view kind, std::string_view name);

/// Removes the files of later generations that an earlier run has left in the folder. Rank 0 of generation 0 calls it before it writes. Never throws.
void remove_later_generations(std::string_view kind, std::string const& folder) noexcept;

/// A file of a folder.
struct found_rank_file {
    rank_file which;
    std::string path;
};

/// Returns the regular files of this kind in a folder, in order. Throws errc::not_found with `advice` if there are no such files.
std::vector<found_rank_file> find_rank_files(std::string_view kind, std::string const& folder, std::string_view advice);

}  // namespace muster
