#include "pmix/pmi1/pmi1_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "pmix/pmi1/peer_uid.hpp"
#include "pmix/pmi1/pmi1_job.hpp"
#include "pmix/pmi1/pmi1_wire.hpp"

namespace muster::pmix {
namespace {

/// A kvs name is one word on the wire.
std::string word_of(std::string_view nspace) {
    std::string word;
    for (char const c : nspace.substr(0, 200)) word += static_cast<unsigned char>(c) <= ' ' || c == '=' ? '_' : c;
    return word.empty() ? "muster" : word;
}

/// Unlike numbers, from 1 to 2^31-1: clients read them with atoi.
std::vector<int> make_tokens(int count) {
    std::map<int, int> seen;
    std::vector<int> tokens;
    while (static_cast<int>(tokens.size()) < count) {
        std::uint32_t bits = 0;
        if (getrandom(&bits, sizeof bits, 0) != sizeof bits) throw_system("getrandom", "for the PMI-1 server");
        auto const token = static_cast<int>(bits >> 1U);
        if (token != 0 && seen.emplace(token, 0).second) tokens.push_back(token);
    }
    return tokens;
}

unique_fd listen_on_loopback(std::uint16_t& port) {
    unique_fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener) throw_system("socket", "for the PMI-1 server");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.get(), generic, length) != 0) throw_system("bind", "127.0.0.1 for the PMI-1 server");
    if (listen(listener.get(), SOMAXCONN) != 0) throw_system("listen", "127.0.0.1 for the PMI-1 server");
    if (getsockname(listener.get(), generic, &length) != 0) throw_system("getsockname", "of the PMI-1 server");
    port = ntohs(address.sin_port);
    return listener;
}

struct connection {
    unique_fd fd;
    int rank = -1;  ///< until it said who it is
    pmi1_line_buffer input;
    std::string output;
    bool waits_for_room = false;
};

// More than this not read by a client: it is not reading at all.
constexpr std::size_t most_output = std::size_t{1} << 20U;

}  // namespace

struct pmi1_server::state {
    explicit state(job const& description)
        : name(word_of(description.nspace)),
          logic(name, description.world_size),
          tokens(make_tokens(description.world_size)),
          owner(static_cast<std::size_t>(description.world_size), -1),
          listener(listen_on_loopback(port)),
          events_fd(epoll_create1(EPOLL_CLOEXEC)) {
        if (!events_fd) throw_system("epoll_create1", "for the PMI-1 server");
        watch(EPOLL_CTL_ADD, listener.get(), EPOLLIN);
    }

    void watch(int operation, int fd, std::uint32_t what) const {
        epoll_event event{};
        event.events = what;
        event.data.fd = fd;
        if (epoll_ctl(events_fd.get(), operation, fd, &event) != 0) throw_system("epoll_ctl", "for the PMI-1 server");
    }

    void accept_all(std::vector<server_event>& events);
    void serve(int fd, std::uint32_t what, std::vector<server_event>& events);
    bool greet(connection& client, std::string_view line, std::vector<server_event>& events);
    bool read_from(connection& client, std::vector<server_event>& events);
    bool flush(connection& client) const;
    void send(std::vector<pmi1_reply> const& replies);
    void drop(int fd);

    std::string name;
    pmi1_job logic;
    std::vector<int> tokens;
    std::vector<int> owner;  ///< the connection of each rank, or -1
    std::uint16_t port = 0;
    unique_fd listener;
    unique_fd events_fd;
    std::map<int, connection> connections;
};

void pmi1_server::state::accept_all(std::vector<server_event>& events) {
    for (;;) {
        sockaddr_in peer{};
        socklen_t length = sizeof peer;
        unique_fd fd(accept4(listener.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd) return;
        auto const uid = loopback_peer_uid(ntohs(peer.sin_port), port);
        if (uid && *uid != geteuid()) {
            events.push_back({.what = server_event::kind::log,
                              .rank = -1,
                              .code = 0,
                              .text = fmt::format("refused a connection of user {} to the PMI port\n", *uid)});
            continue;
        }
        int const one = 1;
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        int const number = fd.get();
        watch(EPOLL_CTL_ADD, number, EPOLLIN);
        connections[number].fd = std::move(fd);
    }
}

bool pmi1_server::state::greet(connection& client, std::string_view line, std::vector<server_event>& events) {
    auto const message = parse_pmi1(line);
    if (!message || message->get_or("cmd", "") != "initack") return false;
    auto const token = message->number("pmiid");
    int rank = -1;
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (token && tokens[i] == *token) rank = static_cast<int>(i);
    if (rank < 0) return false;
    auto& mine = owner[static_cast<std::size_t>(rank)];
    if (mine >= 0) {
        // A program that the rank started is no second rank; after the first has ended, another may follow it.
        events.push_back(
            {.what = server_event::kind::log,
             .rank = rank,
             .code = 0,
             .text = "a second MPI program in the same rank at the same time was refused; only one may be the rank\n"});
        return false;
    }
    mine = client.fd.get();
    client.rank = rank;
    client.output += logic.greeting(rank);
    return true;
}

bool pmi1_server::state::read_from(connection& client, std::vector<server_event>& events) {
    std::array<char, 16384> buffer;
    auto const count = read(client.fd.get(), buffer.data(), buffer.size());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    client.input.append({buffer.data(), static_cast<std::size_t>(count)});
    std::vector<pmi1_reply> replies;
    bool good = !client.input.overflown();
    for (auto line = client.input.next(); good && line; line = client.input.next())
        good = client.rank < 0 ? greet(client, *line, events) : logic.take(client.rank, *line, replies, events);
    send(replies);
    return good && flush(client);
}

/// Writes what fits. False once the client is gone, or does not read.
bool pmi1_server::state::flush(connection& client) const {
    while (!client.output.empty()) {
        auto const count = ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno != EAGAIN) return false;
        if (count < 0) break;
        client.output.erase(0, static_cast<std::size_t>(count));
    }
    bool const waits = !client.output.empty();
    if (waits != client.waits_for_room) {
        client.waits_for_room = waits;
        watch(EPOLL_CTL_MOD, client.fd.get(), waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    return client.output.size() <= most_output;
}

void pmi1_server::state::send(std::vector<pmi1_reply> const& replies) {
    for (auto const& reply : replies) {
        auto const fd = owner[static_cast<std::size_t>(reply.rank)];
        auto const found = connections.find(fd);
        if (found == connections.end()) continue;
        found->second.output += reply.text;
        // A failure is seen again, and handled, when the event loop comes to that connection.
        flush(found->second);
    }
}

void pmi1_server::state::drop(int fd) {
    auto const found = connections.find(fd);
    if (found == connections.end()) return;
    auto const rank = found->second.rank;
    if (rank >= 0) {
        owner[static_cast<std::size_t>(rank)] = -1;
        logic.leave(rank);
    }
    connections.erase(found);  // closes it, which also takes it out of the epoll set
}

void pmi1_server::state::serve(int fd, std::uint32_t what, std::vector<server_event>& events) {
    auto const found = connections.find(fd);
    if (found == connections.end()) return;
    bool good = true;
    if ((what & EPOLLOUT) != 0) good = flush(found->second);
    if (good && (what & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) good = read_from(found->second, events);
    if (!good) drop(fd);
}

pmi1_server::pmi1_server(job const& description) : state_(std::make_unique<state>(description)) {}
pmi1_server::~pmi1_server() = default;

void pmi1_server::set_client_environment(int rank, environment& variables) {
    auto const size = state_->tokens.size();
    expect(rank >= 0 && static_cast<std::size_t>(rank) < size, "a rank of this job");
    for (auto const* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) variables.unset(name);
    variables.set("PMI_PORT", fmt::format("127.0.0.1:{}", state_->port));
    variables.set("PMI_ID", std::to_string(state_->tokens[static_cast<std::size_t>(rank)]));
    variables.set("MPI_LOCALRANKID", std::to_string(rank));
    variables.set("MPI_LOCALNRANKS", std::to_string(size));
    // MPICH 5 looks which of PMI and PMIx is there and stops if both are; told which one, it does not look. One that was built
    // without PMI-1 then takes PMIx by itself, and earlier ones do not know the variable.
    variables.set_default("MPIR_CVAR_PMI_VERSION", "1");
}

int pmi1_server::event_fd() const noexcept {
    return state_->events_fd.get();
}

std::vector<server_event> pmi1_server::poll() {
    std::vector<server_event> events;
    std::array<epoll_event, 64> ready;
    int const count = epoll_wait(state_->events_fd.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < count; ++i) {
        auto const& event = ready[static_cast<std::size_t>(i)];
        if (event.data.fd == state_->listener.get())
            state_->accept_all(events);
        else
            state_->serve(event.data.fd, event.events, events);
    }
    return events;
}

}  // namespace muster::pmix
