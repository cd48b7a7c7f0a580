#include "launch/keep/keeper_group.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/cpuset.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "launch/engine/engine_job.hpp"
#include "launch/engine/engine_table.hpp"
#include "launch/remote/host_ranks.hpp"

namespace muster {

namespace {

constexpr duration patience_with_keepers{60}, patience_with_round{2}, patience_at_end{2}, between_tellings{1};
constexpr duration after_failed_copies{10}, before_note_of_loss{2};
constexpr duration between_looks{1}, before_another{0.5}, patience_with_another{20};
constexpr int most_starts = 5;  ///< of keepers on one node
constexpr int most_tries_to_move = 3;
constexpr std::size_t largest_word_bytes = 64u << 20;

}  // namespace

keeper_group::keeper_group(run_context const& run, unique_fd launcher)
    : run_(run),
      to_neighbours_(run.options.keep_at_neighbour),
      verbose_(run.options.verbose),
      quiet_(run.options.quiet),
      files_(run.given.nodes.size()),
      nodes_(run.given.nodes.size()),
      rounds_(nodes_.size()),
      listener_(loop_, nodes_.size(), run.options.lost_after(),
                [this](wire::hello const& hello, std::unique_ptr<frame_channel>& link) { on_arrival(hello, link); }),
      launcher_(loop_, std::move(launcher),
                {[this](std::string_view frame) { on_launcher(frame); }, [this](std::string const&) { end(); }},
                largest_word_bytes),
      session_dir_(run.session_dir) {
    std::vector<std::size_t> all(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i].name = run.given.nodes[i].name;
        all[i] = i;
    }
    start_keepers(all);
    watch_silence();
}

/// Each start has an engine of its own.
void keeper_group::start_keepers(std::vector<std::size_t> const& whom) {
    mapping map;
    map.ranks_per_node.assign(nodes_.size(), 0);
    std::vector<std::string> numbers;
    for (auto const which : whom) {
        map.ranks_per_node[which] = 1;
        numbers.push_back(std::to_string(which));
        ++nodes_[which].starts;
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
    engines_.push_back(std::make_unique<probe_engine>(
        loop_, command, files_, whom,
        [this](probe_engine& probes) {
            for (auto const i : probes.slots())
                if (nodes_[i].now == node::state::awaited) on_lost(i, "no keeper came" + probes.quote(nodes_[i].name));
            if (ending_ && std::all_of(engines_.begin(), engines_.end(), [](auto const& one) { return one->ended(); }))
                loop_.stop();
        },
        [this](probe_engine const&, std::size_t slot, std::string const& why) { on_lost(slot, why); }));
}

/// Where the launcher has gone meanwhile, its successor has it done.
bool keeper_group::may_start_again(node const& one) const {
    std::error_code fault;
    return !ending_ && one.memory != 0 && one.starts < most_starts && std::filesystem::is_directory(session_dir_, fault);
}

void keeper_group::start_again() {
    starting_again_ = false;
    std::vector<std::size_t> whom;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].now != node::state::due) continue;
        if (may_start_again(nodes_[i]))
            whom.push_back(i);
        else
            on_lost(i, nodes_[i].why);
    }
    if (whom.empty()) return;
    for (auto const which : whom) nodes_[which].now = node::state::awaited;
    std::string fault;
    try {
        start_keepers(whom);
    } catch (error const& e) {
        fault = e.what();
    }
    loop_.after(fault.empty() ? patience_with_another : duration(0), [this, whom, fault] {
        for (auto const which : whom)
            if (nodes_[which].now == node::state::awaited)
                on_lost(which, fault.empty() ? "no other keeper has come" : "no other keeper could be started: " + fault);
    });
}

/// A stopped process' connection stays. Where this one was stopped itself, it has not listened.
void keeper_group::watch_silence() {
    auto const now = event_loop::clock::now();
    auto const patience = run_.options.lost_after();
    if (now - std::exchange(looked_, now) > 3 * between_looks)
        for (auto& one : nodes_) one.heard = now;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].now == node::state::there && now - nodes_[i].heard > patience)
            on_lost(i, fmt::format("its keeper has not answered for {}", format_duration(patience)));
    if (now_ != step::none) launcher_.send(wire::encode(wire::states_placed{.under_way = true}));
    loop_.after(between_looks, [this] { watch_silence(); });
}

void keeper_group::run() {
    loop_.run();
}

/// What was started is told to end by the connections that end.
void keeper_group::end() {
    if (std::exchange(ending_, true)) return;
    for (auto& one : nodes_)
        if (one.link) one.link->send(wire::encode(wire::bye{0}));
    if (std::all_of(engines_.begin(), engines_.end(), [](auto const& one) { return one->ended(); })) return loop_.stop();
    loop_.after(patience_at_end, [this] { loop_.stop(); });
}

void keeper_group::on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    auto const which = static_cast<std::size_t>(hello.rank);
    if (ending_ || which >= nodes_.size() || nodes_[which].now != node::state::awaited) return;
    if (hello.version != version()) return on_lost(which, "has muster " + hello.version);
    nodes_[which].link = std::move(link);
    nodes_[which].link->set_callbacks({[this, which](std::string_view frame) { on_word(which, frame); },
                                       [this, which](std::string const& reason) { on_lost(which, reason); }},
                                      largest_word_bytes);
}

void keeper_group::on_word(std::size_t which, std::string_view frame) {
    using kind = wire::keep_word::kind;
    auto message = wire::decode(frame);
    auto* const word = std::get_if<wire::keep_word>(&message);
    if (word == nullptr) return;
    auto& one = nodes_[which];
    one.heard = event_loop::clock::now();
    switch (word->what) {
        case kind::there:
            if (one.memory != 0) {
                one.link->send(wire::encode(wire::keep_order{.what = wire::keep_order::kind::adopt, .file_id = one.memory}));
                break;
            }
            [[fallthrough]];
        case kind::adopted:
            one.took_over = word->file_id == one.memory;
            one.about = *word;
            one.memory = word->file_id;
            on_there(which);
            break;
        case kind::alive: break;
        case kind::newest: rounds_.on_newest(which, word->step); break;
        case kind::held: rounds_.on_held(which, word->round, word->step); break;
        case kind::sent:
            if (!word->fault.empty()) {
                on_fault(which, word->fault);
                loop_.after(after_failed_copies, [this, which, round = word->round] {  // it may well last
                    rounds_.on_sent(which, round, false);
                    carry_out_rounds();
                });
                break;
            }
            rounds_.on_sent(which, word->round, true);
            tell_of_rounds();
            break;
        case kind::listed:
            one.copies = word->copies;
            answered(which, word->round);
            break;
        case kind::moved:
            if (!word->fault.empty())
                not_moved_ = fmt::format("a state that {} has could not be moved: {}", one.name, word->fault);
            answered(which, word->round);
            break;
    }
    carry_out_rounds();
}

/// The first one is told of: copies may fail to the end of the run, and that must not be found out at the loss of a node.
void keeper_group::on_fault(std::size_t which, std::string const& fault) {
    bool const first = last_fault_.empty();
    if (fault == std::exchange(last_fault_, fault) || quiet_ || !(first || verbose_)) return;
    fmt::print(stderr, "muster: note: --keep-state: what ranks on {} commit could not be copied to the next node: {}\n",
               nodes_[which].name, fault);
}

void keeper_group::on_there(std::size_t which) {
    auto& one = nodes_[which];
    one.now = node::state::there;
    if (to_neighbours_) send(which, {.what = wire::keep_order::kind::report});
    rounds_.on_there(which, now_ == step::none && one.about.step > 0);
    proceed();
}

void keeper_group::on_lost(std::size_t which, std::string const& why) {
    auto& one = nodes_[which];
    if (one.now == node::state::lost) return;
    bool const again = one.now == node::state::there && may_start_again(one);
    if (one.now == node::state::there && now_ == step::none) note_loss(which, why);
    if (now_ == step::moving) not_moved_ = fmt::format("the keeper on {} was lost: {}", one.name, why);
    one.now = again ? node::state::due : node::state::lost;
    one.why = why;
    one.copies.clear();
    if (one.link) one.link->close();
    rounds_.on_lost(which, again && now_ == step::none);
    carry_out_rounds();
    std::erase_if(open_, [which](auto const& each) { return each.node == which || each.about == which; });
    if (again && !std::exchange(starting_again_, true)) loop_.after(before_another, [this] { start_again(); });
    if (again && now_ != step::none) {  // with that one it is done anew
        now_ = step::awaiting;
        open_.clear();
    }
    proceed();
}

/// Unless all end.
void keeper_group::note_loss(std::size_t which, std::string const& why) {
    loop_.after(before_note_of_loss, [this, which, why] {
        auto const& one = nodes_[which];
        if (quiet_ || ending_) return;
        if (one.now == node::state::awaited || one.now == node::state::due) return note_loss(which, why);
        if (one.now == node::state::there && one.took_over)
            fmt::print(stderr,
                       "muster: note: --keep-state: the keeper on {} was lost: {}; another holds what ranks there commit\n",
                       one.name, why);
        else
            fmt::print(stderr, "muster: note: --keep-state: what ranks on {} commit is no longer held: {}\n", one.name, why);
    });
}

void keeper_group::send(std::size_t which, wire::keep_order const& order) {
    if (nodes_[which].now == node::state::there) nodes_[which].link->send(wire::encode(order));
}

void keeper_group::carry_out_rounds() {
    using kind = copy_rounds::order::kind;
    bool begun = false;
    for (auto const& one : rounds_.take_orders()) {
        wire::keep_order order{.round = one.round, .step = one.step};
        order.what = one.what == kind::hold   ? wire::keep_order::kind::hold
                     : one.what == kind::send ? wire::keep_order::kind::send
                                              : wire::keep_order::kind::release;
        if (one.what == kind::send) {
            auto const& to = nodes_[one.to].about;
            order.address = to.address;
            order.port = to.port;
            order.key = to.key;
        }
        begun = begun || one.what == kind::hold;
        send(one.node, order);
    }
    if (begun)
        loop_.after(patience_with_round, [this, round = rounds_.round()] {
            rounds_.on_late(round);
            carry_out_rounds();
        });
}

/// Once a second at most.
void keeper_group::tell_of_rounds() {
    if (!verbose_ || rounds_.last() == told_ || std::exchange(telling_, true)) return;
    loop_.after(between_tellings, [this] {
        telling_ = false;
        told_ = rounds_.last();
        if (told_ != 0) fmt::print(stderr, "muster: --keep-state: commit {} is on two nodes\n", told_);
    });
}

void keeper_group::on_launcher(std::string_view frame) {
    auto message = wire::decode(frame);
    auto* const wanted = std::get_if<wire::place_states>(&message);
    if (wanted == nullptr) return;
    wanted_ = std::move(*wanted);
    session_dir_ = wanted_.session_dir;
    notes_.clear();
    open_.clear();
    tries_ = 0;
    now_ = step::awaiting;
    rounds_.pause();
    carry_out_rounds();
    call_missing();
    loop_.after(patience_with_keepers, [this] {
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            if (is_awaited(nodes_[i]))
                on_lost(i, fmt::format("no keeper came within {}", format_duration(patience_with_keepers)));
    });
    proceed();
}

/// On nodes that will have ranks. Of another that had one, nothing is to be had any more.
void keeper_group::call_missing() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        auto& one = nodes_[i];
        bool const wanted = std::find(wanted_.hosts.begin(), wanted_.hosts.end(), one.name) != wanted_.hosts.end();
        if (wanted && one.now == node::state::lost && may_start_again(one)) one.now = node::state::due;
        if (!wanted && one.memory != 0 && is_awaited(one)) on_lost(i, one.why);
    }
    start_again();
}

void keeper_group::proceed() {
    if (now_ == step::awaiting && std::none_of(nodes_.begin(), nodes_.end(), [](auto const& one) { return is_awaited(one); }))
        list_all();
    if (now_ == step::listing && open_.empty()) arrange();
    if (now_ != step::moving || !open_.empty()) return;
    if (!not_moved_.empty() && ++tries_ < most_tries_to_move) {
        list_all();
        return proceed();
    }
    conclude();
}

void keeper_group::answered(std::size_t which, std::uint64_t round) {
    std::erase_if(open_, [&](auto const& one) { return one.node == which && one.number == round; });
    proceed();
}

void keeper_group::list_all() {
    now_ = step::listing;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].now != node::state::there) continue;
        open_.insert({i, ++question_, i});
        send(i, {.what = wire::keep_order::kind::list, .round = question_});
    }
}

void keeper_group::arrange() {
    now_ = step::moving;
    not_moved_.clear();
    auto const ranks = unpack_ranks(wanted_.ranks, wanted_.hosts.size(), wanted_.world_size);
    node_of_.assign(static_cast<std::size_t>(wanted_.world_size), nodes_.size());
    for (std::size_t host = 0; host < ranks.size(); ++host)
        for (int const rank : ranks[host])
            for (std::size_t i = 0; i < nodes_.size(); ++i)
                if (nodes_[i].name == wanted_.hosts[host] && nodes_[i].now == node::state::there)
                    node_of_[static_cast<std::size_t>(rank)] = i;
    std::vector<std::vector<wire::kept_copy>> there;
    for (auto const& one : nodes_) there.push_back(one.copies);
    made_ = arrange_states(there, node_of_);
    for (auto const& one : made_.moves) {
        auto const& to = nodes_[one.to].about;
        open_.insert({one.from, ++question_, one.to});
        send(one.from, {.what = wire::keep_order::kind::move,
                        .round = question_,
                        .step = one.what.step,
                        .generation = one.what.generation,
                        .address = to.address,
                        .port = to.port,
                        .key = to.key,
                        .part = one.what.part,
                        .of_neighbour = one.what.of_neighbour});
    }
}

void keeper_group::conclude() {
    now_ = step::none;
    if (!not_moved_.empty()) {
        notes_.push_back(not_moved_ + "; so no commit is common to all ranks");
        made_.step = 0;
    }
    wire::states_placed placed{
        .parts = made_.parts, .free_part = made_.free_part, .step = made_.step, .world_size = made_.world_size, .notes = notes_};
    for (auto const& host : wanted_.hosts) {
        auto const found = std::find_if(nodes_.begin(), nodes_.end(), [&](node const& one) { return one.name == host; });
        bool const there = found != nodes_.end() && found->now == node::state::there;
        placed.files.push_back(there ? found->about.file : "");
        if (!there)
            placed.notes.push_back(fmt::format("what ranks on {} commit is not held: {}", host,
                                               found == nodes_.end() ? "it came later than the run" : found->why));
    }
    if (!made_.without.empty()) {
        placed.notes.push_back(fmt::format("no copy is left of what rank{} {} committed", made_.without.size() == 1 ? "" : "s",
                                           cpuset{made_.without}.to_list()));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        wire::keep_order order{.what = wire::keep_order::kind::settle, .step = made_.step, .generation = made_.generation};
        for (std::size_t rank = 0; rank < node_of_.size(); ++rank)
            if (node_of_[rank] == i) order.parts.push_back(made_.parts[rank]);
        send(i, order);
    }
    std::vector<bool> have_ranks(nodes_.size());
    for (auto const which : node_of_)
        if (which < nodes_.size()) have_ranks[which] = true;
    rounds_.go_on(made_.step, have_ranks);
    launcher_.send(wire::encode(placed));
}

}  // namespace muster
