// links: muster::launch
// iterations: 20000
// Any bytes as qstat's answer, and as exec_host and exec_vnode (divided by the first line feed): hosts, none, or an error with a
// caret.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "launch/scheduler/pbs.hpp"

namespace {

void check(std::vector<muster::pbs_host> const& hosts) {
    for (auto const& host : hosts)
        if (host.name.empty() || host.gpus.value_or(0) < 0 || host.cpus.value_or(0) < 0) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        if (auto const job = muster::parse_qstat_job(text, "90.pbshead")) check(job->hosts);
    } catch (muster::parse_error const& e) {
        if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
    }
    auto const middle = text.find('\n');
    if (middle == std::string_view::npos) return 0;
    try {
        check(muster::parse_exec_hosts(text.substr(0, middle), text.substr(middle + 1)));
    } catch (muster::parse_error const& e) {
        if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
    }
    muster::parse_pbs_walltime(text.substr(0, middle));
    return 0;
}
