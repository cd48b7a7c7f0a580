// links: muster::pmix
// iterations: 2000
// Connections to the PMI-1 server's port: each byte opens, feeds or closes one of some, with lines of which some are right.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "pmix/pmi1/pmi1_server.hpp"

namespace {

constexpr int ranks = 3;

struct world {
    muster::pmix::pmi1_server server;
    std::uint16_t port = 0;
    std::array<std::string, ranks> hellos;

    world()
        : server({.nspace = "fuzz",
                  .host = "h",
                  .world_size = ranks,
                  .session_dir = {},
                  .executable = {},
                  .cpusets = {},
                  .shared_memory_dir = {}}) {
        for (int rank = 0; rank < ranks; ++rank) {
            muster::environment variables;
            server.set_client_environment(rank, variables);
            hellos[static_cast<std::size_t>(rank)] = "cmd=initack pmiid=" + variables.get_or("PMI_ID", "") + "\n";
            port = static_cast<std::uint16_t>(std::stoi(variables.get_or("PMI_PORT", "").substr(10)));
        }
    }
    muster::unique_fd connect() const {
        muster::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
        return fd;
    }
};

void say(int fd, std::string_view text) {
    if (fd >= 0) (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    static world one;  // one server takes all inputs: what a connection leaves behind must do no harm to the next
    std::string_view text(reinterpret_cast<char const*>(data), size);
    std::array<muster::unique_fd, 6> callers;
    while (text.size() > 1) {
        auto const step = static_cast<unsigned char>(text.front());
        auto& caller = callers[step % callers.size()];
        auto const piece = text.substr(1, 1 + step / 8U);
        text.remove_prefix(1 + piece.size());
        if (!caller) caller = one.connect();
        if (step >= 240)
            caller.reset();
        else if (step >= 200)
            say(caller.get(), one.hellos[step % ranks]);
        else
            say(caller.get(), piece);
        for (auto const& event : one.server.poll())
            if (event.rank >= ranks) std::abort();
    }
    callers = {};
    one.server.poll();
    return 0;
}
