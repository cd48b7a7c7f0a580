#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "comm/backend/argument_checks.hpp"
#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/backend_table.hpp"
#include "comm/communicator_state.hpp"

namespace muster {

namespace {

using detail::communicator_state;

void require(communicator_state const& state, std::string_view what, std::string_view name, std::string const& fault) {
    if (!fault.empty()) throw comm_error(errc::usage, fmt::format("{}: {}", detail::describe(state, what, name), fault));
}

void check_identity(identity const& who) {
    if (who.world_size >= 1 && who.rank >= 0 && who.rank < who.world_size) return;
    throw comm_error(errc::usage, fmt::format("communicator on {}: rank {} does not lie in a world of {}", who.host, who.rank,
                                              who.world_size));
}

detail::state_owner make_state(identity const& who, comm_options const& options, std::string_view name, std::string why,
                               std::unique_ptr<collective_backend> backend) {
    detail::state_owner state(new communicator_state);
    state->who = who;
    state->options = options;
    state->backend_name = name;
    state->why = std::move(why);
    state->backend = std::move(backend);
    state->yield_at_once = state->backend->crowded();
    state->waits = wait_counts::open(options.wait_page);
    state->numbers_world = options.members.empty();
    state->place = {who.rank, who.world_size, state->backend->reaches(memory_kind::host),
                    state->backend->reaches(memory_kind::device)};
    return state;
}

/// If no backend serves this rank, tells the ranks that wait for it, so that they do not wait in vain.
backend_choice choose_or_tell(identity const& who, comm_options const& options) try {
    return choose_backend(backend_table(), who, options);
} catch (error const& refused) {
    if (refused.code() != errc::unavailable) throw;
    try {
        tell_refusal(who, options);
    } catch (comm_error const&) {
        throw;                // the same on all ranks
    } catch (error const&) {  // it reaches no other rank
    }
    throw;
}

}  // namespace

communicator communicator::create(identity const& who, comm_options const& options) {
    check_identity(who);
    backend_choice const choice = choose_or_tell(who, options);
    return communicator(make_state(who, options, choice.row->name, choice.why, choice.row->create(who, options)));
}

communicator communicator::reform(communicator left, member_link& link, member_standing const& standing, comm_options options) {
    left.state_.reset();
    auto next = make_next_world(link, standing, usual_reform_deadline, [&] {
        auto const now = link.now();
        options.loss = link.watch();
        options.addresses = now.addresses;
        return create(now.who, options);
    });
    return next.made ? std::move(*next.made) : communicator(detail::state_owner());
}

communicator_state& communicator::state() const {
    if (state_ && !state_->process.is_foreign()) return *state_;
    if (state_) throw comm_error(errc::usage, fmt::format("communicator ({}): {}", speaker(state_->who), detail::forked_words));
    throw comm_error(errc::usage,
                     "communicator: this rank is not in the process set, or the communicator was moved away; test "
                     "it with `if (communicator)` before using it");
}

int communicator::rank() const noexcept {
    return state_ ? state_->who.rank : -1;
}
int communicator::size() const noexcept {
    return state_ ? state_->who.world_size : 0;
}
identity const& communicator::who() const {
    return state().who;
}
std::string_view communicator::backend() const noexcept {
    return state_ ? state_->backend_name : std::string_view{};
}
std::string const& communicator::why_backend() const {
    return state().why;
}
std::string communicator::about() const {
    return state().backend->about();
}
std::string const& communicator::host_of(int rank) const {
    return state().backend->hosts().at(static_cast<std::size_t>(rank));
}
comm_options const& communicator::options() const {
    return state().options;
}
void communicator::progress() {
    state().backend->progress();
}
void const* communicator::native() const noexcept {
    return state_ ? state_->backend->native() : nullptr;
}

comm_buffer communicator::allocate(std::size_t bytes) {
    return state().backend->allocate(std::max<std::size_t>(bytes, 1));
}

void communicator::use_stream(void* stream) {
    state().stream = stream;
}

operation communicator::start(std::string_view name, collective description) {
    communicator_state& with = state();
    std::string_view const what = to_string(description.what);
    require(with, what, name, detail::fault_of(description, with.place));
    description.stream = with.stream;
    detail::throw_if_failed(with, what, name);
    try {
        ticket const which = with.backend->start(description);
        if (which == 0) return {};
        return {state_, which, what, name};
    } catch (...) {
        detail::mark_failed(with);
        throw;
    }
}

operation communicator::allreduce(std::string_view name, tensor_view in, tensor_view out, reduction how, scaling const& scale) {
    return start(name, {collective::kind::allreduce, in, out, how, 0, scale});
}

operation communicator::reducescatter(std::string_view name, tensor_view in, tensor_view out, reduction how,
                                      scaling const& scale) {
    return start(name, {collective::kind::reducescatter, in, out, how, 0, scale});
}

operation communicator::broadcast(std::string_view name, tensor_view inout, int root) {
    return start(name, {collective::kind::broadcast, inout, inout, reduction::sum, root});
}

operation communicator::allgather(std::string_view name, tensor_view in, tensor_view out) {
    return start(name, {collective::kind::allgather, in, out});
}

operation communicator::allgather(std::string_view name, tensor_view in, tensor_view out, std::span<std::size_t const> counts) {
    collective what{collective::kind::allgather, in, out};
    what.receive_counts.assign(counts.begin(), counts.end());
    if (counts.empty())
        require(state(), to_string(what.what), name, fmt::format("\"counts\" has no entries for {} ranks", size()));
    return start(name, what);
}

operation communicator::alltoall(std::string_view name, tensor_view in, std::span<std::size_t const> send_counts, tensor_view out,
                                 std::span<std::size_t const> receive_counts) {
    collective what{collective::kind::alltoall, in, out};
    what.send_counts.assign(send_counts.begin(), send_counts.end());
    what.receive_counts.assign(receive_counts.begin(), receive_counts.end());
    return start(name, what);
}

operation communicator::sendrecv(std::string_view name, int peer, tensor_view in, tensor_view out) {
    return start(name, {collective::kind::sendrecv, in, out, reduction::sum, peer});
}

operation communicator::barrier() {
    return start({}, {});
}

void communicator::close() {
    barrier().wait();
    state_.reset();
}

/// Throws on all ranks unless all gave the same list.
void communicator::agree_on(std::span<int const> ranks) {
    std::int64_t const mine = fingerprint_of(ranks);
    std::array<std::int64_t, 2> bounds{mine, ~mine};  // the complement turns a minimum into a maximum
    allreduce("process set", view_of(std::span(bounds)), reduction::min).wait();
    if (bounds[0] == ~bounds[1]) return;
    throw comm_error(errc::peer_failed,
                     fmt::format("{}: the ranks gave different lists of ranks (here {} of them, the first {}); give all the "
                                 "same list in the same order",
                                 detail::describe(*state_, "include", {}), ranks.size(), ranks.front()));
}

communicator communicator::for_device(comm_options options) {
    communicator_state& host = state();
    options.memory = memory_kind::device;
    auto const& row = device_row(options.backend);
    std::string why = fmt::format("backend {}, for device memory, the ranks having met over {}", row.name, host.backend_name);
    gather_function const gather = [this](identity const& who, std::span<std::byte const> mine, duration deadline) {
        auto const ranks = static_cast<std::size_t>(who.world_size);
        std::vector<std::byte> all(mine.size() * ranks);
        tensor_view const in{const_cast<std::byte*>(mine.data()), mine.size(), dtype::u8};
        allgather("addresses for device memory", in, {all.data(), all.size(), dtype::u8}).wait(deadline);
        return split_by_rank(all, ranks);
    };
    auto made = row.create_over != nullptr ? row.create_over(gather, host.who, options) : row.create(host.who, options);
    return communicator(make_state(host.who, options, row.name, std::move(why), std::move(made)));
}

communicator communicator::include(std::span<int const> ranks) {
    communicator_state& whole = state();
    require(whole, "include", {}, detail::fault_of_set(ranks, size()));
    if (whole.place.host_memory) agree_on(ranks);
    std::unique_ptr<collective_backend> part;
    try {
        part = whole.backend->subset(ranks);
    } catch (...) {
        detail::mark_failed(whole);
        throw;
    }
    if (!part) return communicator(detail::state_owner());
    auto const place = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
    identity const who = identity_in_set(whole.who, ranks, place, whole.backend->hosts());
    auto made = make_state(who, whole.options, whole.backend_name, whole.why, std::move(part));
    made->numbers_world = false;
    return communicator(std::move(made));
}

}  // namespace muster
