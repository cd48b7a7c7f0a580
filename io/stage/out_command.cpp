#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/fail_together.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/copy_beside.hpp"
#include "io/stage/on_nodes.hpp"

namespace muster::stage {

namespace {

constexpr option_row out_options[]{
    {"every", 0, "TIME", "copy again and again, until SIGTERM or COMMAND's end; SIGUSR1, SIGUSR2: copy now", ""},
    {"merge", 0, "", "all nodes into DST itself; default: each into DST/HOST", ""},
    {"check", 0, "fast|full", "files that are there: trust size and time, or read them", "fast"},
    {"fsync", 0, "", "end when everything is on the disks", ""},
    {"threads", 0, "N", "threads of each node; default: twice its processors, 8 to 32", ""},
    {"chunk", 0, "BYTES", "size of the chunks that have a checksum; default: 4MiB", ""},
    {"dry-run", 0, "", "say what would be copied, and whether there is space; write nothing", ""},
    {"json", 0, "", "report as JSON", ""},
};

/// Two nodes may not bring different files to one name.
void refuse_conflicts(copy_request const& request, communicator& nodes) {
    std::string mine;
    run_on_all(nodes, "list the sources", [&] {
        for (listed_file const& file : list_files(request.sources, 8).files)
            if (!file.is_folder()) mine += file.path + '\0';
    });
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(nodes.size()));
    auto own = static_cast<std::int64_t>(mine.size());
    nodes.allgather("sizes of the lists", view_of(std::span(&own, 1)), view_of(std::span(sizes))).wait();
    std::vector<std::size_t> counts(sizes.begin(), sizes.end());
    std::size_t total = 0;
    for (std::size_t const count : counts) total += count;
    std::string all(total, '\0');
    nodes
        .allgather("lists", {mine.data(), mine.size(), dtype::u8, memory_kind::host},
                   {all.data(), total, dtype::u8, memory_kind::host}, counts)
        .wait();
    std::map<std::string_view, int> owner;
    std::string_view rest = all;
    for (int rank = 0; rank < nodes.size(); ++rank) {
        std::string_view its = rest.substr(0, counts[static_cast<std::size_t>(rank)]);
        rest.remove_prefix(its.size());
        for (; !its.empty(); its.remove_prefix(its.find('\0') + 1)) {
            auto const [at, added] = owner.emplace(its.substr(0, its.find('\0')), rank);
            if (!added)
                throw comm_error(errc::usage,
                                 fmt::format("{} and {} both have {}; leave out --merge, so that each node gets a folder of "
                                             "its own",
                                             nodes.host_of(at->second), nodes.host_of(rank), at->first));
        }
    }
}

/// The signals that --every waits for; blocked before there are threads, so that all have them blocked.
sigset_t awaited_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (int const number : {SIGTERM, SIGUSR1, SIGUSR2}) ::sigaddset(&set, number);
    return set;
}

/// Copies until SIGTERM comes; each node by itself, so that none waits for another. The last copy must succeed.
int copy_repeatedly(copy_request request, duration every, std::string const& host) {
    sigset_t const awaited = awaited_signals();
    for (bool last = false;;) {
        request.leave_changing = !last;
        auto const begin = std::chrono::steady_clock::now();
        try {
            copy_alone(request, host);
        } catch (error const& e) {
            if (last) throw;
            fmt::print(stderr, "muster-stage: {}: not copied this time: {}\n", host, e.what());
        }
        if (last) return 0;
        double const left =
            std::max(0.0, every.count() - std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        timespec const wait{static_cast<time_t>(left), static_cast<long>((left - std::floor(left)) * 1e9)};
        last = ::sigtimedwait(&awaited, nullptr, &wait) == SIGTERM;
    }
}

/// What runs beside it, if it is given.
std::vector<std::string> command_of(given_options const& given, identity const& who) {
    if (given.program().empty()) return {};
    for (char const* const option : {"dry-run", "json"})
        if (given.has(option))
            throw error(errc::usage, fmt::format("{}: --{} does not go with a command; leave it out", given.command(), option));
    if (given.has("merge") && who.node_count > 1)
        throw error(errc::usage,
                    fmt::format("{}: --merge does not go with a command on {} nodes, which may write files of one name; "
                                "leave out --merge",
                                given.command(), who.node_count));
    return given.program();
}

}  // namespace

constexpr command_row out_row{
    .name = "out",
    .summary = "bring results from every node back to a shared folder",
    .synopsis = "SRC... DST [options] [-- COMMAND...]",
    .examples =
        "  muster run -- muster stage out /tmp/$USER/ckpt /project/run7                                      now\n"
        "  muster run -- muster stage out --every 10min /tmp/$USER/ckpt /project/run7 -- python train.py     beside it\n"
        "  muster run -- muster stage out --every 10min /tmp/$USER/ckpt /project/run7 &                      until SIGTERM\n",
    .options = out_options,
    .description =
        "Every node copies its files to DST/HOST; a file gets its name there when it is whole. Nothing is removed from DST.\n"
        "With --every, a file that changes while it is read is left for the next time; at SIGTERM all are copied once more.\n"
        "With COMMAND it runs that, passes signals on to it, copies at SIGUSR1, SIGUSR2 and its end, and exits with its code.",
    .most_words = 1000,
    .takes_program = true,
};

int out_command(given_options const& given, identity const& who, environment const& variables) {
    auto const command = command_of(given, who);
    copy_request request = copy_request_of(given, variables);
    request.own_sources = true;
    std::optional<duration> every;
    if (given.has("every")) {
        try {
            every = parse_duration(given.text("every"), "--every");
        } catch (parse_error const& e) {
            throw error(errc::usage, e.what());
        }
    }
    std::string const shared = request.target;
    if (given.has("merge"))
        request.state_name = fmt::format("{}.{}", state_folder_name, who.host);
    else
        request.target += "/" + who.host;
    if (!command.empty()) return copy_beside({request, command, every, who}, variables);
    if (every) {
        sigset_t const awaited = awaited_signals();
        ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
    }
    return on_nodes(who, [&](communicator& nodes) {
        if (given.has("merge") && nodes.size() > 1) refuse_conflicts(request, nodes);
        if (every) return copy_repeatedly(request, *every, who.host);
        auto const begin = std::chrono::steady_clock::now();
        copy_report const report = copy_tree(request, nodes);
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        copy_request told = request;
        told.target = shared;
        print_copy(told, report, nodes, seconds, given.has("json"));
        return 0;
    });
}

}  // namespace muster::stage
