// links: muster::pmix
// The PMI-1 wire as untrusted bytes: the first byte of each line chooses the rank that says the rest.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pmix/library/peer_uid.hpp"
#include "pmix/pmi1/pmi1_job.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace muster::pmix;
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    constexpr int ranks = 3;
    pmi1_job job("kvs", ranks);
    pmi1_line_buffer buffer;
    std::vector<pmi1_reply> replies;
    std::vector<muster::pmix::server_event> events;
    for (std::size_t at = 0; at < size; at += 7) {
        buffer.append(text.substr(at, 7));
        while (auto const line = buffer.next()) {
            if (line->empty()) continue;
            int const rank = static_cast<unsigned char>(line->front()) % ranks;
            if (!job.take(rank, std::string_view(*line).substr(1), replies, events)) job.leave(rank);
        }
        if (buffer.overflown()) break;
    }
    for (auto const& reply : replies)
        if (reply.text.empty() || reply.text.back() != '\n' || reply.rank < 0 || reply.rank >= ranks) std::abort();
    (void)uid_in_proc_net_tcp(text, 8080, 50000);
    return 0;
}
