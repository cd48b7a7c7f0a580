#include "comm/shm/rendezvous/shm_rendezvous.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/deadlines.hpp"
#include "comm/backend/memory/shared_memory.hpp"
#include "comm/shm/rendezvous/rendezvous_socket.hpp"

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
        bool others = false;  // other users hold a name
        for (int which = 0; which < names_to_try; ++which)
            if (connect_to_rank_0_at(name_to_try(request_.key, which), others)) return;
        if (others && !std::exchange(told, true))
            spdlog::warn("{}: another user holds the socket of this job step's rendezvous; rank 0 is looked for at other names",
                         speaker());
        if (now_s() > until_)
            throw comm_error(errc::timeout,
                             fmt::format("{}: timed out, rank 0 on {} did not come within {}{}; look at its output", speaker(),
                                         request_.host, format_duration(request_.deadline),
                                         others ? ", and another user holds the socket " + request_.key : std::string{}),
                             {0});
        throw_if_lost();
        std::this_thread::sleep_for(pause);
    }
}

/// Returns false if rank 0 is not there; sets `others` if the name is another user's.
bool shm_rendezvous::connect_to_rank_0_at(std::string const& name, bool& others) {
    to_rank_0_ = make_socket();
    // The name tells rank 0 this rank at once. If two have the same number, rank 0 learns that from their records.
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
    if (is_readable_by(to_rank_0_.get(), until_)) return;
    auto const failed = [&] { blame_rank_0(errc::timeout, "did not answer within " + format_duration(request_.deadline)); };
    if (is_lost(state_of(rank_0_))) failed();
    // Rank 0 waits for another rank, and can name it.
    send_message(to_rank_0_.get(), refusal(errc::timeout, "", {}));
    if (!is_readable_by(to_rank_0_.get(), now_s() + grace_s)) failed();
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

void shm_rendezvous::throw_if_lost() const {
    if (request_.loss) request_.loss->throw_if_told(speaker());
}

/// Returns how long a wait may last before it looks whether ranks are gone.
double shm_rendezvous::next_look() const {
    return request_.loss ? std::min(until_, now_s() + between_looks_s) : until_;
}

bool shm_rendezvous::is_readable_by(int socket, double until) const {
    for (;;) {
        throw_if_lost();
        if (wait_readable(socket, std::min(until, next_look()))) return true;
        if (now_s() >= until) return false;
    }
}

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

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int milliseconds_until(double when) {
    if (std::isinf(when)) return -1;
    return std::clamp(static_cast<int>(std::ceil((when - now_s()) * 1e3)), 0, 1'000'000);
}

bool wait_readable(int socket, double until) {
    pollfd wait{socket, POLLIN, 0};
    for (;;) {
        int const ready = ::poll(&wait, 1, milliseconds_until(until));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0 && now_s() >= until) return false;
    }
}

// Rank 0 of a rendezvous accepts the others, hands out the memory, counts votes and reports a failure to all.

namespace {

/// Sends this refusal to each rank that connects, until `until` or until `how_many` have come.
void refuse_all(int listener, std::string const& key, rendezvous_message const& why, std::size_t how_many, double until) {
    while (how_many > 0 && wait_readable(listener, until)) {
        auto const next = accept_from(listener, key);
        if (next.socket && send_message(next.socket.get(), why)) --how_many;
    }
}

/// Returns whether a process of this user listens there. A process that has only just bound it gets a moment to listen.
bool is_of_this_user(std::string const& name) {
    for (int i = 0; i < 5; ++i) {
        unique_fd const caller = make_socket();
        int const code = connect_to(caller.get(), name);
        if (code == 0) return other_end(caller.get()).has_value();
        if (code != ECONNREFUSED && code != EINTR) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
}

}  // namespace

void shm_rendezvous::run_as_rank_0() {
    listen_for_peers();
    wait_for_peers();
    if (auto const fault = contradiction(); !fault.empty()) fail_on_all(errc::singleton, fault, {});
    records_.push_back(request_.self);
    for (auto const& each : peers_) records_.push_back(each.record);
    try {
        identity who;  // only for the message
        who.rank = 0;
        who.world_size = request_.self.world_size;
        who.host = request_.host;
        check_world(records_, who);
    } catch (comm_error const& problem) {
        fail_on_all(problem.code(), problem.what(), {});
    }
    listener_.reset();
    std::sort(records_.begin(), records_.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
    std::sort(peers_.begin(), peers_.end(), [](auto& a, auto& b) { return a.record.rank < b.record.rank; });
    hand_out_memory();
}

void shm_rendezvous::listen_for_peers() {
    listener_ = make_socket();
    for (int which = 0; which < names_to_try; ++which) {
        auto const name = name_to_try(request_.key, which);
        int const code = bind_to(listener_.get(), name);
        if (code == 0) {
            if (::listen(listener_.get(), request_.self.world_size + 16) != 0) throw_system("listen", name);
            return;
        }
        if (code != EADDRINUSE || is_of_this_user(name))
            throw_system("bind", "of the abstract socket " + name, code, "another rank 0 of the same job step has it");
        spdlog::warn("{}: another user holds the abstract socket {}; the next name is tried", speaker(), name);
    }
    throw_error(errc::system, "{}: other users hold the abstract sockets {} to {}; tell the administrator, and start again",
                speaker(), request_.key, name_to_try(request_.key, names_to_try - 1));
}

void shm_rendezvous::wait_for_peers() {
    while (!all_are_here()) {
        std::vector<pollfd> wait{{listener_.get(), POLLIN, 0}};
        for (auto const& each : peers_) wait.push_back({each.socket.get(), POLLIN, 0});
        throw_if_lost();
        int const ready = ::poll(wait.data(), wait.size(), milliseconds_until(next_look()));
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0 && now_s() >= until_) fail_by_deadline(missing_peers(), "did not come", nullptr);
        if (ready <= 0) continue;
        for (std::size_t i = 1; i < wait.size(); ++i)
            if (wait[i].revents != 0) receive_from(peers_[i - 1]);
        std::erase_if(peers_, [](peer const& each) { return each.left; });
        if (wait[0].revents != 0) accept_one();
    }
}

void shm_rendezvous::hand_out_memory() {
    memory_ = make_memory_file(request_.bytes);
    for (auto const& each : peers_) {
        if (!std::isinf(until_)) limit_sending(each.socket.get(), until_ - now_s());
        bool sent = send_message(each.socket.get(), rendezvous_message{}, memory_.get());
        for (auto const& record : records_) sent = sent && send_message(each.socket.get(), introduction{greeting, record});
        if (!sent) fail_by_loss(each);
    }
}

void shm_rendezvous::accept_one() {
    auto next = accept_from(listener_.get(), request_.key);
    if (!next.socket) return;
    auto const who = other_end(next.socket.get());
    if (!who) return;  // another user's process: not one of the ranks
    peer& come = peers_.emplace_back();
    come.socket = std::move(next.socket);
    come.who = *who;
    if (next.rank && *next.rank < request_.self.world_size) come.rank = next.rank;
}

/// Receives its introduction, its end, or the message that its deadline has passed.
void shm_rendezvous::receive_from(peer& from) {
    if (from.introduced) {
        rendezvous_message told;
        if (!receive_message(from.socket.get(), told)) fail_by_loss(from);
        if (told.failed != 0) fail_by_deadline(missing_peers(), "did not come", &from);
        return;
    }
    introduction told;
    if (receive_message(from.socket.get(), told)) {
        from.record = told.record;
        from.rank = told.record.rank;
        from.introduced = true;
    } else if (from.rank) {
        fail_by_loss(from);
    } else {
        from.left = true;  // its rank becomes known when one has not come
    }
}

/// Counts ranks up to the least world size that any of them has, so that ranks which contradict it still learn why the rendezvous
/// fails.
bool shm_rendezvous::all_are_here() const {
    int least = request_.self.world_size, here = 1;
    for (auto const& each : peers_) {
        if (!each.introduced) continue;
        ++here;
        least = std::min(least, each.record.world_size);
    }
    return here >= least;
}

/// Names the first rank whose count differs from rank 0's.
std::string shm_rendezvous::contradiction() const {
    for (auto const& each : peers_)
        if (each.record.world_size != request_.self.world_size)
            return fmt::format(
                "communicator: rank {} on {} says that there are {} ranks, rank 0 says {}; their environments are mixed "
                "up: start all by one command",
                each.record.rank, each.record.host, each.record.world_size, request_.self.world_size);
    return {};
}

shm_rendezvous::named_ranks shm_rendezvous::missing_peers() const {
    named_ranks missing;
    std::vector<std::string> names;
    for (int rank = 1; rank < request_.self.world_size; ++rank) {
        auto const found = std::find_if(peers_.begin(), peers_.end(), [&](peer const& each) { return each.rank == rank; });
        if (found != peers_.end() && found->introduced) continue;
        missing.ranks.push_back(rank);
        names.push_back(found == peers_.end() ? std::to_string(rank)
                                              : fmt::format("{} ({})", rank, describe(found->who, state_of(found->who))));
    }
    missing.text = fmt::format("rank{} {} on {}", missing.ranks.size() == 1 ? "" : "s", join(names, ", "), request_.host);
    return missing;
}

/// Returns those that are stopped or gone, or else all that have not voted. Leaves out `but`.
shm_rendezvous::named_ranks shm_rendezvous::missing_voters(int but) const {
    named_ranks lost, late;
    for (auto const& each : peers_) {
        if (each.voted || each.record.rank == but) continue;
        for (auto* const into : {&late, is_lost(state_of(each.who)) ? &lost : nullptr}) {
            if (into == nullptr) continue;
            into->text += fmt::format("{}rank {} on {} ({})", into->ranks.empty() ? "" : ", ", each.record.rank, request_.host,
                                      describe(each.who, state_of(each.who)));
            into->ranks.push_back(each.record.rank);
        }
    }
    return lost.ranks.empty() ? late : lost;
}

void shm_rendezvous::fail_by_deadline(named_ranks const& missing, std::string_view did_not, peer const* whose) {
    std::string const of =
        whose == nullptr ? std::string{} : fmt::format(" by the clock of rank {}, which came first", whose->record.rank);
    fail_on_all(
        errc::timeout,
        fmt::format(
            "{}: timed out, {} {} within {}{}; look at what they printed, or give a longer deadline (MUSTER_COMM_DEADLINE)",
            speaker(), missing.text, did_not, format_duration(request_.deadline), of),
        missing.ranks);
}

void shm_rendezvous::fail_by_loss(peer const& who) {
    fail_on_all(errc::peer_failed,
                fmt::format("{}: rank {} on {} left while the ranks met: {}", speaker(), *who.rank, request_.host,
                            describe(who.who, state_of(who.who))),
                {*who.rank});
}

void shm_rendezvous::fail_on_all(errc code, std::string const& why, std::vector<int> const& culprits) {
    for (auto const& each : peers_) send_message(each.socket.get(), refusal(code, why, culprits));
    if (listener_) refuse_latecomers(code, why, culprits);
    throw comm_error(code, why, culprits);
}

/// A rank that comes later must not blame this rank for having gone on.
void shm_rendezvous::refuse_latecomers(errc code, std::string const& why, std::vector<int> const& culprits) {
    int expected = 0;
    for (int rank = 1; rank < request_.self.world_size; ++rank) {
        bool const is_told = std::any_of(peers_.begin(), peers_.end(), [&](peer const& each) { return each.rank == rank; });
        bool const is_culprit = std::find(culprits.begin(), culprits.end(), rank) != culprits.end();
        if (!is_told && !(is_culprit && code == errc::peer_failed)) ++expected;
    }
    if (expected == 0) return;
    double const until = now_s() + (request_.deadline.count() > 0 ? request_.deadline.count() : 1e9);
    detail::call_on_thread telling(
        [listener = std::make_shared<unique_fd>(std::move(listener_)), key = request_.key, answer = refusal(code, why, culprits),
         expected, until] { refuse_all(listener->get(), key, answer, static_cast<std::size_t>(expected), until); });
    telling.wait(duration{std::clamp(until_ - now_s(), 0.0, grace_s)});
}

bool shm_rendezvous::all_have_voted() const {
    return std::all_of(peers_.begin(), peers_.end(), [](peer const& each) { return each.voted; });
}

void shm_rendezvous::wait_for_votes(bool& yes) {
    while (!all_have_voted()) {
        std::vector<pollfd> wait;
        for (auto const& each : peers_) wait.push_back({each.socket.get(), POLLIN, 0});
        throw_if_lost();
        int const ready = ::poll(wait.data(), wait.size(), milliseconds_until(next_look()));
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0 && now_s() >= until_) fail_by_deadline(missing_voters(0), "did not join", nullptr);
        for (std::size_t i = 0; i < wait.size() && ready > 0; ++i)
            if (wait[i].revents != 0) receive_vote(peers_[i], yes);
    }
}

void shm_rendezvous::receive_vote(peer& from, bool& yes) {
    rendezvous_message told;
    if (!receive_message(from.socket.get(), told)) fail_by_loss(from);
    if (told.failed == 0) {
        from.voted = true;
        yes = yes && told.yes != 0;
        return;
    }
    // The rank's deadline has passed. If all others are there, the answer still comes.
    auto const missing = missing_voters(from.record.rank);
    if (!missing.ranks.empty()) fail_by_deadline(missing, "did not join", &from);
}

}  // namespace muster::shm
