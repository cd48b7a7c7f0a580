// links: muster::jobs
// Any bytes as a site file: a site or a parse_error, and a site makes a script or a usage error. What `muster site check` says of them
// is that there is a fault, or none, as the reader does.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "jobscripts/render.hpp"
#include "launch/scripts/script_command.hpp"
#include "launch/site/site.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const faults = muster::site_faults(text, "fuzz.toml");
    bool is_site = false;
    try {
        auto const site = muster::parse_site(text, "fuzz.toml");
        is_site = true;
        if (!faults.empty()) __builtin_trap();
        muster::script_options options;
        options.gpus = 8;
        options.walltime = muster::duration(3600);
        options.account = "a";
        options.queue = site.queues.empty() ? "q" : site.queues.front().name;
        options.muster = "muster";
        options.command = {"x"};
        options.container = "image.sif";
        options.artifacts = "out/%j";
        options.stage_in = {{"a", "/tmp/b"}};
        auto const script = muster::render(muster::plan_script(site, options).request);
        if (script.find("run -n 8") == std::string::npos) __builtin_trap();
    } catch (muster::error const& e) {
        // Anything else than a fault of the file would be one of ours.
        if (muster::exit_code(e.code()) != 2) __builtin_trap();
        if (!is_site && faults.empty()) __builtin_trap();
    }
    return 0;
}
