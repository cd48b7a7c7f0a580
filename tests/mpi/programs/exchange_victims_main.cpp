// Ranks are killed and stopped at random moments (while they meet, in the middle of collectives, at their end): every other rank
// names the culprit within the deadline. Over shm it starts its ranks itself, over others by `muster run`.
//   exchange_victims [--trials N] [--ranks N] [--seed S] [--deadline SECONDS] [--backend shm|mpi|hierarchical] [--muster PROGRAM]
//                    [--when init|work|finalise] [--per-node N] [--flight FOLDER] [--limit SECONDS] [--device 1]
// With --device every other tensor lies in device memory: of the FAKE GPU, over which the program must run then.
// Exit code 0; 1 where a rank hung, named another or spoke more than `limit` after the deadline; 77 without the backend.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/process/this_process.hpp"
#include "comm/backend_table.hpp"
#include "victim_rank.hpp"

namespace {

using namespace muster;
using namespace muster::victims;

struct settings {
    int trials = 10;
    int ranks = 3;
    unsigned seed = 1;
    double limit = 1.5;  ///< seconds after the deadline: a machine with more ranks than processors needs a little to say so
    std::string muster;
    std::string self;
    std::optional<moment> when;
    fate all;  ///< what is common to all trials
};

/// What a rank told.
struct witness {
    pid_t pid = -1;
    double began = 0, spoke = 0;
    double gone = 0;  ///< when its process was found to have ended, without a word
    bool left = false;
    std::string said;
};

struct record {
    int trials = 0, hangs = 0, survivors = 0, named = 0, alone = 0, ended = 0, taken_along = 0, told_by_launcher = 0, wrong = 0;
    double latest = 0;  ///< seconds after the deadline
};

constexpr double patience_s = 10;  ///< after the deadline; who has not spoken then hangs
constexpr double start_s = 60;

class trial {
  public:
    trial(settings const& how, fate what, int number) : how_(how), what_(std::move(what)), number_(number) {
        ranks_.resize(static_cast<std::size_t>(how.ranks));
    }

    void run() {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) std::exit(125);
        from_ = ends[0];
        if (what_.backend == "shm")
            fork_ranks(ends);
        else
            launch(ends);
        ::close(ends[1]);
        listen();
        clean_up();
    }

    void judge(record& sums) const {
        ++sums.trials;
        bool good = true;
        for (int rank = 0; rank < how_.ranks; ++rank) {
            if (rank == what_.culprit) continue;
            auto const& one = ranks_[static_cast<std::size_t>(rank)];
            double const late = one.spoke - std::max(fell_, one.began) - what_.deadline_s;
            bool const spoke = !one.said.empty();
            if (spoke) sums.latest = std::max(sums.latest, late);
            // Who fell when all was over takes nothing from anybody.
            if (one.said == "ended" && what_.when == moment::finalise) {
                ++sums.ended;
                good = good && late < how_.limit;
                continue;
            }
            // An MPI that loses a rank may end others by itself; the launcher then tells why, if it heard of the fall first.
            if (!spoke && one.gone > 0 && what_.backend != "shm") {
                ++sums.taken_along;
                bool const in_time = one.gone - std::max(fell_, one.began) - what_.deadline_s < how_.limit;
                sums.told_by_launcher += launcher_names_culprit() ? 1 : 0;
                if (in_time) continue;
            }
            ++sums.survivors;
            if (!one.left && one.gone == 0) ++sums.hangs;
            auto const blamed = blamed_by(one);
            bool const named = std::find(blamed.begin(), blamed.end(), what_.culprit) != blamed.end();
            sums.named += named ? 1 : 0;
            sums.alone += named && blamed.size() == 1 ? 1 : 0;
            bool const others_fell_too = std::all_of(blamed.begin(), blamed.end(), [&](int each) {
                return each == what_.culprit || ranks_[static_cast<std::size_t>(each)].gone > 0;
            });
            // Of ranks of other nodes that fell before anybody met them the launcher alone knows.
            bool const unseen = what_.when == moment::init && what_.ranks_per_node > 0 && blamed.empty() &&
                                one.said.find("nothing is known") != std::string::npos && launcher_names_culprit();
            if (unseen && one.left && late < how_.limit) continue;
            if (named && others_fell_too && one.left && late < how_.limit) continue;
            good = false;
            fmt::print("{} trial {}: rank {} {} in {} after {} us; rank {}{} said {:.2f} s after the deadline: {}\n",
                       what_.backend, number_, what_.culprit, what_.signal == SIGSTOP ? "stopped" : "was killed",
                       name_of(what_.when), what_.after_us, rank, one.left ? "" : ", which did not come to its end,",
                       spoke ? late : 0,
                       spoke           ? one.said
                       : one.gone == 0 ? "nothing, and lives"
                                       : "nothing, and is gone; the launcher: " + launcher_said_);
        }
        if (!good) ++sums.wrong;
    }

    static char const* name_of(moment when) { return when == moment::init ? "init" : when == moment::work ? "work" : "finalise"; }

  private:
    void fork_ranks(std::array<int, 2> ends) {
        std::string const job = fmt::format("victims.{}.{}", ::getpid(), number_);
        for (int rank = 0; rank < how_.ranks; ++rank) {
            pid_t const pid = ::fork();
            if (pid == 0) {
                ::close(ends[0]);
                be_rank(rank, how_.ranks, job, what_, ends[1]);
            }
            started_.push_back(pid);
        }
    }

    void launch(std::array<int, 2> ends) {
        std::string place = (std::filesystem::temp_directory_path() / "muster-victims.XXXXXX").string();
        if (::mkdtemp(place.data()) == nullptr) std::exit(125);
        what_.meeting_place = place;
        std::string const count = std::to_string(how_.ranks), fate = write_fate(what_);
        pid_t const pid = ::fork();
        if (pid == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::close(ends[0]);
            ::close(ends[1]);
            if (std::freopen((std::filesystem::path(place) / "stderr").c_str(), "w", stderr) == nullptr) ::_exit(125);
            ::execl(how_.muster.c_str(), "muster", "run", "-n", count.c_str(), "--slots-per-node", count.c_str(), "--grace",
                    "20s", "--", how_.self.c_str(), "--fate", fate.c_str(), nullptr);
            ::_exit(127);
        }
        started_.push_back(pid);
    }

    void take(std::string const& line) {
        std::istringstream words(line);
        std::string what;
        int rank = -1;
        words >> what >> rank;
        if (rank < 0 || rank >= how_.ranks) return;
        auto& one = ranks_[static_cast<std::size_t>(rank)];
        if (what == "begin") words >> one.pid >> one.began;
        if (what == "falls") words >> fell_;
        if (what == "left") one.left = true;
        if (what == "said") {
            words >> one.spoke;
            std::getline(words >> std::ws, one.said);
        }
    }

    /// Who has come to its end: all but the culprit, which may have come to it too.
    bool all_have_left() const {
        for (int rank = 0; rank < how_.ranks; ++rank) {
            auto const& one = ranks_[static_cast<std::size_t>(rank)];
            if (rank != what_.culprit && !one.left && one.gone == 0) return false;
        }
        return true;
    }

    void look_for_the_gone() {
        for (auto& one : ranks_)
            if (one.pid > 0 && one.gone == 0 && !one.left && ::kill(one.pid, 0) != 0) one.gone = now_s();
    }

    bool launcher_names_culprit() const {
        auto const named = fmt::format("error: rank {} on ", what_.culprit);
        return launcher_said_.find(named) != std::string::npos;
    }

    void listen() {
        double const begin = now_s();
        std::string text;
        while (!all_have_left()) {
            double const until = fell_ > 0 ? fell_ + what_.deadline_s + patience_s : begin + start_s;
            int const left_ms = static_cast<int>((until - now_s()) * 1e3);
            if (left_ms <= 0) break;
            pollfd one{from_, POLLIN, 0};
            look_for_the_gone();
            if (::poll(&one, 1, std::min(left_ms, 100)) <= 0) continue;
            std::array<char, 8192> bytes;
            auto const got = ::read(from_, bytes.data(), bytes.size());
            if (got <= 0) {  // all have closed it: they are at their end, or a little before
                ::usleep(1000);
                continue;
            }
            text.append(bytes.data(), static_cast<std::size_t>(got));
            for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
                take(text.substr(0, end));
        }
    }

    void clean_up() {
        for (auto const& one : ranks_)
            if (one.pid > 0) ::kill(one.pid, SIGKILL);
        for (pid_t const pid : started_) {
            if (what_.backend == "shm") ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
        ::close(from_);
        if (what_.meeting_place.empty()) return;
        std::ifstream said(std::filesystem::path(what_.meeting_place) / "stderr");
        launcher_said_.assign(std::istreambuf_iterator<char>(said), {});
        std::filesystem::remove_all(what_.meeting_place);
    }

    std::vector<int> blamed_by(witness const& one) const {
        std::vector<int> blamed;
        if (!one.said.starts_with("blames")) return blamed;
        std::istringstream list(one.said.substr(6, one.said.find(':') - 6));
        for (int rank = 0; list >> rank;)
            if (rank >= 0 && rank < how_.ranks) blamed.push_back(rank);
        return blamed;
    }

    settings const& how_;
    fate what_;
    int number_;
    int from_ = -1;
    double fell_ = 0;
    std::string launcher_said_;
    std::vector<witness> ranks_;
    std::vector<pid_t> started_;
};

fate draw(settings const& how, std::mt19937& random) {
    fate what = how.all;
    auto const below = [&](unsigned end) { return static_cast<int>(random() % end); };
    what.culprit = below(static_cast<unsigned>(how.ranks));
    what.signal = below(2) == 0 ? SIGSTOP : SIGKILL;
    what.when = static_cast<moment>(below(3));
    if (how.when) what.when = *how.when;
    bool const quick = what.backend == "shm";  // the ranks have met after 5 ms, with MPI after 300
    switch (what.when) {
        case moment::init: what.after_us = below(quick ? 8'000 : 400'000); break;
        case moment::work: what.after_us = below(120'000); break;
        case moment::finalise: what.after_us = below(quick ? 2'000 : 20'000); break;
    }
    return what;
}

void print(std::string_view what, record const& sums) {
    std::string const taken_along =
        sums.taken_along == 0
            ? ""
            : fmt::format(", {} were ended by their MPI (of {} the launcher named it)", sums.taken_along, sums.told_by_launcher);
    fmt::print(
        "{}: {} trials, {} ranks hung, {} of {} survivors named the culprit ({} it alone){}, {} had ended before; the latest "
        "spoke {:.2f} s {} the deadline; {} trials not as they should be\n",
        what, sums.trials, sums.hangs, sums.named, sums.survivors, sums.alone, taken_along, sums.ended, std::abs(sums.latest),
        sums.latest < 0 ? "before" : "after", sums.wrong);
}

settings read_settings(int argc, char** argv) {
    settings how;
    std::map<std::string, std::string> given;
    for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
    if (given.contains("--fate")) be_launched_rank(read_fate(given["--fate"]));
    how.self = self_program().string();
    auto const number = [&](char const* name, auto& into) {
        if (given.contains(name)) std::istringstream(given[name]) >> into;
    };
    number("--trials", how.trials);
    number("--ranks", how.ranks);
    number("--seed", how.seed);
    number("--limit", how.limit);
    number("--muster", how.muster);
    number("--deadline", how.all.deadline_s);
    number("--backend", how.all.backend);
    number("--per-node", how.all.ranks_per_node);
    number("--flight", how.all.flight_folder);
    number("--device", how.all.on_device);
    for (auto const when : {moment::init, moment::work, moment::finalise})
        if (given["--when"] == trial::name_of(when)) how.when = when;
    return how;
}

}  // namespace

int main(int argc, char** argv) {
    settings const how = read_settings(argc, argv);
    init_log("off");
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    auto const rows = backend_table();
    if (std::none_of(rows.begin(), rows.end(), [&](backend_row const& each) { return each.name == how.all.backend; })) {
        fmt::print("SKIP: there is no backend {}\n", how.all.backend);
        return 77;
    }
    std::mt19937 random(how.seed);
    std::map<moment, record> by_moment;
    for (int number = 0; number < how.trials; ++number) {
        fate const what = draw(how, random);
        trial one(how, what, number);
        one.run();
        one.judge(by_moment[what.when]);
    }
    int wrong = 0;
    for (auto const& [when, sums] : by_moment) {
        print(fmt::format("{} {}", how.all.backend, trial::name_of(when)), sums);
        wrong += sums.wrong;
    }
    return wrong == 0 ? 0 : 1;
}
