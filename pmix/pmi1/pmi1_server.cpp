#include "pmix/pmi1/pmi1_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "pmix/library/random_bits.hpp"
#include "pmix/pmi1/pmi1_job.hpp"
#include "pmix/pmi1/pmi1_wire.hpp"

namespace muster::pmix {

namespace {

unique_fd listen_on_loopback() {
    unique_fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener) throw_system("socket", "for the PMI-1 server");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        throw_system("bind", "127.0.0.1 for the PMI-1 server");
    if (listen(listener.get(), SOMAXCONN) != 0) throw_system("listen", "127.0.0.1 for the PMI-1 server");
    return listener;
}

std::uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) throw_system("getsockname", "of the PMI-1 server");
    return ntohs(address.sin_port);
}

unique_fd open_spare() {
    return unique_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

pmi1_listener::pmi1_listener()
    : listener_(listen_on_loopback()), port_(port_of(listener_.get())), users_(listener_.get()), spare_(open_spare()) {}

std::vector<unique_fd> pmi1_listener::accept_some(std::vector<server_event>& events) {
    std::vector<unique_fd> accepted;
    for (int turn = 0; turn < callers_a_turn; ++turn) {
        sockaddr_in peer{};
        socklen_t length = sizeof peer;
        unique_fd fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd && (errno == EMFILE || errno == ENFILE) && shed_one()) continue;
        if (!fd && errno == ECONNABORTED) continue;
        if (!fd) break;
        auto const who = peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK) ? users_.find(fd.get()) : std::nullopt;
        if (who != geteuid()) {
            refuse(who, events);
            continue;
        }
        int const one = 1;
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        accepted.push_back(std::move(fd));
    }
    return accepted;
}

/// Without this the caller would wait in the queue, and the loop would be woken for it for ever.
bool pmi1_listener::shed_one() noexcept {
    if (!spare_) return false;
    spare_.reset();
    unique_fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
    spare_ = open_spare();
    return true;
}

void pmi1_listener::refuse(std::optional<uid_t> who, std::vector<server_event>& events) {
    if (++refused_ != told_at_) return;
    told_at_ *= 10;
    auto const name =
        who ? fmt::format("user {}", *who) : std::string("a caller that is no open connection of this machine's 127.0.0.1");
    events.push_back(
        {.what = server_event::kind::log,
         .rank = -1,
         .code = 0,
         .text =
             refused_ == 1
                 ? fmt::format("muster: note: refused a connection of {} to the PMI port; further ones are counted\n", name)
                 : fmt::format("muster: note: refused {} connections to the PMI port, the last one of {}\n", refused_, name)});
}

namespace {

/// A kvs name is one word on the wire.
std::string word_of(std::string_view nspace) {
    std::string word;
    for (char const c : nspace.substr(0, 200)) word += static_cast<unsigned char>(c) <= ' ' || c == '=' ? '_' : c;
    return word.empty() ? "muster" : word;
}

/// Unlike numbers, from 1 to 2^31-1: clients read them with atoi.
std::vector<int> make_tokens(int count) {
    std::set<int> seen;
    std::vector<int> tokens;
    while (static_cast<int>(tokens.size()) < count) {
        auto const token = static_cast<int>(random_bits() & 0x7fffffffU);
        if (token != 0 && seen.insert(token).second) tokens.push_back(token);
    }
    return tokens;
}

using clock = std::chrono::steady_clock;

struct connection {
    unique_fd fd;
    clock::time_point since = clock::now();
    int rank = -1;  ///< until it said who it is
    pmi1_line_buffer input;
    std::string output;
    bool waits_for_room = false;
};

// More than this not read by a client: it is not reading at all.
constexpr std::size_t most_output = std::size_t{1} << 20U;
// A client says who it is as soon as it has connected, but on a busy machine it may wait for a core before that, and its words for the server: no time is too
// long, only their number is bounded. All of them are of this user.
constexpr std::size_t most_unnamed_besides_ranks = 32;
// Wrong numbers are guesses: after so many nobody new comes in until the next tick.
constexpr int wrong_numbers_a_tick = 100;
constexpr itimerspec a_second{{0, 0}, {1, 0}};

}  // namespace

struct pmi1_server::state {
    explicit state(job const& description)
        : name(word_of(description.nspace)),
          logic(name, description.world_size, local_size_of(description), pmi1_mapping(description)),
          local_ranks(local_ranks_of(description)),
          tokens(make_tokens(description.world_size)),
          owner(static_cast<std::size_t>(description.world_size), -1),
          ticks(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
          events_fd(epoll_create1(EPOLL_CLOEXEC)) {
        if (!ticks) throw_system("timerfd_create", "for the PMI-1 server");
        if (!events_fd) throw_system("epoll_create1", "for the PMI-1 server");
        watch(EPOLL_CTL_ADD, listener.fd(), EPOLLIN);
        watch(EPOLL_CTL_ADD, ticks.get(), EPOLLIN);
    }

    void watch(int operation, int fd, std::uint32_t what) const {
        epoll_event event{};
        event.events = what;
        event.data.fd = fd;
        if (epoll_ctl(events_fd.get(), operation, fd, &event) != 0) throw_system("epoll_ctl", "for the PMI-1 server");
    }

    void accept_some(std::vector<server_event>& events);
    void take_in(unique_fd fd);
    void tick();
    void note_wrong_number();
    std::vector<int> unnamed() const;
    void serve(int fd, std::uint32_t what, std::vector<server_event>& events);
    int rank_with(std::optional<int> token) const noexcept;
    bool greet(connection& client, std::string_view line, std::vector<server_event>& events);
    bool read_from(connection& client, std::vector<server_event>& events);
    bool flush(connection& client) const;
    void send(std::vector<pmi1_reply> const& replies);
    void drop(int fd);

    std::string name;
    pmi1_job logic;
    std::vector<int> local_ranks;
    std::vector<int> tokens;
    std::vector<int> owner;  ///< the connection of each rank, or -1
    pmi1_listener listener;
    unique_fd ticks;        ///< a second after the first wrong number
    int wrong_numbers = 0;  ///< since the last tick
    unique_fd events_fd;
    std::map<int, connection> connections;
};

void pmi1_server::state::accept_some(std::vector<server_event>& events) {
    for (auto& fd : listener.accept_some(events)) take_in(std::move(fd));
}

void pmi1_server::state::take_in(unique_fd fd) {
    // The oldest goes where too many have not said who they are: the newest may be a rank.
    if (auto const nameless = unnamed(); nameless.size() >= tokens.size() + most_unnamed_besides_ranks)
        drop(*std::min_element(nameless.begin(), nameless.end(),
                               [this](int a, int b) { return connections.at(a).since < connections.at(b).since; }));
    int const number = fd.get();
    watch(EPOLL_CTL_ADD, number, EPOLLIN);
    connections[number].fd = std::move(fd);
}

std::vector<int> pmi1_server::state::unnamed() const {
    std::vector<int> found;
    for (auto const& [fd, client] : connections)
        if (client.rank < 0) found.push_back(fd);
    return found;
}

void pmi1_server::state::tick() {
    std::uint64_t passed = 0;
    [[maybe_unused]] auto const drained = read(ticks.get(), &passed, sizeof passed);
    if (std::exchange(wrong_numbers, 0) >= wrong_numbers_a_tick) watch(EPOLL_CTL_MOD, listener.fd(), EPOLLIN);
}

void pmi1_server::state::note_wrong_number() {
    if (wrong_numbers == 0 && timerfd_settime(ticks.get(), 0, &a_second, nullptr) != 0)
        throw_system("timerfd_settime", "for the PMI-1 server");
    if (++wrong_numbers == wrong_numbers_a_tick) watch(EPOLL_CTL_MOD, listener.fd(), 0);
}

int pmi1_server::state::rank_with(std::optional<int> token) const noexcept {
    auto const found = token ? std::find(tokens.begin(), tokens.end(), *token) : tokens.end();
    return found == tokens.end() ? -1 : static_cast<int>(found - tokens.begin());
}

bool pmi1_server::state::greet(connection& client, std::string_view line, std::vector<server_event>& events) {
    auto const message = parse_pmi1(line);
    if (!message || message->get_or("cmd", "") != "initack") return false;
    int const rank = rank_with(message->number("pmiid"));
    if (rank < 0) {
        note_wrong_number();
        return false;
    }
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
    variables.set("PMI_PORT", fmt::format("127.0.0.1:{}", state_->listener.port()));
    variables.set("PMI_ID", std::to_string(state_->tokens[static_cast<std::size_t>(rank)]));
    auto const& local = state_->local_ranks;
    variables.set("MPI_LOCALRANKID", std::to_string(std::find(local.begin(), local.end(), rank) - local.begin()));
    variables.set("MPI_LOCALNRANKS", std::to_string(local.size()));
    // MPICH 5 looks which of PMI and PMIx is there and stops if both are; told which one, it does not look. One that was built
    // without PMI-1 then takes PMIx by itself, and earlier ones do not know the variable.
    variables.set_default("MPIR_CVAR_PMI_VERSION", "1");
}

std::optional<std::string> pmi1_server::take_part() {
    return state_->logic.take_part();
}

void pmi1_server::finish_barrier(std::string_view parts) {
    std::vector<pmi1_reply> replies;
    state_->logic.finish_barrier(parts, replies);
    state_->send(replies);
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
        if (event.data.fd == state_->listener.fd())
            state_->accept_some(events);
        else if (event.data.fd == state_->ticks.get())
            state_->tick();
        else
            state_->serve(event.data.fd, event.events, events);
    }
    return events;
}

}  // namespace muster::pmix
