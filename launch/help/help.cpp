#include "launch/help/help.hpp"

#include <fmt/format.h>
#include <muster_commit.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/version.hpp"
#include "launch/settings/parts.hpp"
#include "pmix/library/open_library.hpp"

namespace muster {

namespace {

std::string line_of(setting const& row) {
    bool const shows_fallback = row.kind != setting_kind::flag && !row.fallback.empty();
    return fmt::format("  {:26}  {}{}\n", synopsis_of(row), row.help, shows_fallback ? fmt::format(" [{}]", row.fallback) : "");
}

/// Returns every option under its group's name; without `all` the common ones in one block.
std::string options_text(std::string_view command, bool all) {
    std::string text;
    for (auto const group : setting_groups()) {
        std::string lines;
        for (auto const& row : settings())
            if (row.group == group && is_listed(command, row) && (all || row.is_common())) lines += line_of(row);
        if (all && !lines.empty()) text += fmt::format("{}\n", to_string(group));
        text += lines;
    }
    return text;
}

bool has_more(std::string_view command) {
    return std::ranges::any_of(settings(), [&](auto const& row) { return row.name == "help-all" && is_listed(command, row); });
}

}  // namespace

std::string synopsis_of(setting const& row) {
    std::string shown = row.letter == 0 ? std::string() : fmt::format("-{}, ", row.letter);
    shown += fmt::format("--{}{}", row.is_on_by_default() ? "no-" : "", row.name);
    if (!row.argument.empty()) shown += fmt::format(" {}", row.argument);
    return shown;
}

std::string help_text(std::string_view command, bool all) {
    auto const* row = find_command(command);
    expect(row != nullptr, fmt::format("a command called {}", command));
    auto options = options_text(command, all);
    if (!all && has_more(command))
        options +=
            fmt::format("  {:26}  all options; each is also a variable MUSTER_NAME and a key of muster.toml\n", "--help-all");
    return command_help("muster", *row, options);
}

bool print_help_if_asked(std::string_view command, settings_result const& given) {
    if (!given.flag("help") && !given.flag("help-all")) return false;
    fmt::print("{}", fold_help(help_text(command, given.flag("help-all")), given.help_columns));
    return true;
}

namespace {

#if defined(__clang__)
constexpr char const* compiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr char const* compiler = "GCC " __VERSION__;
#else
constexpr char const* compiler = "unknown";
#endif

}  // namespace

std::string version_text() {
    return fmt::format("muster {}\norigin    {}{}\nparts     {}{}\ncompiler  {}\nPMIx      {}\nhwloc     {}\nMPI       {}\n",
                       version(), MUSTER_ORIGIN_TEXT, MUSTER_COMMIT_TEXT, parts_text(),
                       has_part("keras") ? " (keras: tested by hand only)" : "", compiler, pmix::library_version(),
                       MUSTER_HWLOC_TEXT, MUSTER_MPI_TEXT);
}

}  // namespace muster
