#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "base/error.hpp"
#include "comm/collective_backend.hpp"
#include "comm/comm_error.hpp"
#include "comm/internal/communicator_state.hpp"

namespace muster {

namespace {

using detail::communicator_state;

/// What is wrong with the arguments, or "".
std::string fault_of(tensor_view const& view, std::string_view role) {
    if (view.where != memory_kind::host)
        return fmt::format("\"{}\" lies in {} memory, this backend works on host memory", role, to_string(view.where));
    if (size_of(view.type) == 0) return fmt::format("\"{}\" has the unknown type {}", role, static_cast<int>(view.type));
    if (view.count > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / size_of(view.type))
        return fmt::format("\"{}\" has {} elements of {}, more than memory can hold", role, view.count, to_string(view.type));
    if (view.data == nullptr && view.count != 0) return fmt::format("\"{}\" has {} elements at a null pointer", role, view.count);
    if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.type) != 0)
        return fmt::format("\"{}\" at {} is not aligned for {}", role, view.data, to_string(view.type));
    return {};
}

bool overlap(tensor_view const& a, tensor_view const& b) {
    auto const first = reinterpret_cast<std::uintptr_t>(a.data);
    auto const second = reinterpret_cast<std::uintptr_t>(b.data);
    return a.count != 0 && b.count != 0 && first < second + b.bytes() && second < first + a.bytes();
}

std::string fault_of_allreduce(tensor_view const& in, tensor_view const& out, reduction how) {
    if (auto fault = fault_of(in, "in"); !fault.empty()) return fault;
    if (auto fault = fault_of(out, "out"); !fault.empty()) return fault;
    if (in.type != out.type) return fmt::format("\"in\" is {}, \"out\" is {}", to_string(in.type), to_string(out.type));
    if (in.count != out.count) return fmt::format("\"in\" has {} elements, \"out\" {}", in.count, out.count);
    if (in.data != out.data && overlap(in, out))
        return fmt::format("\"in\" ({}) and \"out\" ({}) of {} bytes overlap; give the same memory twice, or apart", in.data,
                           out.data, in.bytes());
    if (static_cast<unsigned>(how) > static_cast<unsigned>(reduction::product))
        return fmt::format("{} is no reduction", static_cast<unsigned>(how));
    if (how == reduction::average && !is_floating(in.type))
        return fmt::format("the average of {} is not an integer; reduce the sum and divide, or convert to f64",
                           to_string(in.type));
    return {};
}

std::string fault_of_allgather(tensor_view const& in, tensor_view const& out, int rank, int size) {
    if (auto fault = fault_of(in, "in"); !fault.empty()) return fault;
    if (auto fault = fault_of(out, "out"); !fault.empty()) return fault;
    if (in.type != out.type) return fmt::format("\"in\" is {}, \"out\" is {}", to_string(in.type), to_string(out.type));
    auto const ranks = static_cast<std::size_t>(size);
    if (out.count % ranks != 0 || out.count / ranks != in.count)
        return fmt::format("\"in\" has {} elements, so \"out\" needs {} of them for {} ranks and has {}", in.count,
                           in.count * ranks, size, out.count);
    auto const* own_place = static_cast<std::byte*>(out.data) + static_cast<std::size_t>(rank) * in.bytes();
    if (in.data != own_place && overlap(in, out))
        return fmt::format("\"in\" ({}) lies within \"out\" ({}) but not at this rank's place ({})", in.data, out.data,
                           static_cast<void const*>(own_place));
    return {};
}

void require(communicator_state const& state, char const* what, std::string_view name, std::string const& fault) {
    if (!fault.empty()) throw comm_error(errc::usage, fmt::format("{}: {}", detail::describe(state, what, name), fault));
}

void check_identity(identity const& who) {
    if (who.world_size >= 1 && who.rank >= 0 && who.rank < who.world_size) return;
    throw comm_error(errc::usage, fmt::format("communicator on {}: rank {} does not lie in a world of {}", who.host, who.rank,
                                              who.world_size));
}

}  // namespace

communicator communicator::create(identity const& who, comm_options const& options) {
    check_identity(who);
    backend_row const& row = select_backend(who, options);
    auto state = std::make_shared<communicator_state>();
    state->who = who;
    state->options = options;
    state->backend_name = row.name;
    state->backend = row.create(who, options);
    state->yield_at_once = state->backend->crowded();
    return communicator(std::move(state));
}

int communicator::rank() const noexcept {
    return state_->who.rank;
}
int communicator::size() const noexcept {
    return state_->who.world_size;
}
identity const& communicator::who() const noexcept {
    return state_->who;
}
std::string_view communicator::backend() const noexcept {
    return state_->backend_name;
}
std::string const& communicator::host_of(int rank) const {
    return state_->backend->hosts().at(static_cast<std::size_t>(rank));
}
comm_options const& communicator::options() const noexcept {
    return state_->options;
}
void communicator::progress() {
    state_->backend->progress();
}
void const* communicator::native() const noexcept {
    return state_->backend->native();
}

operation communicator::start(char const* what, std::string_view name, collective const& description) {
    detail::throw_if_failed(*state_, what, name);
    try {
        ticket const which = state_->backend->start(description);
        if (which == 0) return {};
        return {state_, which, what, name};
    } catch (std::exception const& problem) {
        state_->failed = problem.what();
        throw;
    }
}

operation communicator::allreduce(std::string_view name, tensor_view in, tensor_view out, reduction how) {
    require(*state_, "allreduce", name, fault_of_allreduce(in, out, how));
    return start("allreduce", name, {collective::kind::allreduce, in, out, how, 0});
}

operation communicator::broadcast(std::string_view name, tensor_view inout, int root) {
    require(*state_, "broadcast", name, fault_of(inout, "inout"));
    if (root < 0 || root >= size())
        require(*state_, "broadcast", name, fmt::format("the root {} does not lie in a world of {}", root, size()));
    return start("broadcast", name, {collective::kind::broadcast, inout, inout, reduction::sum, root});
}

operation communicator::allgather(std::string_view name, tensor_view in, tensor_view out) {
    require(*state_, "allgather", name, fault_of_allgather(in, out, rank(), size()));
    return start("allgather", name, {collective::kind::allgather, in, out, reduction::sum, 0});
}

operation communicator::barrier() {
    return start("barrier", {}, {});
}

}  // namespace muster
