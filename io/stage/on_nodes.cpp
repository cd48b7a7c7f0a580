#include "io/stage/on_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/run_with_ranks.hpp"
#include "io/dataset/file_ranks.hpp"

namespace muster::stage {

namespace {

std::vector<int> first_ranks(communicator& ranks, identity const& who) {
    std::vector<std::int32_t> first(static_cast<std::size_t>(ranks.size()));
    std::int32_t mine = who.local_rank == 0 ? 1 : 0;
    ranks.allgather("first ranks of the nodes", view_of(std::span(&mine, 1)), view_of(std::span(first))).wait();
    std::vector<int> out;
    for (std::size_t i = 0; i < first.size(); ++i)
        if (first[i] != 0) out.push_back(static_cast<int>(i));
    return out;
}

/// The body's exit code, or that of its error, which is then told here: the others wait for it.
int code_of(communicator& nodes, std::function<int(communicator&)> const& body) {
    try {
        return body(nodes);
    } catch (comm_error const& e) {
        if (e.code() == errc::timeout || e.code() == errc::peer_failed) throw;  // not agreed: others may be gone
        if (nodes.rank() == 0) fmt::print(stderr, "muster-stage: error: {}\n", e.what());
        return exit_code(e.code());
    } catch (error const& e) {
        if (nodes.size() > 1) throw;
        fmt::print(stderr, "muster-stage: error: {}\n", e.what());
        return exit_code(e.code());
    }
}

}  // namespace

int on_nodes(identity const& who, std::function<int(communicator&)> const& body) {
    return run_with_ranks("muster-stage", who, options_for_files(who), [&](communicator& ranks) {
        if (ranks.size() == 1) return body(ranks);
        auto const first = first_ranks(ranks, who);
        if (first.size() == static_cast<std::size_t>(ranks.size())) return body(ranks);
        communicator nodes = ranks.include(first);
        std::int32_t code = nodes ? code_of(nodes, body) : 0;
        operation agreement = ranks.allreduce("exit code", view_of(std::span(&code, 1)), reduction::max);
        while (!agreement.done()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return static_cast<int>(code);
    });
}

std::uint64_t sum_of(communicator& nodes, std::uint64_t mine) {
    auto value = static_cast<std::int64_t>(mine);
    nodes.allreduce("sum", view_of(std::span(&value, 1)), reduction::sum).wait();
    return static_cast<std::uint64_t>(value);
}

}  // namespace muster::stage
