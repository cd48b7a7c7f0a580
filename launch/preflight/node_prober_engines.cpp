// The node prober's second half: the engines that start its probes.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "launch/engine/describe_engine_job.hpp"
#include "launch/preflight/node_prober.hpp"
#include "launch/system/exit_status.hpp"

namespace muster {

namespace {

constexpr duration ending_patience{1.5};  ///< for one that was asked to end
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
    job.shim.insert(job.shim.end(), {"--probe", std::to_string(whom.front())});
    if (engine_ == nullptr)
        engine_ = &choose_engine(job, run_.sources, run_.options.engine == "embedded" ? "" : run_.options.engine);
    auto command = engine_->command(job, run_.sources);
    if (!directions_)
        directions_.emplace(listener_.key(), listener_.port(), directions_request(job, run_.options, engine_->name));
    for (auto const& [name, value] : directions_->variables()) command.variables.set(name, value);
    write_files(command);
    engines_.push_back(std::make_unique<probe_engine>(
        loop_, command, files_, whom, [this](probe_engine& e) { on_exit(e); },
        [this](probe_engine const& e, std::size_t which, std::string const& why) { on_unreached(e, which, why); }));
}

/// The engine has told that no probe will come from there, and the others are on their way.
void node_prober::on_unreached(probe_engine const& engine, std::size_t which, std::string const& why) {
    auto& one = slots_[which];
    if (phase_ != phase::probing || one.now != state::absent || &engine_of(one) != &engine) return;
    give_up(one, why + engine.quote_lines(one.found.name));
    go_on();
}

void node_prober::on_exit(probe_engine& engine) {
    loop_.after(final_messages_patience, [this, &engine] { on_engine_end(engine); });
    if (phase_ == phase::leaving) stop_if_done();
}

void node_prober::on_engine_end(probe_engine const& engine) {
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
    auto const running =
        std::count_if(engines_.begin(), engines_.end(), [](auto const& e) { return e->slots().size() == 1 && !e->ended(); });
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

probe_engine const& node_prober::engine_of(probed_slot const& one) const {
    auto const which = static_cast<std::size_t>(&one - slots_.data());
    for (auto e = engines_.rbegin(); e != engines_.rend(); ++e)
        if ((*e)->brings(which)) return **e;
    return *engines_.front();
}

/// Engines that wait for a node that will never come.
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
    if (std::all_of(engines_.begin(), engines_.end(), [](auto const& e) { return e->ended(); })) loop_.stop();
}

}  // namespace muster
