#include "launch/keep/keeper_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"

namespace muster {

namespace {

constexpr duration patience_at_end{2};
constexpr std::size_t largest_word_bytes = 64u << 20;

std::vector<std::string> names_of(std::vector<node> const& nodes) {
    std::vector<std::string> names;
    for (auto const& one : nodes) names.push_back(one.name);
    return names;
}

}  // namespace

namespace act = keeping::act;
namespace happened = keeping::happened;

keeper_group::keeper_group(run_plan const& run, unique_fd launcher)
    : run_(run),
      files_(run.given.nodes.size()),
      state_(names_of(run.given.nodes), run.options.lost_after().count(), run.options.keep_at_neighbour),
      links_(run.given.nodes.size()),
      listener_(loop_, links_.size(), run.options.lost_after(),
                [this](wire::hello const& hello, std::unique_ptr<frame_channel>& link) { on_arrival(hello, link); }),
      launcher_(loop_, std::move(launcher),
                {[this](std::string_view frame) { on_launcher(frame); }, [this](std::string const&) { end(); }},
                largest_word_bytes),
      session_dir_(run.session_dir) {
    feed(happened::beginning{});
}

void keeper_group::run() {
    loop_.run();
}

/// Handles what an action causes after all actions of its step.
void keeper_group::feed(decltype(keeping::event::what) what) {
    events_.push_back({std::chrono::duration<double>(event_loop::clock::now().time_since_epoch()).count(), std::move(what)});
    if (std::exchange(stepping_, true)) return;
    while (!events_.empty()) {
        auto const next = std::move(events_.front());
        events_.pop_front();
        std::error_code fault;
        state_.can_start = std::filesystem::is_directory(session_dir_, fault);
        for (auto const& deed : keeping::step(state_, next)) std::visit([this](auto const& one) { act(one); }, deed);
    }
    stepping_ = false;
}

// ------------------------------------------------------------------------------------------------ deeds

void keeper_group::act(act::order const& what) {
    if (auto const& link = links_[what.to]) link->send(wire::encode(what.what));
}

void keeper_group::act(act::start const& what) {
    try {
        start_keepers(what.whom);
    } catch (error const& e) {
        if (engines_.empty()) throw;  // the first ones
        for (auto const& one : what.whom)
            feed(happened::no_start{one.node, one.number, std::string("no other keeper could be started: ") + e.what()});
    }
}

void keeper_group::act(act::close const& what) {
    if (auto const& link = links_[what.whose]) link->close();
}

void keeper_group::act(act::set_timer const& what) {
    loop_.after(duration(what.after_s), [this, what] { feed(happened::timer_fired{what.which, what.node, what.number}); });
}

void keeper_group::act(act::say const& what) {
    auto const& options = run_.options;
    if (options.quiet || (what.if_verbose && !options.verbose)) return;
    fmt::print(stderr, "{}{}\n", what.line.starts_with("note: ") ? "muster: " : "", what.line);
}

void keeper_group::act(act::answer const& what) {
    launcher_.send(wire::encode(what.what));
}

/// Starts keepers; each start has its own engine.
void keeper_group::start_keepers(std::vector<act::start::one> const& whom) {
    mapping map;
    map.ranks_per_node.assign(links_.size(), 0);
    std::vector<std::size_t> nodes;
    std::vector<std::string> numbers;
    for (auto const& one : whom) {
        map.ranks_per_node[one.node] = 1;
        nodes.push_back(one.node);
        numbers.push_back(std::to_string(one.node));
    }
    auto const scratch = fmt::format("{}/keepers{}", session_dir_, engines_.size());
    std::error_code fault;
    std::filesystem::create_directories(scratch, fault);
    auto job = describe_engine_job(run_, map, scratch);
    job.probe = job.stays = true;
    job.waiting = {};
    job.shim.back() = "keeper";
    job.shim.push_back(join(numbers, ","));
    auto const& engine = choose_engine(job, run_.sources, "remote");
    auto command = engine.command(job, run_.sources);
    if (!directions_) directions_.emplace(listener_.key(), listener_.port(), directions_request(job, run_.options, engine.name));
    for (auto const& [name, value] : directions_->variables()) command.variables.set(name, value);
    if (!run_.options.ports.empty()) command.variables.set("MUSTER_PORTS", run_.options.ports);
    write_files(command);
    engines_.push_back(std::make_unique<running_engine>(
        loop_, command, files_, nodes,
        [this, whom](running_engine& probes) {
            for (auto const& one : whom)
                feed(happened::no_start{one.node, one.number, "no keeper came" + probes.quote(state_.nodes[one.node].name)});
            if (ends() && std::all_of(engines_.begin(), engines_.end(), [](auto const& one) { return one->ended(); }))
                loop_.stop();
        },
        [this, whom](running_engine const&, std::size_t slot, std::string const& why) {
            for (auto const& one : whom)
                if (one.node == slot) feed(happened::no_start{slot, one.number, why});
        }));
}

// ------------------------------------------------------------------------------------------------ what happens

/// Ends the keepers: the closing connections end what was started.
void keeper_group::end() {
    if (ends()) return;
    feed(happened::end{});
    for (auto const& link : links_)
        if (link) link->send(wire::encode(wire::bye{0}));
    if (std::all_of(engines_.begin(), engines_.end(), [](auto const& one) { return one->ended(); })) return loop_.stop();
    loop_.after(patience_at_end, [this] { loop_.stop(); });
}

void keeper_group::on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    auto const which = static_cast<std::size_t>(hello.rank);
    if (ends() || which >= links_.size() || state_.nodes[which].now != keeping::node::state::awaited) return;
    if (hello.version != version()) return feed(happened::loss{which, "has muster " + hello.version});
    links_[which] = std::move(link);
    links_[which]->set_callbacks({[this, which](std::string_view frame) { on_word(which, frame); },
                                  [this, which](std::string const& reason) {
                                      feed(happened::loss{which, reason});
                                  }},
                                 largest_word_bytes);
}

void keeper_group::on_word(std::size_t which, std::string_view frame) {
    auto message = wire::decode(frame);
    if (auto* const word = std::get_if<wire::keep_word>(&message)) feed(happened::word{which, std::move(*word)});
}

void keeper_group::on_launcher(std::string_view frame) {
    auto message = wire::decode(frame);
    auto* const wanted = std::get_if<wire::place_states>(&message);
    if (wanted == nullptr) return;
    session_dir_ = wanted->session_dir;
    feed(happened::request{std::move(*wanted)});
}

}  // namespace muster
