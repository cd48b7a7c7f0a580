// `muster top` shows what the ranks of a run do while it runs.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/wall_clock.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/top/sampled_run.hpp"
#include "launch/jobs/top/top_page.hpp"
#include "launch/jobs/top/top_screen.hpp"
#include "launch/samples/remarks/oddities.hpp"

namespace muster {

namespace {

using nlohmann::ordered_json;

/// Returns the text of the file, with what is odd as a list `oddities`; those of a whole node have no `rank`.
std::string marked_json(run_samples const& samples) {
    auto all = parse_json_as<ordered_json>(samples_json(samples), "samples of a run");
    auto& rows = all["oddities"] = ordered_json::array();
    for (auto const& one : find_oddities(samples)) {
        ordered_json row{{"host", one.host}, {"kind", to_string(one.kind)}, {"reason", one.reason}};
        if (one.rank >= 0) row["rank"] = one.rank;
        rows.push_back(std::move(row));
    }
    return json_text(all, 2) + "\n";
}

}  // namespace

int top_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("top", options_first("top", args), real_settings(variables));
    if (print_help_if_asked("top", given)) return 0;
    auto run = find_sampled_run(given.command, variables);
    run.look();
    auto const& samples = run.samples();
    bool const as_json = given.flag("json");
    auto const& end = run.end();
    if (!end.empty() && !as_json) {
        fmt::print("{}\n", end);
        return 0;
    }
    if (!as_json && !given.flag("once") && can_draw_top(variables)) return draw_top(std::move(run), variables);
    if (!samples)
        throw_error(errc::not_found, "{} has no {}{}", without_controls(run.folder()), samples_file,
                    end.empty() ? " (yet): a run writes it when its ranks have begun; try again in a few seconds" : ": " + end);
    if (as_json) {
        fmt::print("{}", marked_json(*samples));
        return 0;
    }
    top_view view;
    if (auto const width = terminal_width(variables); width > 0) view.width = width;
    view.by_host = has_many_ranks(*samples);
    view.now = clock_now();
    fmt::print("{}", text_of(make_top_page(*samples, view)));
    return 0;
}

}  // namespace muster
