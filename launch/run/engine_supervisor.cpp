#include "launch/run/engine_supervisor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/version.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/spawn_engine.hpp"
#include "launch/run/rank_process.hpp"

namespace muster {

namespace {

constexpr duration gather_limit{120};
constexpr duration last_words{0.2};
constexpr std::size_t largest_frame_bytes = 16u << 20;

}  // namespace

engine_supervisor::engine_supervisor(run_options const& options, engine_row const& engine, std::vector<remote_rank> ranks,
                                     std::optional<std::chrono::system_clock::time_point> ends_at, int guardian_fd)
    : signals_(take_signals(launcher_signals(), "the launcher")),
      options_(options),
      engine_(engine),
      reception_(loop_, options.heartbeat + duration(10),
                 [this](wire::hello const& hello, std::unique_ptr<channel>& link) { on_arrival(hello, link); }),
      ranks_(std::move(ranks)),
      ends_at_(ends_at),
      guardian_fd_(guardian_fd),
      start_(event_loop::clock::now()),
      last_output_(start_) {
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    loop_.watch_readable(signals_.get(), [this] { on_signal(); });
    loop_.watch_readable(guardian_fd_, [this] { on_guardian_gone(); });
    loop_.watch_readable(writer_.event_fd(), [this] { writer_.clear_event(); });
}

engine_supervisor::~engine_supervisor() = default;

std::vector<std::pair<std::string, std::string>> engine_supervisor::shim_variables() const {
    return reception_.shim_variables(options_.network_interface);
}

int engine_supervisor::run(engine_command const& command) {
    stdin_forwarder input(loop_);
    speaks_ = command.speaks;
    more_open_files const files(ranks_.size());
    start_ = event_loop::clock::now();
    engine_pid_ = spawn_engine(command, files, {input.child_fd(), STDOUT_FILENO, STDERR_FILENO});
    input.child_started();
    set_timers();
    loop_.run();
    return exit_code_;
}

void engine_supervisor::set_timers() {
    loop_.after(options_.start_timeout.value_or(gather_limit), [this] { on_gather_timeout(); });
    if (options_.timeout)
        loop_.after(*options_.timeout, [this] {
            fail(fmt::format("still running after --timeout {}: ending {} ranks", format_duration(*options_.timeout), running()),
                 exit_code(errc::timeout));
        });
    if (options_.idle_timeout) loop_.after(*options_.idle_timeout, [this] { check_idle(); });
}

/// Set when the ranks start: before that nobody would take it, and what is due then is sent at once.
void engine_supervisor::set_early_signal() {
    if (!options_.signal_before_end || !ends_at_) return;
    duration const left = *ends_at_ - std::chrono::system_clock::now() - options_.signal_before_end->before;
    loop_.after(std::max(left, duration(0)), [this] {
        int const number = options_.signal_before_end->number;
        if (phase_ != phase::running) return;
        say(fmt::format("{} before the job's time is up: SIG{} to {} ranks", format_duration(options_.signal_before_end->before),
                        ::sigabbrev_np(number), running()));
        send_all(wire::signal{number, false});
    });
}

// ------------------------------------------------------------------------------------------------ connections

void engine_supervisor::on_arrival(wire::hello const& hello, std::unique_ptr<channel>& link) {
    if (phase_ != phase::gathering) return;
    if (auto const why = objection_to(hello); !why.empty()) return fail(why, exit_code(errc::placement));
    welcome(ranks_[static_cast<std::size_t>(hello.rank)], hello, std::move(link));
}

/// Why this shim cannot be the rank that it says it is; empty if it can.
std::string engine_supervisor::objection_to(wire::hello const& hello) {
    int const size = static_cast<int>(ranks_.size());
    if (hello.version != version())
        return fmt::format("{} has muster {}, and this is muster {}; put the same one on every node", hello.host, hello.version,
                           version());
    if (!hello.fault.empty()) return fmt::format("a rank on {} cannot tell who it is: {}", hello.host, hello.fault);
    if (hello.rank < 0 || hello.rank >= size || hello.world_size != size)
        return fmt::format("{} started rank {} of {} on {}, instead of {} ranks; look at its command with --dry-run",
                           engine_.name, hello.rank, hello.world_size, hello.host, size);
    auto& rank = ranks_[static_cast<std::size_t>(hello.rank)];
    if (rank.now != remote_rank::state::absent)
        return fmt::format("{} started rank {} twice, on {} and {}; look at its command with --dry-run", engine_.name, hello.rank,
                           rank.job.who.host, hello.host);
    auto const host = host_of_node_.find(rank.node);
    auto const node = node_of_host_.find(hello.host);
    if ((host != host_of_node_.end() && host->second != hello.host) || (node != node_of_host_.end() && node->second != rank.node))
        return fmt::format(
            "{} put rank {} on {}, where the plan has ranks of another node; look at the plan with muster plan, and at the "
            "command "
            "with --dry-run",
            engine_.name, hello.rank, hello.host);
    return {};
}

void engine_supervisor::welcome(remote_rank& rank, wire::hello const& hello, std::unique_ptr<channel> link) {
    rank.link = std::move(link);
    rank.link->set_callbacks({[this, &rank](std::string_view frame) { on_frame(rank, frame); },
                              [this, &rank](std::string const& reason) { on_link_lost(rank, reason); }},
                             largest_frame_bytes);
    rank.now = remote_rank::state::placing;
    rank.job.who.host = hello.host;
    rank.step = hello.step;
    host_of_node_.emplace(rank.node, hello.host);
    node_of_host_.emplace(hello.host, rank.node);
    rank.link->send(wire::encode(rank.job));
    rank.job.variables = {};  // not needed again, and large
}

void engine_supervisor::on_frame(remote_rank& rank, std::string_view frame) {
    try {
        std::visit([&](auto const& message) { on_message(rank, message); }, wire::decode(frame));
    } catch (error const& e) {
        fail(rank, e.what(), exit_code(errc::internal));
    }
}

void engine_supervisor::on_message(remote_rank& rank, wire::ready const& ready) {
    rank.place = ready;
    if (rank.now != remote_rank::state::placing) return;
    rank.now = remote_rank::state::ready;
    if (++ready_ == static_cast<int>(ranks_.size()) && phase_ == phase::gathering) start_ranks();
}

/// Everybody is there, and nothing has been started yet: the last moment to see that two ranks have one GPU.
void engine_supervisor::start_ranks() {
    std::map<std::pair<int, std::string>, remote_rank const*> owners;
    bool const sharing = options_.place.ranks_per_gpu > 1 || options_.place.slots_per_node || !options_.place.gpu_map.empty();
    for (auto& rank : ranks_) {
        if (sharing || rank.place.gpu_index < 0) continue;
        auto const id = rank.place.gpu_uuid.empty() ? std::to_string(rank.place.gpu_index) : rank.place.gpu_uuid;
        auto const [owner, first] = owners.try_emplace({rank.node, id}, &rank);
        if (!first)
            return fail(rank, fmt::format("would share its GPU with {}", name_of(*owner->second)), exit_code(errc::placement),
                        "use --ranks-per-gpu if that is meant");
    }
    auto const& first = ranks_.front().place;
    wire::go go{first.address, first.master_port, first.jax_port, {}};
    if (ranks_.front().job.hold_worker_port)
        for (auto const& rank : ranks_) go.workers.push_back(with_port(rank.place.address, rank.place.worker_port));
    if (options_.verbose)
        for (auto const& rank : ranks_)
            say(fmt::format("{}: cores {}{}; {}", name_of(rank), rank.place.cpus.empty() ? "any" : rank.place.cpus,
                            rank.place.nic.empty() ? "" : ", NIC " + rank.place.nic, rank.place.why));
    phase_ = phase::running;
    start_ = last_output_ = event_loop::clock::now();
    send_all(go);
    set_early_signal();
}

void engine_supervisor::on_message(remote_rank& rank, wire::started const&) {
    if (rank.now == remote_rank::state::ready) rank.now = remote_rank::state::running;
}

void engine_supervisor::on_message(remote_rank& rank, wire::failed const& failed) {
    fail(fmt::format("{}: {}", name_of(rank), failed.what), failed.exit_code);
}

void engine_supervisor::on_message(remote_rank& rank, wire::ended const& ended) {
    rank.now = remote_rank::state::ended;
    rank.wait_status = ended.wait_status;
    rank.walked_out = ended.wait_status == 0 && first_lost_ < 0;
    int const status = ended.wait_status;
    if (WIFSIGNALED(status))
        fail(rank, describe_end(status), shell_code(status),
             WTERMSIG(status) == SIGKILL ? "nobody here sent it: often the kernel, out of memory (see dmesg there)" : "",
             ended.last_lines);
    else if (WEXITSTATUS(status) != 0)
        fail(rank, describe_end(status), WEXITSTATUS(status), "", ended.last_lines);
}

void engine_supervisor::on_message(remote_rank& rank, wire::gone const&) {
    rank.now = remote_rank::state::gone;
    look_whether_over();
}

void engine_supervisor::on_message(remote_rank&, wire::wrote const&) {
    last_output_ = event_loop::clock::now();
}

void engine_supervisor::on_message(remote_rank& rank, wire::uses const& uses) {
    if (options_.allow_singletons || ranks_.size() < 2) return;
    if (auto const family = family_of(uses.mpi_library); is_foreign(family, speaks_))
        fail(rank,
             fmt::format("uses {}, which does not speak with {}: it came up as a singleton, in a world of size 1",
                         uses.mpi_library, engine_.name),
             exit_code(errc::singleton), fmt::format("use {}, or --allow-singletons if that is meant", engines_for(family)));
}

void engine_supervisor::on_message(remote_rank& rank, wire::orphaned const& orphaned) {
    rank.daemon_lost = orphaned.parent.empty() ? std::string("the engine's daemon") : orphaned.parent;
    if (phase_ != phase::stopping)
        fail(fmt::format("{} on {} died, and with it {} lost its engine; ending {} ranks", rank.daemon_lost, name_of_host(rank),
                         name_of(rank), running()),
             exit_code(errc::peer_failed));
}

void engine_supervisor::on_link_lost(remote_rank& rank, std::string const& reason) {
    spdlog::debug("{}: {}", name_of(rank), reason);
    if (phase_ == phase::closing || phase_ == phase::done || rank.now == remote_rank::state::gone) return;
    rank.now = remote_rank::state::lost;
    if (first_lost_ < 0) first_lost_ = rank.job.who.rank;
    if (phase_ == phase::stopping) return look_whether_over();
    if (verdict_due_) return;
    // What took this one may take others in the same moment, and the culprit's own word may be on its way.
    verdict_due_ = true;
    loop_.after(duration(0.3), [this] { judge_losses(); });
}

// ------------------------------------------------------------------------------------------------ the outside

void engine_supervisor::on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        int const s = static_cast<int>(info.ssi_signo);
        if (s == SIGCHLD) {
            on_child();
        } else if (requests_.is_repeat(s)) {
            continue;
        } else if (s == SIGTSTP) {
            send_all(wire::signal{SIGSTOP, false});
            ::raise(SIGSTOP);
        } else if (s == SIGCONT || !ends_the_run(s)) {
            send_all(wire::signal{s, false});
        } else if (phase_ == phase::gathering || phase_ == phase::running) {
            if (s != SIGTERM || !options_.quiet) say(fmt::format("got SIG{}: ending {} ranks", ::sigabbrev_np(s), running()));
            failed_ = true;
            stop(128 + s, s);
        } else {
            kill_all();  // a second time: no more patience
        }
    }
}

void engine_supervisor::on_child() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == cancel_pid_) {
            cancel_pid_ = -1;
        } else if (pid == engine_pid_ && !engine_status_) {
            engine_status_ = status;
            on_engine_end();
        }
}

void engine_supervisor::on_engine_end() {
    if (phase_ == phase::closing) return finish();
    if (phase_ == phase::done) return;
    // The shims' last words may still be on their way.
    loop_.after(last_words, [this] {
        if (phase_ == phase::closing || phase_ == phase::done) return finish();
        if (phase_ == phase::stopping) return look_whether_over();
        if (first_lost_ >= 0) return judge_losses();
        auto const absent = list_ranks(remote_rank::state::absent);
        auto const what = describe_end(*engine_status_);
        int const code = shell_code(*engine_status_);
        if (!absent.empty())
            fail(fmt::format("{} {} before {} of {} ranks came up ({}); its own message is above; is {} the same on every node? "
                             "--dry-run prints its command",
                             engine_.name, what, count(remote_rank::state::absent), ranks_.size(), absent, "muster"),
                 exit_code(errc::unavailable));
        else
            fail(fmt::format("{} {} while {} ranks were running", engine_.name, what, running()),
                 code == 0 ? exit_code(errc::unavailable) : code);
    });
}

void engine_supervisor::on_guardian_gone() {
    loop_.unwatch(guardian_fd_);
    failed_ = true;
    exit_code_ = 128 + SIGKILL;
    kill_all();
}

void engine_supervisor::on_gather_timeout() {
    if (phase_ != phase::gathering) return;
    auto const absent = list_ranks(remote_rank::state::absent);
    auto const placing = list_ranks(remote_rank::state::placing);
    fail(fmt::format("after {} {} of {} ranks are there; missing: {}{}; look at those nodes with muster doctor --allocation",
                     format_duration(options_.start_timeout.value_or(gather_limit)), count(remote_rank::state::ready),
                     ranks_.size(), absent.empty() ? "none" : absent, placing.empty() ? "" : "; not yet placed: " + placing),
         exit_code(errc::timeout));
}

void engine_supervisor::check_idle() {
    if (phase_ != phase::running && phase_ != phase::gathering) return;
    duration const idle = event_loop::clock::now() - last_output_;
    if (idle >= *options_.idle_timeout)
        return fail(fmt::format("no rank has written anything for {} (--idle-timeout): ending {} ranks", format_duration(idle),
                                running()),
                    exit_code(errc::timeout));
    loop_.after(*options_.idle_timeout - idle, [this] { check_idle(); });
}

// ------------------------------------------------------------------------------------------------ words

std::string engine_supervisor::name_of_host(remote_rank const& rank) const {
    auto const host = host_of_node_.find(rank.node);
    return host != host_of_node_.end() ? host->second : rank.job.who.host;
}

std::string engine_supervisor::name_of(remote_rank const& rank) const {
    return name_of_rank(rank.job.who.rank, name_of_host(rank), rank.place.gpu_index, rank.place.gpu_uuid);
}

/// "ranks 8-11 on node3, 14 on node4"
std::string engine_supervisor::list_ranks(remote_rank::state now) const {
    std::map<int, cpuset> by_node;
    for (auto const& rank : ranks_)
        if (rank.now == now) by_node[rank.node].cpus.push_back(rank.job.who.rank);
    std::vector<std::string> words;
    for (auto& [node, ranks] : by_node) {
        auto const one = std::find_if(ranks_.begin(), ranks_.end(), [n = node](auto const& r) { return r.node == n; });
        words.push_back(
            fmt::format("{} {} on {}", ranks.cpus.size() == 1 ? "rank" : "ranks", ranks.to_list(), name_of_host(*one)));
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

int engine_supervisor::count(remote_rank::state now) const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [&](auto const& r) { return r.now == now; }));
}

int engine_supervisor::running() const {
    return count(remote_rank::state::running) + count(remote_rank::state::ready) + count(remote_rank::state::placing);
}

void engine_supervisor::send_all(wire::message const& message) {
    auto const bytes = wire::encode(message);
    for (auto& rank : ranks_)
        if (rank.link) rank.link->send(bytes);
}

void engine_supervisor::say(std::string const& line) {
    writer_.write(STDERR_FILENO, fmt::format("muster: {}\n", line));
}

}  // namespace muster
