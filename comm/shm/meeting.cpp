#include "comm/shm/meeting.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "base/text.hpp"
#include "comm/comm_error.hpp"
#include "comm/shm/segment.hpp"

namespace muster::shm {

namespace {

constexpr std::uint64_t greeting = 0x6d757374'65720001u;  // with the version of these messages

/// So much longer than rank 0, which knows who is missing, the others wait for what it has to say.
constexpr double grace_s = 1.0;

struct introduction {
    std::uint64_t magic = greeting;
    world_record record;
};

/// From rank 0, with `failed`: why. Else the memory file comes along and the records follow; or it is a vote of agree().
struct word {
    std::uint64_t magic = greeting;
    std::int32_t yes = 0;
    std::int32_t failed = 0;
    errc code = errc::internal;
    std::array<char, 1500> why{};
};

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int milliseconds_until(double when) {
    if (std::isinf(when)) return -1;
    return std::clamp(static_cast<int>(std::ceil((when - now_s()) * 1e3)), 0, 1'000'000);
}

struct abstract_name {
    sockaddr_un address{};
    socklen_t length = 0;
};

abstract_name name_of(std::string const& key) {
    abstract_name name;
    name.address.sun_family = AF_UNIX;
    std::size_t const size = std::min(key.size(), sizeof name.address.sun_path - 1);
    std::memcpy(name.address.sun_path + 1, key.data(), size);  // the leading zero makes it abstract
    name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
    return name;
}

unique_fd make_socket() {
    unique_fd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!made) throw_system("socket", "for the ranks of this node");
    return made;
}

/// Who is at the other end; nothing if it is another user.
std::optional<process_name> other_end(int socket) {
    ucred who{};
    socklen_t length = sizeof who;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != ::geteuid()) return std::nullopt;
    std::ifstream file(fmt::format("/proc/{}/stat", who.pid));
    std::string line;
    std::getline(file, line);
    return process_name{who.pid, parse_stat(line).started, this_process().machine};
}

template <typename Message>
bool send_message(int socket, Message const& message, int file = -1) {
    iovec part{const_cast<Message*>(&message), sizeof message};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (file >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* const rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &file, sizeof file);
    }
    ssize_t sent = 0;
    do sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(sizeof message);
}

/// False if the other end is gone or sent something else.
template <typename Message>
bool receive_message(int socket, Message& message, unique_fd* file = nullptr) {
    iovec part{&message, sizeof message};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t got = 0;
    do got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        int received = -1;
        std::memcpy(&received, CMSG_DATA(each), sizeof received);
        unique_fd owner(received);
        if (file != nullptr) *file = std::move(owner);
    }
    return got == static_cast<ssize_t>(sizeof message) && message.magic == greeting;
}

word refusal(errc code, std::string const& why) {
    word message;
    message.failed = 1;
    message.code = code;
    std::memcpy(message.why.data(), why.data(), std::min(why.size(), message.why.size() - 1));
    return message;
}

void throw_if_failed(word const& message) {
    if (message.failed != 0) throw comm_error(message.code, message.why.data());
}

std::string state_of(process_name const& who) {
    return describe(who, look_at(who));
}

}  // namespace

meeting::meeting(meeting_request request) : request_(std::move(request)) {
    until_ = request_.deadline.count() > 0 ? now_s() + request_.deadline.count() : std::numeric_limits<double>::infinity();
    if (request_.self.rank == 0)
        receive_visitors();
    else
        visit();
}

// ---- rank 0

void meeting::receive_visitors() {
    unique_fd const listener = make_socket();
    auto const name = name_of(request_.key);
    auto const* address = reinterpret_cast<sockaddr const*>(&name.address);
    if (::bind(listener.get(), address, name.length) != 0)
        throw_system("bind", "of the abstract socket " + request_.key, 0, "another rank 0 of the same job step has it");
    if (::listen(listener.get(), request_.self.world_size + 16) != 0) throw_system("listen", request_.key);
    while (!all_are_here()) {
        std::vector<pollfd> wait{{listener.get(), POLLIN, 0}};
        for (auto const& each : visitors_) wait.push_back({each.socket.get(), POLLIN, 0});
        int const ready = ::poll(wait.data(), wait.size(), milliseconds_until(until_));
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0)
            call_off(errc::timeout,
                     fmt::format("communicator (rank 0 of {} on {}): {} did not come within {}; look at what "
                                 "they printed, or give a longer deadline",
                                 request_.self.world_size, request_.host, name_missing(), format_duration(request_.deadline)));
        if (ready < 0) continue;
        for (std::size_t i = 1; i < wait.size(); ++i)
            if (wait[i].revents != 0) listen_to(visitors_[i - 1]);
        if (wait[0].revents != 0) accept_one(listener.get());
    }

    if (auto const fault = contradiction(); !fault.empty()) call_off(errc::singleton, fault);
    records_.push_back(request_.self);
    for (auto const& each : visitors_) records_.push_back(each.record);
    try {
        identity who;  // colours the message only
        who.rank = 0;
        who.world_size = request_.self.world_size;
        who.host = request_.host;
        check_world(records_, who);
    } catch (comm_error const& problem) {
        call_off(problem.code(), problem.what());
    }
    std::sort(records_.begin(), records_.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
    std::sort(visitors_.begin(), visitors_.end(), [](auto& a, auto& b) { return a.record.rank < b.record.rank; });
    memory_ = make_memory_file(request_.bytes);
    for (auto const& each : visitors_) {
        bool sent = send_message(each.socket.get(), word{}, memory_.get());
        for (auto const& record : records_) sent = sent && send_message(each.socket.get(), introduction{greeting, record});
        if (!sent) listen_to(visitors_[static_cast<std::size_t>(each.record.rank - 1)]);
    }
}

void meeting::accept_one(int listener) {
    visitor next;
    next.socket.reset(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!next.socket) return;
    auto const who = other_end(next.socket.get());
    if (!who) return;  // another user's: not one of us
    next.who = *who;
    visitors_.push_back(std::move(next));
}

/// Its introduction, or its end.
void meeting::listen_to(visitor& from) {
    introduction told;
    if (!receive_message(from.socket.get(), told) || from.introduced) {
        std::string const name =
            from.introduced ? fmt::format("rank {}", from.record.rank) : "a rank that had not said its number";
        call_off(errc::peer_failed, fmt::format("communicator (rank 0 of {} on {}): {} left while the ranks met: {}",
                                                request_.self.world_size, request_.host, name, state_of(from.who)));
    }
    from.record = told.record;
    from.introduced = true;
}

/// As many as the least count that any of them believes in, so that those who contradict it still hear why nothing comes of it.
bool meeting::all_are_here() const {
    int least = request_.self.world_size, here = 1;
    for (auto const& each : visitors_) {
        if (!each.introduced) continue;
        ++here;
        least = std::min(least, each.record.world_size);
    }
    return here >= least;
}

/// Who counts otherwise than rank 0.
std::string meeting::contradiction() const {
    for (auto const& each : visitors_)
        if (each.record.world_size != request_.self.world_size)
            return fmt::format(
                "communicator: rank {} on {} says that there are {} ranks, rank 0 says {}; their environments are mixed "
                "up: start all by one command",
                each.record.rank, each.record.host, each.record.world_size, request_.self.world_size);
    return {};
}

std::string meeting::name_missing() const {
    std::vector<std::string> missing;
    for (int rank = 1; rank < request_.self.world_size; ++rank) {
        bool const here =
            std::any_of(visitors_.begin(), visitors_.end(), [&](auto const& v) { return v.introduced && v.record.rank == rank; });
        if (!here) missing.push_back(std::to_string(rank));
    }
    return fmt::format("rank{} {}", missing.size() == 1 ? "" : "s", join(missing, ", "));
}

void meeting::call_off(errc code, std::string const& why) {
    for (auto const& each : visitors_) send_message(each.socket.get(), refusal(code, why));
    throw comm_error(code, why);
}

// ---- the others

void meeting::visit() {
    auto const name = name_of(request_.key);
    auto const* address = reinterpret_cast<sockaddr const*>(&name.address);
    for (auto pause = std::chrono::microseconds(200);; pause = std::min(pause * 2, std::chrono::microseconds(20'000))) {
        to_rank_0_ = make_socket();
        if (::connect(to_rank_0_.get(), address, name.length) == 0) break;
        if (errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN) throw_system("connect", "to rank 0 at " + request_.key);
        if (now_s() > until_)
            throw comm_error(
                errc::timeout,
                fmt::format("communicator (rank {} of {} on {}): rank 0 did not come within {}; look at its output",
                            request_.self.rank, request_.self.world_size, request_.host, format_duration(request_.deadline)),
                {0});
        std::this_thread::sleep_for(pause);
    }
    auto const who = other_end(to_rank_0_.get());
    if (!who)
        throw comm_error(errc::peer_failed, fmt::format("communicator (rank {} on {}): the socket {} belongs to another user",
                                                        request_.self.rank, request_.host, request_.key));
    rank_0_ = *who;
    send_message(to_rank_0_.get(), introduction{greeting, request_.self});
    await(to_rank_0_.get(), "answer");
    word answer;
    if (!receive_message(to_rank_0_.get(), answer, &memory_)) answer = refusal(errc::peer_failed, "");
    if (answer.failed == 0 && memory_) {
        for (int rank = 0; rank < request_.self.world_size; ++rank)
            records_.push_back(hear_rank_0<introduction>("answer").record);
        return;
    }
    if (answer.why[0] != 0) throw_if_failed(answer);
    throw comm_error(errc::peer_failed,
                     fmt::format("communicator (rank {} of {} on {}): rank 0 left while the ranks met: {}", request_.self.rank,
                                 request_.self.world_size, request_.host, state_of(rank_0_)),
                     {0});
}

void meeting::await(int socket, std::string_view for_what) {
    pollfd wait{socket, POLLIN, 0};
    for (;;) {
        int const ready = ::poll(&wait, 1, milliseconds_until(until_ + grace_s));
        if (ready > 0) return;
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0)
            throw comm_error(errc::timeout,
                             fmt::format("communicator (rank {} of {} on {}): rank 0 did not {} within {}: {}",
                                         request_.self.rank, request_.self.world_size, request_.host, for_what,
                                         format_duration(request_.deadline), state_of(rank_0_)),
                             {0});
    }
}

template <typename Message>
Message meeting::hear_rank_0(std::string_view for_what) {
    await(to_rank_0_.get(), for_what);
    Message message;
    if (receive_message(to_rank_0_.get(), message)) return message;
    throw comm_error(errc::peer_failed,
                     fmt::format("communicator (rank {} of {} on {}): rank 0 left while the ranks met: {}", request_.self.rank,
                                 request_.self.world_size, request_.host, state_of(rank_0_)),
                     {0});
}

// ---- all

bool meeting::agree(bool yes) {
    if (request_.self.rank != 0) {
        send_message(to_rank_0_.get(), word{greeting, yes ? 1 : 0});
        auto const verdict = hear_rank_0<word>("answer");
        throw_if_failed(verdict);
        return verdict.yes != 0;
    }
    std::vector<bool> heard(visitors_.size(), false);
    auto const fail = [&](errc code, std::string const& why, int culprit) {
        for (auto const& each : visitors_) send_message(each.socket.get(), refusal(code, why));
        throw comm_error(code, why, {culprit});
    };
    for (std::size_t left = visitors_.size(); left != 0;) {
        std::vector<pollfd> wait;
        for (std::size_t i = 0; i < visitors_.size(); ++i) wait.push_back({heard[i] ? -1 : visitors_[i].socket.get(), POLLIN, 0});
        int const ready = ::poll(wait.data(), wait.size(), milliseconds_until(until_));
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        for (std::size_t i = 0; i < wait.size() && ready >= 0; ++i) {
            if (heard[i] || (ready != 0 && wait[i].revents == 0)) continue;
            int const rank = visitors_[i].record.rank;
            word told;
            if (ready == 0 || !receive_message(visitors_[i].socket.get(), told))
                fail(ready == 0 ? errc::timeout : errc::peer_failed,
                     fmt::format("communicator (rank 0 of {} on {}): rank {} {}: {}", request_.self.world_size, request_.host,
                                 rank,
                                 ready == 0 ? "did not join within " + format_duration(request_.deadline)
                                            : std::string("left while the ranks met"),
                                 state_of(visitors_[i].who)),
                     rank);
            heard[i] = true;
            --left;
            yes = yes && told.yes != 0;
        }
    }
    for (auto const& each : visitors_) send_message(each.socket.get(), word{greeting, yes ? 1 : 0});
    return yes;
}

}  // namespace muster::shm
