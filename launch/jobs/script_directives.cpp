#include "launch/jobs/script_directives.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::array batch_only{"--output", "--error",  "--open-mode", "--requeue",  "--no-requeue",
                                "--array",  "--export", "--wrap",      "--parsable", "-o",
                                "-e",       "-a",       "-r",          "-j",         "-J"};

bool is_batch_only(std::string_view prefix, std::string const& first) {
    // salloc reads -J as the job's name.
    if (prefix.starts_with("#SBATCH") && (first.starts_with("-J") || first.starts_with("-r"))) return false;
    auto const name = first.substr(0, first.find('='));
    // Flux has other short options.
    if (prefix.starts_with("#FLUX")) return name == "--output" || name == "--error" || name == "--input";
    return std::ranges::any_of(batch_only, [&](std::string_view known) {
        return name == known || (known.size() == 2 && name.size() > 2 && name[1] != '-' && name.starts_with(known));
    });
}

}  // namespace

std::vector<std::string> script_directives(std::string_view script, std::string_view prefix) {
    std::vector<std::string> words;
    for (auto const line : split(script, '\n')) {
        if (!line.empty() && line.front() != '#') break;  // schedulers read no directives after the first command
        if (!line.starts_with(prefix)) continue;
        auto const own = shell_split(line.substr(prefix.size()), "directive");
        if (own.empty() || is_batch_only(prefix, own.front())) continue;
        words.insert(words.end(), own.begin(), own.end());
    }
    return words;
}

}  // namespace muster
