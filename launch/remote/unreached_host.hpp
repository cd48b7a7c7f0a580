// A host that a remote start has not reached: its starter reports it to a probing launcher, which then does not wait for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

struct unreached_host {
    std::size_t number = 0;  ///< in the order of the starter's hosts
    std::string why;         ///< "could not be reached: ssh exited with code 255"
    bool operator==(unreached_host const&) const = default;
};

/// Returns the line for standard error, without its end. Pure.
std::string to_line(unreached_host const& host);

/// Reads that line; returns nothing for any other. Pure.
std::optional<unreached_host> parse_unreached_host(std::string_view line);

/// Returns the message about a remote shell that ended with this status of waitpid before its agent came: "exited with code 127;
/// is muster at /opt/muster there?". Shells use 126 and 127 for a program that they cannot run. Pure.
std::string describe_call_end(int wait_status, std::string_view muster);

}  // namespace muster
