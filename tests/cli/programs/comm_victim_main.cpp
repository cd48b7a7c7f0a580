// Ranks of which one stops or kills itself; the others print whom they blame.
//   comm_victim WHEN HOW CULPRIT DEADLINE_S [BACKEND]
// WHEN: init (before it makes the communicator), collective (within a row of collectives), sending (there, with large messages to
// the others on their way that these do not wait for), finalise (after them); HOW: stop, kill, pause (until there is a file `go`; the file `paused` says
// that it does) or none. Survivors ignore SIGTERM,
// so that a launcher's grace time is theirs to find out. A line of each on standard output:
//   rank 0: timeout, culprits [2], in time: MESSAGE
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "pmix/identity.hpp"

namespace {

using namespace muster;
using clock_type = std::chrono::steady_clock;

struct plan {
    std::string when, how;
    int culprit = 0;
    duration deadline{1.0};
    std::string backend;
};

/// Returns once every rank of this job but `absent` has come here, or after ten seconds. Over files in the working directory,
/// since nothing else may be up.
void meet_by_files(identity const& who, std::string_view place, int absent = -1) {
    auto const name = [&](int rank) { return fmt::format("{}.{}.{}", who.nspace, place, rank); };
    std::ofstream(name(who.rank)).put('x');
    auto const until = clock_type::now() + std::chrono::seconds(10);
    for (int rank = 0; rank < who.world_size; ++rank)
        while (rank != absent && !std::filesystem::exists(name(rank)) && clock_type::now() < until) ::usleep(1000);
}

void fall(plan const& what, std::string_view when, identity const& who) {
    if (what.when != when || who.rank != what.culprit || what.how == "none") return;
    if (what.how == "pause") {
        std::ofstream("paused").put('x');
        while (!std::filesystem::exists("go")) ::usleep(1000);
        return;
    }
    ::raise(what.how == "kill" ? SIGKILL : SIGSTOP);
}

void run(plan const& what, identity const& who, clock_type::time_point& waiting_since) {
    // Nobody shall be ended by what the culprit's fall sets off before it ignores that.
    meet_by_files(who, "start");
    fall(what, "init", who);
    comm_options options;
    options.deadline = what.deadline;
    options.backend = what.backend;
    options.network_interface = environment::capture().get_or("GLOO_SOCKET_IFNAME", "");
    waiting_since = clock_type::now();
    auto ranks = communicator::create(who, options);
    std::vector<float> values(100000), out(values.size());
    std::vector<float> share(share_of(values.size(), ranks.size(), ranks.rank()).count);
    auto const view = view_of(std::span(values));
    std::vector<operation> sending;
    for (int round = 0; round < 30; ++round) {
        if (round == 17) fall(what, "collective", who);
        if (round == 17 && what.when == "sending" && who.rank == what.culprit) {
            for (int peer = 0; peer < ranks.size(); ++peer)
                if (peer != who.rank) sending.push_back(ranks.sendrecv("ahead", peer, view, part_of(view, {0, 0})));
            fall(what, "sending", who);
        }
        waiting_since = clock_type::now();
        ranks.allreduce("weights", view, view_of(std::span(out)), reduction::sum).wait();
        ranks.reducescatter("shares", view, view_of(std::span(share)), reduction::sum).wait();
        ranks.broadcast("first", view, round % ranks.size()).wait();
        ranks.barrier().wait();
    }
    fall(what, "finalise", who);
    waiting_since = clock_type::now();
    ranks.close();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    plan const what{argv[1], argv[2], std::atoi(argv[3]), duration{std::atof(argv[4])}, argc > 5 ? argv[5] : ""};
    identity const who = identify(environment::capture());
    init_log("warning", who.host, who.rank);
    ::signal(SIGTERM, SIG_IGN);
    auto waiting_since = clock_type::now();
    std::string text = "all is well";
    int code = 0;
    try {
        run(what, who, waiting_since);
    } catch (comm_error const& problem) {
        text = fmt::format("{}, culprits [{}], {{}}: {}", to_string(problem.code()), fmt::join(problem.culprits(), " "),
                           problem.what());
        fmt::print(stderr, "{}\n", problem.what());  // where programs print it, and the launcher looks for whom it blames
        code = 7;
    } catch (std::exception const& problem) {
        text = fmt::format("another error, {{}}: {}", problem.what());
        code = 8;
    }
    duration const waited = clock_type::now() - waiting_since;
    // Some seconds above the deadline for what is not waiting, on a machine with more to do.
    bool const in_time = waited < what.deadline + duration{5.0};
    if (auto const at = text.find("{}"); at != std::string::npos) text.replace(at, 2, in_time ? "in time" : "TOO LATE");
    if (!in_time && code == 0) text += ", TOO LATE";
    fmt::print("rank {}: {}\n", who.rank, text);
    std::fflush(stdout);
    // The launcher, which ends the others once one has failed, sends on whoever is stopped: not before all have found out.
    if (what.how != "none" && who.rank != what.culprit) meet_by_files(who, "end", what.culprit);
    if (code == 0) return 0;  // which leaves PMIx in order
    std::_Exit(code);
}
