#include "launch/keep/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/error.hpp"
#include "base/version.hpp"
#include "launch/keep/state_arrangement.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/system/network.hpp"
#include "launch/system/signal_table.hpp"
#include "launch/wire/launcher_link.hpp"

namespace muster {

namespace {

constexpr duration leader_lost_after{15};
constexpr std::size_t largest_order_bytes = 1u << 20, most_nodes = 4096;
constexpr duration between_signs_of_life{1};
constexpr duration between_looks{0.02};  ///< at what ranks have committed: a few heads of copies

/// Where ranks fill all cores, 15 leaves this 3.5 % of a rank's share of one; by 19 copies would hardly get on. Kernels with autogroup share the processors among
/// sessions, and this is one.
void give_way() {
    ::setpriority(PRIO_PROCESS, 0, 15);
    unique_fd const group(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
    timespec const pause{0, 50'000'000};
    // Such a kernel takes ten of these a second, from all of its processes. Others do without.
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
         .step = living_parts().size(),
         .file = own_.path(),
         .address = reachable_address("", "", leader_fd_),
         .port = receiver_->port(),
         .key = receiver_->key(),
         .file_id = own_.id()});
}

/// A keeper that stands still is left out by its leader, which this tells that it does not.
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
    using kind = wire::keep_order::kind;
    switch (order.what) {
        case kind::report:
            if (!std::exchange(reports_, true)) look();
            return;
        case kind::hold:
            holding_ = holding{order.round, order.step, living_parts()};
            for (int const part : holding_->parts) own_.want(part, order.step);
            return look_for_held();
        case kind::send: return send_held(order);
        case kind::release: return release(order.step);
        case kind::list: return list(order);
        case kind::move: return move(order);
        case kind::settle: return settle(order);
        case kind::adopt: own_.adopt(order.file_id); return introduce(wire::keep_word::kind::adopted);
    }
}

/// Of ranks that run, and have asked for what they had kept, or have committed.
std::vector<int> keeper::living_parts() {
    auto parts = own_.parts();
    std::erase_if(parts, [this](int part) { return !own_.has_owner(part); });
    return parts;
}

void keeper::look() {
    loop_.after(between_looks, [this] { look(); });
    if (holding_) return look_for_held();
    auto const parts = living_parts();
    std::uint64_t newest = parts.empty() ? 0 : UINT64_MAX;
    for (int const part : parts) {
        std::uint64_t last = 0, number = 0;
        for (auto const& one : own_.copies(part))
            if (one.number > number) number = one.number, last = one.step;
        newest = std::min(newest, last);
    }
    if (newest != told_newest_) say({.what = wire::keep_word::kind::newest, .step = told_newest_ = newest});
}

/// Once each rank holds a commit of the round.
void keeper::look_for_held() {
    std::uint64_t least = UINT64_MAX, most = 0;
    for (int const part : holding_->parts) {
        std::uint64_t first = UINT64_MAX;
        for (auto const& one : own_.copies(part))
            if (one.held && one.step >= holding_->from) first = std::min(first, one.step);
        if (first == UINT64_MAX) return;
        least = std::min(least, first);
        most = std::max(most, first);
    }
    say({.what = wire::keep_word::kind::held, .round = holding_->round, .step = least == most ? least : 0});
    holding_.reset();
}

void keeper::send_held(wire::keep_order const& order) {
    std::vector<copy_sender::item> items;
    for (int const part : own_.parts()) {
        auto const one = own_.find(part, order.step);
        if (one && one->held)
            items.push_back({&own_, *one, true});
        else if (own_.has_owner(part))
            return say({.what = wire::keep_word::kind::sent,
                        .round = order.round,
                        .fault = fmt::format("a rank there has no commit {} that is held", order.step)});
    }
    sender_ = std::make_unique<copy_sender>(loop_, keeper_address{order.address, order.port, order.key}, std::move(items),
                                            [this, round = order.round](std::string const& fault) {
                                                say({.what = wire::keep_word::kind::sent, .round = round, .fault = fault});
                                            });
}

/// What another node's rank had before `step` is of no use: all ranks have that.
void keeper::release(std::uint64_t step) {
    sender_.reset();
    holding_.reset();
    told_newest_ = 0;
    for (int const part : own_.parts()) {
        own_.want(part, 0);  // also of one that is gone: its successor would hold a commit that nobody needs
        for (auto const& one : own_.copies(part))
            if (one.held && one.step != step) own_.release(one);
    }
    of_others_.keep_from(step);
}

void keeper::list(wire::keep_order const& order) {
    wire::keep_word word{.what = wire::keep_word::kind::listed, .round = order.round};
    word.copies = list_copies(own_, false);
    auto const more = list_copies(of_others_, true);
    word.copies.insert(word.copies.end(), more.begin(), more.end());
    say(word);
}

void keeper::move(wire::keep_order const& order) {
    auto& from = order.of_neighbour ? of_others_ : own_;
    auto const one = from.find(order.part, order.step, order.generation);
    auto const answer = [this, round = order.round](std::string const& fault) {
        say({.what = wire::keep_word::kind::moved, .round = round, .fault = fault});
    };
    if (!one) return answer("the copy is gone");
    moves_.push_back(std::make_unique<copy_sender>(loop_, keeper_address{order.address, order.port, order.key},
                                                   std::vector<copy_sender::item>{{&from, *one, false}}, answer));
}

void keeper::settle(wire::keep_order const& order) {
    moves_.clear();
    release(order.step);
    // Ranks make the numbers again: what has them now is of another history.
    for (auto* const store : {&own_, &of_others_}) store->keep_only(order.generation, order.step);
    own_.drop_others(order.parts);
    for (int const part : order.parts)
        if (auto const one = own_.find(part, order.step); one && reports_) own_.hold(*one);
}

int keeper_command(std::vector<std::string> const& args, environment const& variables) try {
    return keeper(args.empty() ? std::vector<int>() : parse_numbers(args.front(), "the nodes of the keepers"), variables).run();
} catch (error const& e) {
    throw error(e.code(), fmt::format("on {}: {}", short_host_name(), e.what()));
}

}  // namespace muster
