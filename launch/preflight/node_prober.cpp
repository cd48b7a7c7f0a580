#include "launch/preflight/node_prober.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/throw_error.hpp"
#include "base/version.hpp"
#include "base/wall_clock.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/preflight/node_probe.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/remote/unreached_host.hpp"
#include "launch/system/network.hpp"
#include "launch/system/signals.hpp"

namespace muster {

std::vector<probed_node> probe_nodes(run_plan const& run, std::vector<int> const& nodes, choose_first const& first) {
    return node_prober(run, nodes, first).run();
}

namespace {

constexpr duration arrival_patience{5};  ///< later, from one to the next
constexpr duration connect_patience{4};  ///< until all have tried to connect
constexpr duration leaving_patience{2};  ///< for an engine after all its probes got the order to end
constexpr std::size_t largest_report_bytes = 16u << 20;

}  // namespace

node_prober::node_prober(run_plan const& run, std::vector<int> const& nodes, choose_first const& first)
    : run_(run),
      nodes_(nodes),
      first_(first),
      files_(nodes.size()),
      listener_(loop_, nodes.size(), probe_lost_after,
                [this](wire::hello const& hello, std::unique_ptr<frame_channel>& link) { on_arrival(hello, link); }) {
    for (int const node : nodes) {
        auto& one = slots_.emplace_back();
        one.node = node;
        auto const& of_node = run.given.nodes[static_cast<std::size_t>(node)];
        one.found.name = of_node.name;
        one.found.address = of_node.address;
        one.found.gpus_expected = of_node.gpus;
    }
}

std::vector<probed_node> node_prober::run() {
    std::vector<std::size_t> all(slots_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    question_.what = make_node_question(run_, nodes_, nodes_.front());
    start_engine(all);
    wait_for(engine_patience);
    auto const& limit = run_.options.timeout;
    if (limit) loop_.after(std::max(*limit - run_.life.age(), duration(0)), [this] { on_timeout(); });
    loop_.run();
    if (phase_ == phase::timed_out) throw_timeout();
    throw_if_engine_failed();
    std::vector<probed_node> found;
    for (auto& one : slots_) found.push_back(std::move(one.found));
    return found;
}

/// The run's own time is over.
void node_prober::on_timeout() {
    if (phase_ == phase::timed_out) return;
    phase_ = phase::timed_out;
    end_engines();
}

void node_prober::throw_timeout() const {
    std::vector<std::string> silent;
    for (auto const& one : slots_)
        if (!one.found.report) silent.push_back(one.found.name);
    throw_error(errc::timeout, "asked the nodes what they have until --timeout {} had passed; {} did not answer by then",
                format_duration(*run_.options.timeout), silent.empty() ? "their engine" : list_some(silent, "nodes"));
}

/// If none of several nodes was reached, not even this one, the engine has failed and not the nodes.
void node_prober::throw_if_engine_failed() const {
    auto const is_here = [this](probed_slot const& one) {
        return is_this_host(run_.given.nodes[static_cast<std::size_t>(one.node)]);
    };
    if (any_arrived_ || (slots_.size() < 2 && std::ranges::none_of(slots_, is_here))) return;
    std::vector<std::string> names;
    for (auto const& one : slots_) names.push_back(one.found.name);
    auto const shown = std::ranges::find_if(slots_, is_here);
    auto const& first = shown == slots_.end() ? slots_.front() : *shown;
    throw_error(errc::unavailable,
                "{} reached none of the job's nodes ({}), so nothing is known of them: {} {}; see the command with muster run "
                "--dry-run, or choose another --engine",
                engine_->name, list_some(names, "nodes"), first.found.name, first.found.silence);
}

node_prober::probed_slot* node_prober::who_is(wire::hello const& hello) {
    auto const number = static_cast<std::size_t>(hello.rank);
    if (hello.fault.empty() && number < slots_.size() && slots_[number].now == state::absent) return &slots_[number];
    for (auto& one : slots_)
        if (one.now == state::absent && short_name(without_user(one.found.name)) == hello.host) return &one;
    return nullptr;
}

void node_prober::on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    auto* const one = phase_ == phase::probing ? who_is(hello) : nullptr;
    if (one == nullptr) return;
    any_arrived_ = true;
    one->step = hello.step;
    if (hello.version != version()) {  // it may not even understand the question
        one->found.report.emplace();
        one->found.report->version = hello.version;
        one->found.report->host = hello.host;
        one->now = state::over;
        return go_on();
    }
    one->link = std::move(link);
    one->link->set_callbacks({[this, one](std::string_view frame) { on_frame(*one, frame); },
                              [this, one](std::string const& reason) { on_link_lost(*one, reason); }},
                             largest_report_bytes);
    one->now = state::asked;
    question_.what.own_step = engine_->name == "srun";
    question_.what.address = one->found.address;
    one->asked_at = clock_now();
    one->link->send(wire::encode(question_));
    wait_for(arrival_patience);
}

void node_prober::on_frame(probed_slot& one, std::string_view frame) {
    try {
        auto message = wire::decode(frame);
        if (auto* const report = std::get_if<wire::report>(&message)) on_report(one, std::move(report->node));
        if (auto const* reached = std::get_if<wire::reached>(&message)) {
            one.found.connect_fault = reached->fault;
            one.now = state::over;
        }
    } catch (error const& e) {
        give_up(one, fmt::format("sent an answer that is no message of muster: {}", e.what()));
    }
    go_on();
}

/// If both ways took equally long, the clocks differ by the mean of the two differences.
void node_prober::compare_clocks(probed_node& found, double asked_at, double answered_at) {
    double const there = found.report->asked_at - asked_at;
    double const back = found.report->answered_at - answered_at;
    found.clock_ahead_s = (there + back) / 2;
    found.clock_error_s = (there - back) / 2;
}

void node_prober::on_report(probed_slot& one, node_report report) {
    if (one.now != state::asked) return;
    one.found.report = std::move(report);
    compare_clocks(one.found, one.asked_at, clock_now());
    one.now = state::told;
    if (phase_ == phase::probing) wait_for(arrival_patience);
}

void node_prober::on_link_lost(probed_slot& one, std::string const& reason) {
    if (phase_ == phase::leaving || phase_ == phase::timed_out) return;
    // An engine may end all when one fails: then the others are well nevertheless.
    bool const with_others = engine_of(one).slots().size() > 1;
    if (phase_ == phase::probing && with_others && (one.now == state::asked || one.now == state::told)) {
        one.found.report.reset();
        queue(static_cast<std::size_t>(&one - slots_.data()));
        return go_on();
    }
    if (one.now == state::asked) give_up(one, fmt::format("disconnected while it was inspected: {}", reason));
    if (one.now == state::connecting) one.found.connect_fault = "it disconnected meanwhile: " + reason;
    one.now = state::over;
    go_on();
}

void node_prober::give_up(probed_slot& one, std::string const& why) {
    one.found.silence = why;
    one.now = state::over;
}

/// Starts the time now; a later call replaces an earlier one.
void node_prober::wait_for(duration patience) {
    if (timer_) loop_.cancel(*timer_);
    timer_ = loop_.after(patience, [this] {
        timer_.reset();
        on_deadline();
    });
}

bool node_prober::any(state now) const {
    return std::ranges::any_of(slots_, [&](probed_slot const& one) { return one.now == now; });
}

void node_prober::on_deadline() {
    if (phase_ == phase::leaving || phase_ == phase::timed_out) return end_engines();
    if (phase_ == phase::connecting) {
        for (auto& one : slots_)
            if (one.now == state::connecting) one.found.connect_fault = "it did not answer in time";
        return leave();
    }
    // An engine of which no probe has connected may be waiting for one dead node: then each node is tried separately.
    bool const none = std::ranges::all_of(slots_, [](probed_slot const& one) { return one.now == state::absent; });
    if (none && engines_.size() == 1 && slots_.size() > 1) {
        engines_.front()->kill(SIGTERM);
        for (std::size_t i = 0; i < slots_.size(); ++i) queue(i);
        return go_on();
    }
    duration const waited = event_loop::clock::now() - start_;
    for (auto& one : slots_)
        if (one.now == state::absent || one.now == state::asked)
            give_up(one,
                    fmt::format("did not answer within {}{}", format_duration(waited), engine_of(one).quote(one.found.name)));
    go_on();
}

void node_prober::go_on() {
    if (phase_ == phase::timed_out) return;
    start_queued();
    if (phase_ == phase::probing && !any(state::absent) && !any(state::queued) && !any(state::asked)) try_connections();
    if (phase_ == phase::connecting && !any(state::connecting)) leave();
}

void node_prober::try_connections() {
    phase_ = phase::connecting;
    std::vector<probed_node> found;
    for (auto const& one : slots_) {
        found.push_back(one.found);
        if (one.now != state::told) found.back().report.reset();  // its probe has ended
    }
    int const chosen = first_(found);
    if (chosen < 0) return;
    auto const& target = slots_[static_cast<std::size_t>(chosen)].found;
    for (auto& one : slots_) {
        if (one.now != state::told || &one.found == &target) continue;
        one.found.towards = target.name;
        one.now = state::connecting;
        one.link->send(wire::encode(wire::reach{target.report->address, target.report->port}));
    }
    wait_for(connect_patience);
}

void node_prober::leave() {
    phase_ = phase::leaving;
    for (auto& one : slots_)
        if (one.link && one.link->open()) one.link->send(wire::encode(wire::bye{0}));
    bool const all_came = std::ranges::none_of(slots_, [](probed_slot const& one) { return !one.found.silence.empty(); });
    wait_for(all_came ? leaving_patience : final_messages_patience);
    stop_if_done();
}

namespace {

constexpr duration ending_patience{1.5};  ///< for an engine that was asked to end
constexpr std::size_t engines_at_once = 16;

}  // namespace

void node_prober::start_engine(std::vector<std::size_t> const& whom) {
    mapping map;
    map.ranks_per_node.assign(run_.given.nodes.size(), 0);
    for (auto const i : whom) map.ranks_per_node[static_cast<std::size_t>(slots_[i].node)] = 1;
    auto const scratch = fmt::format("{}/probe.{}", run_.session_dir, engines_.size());
    std::error_code fault;
    std::filesystem::create_directories(scratch, fault);
    auto job = describe_engine_job(run_, map, scratch);
    job.probe = true;
    job.shim = {job.shim.front(), "probe", std::to_string(whom.front())};
    if (engine_ == nullptr)
        engine_ = &choose_engine(job, run_.sources, run_.options.engine == "embedded" ? "" : run_.options.engine);
    auto command = engine_->command(job, run_.sources);
    if (!directions_)
        directions_.emplace(listener_.key(), listener_.port(), directions_request(job, run_.options, engine_->name));
    for (auto const& [name, value] : directions_->variables()) command.variables.set(name, value);
    write_files(command);
    engines_.push_back(std::make_unique<running_engine>(
        loop_, command, files_, whom, [this](running_engine& e) { on_exit(e); },
        [this](running_engine const& e, std::size_t which, std::string const& why) { on_unreached(e, which, why); }));
}

/// The engine has reported that no probe will come from there, and the others are on their way.
void node_prober::on_unreached(running_engine const& engine, std::size_t which, std::string const& why) {
    auto& one = slots_[which];
    if (phase_ != phase::probing || one.now != state::absent || &engine_of(one) != &engine) return;
    give_up(one, why + engine.quote_lines(one.found.name));
    go_on();
}

void node_prober::on_exit(running_engine& engine) {
    loop_.after(final_messages_patience, [this, &engine] { on_engine_end(engine); });
    if (phase_ == phase::leaving || phase_ == phase::timed_out) stop_if_done();
}

void node_prober::on_engine_end(running_engine const& engine) {
    if (phase_ != phase::probing) return;
    for (auto const i : engine.slots()) {
        if (slots_[i].now != state::absent || &engine_of(slots_[i]) != &engine) continue;
        if (engine.slots().size() > 1)
            queue(i);
        else
            give_up(slots_[i], fmt::format("did not answer: {} {}{}", engine_->name, describe_end(engine.status()),
                                           engine.quote(slots_[i].found.name)));
    }
    go_on();
}

void node_prober::queue(std::size_t which) {
    slots_[which].now = state::queued;
    alone_.push_back(which);
}

void node_prober::start_queued() {
    auto const running = std::ranges::count_if(engines_, [](auto const& e) { return e->slots().size() == 1 && !e->ended(); });
    for (auto room = static_cast<std::ptrdiff_t>(engines_at_once) - running; room > 0 && !alone_.empty(); --room) {
        auto const which = alone_.front();
        alone_.pop_front();
        slots_[which].now = state::absent;
        try {
            start_engine({which});
        } catch (error const& e) {
            give_up(slots_[which], fmt::format("cannot be reached: {}", e.what()));
        }
        wait_for(engine_patience);
    }
}

running_engine const& node_prober::engine_of(probed_slot const& one) const {
    auto const which = static_cast<std::size_t>(&one - slots_.data());
    for (auto e = engines_.rbegin(); e != engines_.rend(); ++e)
        if ((*e)->brings(which)) return **e;
    return *engines_.front();
}

/// Ends engines that wait for a node that will never come.
void node_prober::end_engines() {
    bool const asked_before = std::exchange(ending_, true);
    for (auto& engine : engines_) engine->kill(asked_before ? SIGKILL : SIGTERM);
    if (asked_before) return loop_.stop();
    wait_for(ending_patience);
    cancel_step();
}

void node_prober::cancel_step() {
    if (engine_->cancel == nullptr) return;
    for (auto const& one : slots_) {
        if (one.step.empty()) continue;
        if (auto const argv = engine_->cancel(one.step); !argv.empty()) run_.sources.run_command(argv);
        return;
    }
}

void node_prober::stop_if_done() {
    if (std::ranges::all_of(engines_, [](auto const& e) { return e->ended(); })) loop_.stop();
}

}  // namespace muster
