#include "comm/shm/rendezvous/shm_rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/shm/rendezvous/rendezvous_socket.hpp"
#include "comm/shm/rendezvous/rendezvous_wait.hpp"

namespace muster::shm {

shm_rendezvous::shm_rendezvous(rendezvous_request request) : request_(std::move(request)) {
    until_ = request_.deadline.count() > 0 ? now_s() + request_.deadline.count() : std::numeric_limits<double>::infinity();
    if (request_.self.rank == 0)
        run_as_rank_0();
    else
        run_as_peer();
}

std::string shm_rendezvous::speaker() const {
    return fmt::format("communicator (rank {} of {} on {})", request_.self.rank, request_.self.world_size, request_.host);
}

// ---- ranks other than 0

void shm_rendezvous::run_as_peer() {
    connect_to_rank_0();
    send_message(to_rank_0_.get(), introduction{greeting, request_.self});
    await_rank_0();
    rendezvous_message answer;
    if (!receive_message(to_rank_0_.get(), answer, &memory_)) blame_rank_0(errc::peer_failed, "left while the ranks met");
    throw_if_failed(answer);
    if (!memory_) blame_rank_0(errc::peer_failed, "gave no memory");
    for (int rank = 0; rank < request_.self.world_size; ++rank) records_.push_back(receive_from_rank_0<introduction>().record);
}

void shm_rendezvous::connect_to_rank_0() {
    bool told = false;
    for (auto pause = std::chrono::microseconds(200);; pause = std::min(pause * 2, std::chrono::microseconds(20'000))) {
        bool others = false;  // hold a name
        for (int which = 0; which < names_to_try; ++which)
            if (connect_to_rank_0_at(name_to_try(request_.key, which), others)) return;
        if (others && !std::exchange(told, true))
            spdlog::warn("{}: another user holds the socket of this job step's rendezvous; rank 0 is looked for at other names",
                         speaker());
        if (now_s() > until_)
            throw comm_error(errc::timeout,
                             fmt::format("{}: rank 0 on {} did not come within {}{}; look at its output", speaker(),
                                         request_.host, format_duration(request_.deadline),
                                         others ? ", and another user holds the socket " + request_.key : std::string{}),
                             {0});
        std::this_thread::sleep_for(pause);
    }
}

/// False if rank 0 is not there; `others` is set if it is another user's.
bool shm_rendezvous::connect_to_rank_0_at(std::string const& name, bool& others) {
    to_rank_0_ = make_socket();
    // So rank 0 knows its rank at once. Where two have the same number, rank 0 learns that from their records.
    static_cast<void>(bind_to(to_rank_0_.get(), request_.key, request_.self.rank));
    int const code = connect_to(to_rank_0_.get(), name);
    if (code == ECONNREFUSED || code == EINTR || code == EAGAIN) return false;
    if (code != 0) throw_system("connect", "to rank 0 at " + name, code);
    auto const who = other_end(to_rank_0_.get());
    if (who) rank_0_ = *who;
    others = others || !who;
    return who.has_value();
}

/// Returns once there is something to be read.
void shm_rendezvous::await_rank_0() {
    if (wait_readable(to_rank_0_.get(), until_)) return;
    auto const failed = [&] { blame_rank_0(errc::timeout, "did not answer within " + format_duration(request_.deadline)); };
    if (is_lost(state_of(rank_0_))) failed();
    // It waits for another rank, which it can name.
    send_message(to_rank_0_.get(), refusal(errc::timeout, "", {}));
    if (!wait_readable(to_rank_0_.get(), now_s() + grace_s)) failed();
}

template <typename Message>
Message shm_rendezvous::receive_from_rank_0() {
    await_rank_0();
    Message message;
    if (!receive_message(to_rank_0_.get(), message)) blame_rank_0(errc::peer_failed, "left while the ranks met");
    return message;
}

void shm_rendezvous::blame_rank_0(errc code, std::string_view what) const {
    throw comm_error(
        code, fmt::format("{}: rank 0 on {} {}: {}", speaker(), request_.host, what, describe(rank_0_, state_of(rank_0_))), {0});
}

// ---- all

bool shm_rendezvous::numbers_are_right() const {
    if (request_.self.rank != 0) return rank_0_.pid == records_.front().process.pid;
    return std::ranges::all_of(peers_, [](peer const& each) { return each.who.pid == each.record.process.pid; });
}

bool shm_rendezvous::all_say_yes(bool yes) {
    if (request_.self.rank != 0) {
        send_message(to_rank_0_.get(), rendezvous_message{greeting, yes ? 1 : 0});
        auto const answer = receive_from_rank_0<rendezvous_message>();
        throw_if_failed(answer);
        return answer.yes != 0;
    }
    for (auto& each : peers_) each.voted = false;
    wait_for_votes(yes);
    for (auto const& each : peers_) send_message(each.socket.get(), rendezvous_message{greeting, yes ? 1 : 0});
    return yes;
}

}  // namespace muster::shm
