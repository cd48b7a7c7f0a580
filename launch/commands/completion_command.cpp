#include "launch/commands/completion_command.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "launch/help/completion.hpp"
#include "launch/help/help.hpp"
#include "launch/site/site.hpp"

namespace muster {

int completion_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("completion", args, {});
    if (print_help_if_asked("completion", given)) return 0;
    auto const shell = given.command.size() == 1 ? given.command.front() : std::string();
    if (shell == "bash")
        fmt::print("{}", bash_completion());
    else if (shell == "zsh")
        fmt::print("{}", zsh_completion());
    else if (shell == "fish")
        fmt::print("{}", fish_completion());
    else if (shell == "sites")  // what these scripts ask for
        for (auto const& site : list_sites(site_search_path(variables))) fmt::print("{}\n", site.name);
    else
        throw error(errc::usage, "muster completion: the shell is missing; give bash, zsh or fish");
    return 0;
}

}  // namespace muster
