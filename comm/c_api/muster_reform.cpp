// The C interface's elastic runs make the world again without the ranks that are lost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/c_api/c_call.hpp"
#include "comm/c_api/muster_comm.h"
#include "comm/membership/kept_state.hpp"
#include "comm/membership/next_world.hpp"
#include "comm/tcp/tcp_backend.hpp"
#include "pmix/identity.hpp"
#include "pmix/member_message.hpp"

namespace muster::c_api {

namespace {

std::mutex link_guard;
member_link* own_link = nullptr;  ///< one for the process

/// The launcher sends the ranks' addresses over several nodes, and if the program wants the backend tcp: PMIx knows only those from the start.
member_link* find_link(environment const& variables) {
    std::scoped_lock const lock(link_guard);
    if (own_link != nullptr || !variables.has(elastic::events_variable)) return own_link;
    // A waiting spare has no place in its world yet, which identify() would look for.
    bool const listens = variables.has(elastic::over_nodes_variable) || read_exchange_options(variables).comm.backend == "tcp";
    return own_link = member_link::open(variables, listens ? own_address(variables.get_or("MUSTER_HOST", ""), variables) : "");
}

/// Returns who commits. A process that never asked the launcher takes its identity from its variables.
kept::origin find_origin() {
    auto const number = [](auto value) { return static_cast<std::uint64_t>(std::max<long>(value, 0)); };
    {
        std::scoped_lock const lock(link_guard);
        if (own_link != nullptr) {
            auto const now = own_link->now();
            return {number(now.number), number(now.who.rank), number(now.who.world_size)};
        }
    }
    auto const variables = environment::capture();
    auto const value = [&](char const* name, long otherwise) {
        return number(parse_integer(variables.get_or(name, "")).value_or(otherwise));
    };
    return {value("MUSTER_GENERATION", 0), value("MUSTER_RANK", 0), value("MUSTER_WORLD_SIZE", 1)};
}

member_link& need_link() {
    auto* const link = find_link(environment::capture());
    if (link == nullptr)
        throw comm_error(errc::unavailable,
                         "elastic run: the world cannot be made again here; start the ranks by muster run --min-np N");
    return *link;
}

environment parse_assignments(char const* const* variables) {
    environment all;
    for (; variables != nullptr && *variables != nullptr; ++variables) {
        std::string_view const one = *variables;
        auto const equals = one.find('=');
        if (equals == std::string_view::npos || equals == 0)
            refuse(fmt::format("the variable \"{}\" is not NAME=VALUE; write it so", one));
        all.set(one.substr(0, equals), one.substr(equals + 1));
    }
    return all;
}

environment variables_of(elastic::generation const& now) {
    environment all;
    set_place(all, now.who);
    all.set("MUSTER_GENERATION", std::to_string(now.number));
    if (!now.master.empty()) all.set("MASTER_ADDR", now.master);
    if (now.master_port != 0) all.set("MASTER_PORT", std::to_string(now.master_port));
    return all;
}

muster_comm* make_world(rank_setting const& setting) {
    auto const all = setting.variables();
    auto options = read_exchange_options(all);
    options.comm.loss = setting.watch();
    return table<muster_comm>().add(identify(all), options);
}

muster_generation info_of(elastic::generation const& now) {
    return {sizeof(muster_generation), now.number, now.who.rank, now.who.world_size, now.sync ? 1 : 0, now.master_port};
}

void give_info(elastic::generation const& now, muster_generation* into) {
    if (into != nullptr) give_c_struct(info_of(now), *into, "muster_generation");
}

}  // namespace

std::string own_address(std::string const& host, environment const& variables) {
    return tcp_address(host, read_exchange_options(variables).comm.network_interface);
}

rank_setting::rank_setting(char const* const* variables)
    : inherited_(environment::capture()), given_(parse_assignments(variables)) {
    if (!given_.has("MUSTER_NSPACE")) link_ = find_link(inherited_);
}

environment rank_setting::variables() const {
    auto all = inherited_;
    auto const add = [&](environment const& more) {
        for (auto const& [name, value] : more) all.set(name, value);
    };
    if (link_ != nullptr) {
        auto const now = link_->now();
        add(variables_of(now));
        if (!now.addresses.empty()) all.set("MUSTER_ADDRESSES", fmt::format("{}", fmt::join(now.addresses, ";")));
    }
    add(given_);
    return all;
}

std::shared_ptr<peer_loss> rank_setting::watch(std::span<int const> members) const {
    return link_ == nullptr ? nullptr : link_->watch(members);
}

muster_comm* join_world(rank_setting const& setting) {
    if (setting.link() == nullptr) return make_world(setting);
    auto const now = setting.link()->now();
    try {
        if (now.who.rank < 0) refuse(fmt::format("this process has no part in generation {} of the world", now.number));
        return make_world(setting);
    } catch (comm_error const& problem) {
        if (!is_of_others(problem) || !setting.link()->is_broken(now.number, word_patience)) throw;
    }
    auto const next = make_next_world(*setting.link(), {}, usual_reform_deadline, [&] { return make_world(setting); });
    if (!next.made) refuse(fmt::format("this process has no part in generation {} of the world", next.now.number));
    return *next.made;
}

}  // namespace muster::c_api

using namespace muster;
using namespace muster::c_api;

extern "C" {

int muster_reform_announce(void) {
    return guarded([&] { need_link().announce(); });
}

int muster_comm_reform(muster_comm* comm, char const* const* variables, int standing, double seconds, muster_generation* info,
                       muster_comm** made) {
    return guarded([&] {
        need(made, "the place for the communicator");
        if (info != nullptr) check_c_size(info->struct_size, "muster_generation");
        rank_setting const setting(variables);
        need_link();
        if (setting.link() == nullptr) refuse("muster_comm_reform: the launcher says who this rank is; leave MUSTER_NSPACE out");
        if (comm != nullptr && muster_comm_abandon(comm) != MUSTER_OK) refuse(muster_last_error());
        member_standing const own{(standing & MUSTER_HAS_STATE) != 0, (standing & MUSTER_AT_COMMIT) != 0};
        auto const next = make_next_world(*setting.link(), own, seconds > 0 ? duration(seconds) : usual_reform_deadline,
                                          [&] { return make_world(setting); });
        give_info(next.now, info);
        *made = next.made.value_or(nullptr);
    });
}

int muster_generation_now(muster_generation* info) {
    return guarded([&] { give_info(need_link().now(), &need(info, "the place for the generation")); });
}

int muster_generation_variables(char* buffer, size_t* size) {
    return guarded([&] {
        auto const now = need_link().now();
        auto all = variables_of(now);
        all.set("MUSTER_MEMBERS", fmt::format("{}", fmt::join(now.members, ",")));
        std::string text;
        for (auto const& line : all.lines()) text += line + "\n";
        copy_text(text, buffer, need(size, "the place for the size"));
    });
}

int muster_hosts_changed(int* what) {
    return guarded([&] {
        need(what, "the place for what has changed") = 0;
        auto* const link = find_link(environment::capture());
        if (link == nullptr) return;
        auto const changed = link->take_host_changes();
        *what = (changed.removed ? 1 : 0) + (changed.added ? 2 : 0);
    });
}

}  // extern "C"

// The C interface's kept state: one for a process.

namespace muster::c_api {

namespace {

std::mutex state_guard;

/// The caller holds `state_guard`.
kept_state& state_of_process() {
    static detail::process_mark const process;
    static auto* const made =
        new kept_state(environment::capture().get_or(elastic::kept_state_variable, ""));  // programs may read it to their end
    if (process.is_foreign()) throw comm_error(errc::usage, fmt::format("kept state: {}", detail::forked_words));
    return *made;
}

}  // namespace

}  // namespace muster::c_api

using namespace muster;
using namespace muster::c_api;

extern "C" {

int muster_state_keep(uint64_t step, muster_piece const* pieces, size_t count) {
    return guarded([&] {
        std::vector<std::span<std::byte const>> all;
        for (size_t i = 0; i < count; ++i) {
            if (pieces[i].data == nullptr && pieces[i].bytes > 0) refuse(fmt::format("kept state: piece {} is null", i));
            all.emplace_back(static_cast<std::byte const*>(pieces[i].data), pieces[i].bytes);
        }
        std::scoped_lock const lock(state_guard);
        state_of_process().commit(step, all, find_origin());
    });
}

int muster_state_kept(int which, muster_kept* copy) {
    return guarded([&] {
        check_c_size(need(copy, "the place for the copy").struct_size, "muster_kept");
        std::scoped_lock const lock(state_guard);
        auto const all = state_of_process().find();
        if (which < 0 || static_cast<std::size_t>(which) >= all.size())
            throw comm_error(errc::unavailable, fmt::format("kept state: there is no whole copy {} of {}", which, all.size()));
        auto const& one = all[static_cast<std::size_t>(which)];
        give_c_struct(muster_kept{sizeof(muster_kept), one.step, one.bytes.data(), one.bytes.size()}, *copy, "muster_kept");
    });
}

}  // extern "C"
