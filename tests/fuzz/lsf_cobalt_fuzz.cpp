// links: muster::launch
// Any bytes as the node file and the host variable of LSF and of Cobalt: nodes with slots, or an error with a caret.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace {

using reader = muster::allocation (*)(muster::scheduler_sources const&, muster::allocation_choice const&);

void read_with(reader read, muster::environment const& variables, std::string const& file) {
    muster::scheduler_sources const sources{variables, [&](std::string const&) { return std::optional(file); }, {}, {}};
    try {
        auto const given = read(sources, {});
        if (given.nodes.empty()) __builtin_trap();
        for (auto const& node : given.nodes)
            if (node.name.empty() || node.slots < 1 || node.gpus.value_or(0) < 0) __builtin_trap();
    } catch (muster::parse_error const& e) {
        if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const text(reinterpret_cast<char const*>(data), size);
    read_with(muster::read_lsf, {{"LSB_JOBID", "7"}, {"LSB_DJOB_HOSTFILE", "hosts"}}, text);
    read_with(muster::read_lsf, {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", text}}, "");
    read_with(muster::read_cobalt, {{"COBALT_JOBID", "7"}, {"COBALT_NODEFILE", "hosts"}, {"COBALT_ENDTIME", text}}, text);
    return 0;
}
