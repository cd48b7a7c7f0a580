// The program `muster-trace`: looks at what the ranks of an exchange left behind.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "comm/trace/explain.hpp"
#include "comm/trace/merge.hpp"

namespace {

using namespace muster;

constexpr char const* help = R"(muster-trace: timelines and flight recorders of an exchange

  muster-trace merge FOLDER -o all.json    the ranks' timelines (MUSTER_TIMELINE) as one, on rank 0's clock; open it in
                                           https://ui.perfetto.dev or chrome://tracing
  muster-trace explain FOLDER              where each rank was when the exchange failed (MUSTER_FLIGHT_RECORDER)

Exit codes: 0 done, 2 wrong usage, 125 failed.
)";

int merge(std::vector<std::string> const& args) {
    std::string folder, out;
    for (std::size_t i = 0; i < args.size(); ++i) {
        if ((args[i] == "-o" || args[i] == "--output") && i + 1 < args.size())
            out = args[++i];
        else if (folder.empty() && !args[i].starts_with('-'))
            folder = args[i];
        else
            throw error(errc::usage, fmt::format("merge: what is '{}'? It takes a folder and -o FILE", args[i]));
    }
    if (folder.empty() || out.empty()) throw error(errc::usage, "merge takes a folder and -o FILE");
    auto const done = merge_timelines(find_timelines(folder), out);
    fmt::print(stderr, "muster-trace: {} events of {} ranks in {}; clocks agree within {:.1f} us\n", done.events, done.files, out,
               done.worst_error_us);
    if (done.dropped != 0)
        fmt::print(stderr, "muster-trace: {} events are missing: they came faster than they could be written\n", done.dropped);
    for (auto const& each : done.ended) fmt::print(stderr, "muster-trace: {} ends early; its rank did not end in order\n", each);
    return 0;
}

int explain_folder(std::vector<std::string> const& args) {
    if (args.size() != 1) throw error(errc::usage, "explain takes a folder");
    fmt::print("{}", explain(read_flight_dumps(args.front())));
    return 0;
}

int dispatch(std::vector<std::string> const& words) {
    if (words.empty() || words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
        fmt::print(words.empty() ? stderr : stdout, "{}", help);
        return words.empty() ? 2 : 0;
    }
    if (words.front() == "--version") {
        fmt::print("muster-trace {}\n", version());
        return 0;
    }
    std::vector<std::string> const rest(words.begin() + 1, words.end());
    if (!rest.empty() && (rest.front() == "--help" || rest.front() == "-h")) {
        fmt::print("{}", help);
        return 0;
    }
    if (words.front() == "merge") return merge(rest);
    if (words.front() == "explain") return explain_folder(rest);
    auto const near = nearest(words.front(), std::vector<std::string>{"merge", "explain"});
    throw error(errc::usage, fmt::format("no command '{}'{}; muster-trace --help lists them", words.front(),
                                         near ? fmt::format(", did you mean '{}'?", *near) : ""));
}

}  // namespace

int main(int argc, char** argv) try {
    init_log(environment::capture().get_or("MUSTER_LOG", "warning"));
    return dispatch({argv + 1, argv + argc});
} catch (error const& e) {
    fmt::print(stderr, "muster-trace: error: {}\n", e.what());
    return exit_code(e.code());
} catch (std::exception const& e) {
    fmt::print(stderr, "muster-trace: error: {}\n", e.what());
    return exit_code(errc::internal);
}
