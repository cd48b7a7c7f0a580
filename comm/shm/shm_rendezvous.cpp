#include "comm/shm/shm_rendezvous.hpp"

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

#include "base/text.hpp"
#include "comm/backend/call_with_deadline.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/shm/rendezvous_socket.hpp"
#include "comm/shm/segment.hpp"

namespace muster::shm {

namespace {

/// So long rank 0, if it is not stopped, has to answer a rank whose deadline has passed; and so long it waits for those who are
/// to hear that it has called the meeting off.
constexpr double grace_s = 1.0;

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int milliseconds_until(double when) {
    if (std::isinf(when)) return -1;
    return std::clamp(static_cast<int>(std::ceil((when - now_s()) * 1e3)), 0, 1'000'000);
}

/// What poll() says of one socket: false if nothing came until then.
bool wait_readable(int socket, double until) {
    pollfd wait{socket, POLLIN, 0};
    for (;;) {
        int const ready = ::poll(&wait, 1, milliseconds_until(until));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0 && now_s() >= until) return false;
    }
}

std::string state_of(process_name const& who) {
    return describe(who, look_at(who));
}

bool is_lost(process_name const& who) {
    auto const state = look_at(who);
    return state == process_state::gone || state == process_state::stopped;
}

/// Until then, or until so many have come: whoever connects is given this refusal.
void refuse_all(int listener, std::string const& key, word const& why, std::size_t how_many, double until) {
    while (how_many > 0 && wait_readable(listener, until)) {
        auto const next = accept_from(listener, key);
        if (next.socket && send_message(next.socket.get(), why)) --how_many;
    }
}

}  // namespace

meeting::meeting(meeting_request request) : request_(std::move(request)) {
    until_ = request_.deadline.count() > 0 ? now_s() + request_.deadline.count() : std::numeric_limits<double>::infinity();
    if (request_.self.rank == 0)
        receive_visitors();
    else
        visit();
}

std::string meeting::speaker() const {
    return fmt::format("communicator (rank {} of {} on {})", request_.self.rank, request_.self.world_size, request_.host);
}

// ---- rank 0

void meeting::receive_visitors() {
    listener_ = make_socket();
    if (int const code = bind_to(listener_.get(), request_.key); code != 0)
        throw_system("bind", "of the abstract socket " + request_.key, code, "another rank 0 of the same job step has it");
    if (::listen(listener_.get(), request_.self.world_size + 16) != 0) throw_system("listen", request_.key);
    wait_for_visitors();
    if (auto const fault = contradiction(); !fault.empty()) call_off(errc::singleton, fault, {});
    records_.push_back(request_.self);
    for (auto const& each : visitors_) records_.push_back(each.record);
    try {
        identity who;  // colours the message only
        who.rank = 0;
        who.world_size = request_.self.world_size;
        who.host = request_.host;
        check_world(records_, who);
    } catch (comm_error const& problem) {
        call_off(problem.code(), problem.what(), {});
    }
    listener_.reset();
    std::sort(records_.begin(), records_.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
    std::sort(visitors_.begin(), visitors_.end(), [](auto& a, auto& b) { return a.record.rank < b.record.rank; });
    hand_out_memory();
}

void meeting::wait_for_visitors() {
    while (!all_are_here()) {
        std::vector<pollfd> wait{{listener_.get(), POLLIN, 0}};
        for (auto const& each : visitors_) wait.push_back({each.socket.get(), POLLIN, 0});
        int const ready = ::poll(wait.data(), wait.size(), milliseconds_until(until_));
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0 && now_s() >= until_) end_by_deadline(missing_visitors(), "did not come", nullptr);
        if (ready <= 0) continue;
        for (std::size_t i = 1; i < wait.size(); ++i)
            if (wait[i].revents != 0) listen_to(visitors_[i - 1]);
        std::erase_if(visitors_, [](visitor const& each) { return each.left; });
        if (wait[0].revents != 0) accept_one();
    }
}

void meeting::hand_out_memory() {
    memory_ = make_memory_file(request_.bytes);
    for (auto const& each : visitors_) {
        if (!std::isinf(until_)) limit_sending(each.socket.get(), until_ - now_s());
        bool sent = send_message(each.socket.get(), word{}, memory_.get());
        for (auto const& record : records_) sent = sent && send_message(each.socket.get(), introduction{greeting, record});
        if (!sent) end_by_leaving(each);
    }
}

void meeting::accept_one() {
    auto next = accept_from(listener_.get(), request_.key);
    if (!next.socket) return;
    auto const who = other_end(next.socket.get());
    if (!who) return;  // another user's: not one of us
    visitor& come = visitors_.emplace_back();
    come.socket = std::move(next.socket);
    come.who = *who;
    if (next.rank && *next.rank < request_.self.world_size) come.rank = next.rank;
}

/// Its introduction, its end, or the end of its patience.
void meeting::listen_to(visitor& from) {
    if (from.introduced) {
        word told;
        if (!receive_message(from.socket.get(), told)) end_by_leaving(from);
        if (told.failed != 0) end_by_deadline(missing_visitors(), "did not come", &from);
        return;
    }
    introduction told;
    if (receive_message(from.socket.get(), told)) {
        from.record = told.record;
        from.rank = told.record.rank;
        from.introduced = true;
    } else if (from.rank) {
        end_by_leaving(from);
    } else {
        from.left = true;  // who it was is known when somebody has not come
    }
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

meeting::named_ranks meeting::missing_visitors() const {
    named_ranks missing;
    std::vector<std::string> names;
    for (int rank = 1; rank < request_.self.world_size; ++rank) {
        auto const found =
            std::find_if(visitors_.begin(), visitors_.end(), [&](visitor const& each) { return each.rank == rank; });
        if (found != visitors_.end() && found->introduced) continue;
        missing.ranks.push_back(rank);
        names.push_back(found == visitors_.end() ? std::to_string(rank) : fmt::format("{} ({})", rank, state_of(found->who)));
    }
    missing.text = fmt::format("rank{} {} on {}", missing.ranks.size() == 1 ? "" : "s", join(names, ", "), request_.host);
    return missing;
}

/// Those that are stopped or gone; if there are none, all that have not voted. `but` is left out.
meeting::named_ranks meeting::missing_voters(int but) const {
    named_ranks lost, late;
    for (auto const& each : visitors_) {
        if (each.voted || each.record.rank == but) continue;
        for (auto* const into : {&late, is_lost(each.who) ? &lost : nullptr}) {
            if (into == nullptr) continue;
            into->text += fmt::format("{}rank {} on {} ({})", into->ranks.empty() ? "" : ", ", each.record.rank, request_.host,
                                      state_of(each.who));
            into->ranks.push_back(each.record.rank);
        }
    }
    return lost.ranks.empty() ? late : lost;
}

void meeting::end_by_deadline(named_ranks const& missing, std::string_view did_not, visitor const* whose) {
    std::string const of =
        whose == nullptr ? std::string{} : fmt::format(" by the clock of rank {}, which came first", whose->record.rank);
    call_off(errc::timeout,
             fmt::format("{}: {} {} within {}{}; look at what they printed, or give a longer deadline", speaker(), missing.text,
                         did_not, format_duration(request_.deadline), of),
             missing.ranks);
}

void meeting::end_by_leaving(visitor const& who) {
    call_off(
        errc::peer_failed,
        fmt::format("{}: rank {} on {} left while the ranks met: {}", speaker(), *who.rank, request_.host, state_of(who.who)),
        {*who.rank});
}

void meeting::call_off(errc code, std::string const& why, std::vector<int> const& culprits) {
    for (auto const& each : visitors_) send_message(each.socket.get(), refusal(code, why, culprits));
    if (listener_) tell_latecomers(code, why, culprits);
    throw comm_error(code, why, culprits);
}

/// Whoever comes later must not take this rank, which has gone on, for the culprit.
void meeting::tell_latecomers(errc code, std::string const& why, std::vector<int> const& culprits) {
    int expected = 0;
    for (int rank = 1; rank < request_.self.world_size; ++rank) {
        bool const is_told =
            std::any_of(visitors_.begin(), visitors_.end(), [&](visitor const& each) { return each.rank == rank; });
        bool const is_culprit = std::find(culprits.begin(), culprits.end(), rank) != culprits.end();
        if (!is_told && !(is_culprit && code == errc::peer_failed)) ++expected;
    }
    if (expected == 0) return;
    double const until = now_s() + (request_.deadline.count() > 0 ? request_.deadline.count() : 1e9);
    detail::blocking_call telling(
        [listener = std::make_shared<unique_fd>(std::move(listener_)), key = request_.key, answer = refusal(code, why, culprits),
         expected, until] { refuse_all(listener->get(), key, answer, static_cast<std::size_t>(expected), until); });
    telling.wait(duration{std::clamp(until_ - now_s(), 0.0, grace_s)});
}

// ---- the others

void meeting::visit() {
    connect_to_rank_0();
    send_message(to_rank_0_.get(), introduction{greeting, request_.self});
    await_rank_0();
    word answer;
    if (!receive_message(to_rank_0_.get(), answer, &memory_)) blame_rank_0(errc::peer_failed, "left while the ranks met");
    throw_if_failed(answer);
    if (!memory_) blame_rank_0(errc::peer_failed, "gave no memory");
    for (int rank = 0; rank < request_.self.world_size; ++rank) records_.push_back(hear_rank_0<introduction>().record);
}

void meeting::connect_to_rank_0() {
    to_rank_0_ = make_socket();
    // So it is known by its rank from the first. Where two call themselves by one number, they tell rank 0 so in words.
    static_cast<void>(bind_to(to_rank_0_.get(), request_.key, request_.self.rank));
    for (auto pause = std::chrono::microseconds(200);; pause = std::min(pause * 2, std::chrono::microseconds(20'000))) {
        int const code = connect_to(to_rank_0_.get(), request_.key);
        if (code == 0) break;
        if (code != ECONNREFUSED && code != EINTR && code != EAGAIN)
            throw_system("connect", "to rank 0 at " + request_.key, code);
        if (now_s() > until_)
            throw comm_error(errc::timeout,
                             fmt::format("{}: rank 0 on {} did not come within {}; look at its output", speaker(), request_.host,
                                         format_duration(request_.deadline)),
                             {0});
        std::this_thread::sleep_for(pause);
    }
    auto const who = other_end(to_rank_0_.get());
    if (!who)
        throw comm_error(errc::peer_failed, fmt::format("{}: the socket {} belongs to another user", speaker(), request_.key));
    rank_0_ = *who;
}

/// Returns once there is something to be read.
void meeting::await_rank_0() {
    if (wait_readable(to_rank_0_.get(), until_)) return;
    auto const failed = [&] { blame_rank_0(errc::timeout, "did not answer within " + format_duration(request_.deadline)); };
    if (is_lost(rank_0_)) failed();
    // It waits for somebody else, whom it can name.
    send_message(to_rank_0_.get(), refusal(errc::timeout, "", {}));
    if (!wait_readable(to_rank_0_.get(), now_s() + grace_s)) failed();
}

template <typename Message>
Message meeting::hear_rank_0() {
    await_rank_0();
    Message message;
    if (!receive_message(to_rank_0_.get(), message)) blame_rank_0(errc::peer_failed, "left while the ranks met");
    return message;
}

void meeting::blame_rank_0(errc code, std::string_view what) const {
    throw comm_error(code, fmt::format("{}: rank 0 on {} {}: {}", speaker(), request_.host, what, state_of(rank_0_)), {0});
}

// ---- all

bool meeting::agree(bool yes) {
    if (request_.self.rank != 0) {
        send_message(to_rank_0_.get(), word{greeting, yes ? 1 : 0});
        auto const verdict = hear_rank_0<word>();
        throw_if_failed(verdict);
        return verdict.yes != 0;
    }
    for (auto& each : visitors_) each.voted = false;
    wait_for_votes(yes);
    for (auto const& each : visitors_) send_message(each.socket.get(), word{greeting, yes ? 1 : 0});
    return yes;
}

bool meeting::all_have_voted() const {
    return std::all_of(visitors_.begin(), visitors_.end(), [](visitor const& each) { return each.voted; });
}

void meeting::wait_for_votes(bool& yes) {
    while (!all_have_voted()) {
        std::vector<pollfd> wait;
        for (auto const& each : visitors_) wait.push_back({each.socket.get(), POLLIN, 0});
        int const ready = ::poll(wait.data(), wait.size(), milliseconds_until(until_));
        if (ready < 0 && errno != EINTR) throw_system("poll", "while the ranks meet");
        if (ready == 0 && now_s() >= until_) end_by_deadline(missing_voters(0), "did not join", nullptr);
        for (std::size_t i = 0; i < wait.size() && ready > 0; ++i)
            if (wait[i].revents != 0) hear_vote(visitors_[i], yes);
    }
}

void meeting::hear_vote(visitor& from, bool& yes) {
    word told;
    if (!receive_message(from.socket.get(), told)) end_by_leaving(from);
    if (told.failed == 0) {
        from.voted = true;
        yes = yes && told.yes != 0;
        return;
    }
    // Its deadline has passed. If everybody else is there the verdict comes all the same.
    auto const missing = missing_voters(from.record.rank);
    if (!missing.ranks.empty()) end_by_deadline(missing, "did not join", &from);
}

}  // namespace muster::shm
