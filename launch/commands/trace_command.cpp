#include "launch/commands/commands.hpp"

#include <fmt/format.h>

#include "base/command/print_note.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trace/explain.hpp"
#include "base/trace/merge.hpp"
#include "launch/help/help.hpp"

namespace muster {

namespace {

int merge(std::string const& folder, std::string const& out) {
    if (out.empty()) throw error(errc::usage, "muster trace merge: --output is missing; give the file to write, -o all.json");
    auto const done = merge_timelines(find_timelines(folder), out);
    fmt::print(stderr, "muster: {} events of {} timelines in {}; clocks agree within {:.1f} us\n", done.events, done.files, out,
               done.worst_error_us);
    for (auto const& each : done.losses) fmt::print(stderr, "muster: {}\n", each);
    if (done.dropped != 0) print_note("{} events are missing: they came faster than they could be written", done.dropped);
    for (auto const& each : done.ended) print_note("{} ends early: its rank was killed or failed", each);
    return 0;
}

}  // namespace

int trace_command(std::vector<std::string> const& args, environment const& variables) {
    auto const verb = args.empty() ? std::string() : args.front();
    bool const known = verb == "merge" || verb == "explain";
    auto const given = resolve_options("trace", options_first("trace", {args.begin() + (known ? 1 : 0), args.end()}), variables);
    if ((known || verb.starts_with('-')) && print_help_if_asked("trace", given)) return 0;
    if (!known) {
        auto const near = nearest(verb, std::vector<std::string>{"merge", "explain"});
        throw error(errc::usage, verb.empty() ? "muster trace: the command is missing; give merge or explain"
                                              : fmt::format("muster trace has no command '{}'; {}", without_controls(verb),
                                                            near ? "did you mean '" + *near + "'?" : "give merge or explain"));
    }
    if (given.command.size() != 1)
        throw_error(errc::usage, "muster trace {} takes one folder; give the one that the ranks wrote to", verb);
    if (verb == "merge") return merge(given.command.front(), given.text("output"));
    if (!given.text("output").empty())
        throw error(errc::usage, "muster trace explain takes no --output; it prints to standard output");
    fmt::print("{}", explain(read_flight_dumps(given.command.front())));
    return 0;
}

}  // namespace muster
