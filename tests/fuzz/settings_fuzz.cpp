// links: muster::launch
// iterations: 20000
// Any bytes as muster.toml, as words of a shell and as a command line: values that read back the same, or an error of the user's.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/settings/settings_file.hpp"
#include "launch/settings/settings_to_options.hpp"

namespace {

/// Anything else than a fault of the text would be one of ours.
template <typename function>
void only_usage_errors(function run) {
    try {
        run();
    } catch (muster::error const& e) {
        // A part that was left out is no fault of ours, either.
        if (muster::exit_code(e.code()) != 2 && e.code() != muster::errc::unavailable) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const text(reinterpret_cast<char const*>(data), size);
    only_usage_errors([&] {
        muster::settings_sources sources;
        sources.project_file = "muster.toml";
        sources.read_file = [&](std::string const&) { return text; };
        muster::make_run_options(muster::resolve_settings("run", {"a"}, sources));
    });
    only_usage_errors([&] {
        auto const words = muster::shell_split(text, "text");
        for (auto const& word : words)
            if (word.find('\0') != std::string::npos) return;  // which no shell word can hold
        if (muster::shell_split(muster::shell_join(words), "again") != words) __builtin_trap();
        muster::make_run_options(muster::resolve_settings("run", words, {}));
    });
    only_usage_errors([&] { muster::make_run_options(muster::resolve_settings("run", {"--engine-args", text, "a"}, {})); });
    only_usage_errors([&] { muster::make_run_options(muster::resolve_settings("run", {"--map-by=" + text, "a"}, {})); });
    only_usage_errors([&] {
        muster::make_run_options(muster::resolve_settings("run", {"--signal-before-end=" + text, "a"}, {}));
    });
    only_usage_errors([&] {
        muster::resolve_settings("run", {"a"}, {.variables = {{"MUSTER_CPU_MAP", text}, {"MUSTER_ENV", text}}});
    });
    return 0;
}
