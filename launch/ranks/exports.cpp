#include "launch/ranks/exports.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include <algorithm>

#include "base/error.hpp"
#include "pmix/scrub.hpp"

namespace muster {

void apply_exports(environment& variables, std::vector<std::string> const& exports) {
    for (auto const& entry : exports) {
        auto const equals = entry.find('=');
        if (equals == 0 || entry.empty())
            throw error(errc::usage, fmt::format("-x '{}' has no name; write -x NAME=value", entry));
        if (equals != std::string::npos)
            variables.set(entry.substr(0, equals), entry.substr(equals + 1));
        else if (!variables.has(entry))
            throw error(errc::usage,
                        fmt::format("-x {}: there is no such variable here; set it, or write -x {}=value", entry, entry));
    }
}

bool is_threads_of_pbs(environment const& variables) {
    auto const threads = variables.get("OMP_NUM_THREADS");
    return threads && variables.has("PBS_JOBID") && threads == variables.get("NCPUS");
}

environment variables_for_ranks(environment const& inherited, std::vector<std::string> const& exports) {
    environment variables = inherited;
    pmix::scrub_inherited(variables);
    bool const wanted = std::find(exports.begin(), exports.end(), "OMP_NUM_THREADS") != exports.end();
    if (!wanted && is_threads_of_pbs(variables)) variables.unset("OMP_NUM_THREADS");
    apply_exports(variables, exports);
    return variables;
}

void leave_out(environment& variables, std::vector<std::string> const& patterns, std::vector<std::string> const& exports) {
    std::vector<std::string> gone;
    for (auto const& [name, value] : variables) {
        bool const matched = std::any_of(patterns.begin(), patterns.end(),
                                         [&](auto const& p) { return ::fnmatch(p.c_str(), name.c_str(), 0) == 0; });
        bool const wanted = std::any_of(exports.begin(), exports.end(),
                                        [&](auto const& entry) { return entry.substr(0, entry.find('=')) == name; });
        if (matched && !wanted) gone.push_back(name);
    }
    for (auto const& name : gone) variables.unset(name);
}

void set_explicit(environment& variables, std::vector<std::string> const& exports) {
    for (auto const& entry : exports)
        if (auto const equals = entry.find('='); equals != std::string::npos)
            variables.set(entry.substr(0, equals), entry.substr(equals + 1));
}

}  // namespace muster
