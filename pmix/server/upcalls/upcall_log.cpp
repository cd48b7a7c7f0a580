// Text that a rank wants shown: Open MPI's help messages, PMIx_Log.
#include <cstring>

#include "pmix/server/server_core.hpp"
#include "pmix/server/upcalls/upcalls.hpp"

namespace muster::pmix {
namespace {

bool is_text(pmix_info_t const& entry) {
    return entry.value.type == PMIX_STRING && entry.value.data.string != nullptr &&
           (has_key(entry, PMIX_LOG_STDERR) || has_key(entry, PMIX_LOG_STDOUT) || has_key(entry, PMIX_LOG_SYSLOG) ||
            has_key(entry, PMIX_LOG_LOCAL_SYSLOG) || has_key(entry, PMIX_LOG_GLOBAL_SYSLOG) || has_key(entry, PMIX_LOG_MSG));
}

/// PMIX_LOG_MSG and the show-help keys may come as bytes.
bool is_bytes(pmix_info_t const& entry) {
    return entry.value.type == PMIX_BYTE_OBJECT && entry.value.data.bo.bytes != nullptr && has_key(entry, PMIX_LOG_MSG);
}

}  // namespace

void upcall_log(pmix_proc_t const* proc, pmix_info_t const data[], size_t ndata, pmix_info_t const[], size_t,
                pmix_op_cbfunc_t answer, void* cookie) {
    auto* core = active_core();
    if (core == nullptr) return;
    std::string text;
    for (size_t i = 0; i < ndata; ++i) {
        if (is_text(data[i])) text += data[i].value.data.string;
        if (is_bytes(data[i])) text.append(data[i].value.data.bo.bytes, data[i].value.data.bo.size);
    }
    // Answering from here hangs the 4.2 library for ever: it holds the lock that the answer takes.
    core->post([who = *proc, text = std::move(text), answer, cookie](server_core& mine) {
        if (!text.empty()) mine.emit({.what = server_event::kind::log, .rank = mine.rank_of(who), .code = 0, .text = text});
        if (answer != nullptr) answer(PMIX_SUCCESS, cookie);
    });
}

}  // namespace muster::pmix
