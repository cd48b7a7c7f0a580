// Reads hosts as users write them: host files of MPI and DeepSpeed, and -H of mpirun and horovodrun.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct host_entry {
    std::string name;          ///< with "user@" before it if the text has that
    std::optional<int> slots;  ///< as written, or how often the host is named if that is more than once
    std::optional<int> gpus;
    bool operator==(host_entry const&) const = default;
};

/// Reads a host file: `[user@]host [slots=N] [max_slots=N] [gpus=N]` or `host:N` on each line; a host may be a list, "node[1-4]".
/// '#' begins a comment; blank lines and CRLF are accepted. A host named again adds to its slots. Throws parse_error
/// (errc::config) with a caret.
std::vector<host_entry> parse_hostfile(std::string_view text, std::string_view origin);

/// Reads -H: "a:4,b:4", "node[1-4]:4", "user@a". Throws parse_error (errc::usage) with a caret.
std::vector<host_entry> parse_hosts(std::string_view text, std::string_view origin);

}  // namespace muster
