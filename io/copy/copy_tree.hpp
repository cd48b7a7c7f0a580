// Copying of trees of files to the nodes: reads each byte once, writes it on every node, checks it and puts it in its place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "io/copy/copy_target.hpp"

namespace muster {

struct copy_request {
    std::vector<std::string> sources;
    std::string target;  ///< of this node
    std::string state_name{state_folder_name};
    copy_check check = copy_check::fast;
    bool sharded = false;           ///< each node gets its part of the files only
    bool own_sources = false;       ///< each node copies what is on it (stage out), to a target that others may write to as well
    bool sync = false;              ///< on the disk when it returns
    bool leave_changing = false;    ///< files that change while they are read are left out, not an error
    bool dry_run = false;           ///< only says what would be done; `target` stays as it is
    int threads = 0;                ///< 0: by the processors
    std::uint64_t chunk_bytes = 0;  ///< 0: by the file system of the sources
    /// Is told, on the calling thread, how many of how many bytes this node has.
    std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// Holds what one node did.
struct copy_report {
    std::uint64_t files = 0, folders = 0, links = 0, bytes = 0;  ///< listed
    std::uint64_t files_there = 0, bytes_there = 0;              ///< were there before, and intact
    std::uint64_t bytes_resumed = 0;                             ///< were left there by a copy that was killed
    std::uint64_t bytes_written = 0;
    std::uint64_t bytes_read = 0;  ///< from the sources, by this node
    std::vector<std::string> left_out;
};

/// Collective over `nodes`, one rank on each node. With one rank, or with sharded or own_sources, nothing is sent between them. When
/// it returns, everything is in its place on all nodes; each file came to its name whole, by a rename. Several ranks throw comm_error
/// together, a single one errc::usage, errc::io, errc::system, errc::not_found, source_changed; nothing was placed then, and what was
/// written is used by the next copy. A rank that fails while the others place their files leaves it to the next copy to place its own.
copy_report copy_tree(copy_request const& request, communicator& nodes);

/// Threads that suit this process: twice the processors that it may use, from 8 to 32, since file systems take their time.
int copy_threads();

}  // namespace muster
