// links: muster::pmix
// Any variables: an identity that holds together, or an error of the family.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "pmix/identity.hpp"
#include "pmix/scrub.hpp"
#include "pmix/slurm_step.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    muster::environment variables;
    for (auto const line : muster::split(text, '\n')) {
        auto const equals = line.find('=');
        if (equals != 0 && equals != std::string_view::npos) variables.set(line.substr(0, equals), line.substr(equals + 1));
    }
    try {
        auto const who = muster::identify(variables, "host");
        bool const good = who.rank >= 0 && who.rank < who.world_size && who.local_rank >= 0 && who.local_rank < who.local_size &&
                          who.node_rank >= 0 && who.node_rank < who.node_count && !who.nspace.empty();
        if (!good) std::abort();
    } catch (muster::error const&) {
    }
    try {
        (void)muster::parse_tasks_per_node(text);
    } catch (muster::error const&) {
    }
    muster::pmix::scrub_inherited(variables);
    if (variables.has("PMI_RANK") || variables.has("PMIX_RANK") || variables.has("MUSTER_RANK")) std::abort();
    return 0;
}
