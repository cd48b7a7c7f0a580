// The C interface's kept state: one a process.
#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <vector>

#include "base/environment.hpp"
#include "comm/backend/processes/rank_processes.hpp"
#include "comm/c_api/c_call.hpp"
#include "comm/c_api/muster_comm.h"
#include "comm/membership/kept_state.hpp"
#include "pmix/member_message.hpp"

namespace muster::c_api {

namespace {

std::mutex state_guard;

/// Held is `state_guard`.
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
        state_of_process().commit(step, all);
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
