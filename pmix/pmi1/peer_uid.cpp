#include "pmix/pmi1/peer_uid.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "base/text.hpp"

namespace muster::pmix {

std::optional<uid_t> uid_in_proc_net_tcp(std::string_view text, std::uint16_t client_port, std::uint16_t server_port) {
    // "  sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid …", addresses as the bytes lie in
    // memory.
    auto const local = fmt::format("0100007F:{:04X}", client_port);
    auto const remote = fmt::format("0100007F:{:04X}", server_port);
    for (auto const line : split(text, '\n')) {
        if (line.find(local) == std::string_view::npos) continue;
        std::vector<std::string_view> fields;
        for (auto const field : split(line, ' '))
            if (!field.empty()) fields.push_back(field);
        if (fields.size() < 8 || fields[1] != local || fields[2] != remote) continue;
        auto const uid = parse_integer(fields[7]);
        if (uid && *uid >= 0 && *uid <= UINT32_MAX) return static_cast<uid_t>(*uid);
    }
    return std::nullopt;
}

std::optional<uid_t> loopback_peer_uid(std::uint16_t client_port, std::uint16_t server_port) {
    std::ifstream file("/proc/self/net/tcp", std::ios::binary);
    std::string const text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return uid_in_proc_net_tcp(text, client_port, server_port);
}

}  // namespace muster::pmix
