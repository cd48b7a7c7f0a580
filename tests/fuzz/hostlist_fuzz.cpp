// links: muster::launch
// iterations: 20000
// Any bytes as a Slurm hostlist and as counts: hosts that compress to a list which expands to them again, or an error with a
// caret.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        auto const hosts = muster::expand_hostlist(text, "fuzz");
        if (hosts.size() > muster::max_hosts) __builtin_trap();
        if (hosts.size() < 2000 && muster::expand_hostlist(muster::compress_hosts(hosts), "compressed") != hosts)
            __builtin_trap();
    } catch (muster::parse_error const& e) {
        if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
    }
    try {
        if (muster::expand_counts(text, size % 50, "fuzz").size() != size % 50) __builtin_trap();
    } catch (muster::parse_error const& e) {
        if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
    }
    return 0;
}
