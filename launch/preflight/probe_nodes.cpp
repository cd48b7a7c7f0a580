#include "launch/preflight/probe_nodes.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/version.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/preflight/make_node_question.hpp"
#include "launch/preflight/probe_engine.hpp"
#include "launch/run/rank_process.hpp"
#include "launch/run/run_on_engine.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/host_name.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

namespace {

constexpr duration engine_patience{10};   ///< until the first probe is there
constexpr duration arrival_patience{5};   ///< then from one to the next
constexpr duration connect_patience{4};   ///< until all have tried to connect
constexpr duration leaving_patience{2};   ///< for an engine whose probes have all been sent home
constexpr duration ending_patience{1.5};  ///< for one that was asked to end
constexpr duration last_words{0.2};
constexpr duration lost_after{15};
constexpr std::size_t engines_at_once = 16;
constexpr std::size_t largest_frame_bytes = 16u << 20;

double clock_now() {
    return duration(std::chrono::system_clock::now().time_since_epoch()).count();
}

class prober {
  public:
    prober(run_options const& options, environment const& inherited, scheduler_sources const& sources, allocation const& given,
           std::vector<int> const& nodes, std::string scratch_dir, choose_first const& first)
        : options_(options),
          inherited_(inherited),
          sources_(sources),
          given_(given),
          nodes_(nodes),
          scratch_dir_(std::move(scratch_dir)),
          first_(first),
          files_(nodes.size()),
          reception_(loop_, lost_after,
                     [this](wire::hello const& hello, std::unique_ptr<channel>& link) { on_arrival(hello, link); }) {
        for (int const node : nodes) {
            auto& one = visits_.emplace_back();
            one.node = node;
            auto const& of_node = given.nodes[static_cast<std::size_t>(node)];
            one.found.name = of_node.name;
            one.found.address = of_node.address;
            one.found.gpus_expected = of_node.gpus;
        }
    }

    std::vector<probed_node> run() {
        std::vector<std::size_t> all(visits_.size());
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
        question_.what = ask_about(options_, inherited_, given_, nodes_, nodes_.front());
        start_engine(all);
        wait_for(engine_patience);
        loop_.run();
        std::vector<probed_node> found;
        for (auto& one : visits_) found.push_back(std::move(one.found));
        return found;
    }

  private:
    enum class state { absent, queued, asked, told, connecting, over };
    enum class phase { looking, connecting, leaving };
    struct visit {
        int node = 0;
        probed_node found{};
        std::unique_ptr<channel> link{};
        state now = state::absent;
        double asked_at = 0;
        std::string step{};
    };
    // ------------------------------------------------------------------------------------ engines

    void start_engine(std::vector<std::size_t> const& whom) {
        mapping map;
        map.ranks_per_node.assign(given_.nodes.size(), 0);
        for (auto const i : whom) map.ranks_per_node[static_cast<std::size_t>(visits_[i].node)] = 1;
        auto const scratch = fmt::format("{}/probe.{}", scratch_dir_, engines_.size());
        std::error_code fault;
        std::filesystem::create_directories(scratch, fault);
        auto job = describe_engine_job(options_, inherited_, given_, map, scratch);
        job.probe = true;
        job.shim.insert(job.shim.end(), {"--probe", std::to_string(whom.front())});
        if (engine_ == nullptr) engine_ = &choose_engine(job, sources_, options_.engine == "embedded" ? "" : options_.engine);
        auto command = engine_->command(job, sources_);
        for (auto const& [name, value] : reception_.shim_variables(options_.network_interface))
            command.variables.set(name, value);
        write_files(command);
        engines_.push_back(std::make_unique<probe_engine>(loop_, command, files_, whom, [this](probe_engine& e) { on_exit(e); }));
    }

    void on_exit(probe_engine& engine) {
        loop_.after(last_words, [this, &engine] { on_engine_end(engine); });
        if (phase_ == phase::leaving) look_whether_done();
    }

    void on_engine_end(probe_engine const& engine) {
        if (phase_ != phase::looking) return;
        for (auto const i : engine.visits()) {
            if (visits_[i].now != state::absent || &engine_of(visits_[i]) != &engine) continue;
            if (engine.visits().size() > 1)
                queue(i);
            else
                give_up(visits_[i], fmt::format("did not answer: {} {}{}", engine_->name, describe_end(engine.status()),
                                                engine.quote(visits_[i].found.name)));
        }
        go_on();
    }

    void queue(std::size_t which) {
        visits_[which].now = state::queued;
        alone_.push_back(which);
    }

    void start_queued() {
        auto const running =
            std::count_if(engines_.begin(), engines_.end(), [](auto const& e) { return e->visits().size() == 1 && !e->ended(); });
        for (auto room = static_cast<std::ptrdiff_t>(engines_at_once) - running; room > 0 && !alone_.empty(); --room) {
            auto const which = alone_.front();
            alone_.pop_front();
            visits_[which].now = state::absent;
            try {
                start_engine({which});
            } catch (error const& e) {
                give_up(visits_[which], fmt::format("cannot be reached: {}", e.what()));
            }
            wait_for(engine_patience);
        }
    }

    // ------------------------------------------------------------------------------------ probes

    visit* who_is(wire::hello const& hello) {
        auto const number = static_cast<std::size_t>(hello.rank);
        if (hello.fault.empty() && number < visits_.size() && visits_[number].now == state::absent) return &visits_[number];
        for (auto& one : visits_)
            if (one.now == state::absent && short_name(without_user(one.found.name)) == hello.host) return &one;
        return nullptr;
    }

    void on_arrival(wire::hello const& hello, std::unique_ptr<channel>& link) {
        auto* const one = phase_ == phase::looking ? who_is(hello) : nullptr;
        if (one == nullptr) return;
        one->step = hello.step;
        if (hello.version != version()) {  // it may not even understand what we ask
            one->found.report.emplace();
            one->found.report->version = hello.version;
            one->found.report->host = hello.host;
            one->now = state::over;
            return go_on();
        }
        one->link = std::move(link);
        one->link->set_callbacks({[this, one](std::string_view frame) { on_frame(*one, frame); },
                                  [this, one](std::string const& reason) { on_link_lost(*one, reason); }},
                                 largest_frame_bytes);
        one->now = state::asked;
        question_.what.own_step = engine_->name == "srun";
        question_.what.address = one->found.address;
        one->asked_at = clock_now();
        one->link->send(wire::encode(question_));
        wait_for(arrival_patience);
    }

    void on_frame(visit& one, std::string_view frame) {
        try {
            auto message = wire::decode(frame);
            if (auto* const report = std::get_if<wire::report>(&message)) on_report(one, std::move(report->node));
            if (auto const* reached = std::get_if<wire::reached>(&message)) {
                one.found.connect_fault = reached->fault;
                one.now = state::over;
            }
        } catch (error const& e) {
            give_up(one, fmt::format("answered otherwise than expected: {}", e.what()));
        }
        go_on();
    }

    /// The two ways took equally long, as far as we know: then the clocks differ by the mean of the two differences.
    static void compare_clocks(probed_node& found, double asked_at, double answered_at) {
        double const there = found.report->asked_at - asked_at;
        double const back = found.report->answered_at - answered_at;
        found.clock_ahead_s = (there + back) / 2;
        found.clock_error_s = (there - back) / 2;
    }

    void on_report(visit& one, node_report report) {
        if (one.now != state::asked) return;
        one.found.report = std::move(report);
        compare_clocks(one.found, one.asked_at, clock_now());
        one.now = state::told;
        if (phase_ == phase::looking) wait_for(arrival_patience);
    }

    void on_link_lost(visit& one, std::string const& reason) {
        if (phase_ == phase::leaving) return;
        // An engine may end all when one fails: then the others are well all the same.
        bool const with_others = engine_of(one).visits().size() > 1;
        if (phase_ == phase::looking && with_others && (one.now == state::asked || one.now == state::told)) {
            one.found.report.reset();
            queue(static_cast<std::size_t>(&one - visits_.data()));
            return go_on();
        }
        if (one.now == state::asked) give_up(one, fmt::format("went away while it was looked at: {}", reason));
        if (one.now == state::connecting) one.found.connect_fault = "it went away meanwhile: " + reason;
        one.now = state::over;
        go_on();
    }

    static void give_up(visit& one, std::string const& why) {
        one.found.silence = why;
        one.now = state::over;
    }

    // ------------------------------------------------------------------------------------ the course

    /// From now on; later calls take the place of earlier ones.
    void wait_for(duration patience) {
        if (timer_) loop_.cancel(*timer_);
        timer_ = loop_.after(patience, [this] {
            timer_.reset();
            on_deadline();
        });
    }

    bool any(state now) const {
        return std::any_of(visits_.begin(), visits_.end(), [&](visit const& one) { return one.now == now; });
    }

    void on_deadline() {
        if (phase_ == phase::leaving) return end_engines();
        if (phase_ == phase::connecting) {
            for (auto& one : visits_)
                if (one.now == state::connecting) one.found.connect_fault = "it did not say in time whether it could";
            return leave();
        }
        // An engine that has brought up nobody may be waiting for one dead node: then each is tried by itself.
        bool const nobody =
            std::all_of(visits_.begin(), visits_.end(), [](visit const& one) { return one.now == state::absent; });
        if (nobody && engines_.size() == 1 && visits_.size() > 1) {
            engines_.front()->kill(SIGTERM);
            for (std::size_t i = 0; i < visits_.size(); ++i) queue(i);
            return go_on();
        }
        duration const waited = event_loop::clock::now() - start_;
        for (auto& one : visits_)
            if (one.now == state::absent || one.now == state::asked)
                give_up(one,
                        fmt::format("did not answer within {}{}", format_duration(waited), engine_of(one).quote(one.found.name)));
        go_on();
    }

    probe_engine const& engine_of(visit const& one) const {
        auto const which = static_cast<std::size_t>(&one - visits_.data());
        for (auto e = engines_.rbegin(); e != engines_.rend(); ++e)
            if ((*e)->brings(which)) return **e;
        return *engines_.front();
    }

    void go_on() {
        start_queued();
        if (phase_ == phase::looking && !any(state::absent) && !any(state::queued) && !any(state::asked)) try_connections();
        if (phase_ == phase::connecting && !any(state::connecting)) leave();
    }

    void try_connections() {
        phase_ = phase::connecting;
        std::vector<probed_node> found;
        for (auto const& one : visits_) {
            found.push_back(one.found);
            if (one.now != state::told) found.back().report.reset();  // nobody is there to connect to
        }
        int const chosen = first_(found);
        if (chosen < 0) return;
        auto const& target = visits_[static_cast<std::size_t>(chosen)].found;
        for (auto& one : visits_) {
            if (one.now != state::told || &one.found == &target) continue;
            one.found.towards = target.name;
            one.now = state::connecting;
            one.link->send(wire::encode(wire::reach{target.report->address, target.report->port}));
        }
        wait_for(connect_patience);
    }

    void leave() {
        phase_ = phase::leaving;
        for (auto& one : visits_)
            if (one.link && one.link->open()) one.link->send(wire::encode(wire::bye{0}));
        bool const all_came =
            std::none_of(visits_.begin(), visits_.end(), [](visit const& one) { return !one.found.silence.empty(); });
        wait_for(all_came ? leaving_patience : last_words);
        look_whether_done();
    }

    /// Engines that wait for a node that will never come.
    void end_engines() {
        bool const asked_before = std::exchange(ending_, true);
        for (auto& engine : engines_) engine->kill(asked_before ? SIGKILL : SIGTERM);
        if (asked_before) return loop_.stop();
        wait_for(ending_patience);
        cancel_step();
    }

    void cancel_step() {
        if (engine_->cancel == nullptr) return;
        for (auto const& one : visits_) {
            if (one.step.empty()) continue;
            if (auto const argv = engine_->cancel(one.step); !argv.empty()) sources_.run_command(argv);
            return;
        }
    }

    void look_whether_done() {
        if (std::all_of(engines_.begin(), engines_.end(), [](auto const& e) { return e->ended(); })) loop_.stop();
    }

    run_options const& options_;
    environment const& inherited_;
    scheduler_sources const& sources_;
    allocation const& given_;
    std::vector<int> const& nodes_;
    std::string scratch_dir_;
    choose_first const& first_;
    event_loop loop_;
    more_open_files files_;
    reception reception_;
    engine_row const* engine_ = nullptr;
    wire::examine question_;     ///< the same for all but for the address
    std::vector<visit> visits_;  ///< in the order of `nodes_`; never grows once the first probe may come
    std::vector<std::unique_ptr<probe_engine>> engines_;
    std::deque<std::size_t> alone_;  ///< to be tried by an engine of their own
    phase phase_ = phase::looking;
    bool ending_ = false;
    std::optional<event_loop::timer> timer_;
    event_loop::clock::time_point start_ = event_loop::clock::now();
};

}  // namespace

std::vector<probed_node> probe_nodes(run_options const& options, environment const& inherited, scheduler_sources const& sources,
                                     allocation const& given, std::vector<int> const& nodes, std::string const& scratch_dir,
                                     choose_first const& first) {
    return prober(options, inherited, sources, given, nodes, scratch_dir, first).run();
}

}  // namespace muster
