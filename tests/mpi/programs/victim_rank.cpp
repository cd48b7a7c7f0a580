#include "victim_rank.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/exchange/exchange.hpp"
#include "pmix/identity.hpp"

namespace muster::victims {

namespace {

/// What the timer's handler needs.
int fall_by = 0, fall_rank = 0, fall_tell = -1;

extern "C" void fall(int) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    // Nothing that could wait for a lock that the interrupted thread holds.
    char line[64] = "falls ";
    std::size_t at = 6;
    auto const number = [&](long value, int digits) {
        for (int i = digits - 1; i >= 0; --i, value /= 10)
            line[at + static_cast<std::size_t>(i)] = static_cast<char>('0' + value % 10);
        at += static_cast<std::size_t>(digits);
    };
    number(fall_rank, 3);
    line[at++] = ' ';
    number(now.tv_sec, 9);
    line[at++] = '.';
    number(now.tv_nsec, 9);
    line[at++] = '\n';
    [[maybe_unused]] auto const told = ::write(fall_tell, line, at);
    ::kill(::getpid(), fall_by);
}

void fall_later(fate const& what, moment now, int rank, int to) {
    if (what.when != now || what.culprit != rank || what.signal == 0) return;
    fall_by = what.signal;
    fall_rank = rank;
    fall_tell = to;
    ::signal(SIGALRM, fall);
    itimerval const once{{0, 0}, {what.after_us / 1'000'000, std::max(what.after_us % 1'000'000, 1)}};
    ::setitimer(ITIMER_REAL, &once, nullptr);
}

/// One write each, which a pipe keeps in one piece.
void tell(int to, std::string const& line) {
    [[maybe_unused]] auto const told = ::write(to, (line + "\n").data(), std::min<std::size_t>(line.size() + 1, 4096));
}

std::string in_one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text.substr(0, 3000);
}

/// Messages go round while the tensors are reduced. They stay until the process ends, as those of a failed exchange must.
std::vector<exchange_handle> pass_on(exchange& all, int number) {
    static auto& letters = *new std::vector<std::vector<std::int32_t>>(2, std::vector<std::int32_t>(200'000));
    std::fill(letters[0].begin(), letters[0].end(), number);
    int const ranks = all.size();
    if (ranks == 1) return {};
    return {all.send(view_of(std::span(letters[0])), (all.rank() + 1) % ranks),
            all.receive(view_of(std::span(letters[1])), (all.rank() + ranks - 1) % ranks)};
}

bool has_come(exchange_handle const& received, int number) {
    auto const* const data = static_cast<std::int32_t const*>(received.result().data);
    return std::all_of(data, data + received.result().count, [&](std::int32_t value) { return value == number; });
}

/// Small and large tensors, all at a time; false after a wrong sum or message.
bool step(exchange& all, std::vector<std::vector<float>>& tensors, int number, bool on_device) {
    std::vector<exchange_handle> handles;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        std::fill(tensors[i].begin(), tensors[i].end(), static_cast<float>(number % 100));
        auto view = view_of(std::span(tensors[i]));
        if (on_device && i % 2 == 0) view.where = memory_kind::device;
        handles.push_back(all.allreduce("t" + std::to_string(i), view, view, reduction::sum));
    }
    auto const messages = pass_on(all, number);
    for (auto const& each : handles) each.wait();
    for (auto const& each : messages) each.wait();
    if (!messages.empty() && !has_come(messages.back(), number)) return false;
    // what is handed out as good is good
    return std::all_of(tensors.begin(), tensors.end(), [&](auto const& each) {
        return std::all_of(each.begin(), each.end(),
                           [&](float value) { return value == static_cast<float>(all.size() * (number % 100)); });
    });
}

std::string work(exchange& all, fate const& what, int to) {
    constexpr int steps_before_the_end = 20;
    auto& tensors =
        *new std::vector<std::vector<float>>;  // which stay until the process ends, as those of a failed exchange must
    for (std::size_t const count : {10u, 3000u, 500000u, 64u}) tensors.emplace_back(count);
    fall_later(what, moment::work, all.rank(), to);
    for (int number = 0; what.when != moment::finalise || number < steps_before_the_end; ++number)
        if (!step(all, tensors, number, what.on_device)) return "fault: a wrong sum";
    fall_later(what, moment::finalise, all.rank(), to);
    all.barrier().wait();
    return {};
}

std::string blame(comm_error const& problem) {
    std::string text = "blames";
    for (int const each : problem.culprits()) text += " " + std::to_string(each);
    return text + ": " + problem.what();
}

[[noreturn]] void run(identity const& who, fate const& what, int to) {
    auto const say = [&](std::string const& text) {
        tell(to, fmt::format("said {} {:.6f} {}", who.rank, now_s(), in_one_line(text)));
    };
    try {
        exchange_options options;
        options.comm.backend = what.backend;
        options.deadline = duration{what.deadline_s};
        options.flight_folder = what.flight_folder;
        options.cycle_time = duration{0.0002};
        fall_later(what, moment::init, who.rank, to);
        std::optional<exchange> all(std::in_place, who, options);
        tell(to, fmt::format("met {} {:.6f}", who.rank, now_s()));
        std::string answer;
        try {
            answer = work(*all, what, to);
        } catch (comm_error const& problem) {
            answer = blame(problem);
            try {  // and every further call fails at once
                all->barrier();
                answer = "fault: a call after the failure worked";
            } catch (comm_error const&) {
            }
        }
        if (!answer.empty()) say(answer);
        all.reset();
        if (answer.empty()) say("ended");
    } catch (comm_error const& problem) {
        say(blame(problem));
    } catch (std::exception const& problem) {
        say(std::string("fault: ") + problem.what());
    }
    tell(to, fmt::format("left {} {:.6f}", who.rank, now_s()));
    for (;;) ::pause();  // who ends now might itself be taken for the culprit
}

void wait_for_all(identity const& who, std::string const& place) {
    namespace fs = std::filesystem;
    std::ofstream(fs::path(place) / std::to_string(who.rank)).put('x');
    for (int rank = 0; rank < who.world_size; ++rank)
        while (!fs::exists(fs::path(place) / std::to_string(rank))) ::usleep(500);
}

}  // namespace

double now_s() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string write_fate(fate const& what) {
    auto const folder = [](std::string const& name) { return name.empty() ? "-" : name; };
    return fmt::format("{} {} {} {} {} {} {} {} {} {}", what.culprit, static_cast<int>(what.when), what.signal, what.after_us,
                       what.deadline_s, what.backend, what.ranks_per_node, what.on_device ? 1 : 0, folder(what.flight_folder),
                       folder(what.meeting_place));
}

fate read_fate(std::string const& text) {
    fate what;
    int when = 0;
    std::istringstream(text) >> what.culprit >> when >> what.signal >> what.after_us >> what.deadline_s >> what.backend >>
        what.ranks_per_node >> what.on_device >> what.flight_folder >> what.meeting_place;
    what.when = static_cast<moment>(when);
    for (auto* const name : {&what.flight_folder, &what.meeting_place})
        if (*name == "-") name->clear();
    return what;
}

void be_rank(int rank, int ranks, std::string const& job, fate const& what, int to) {
    identity who;
    who.nspace = job;
    who.rank = who.local_rank = rank;
    who.world_size = who.local_size = ranks;
    who.host = "here";
    tell(to, fmt::format("begin {} {} {:.6f}", rank, ::getpid(), now_s()));
    run(who, what, to);
}

void be_launched_rank(fate const& what) {
    ::signal(SIGTERM, SIG_IGN);  // the launcher's grace time is the survivors' to find out
    identity who = identify(environment::capture());
    init_log("off");
    if (what.ranks_per_node > 0) {
        who.node_count = (who.world_size + what.ranks_per_node - 1) / what.ranks_per_node;
        who.node_rank = who.rank / what.ranks_per_node;
        who.local_rank = who.rank % what.ranks_per_node;
        who.local_size = what.ranks_per_node;
    }
    wait_for_all(who, what.meeting_place);
    tell(STDOUT_FILENO, fmt::format("begin {} {} {:.6f}", who.rank, ::getpid(), now_s()));
    run(who, what, STDOUT_FILENO);
}

}  // namespace muster::victims
