#include "comm/fail_together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/backend/comm_error.hpp"

namespace muster {

namespace {

constexpr std::size_t longest_message = 4096;

/// The header of each rank's message.
struct header {
    std::int32_t failed = 0;
    std::int32_t code = 0;
    std::int32_t length = 0;
};

std::string compose(communicator const& ranks, std::string_view what, std::vector<std::byte> const& all, std::size_t each,
                    member_is member, errc& code) {
    std::string text;
    int failed = 0;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        std::byte const* const from = all.data() + static_cast<std::size_t>(rank) * each;
        header head;
        std::memcpy(&head, from, sizeof head);
        if (head.failed == 0) continue;
        if (failed++ == 0) code = static_cast<errc>(head.code);
        std::string_view const message(reinterpret_cast<char const*>(from + sizeof head), static_cast<std::size_t>(head.length));
        auto const name =
            member == member_is::node ? ranks.host_of(rank) : fmt::format("rank {} ({})", rank, ranks.host_of(rank));
        text += fmt::format("\n  {}: {}", name, message);
    }
    return fmt::format("{} failed on {} of {} {}s:{}", what, failed, ranks.size(), member == member_is::node ? "node" : "rank",
                       text);
}

}  // namespace

own_failure report_of(std::exception_ptr const& problem) {
    try {
        std::rethrow_exception(problem);
    } catch (error const& known) {
        return {known.code(), known.what()};
    } catch (std::bad_alloc const&) {
        return {errc::system, "out of memory"};
    } catch (std::exception const& foreign) {
        return {errc::internal, foreign.what()};
    } catch (...) {
        return {errc::internal, "an exception without a message"};
    }
}

void throw_if_any_failed(communicator& ranks, std::string_view what, std::optional<own_failure> const& failure,
                         member_is member) {
    std::size_t const length = failure ? std::min(failure->message.size(), longest_message) : 0;
    // The ranks agree on the longest message. 0 means success, so lengths count from 1.
    auto longest = static_cast<std::int32_t>(failure ? length + 1 : 0);
    ranks.allreduce(what, view_of(std::span(&longest, 1)), reduction::max).wait();
    if (longest == 0) return;
    std::size_t const each = sizeof(header) + static_cast<std::size_t>(longest) - 1;
    std::vector<std::byte> mine(each), all(each * static_cast<std::size_t>(ranks.size()));
    if (failure) {
        header const head{1, static_cast<std::int32_t>(failure->code), static_cast<std::int32_t>(length)};
        std::memcpy(mine.data(), &head, sizeof head);
        std::memcpy(mine.data() + sizeof head, failure->message.data(), length);
    }
    auto const bytes = [](std::vector<std::byte>& of) { return tensor_view{of.data(), of.size(), dtype::u8, memory_kind::host}; };
    ranks.allgather(what, bytes(mine), bytes(all)).wait();
    errc code = errc::peer_failed;
    std::string const message = compose(ranks, what, all, each, member, code);
    throw comm_error(code, message);
}

void throw_if_any_failed(communicator& ranks, std::string_view what, std::exception_ptr const& failure, member_is member) {
    throw_if_any_failed(ranks, what, failure ? std::optional(report_of(failure)) : std::nullopt, member);
}

}  // namespace muster
