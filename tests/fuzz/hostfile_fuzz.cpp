// links: muster::launch
// iterations: 20000
// Any bytes as a host file, as -H and as a scheduler's node file: hosts, or an error with a caret.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "launch/scheduler/hosts/hostfile.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/pbs.hpp"

namespace {

template <typename Parse>
void try_parse(Parse parse) {
    try {
        auto const hosts = parse();
        if (hosts.empty() || hosts.size() > muster::max_hosts) __builtin_trap();
        for (auto const& host : hosts)
            if (host.name.empty() || host.name.front() == '-') __builtin_trap();
    } catch (muster::parse_error const& e) {
        if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try_parse([&] { return muster::parse_hostfile(text, "fuzz"); });
    try_parse([&] { return muster::parse_hosts(text, "fuzz"); });
    try_parse([&] { return muster::parse_node_file(text, "fuzz"); });
    try_parse([&] { return muster::parse_node_file(text, "fuzz", true); });
    return 0;
}
