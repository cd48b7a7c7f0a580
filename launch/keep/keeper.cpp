#include "launch/keep/keeper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/throw_error.hpp"
#include "base/version.hpp"
#include "launch/keep/state_holder.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/system/network.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/wire/launcher_link.hpp"

namespace muster {

namespace {

constexpr duration leader_lost_after{15};
constexpr std::size_t largest_order_bytes = 1u << 20, most_nodes = 4096;
constexpr duration between_signs_of_life{1};
constexpr duration between_looks{0.02};  ///< between looks at what ranks have committed: a few heads of copies

/// If ranks fill all cores, 15 leaves this 3.5 % of a rank's share of one; with 19 copies would hardly progress. Kernels with
/// autogroup share the processors among sessions, and this is one session.
void give_way() {
    ::setpriority(PRIO_PROCESS, 0, 15);
    unique_fd const group(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
    timespec const pause{0, 50'000'000};
    // Such a kernel accepts ten of these a second, from all of its processes. If that fails, the keeper goes on without it.
    for (int tries = 0; group && tries < 20 && ::write(group.get(), "15", 2) != 2 && errno == EAGAIN; ++tries)
        ::nanosleep(&pause, nullptr);
}

}  // namespace

keeper::keeper(std::vector<int> const& nodes, environment const& variables) {
    ignore_signals(process_kind::keeper);  // schedulers send them to each step
    ::prctl(PR_SET_NAME, "muster-keeper");
    give_way();
    auto link = connect_to_launcher(variables);
    leader_fd_ = link.socket.get();
    detect_lost_peer(leader_fd_, leader_lost_after);
    leader_ = std::make_unique<frame_channel>(loop_, std::move(link.socket),
                                              frame_channel::callbacks{[this](std::string_view frame) { on_frame(frame); },
                                                                       [this](std::string const&) { loop_.stop(); }},
                                              largest_order_bytes);
    leader_->secure(std::move(link.session));
    receiver_ = std::make_unique<copy_receiver>(loop_, most_nodes, own_, of_others_);
    auto hello = introduce_shim(variables, short_host_name());
    auto const place = static_cast<std::size_t>(std::max(hello.rank, 0));
    if (place < nodes.size()) hello.rank = nodes[place];
    leader_->send(wire::encode(hello));
    own_.on_progress = of_others_.on_progress = [this] { show_life(); };
    introduce(wire::keep_word::kind::there);
    live();
}

void keeper::introduce(wire::keep_word::kind what) {
    say({.what = what,
         .step = own_.owned_parts().size(),
         .file = own_.path(),
         .address = reachable_address("", "", leader_fd_),
         .port = receiver_->port(),
         .key = receiver_->key(),
         .file_id = own_.id()});
}

/// Tells its leader, which leaves out keepers that stand still, that this one runs.
void keeper::show_life() {
    auto const now = event_loop::clock::now();
    if (now - showed_life_ < between_signs_of_life) return;
    showed_life_ = now;
    say({.what = wire::keep_word::kind::alive});
}

void keeper::live() {
    show_life();
    loop_.after(between_signs_of_life, [this] { live(); });
}

int keeper::run() {
    loop_.run();
    return 0;
}

void keeper::say(wire::keep_word const& word) {
    leader_->send(wire::encode(word));
}

void keeper::on_frame(std::string_view frame) {
    std::visit([this](auto const& message) { on_message(message); }, wire::decode(frame));
}

void keeper::on_message(wire::keep_order const& order) {
    if (order.what == wire::keep_order::kind::adopt) {
        own_.adopt(order.file_id);
        return introduce(wire::keep_word::kind::adopted);
    }
    bool const looks = duties_.reports();
    carry_out(duties_.take(order));
    if (!looks && duties_.reports()) look();
}

void keeper::look() {
    loop_.after(between_looks, [this] { look(); });
    carry_out(duties_.look());
}

void keeper::carry_out(std::vector<keeper_duties::duty> duties) {
    for (auto const& one : duties)
        if (auto const* const word = std::get_if<wire::keep_word>(&one))
            say(*word);
        else if (auto const* const send = std::get_if<keeper_duties::send>(&one))
            this->send(*send);
        else if (std::holds_alternative<keeper_duties::stop_round>(one))
            sender_.reset();
        else
            moves_.clear();
}

void keeper::send(keeper_duties::send const& what) {
    std::vector<copy_sender::item> items;
    for (auto const& one : what.items) items.push_back({one.from_others ? &of_others_ : &own_, one.what, one.for_neighbour});
    auto made = std::make_unique<copy_sender>(loop_, keeper_address{what.address, what.port, what.key}, std::move(items),
                                              [this, done = what.done](std::string const& fault) {
                                                  auto word = done;
                                                  word.fault = fault;
                                                  say(word);
                                              });
    if (what.done.what == wire::keep_word::kind::sent)
        sender_ = std::move(made);
    else
        moves_.push_back(std::move(made));
}

int keeper_command(std::vector<std::string> const& args, environment const& variables) try {
    return keeper(args.empty() ? std::vector<int>() : parse_numbers(args.front(), "the nodes of the keepers"), variables).run();
} catch (error const& e) {
    throw_error(e.code(), "on {}: {}", short_host_name(), e.what());
}

void add_keep(part_functions& to) {
    to.commands.push_back({"keeper", keeper_command});
    to.keep_states = [] { return std::unique_ptr<state_keeping>(std::make_unique<state_holder>()); };
}

}  // namespace muster
