#include "comm/tcp/world.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/process/network.hpp"
#include "comm/backend/late_ranks.hpp"

namespace muster::tcp {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds before_asking{20};
constexpr milliseconds between_tries{50};
constexpr milliseconds between_requests{500};
/// The limits for one address if there are others, and for the answer of a process that may be busy.
constexpr milliseconds longest_connect{3000}, longest_answer{15000};
/// Processes that have greeted this world and not proven who they are: their most, and their time.
constexpr std::size_t most_unproven = 256;
constexpr std::chrono::seconds unproven_patience{10};

/// The longest wait of a rank that gives up until the others have taken its word.
constexpr milliseconds longest_parting{1000};

/// If all wanted connections are there, it looks for calls of others once in this many pumps.
constexpr unsigned pumps_between_looks = 64;

void append(std::vector<late_rank>& to, std::vector<late_rank> const& more) {
    to.insert(to.end(), more.begin(), more.end());
}

std::vector<late_rank> in_order(std::vector<late_rank> all) {
    std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    all.erase(std::unique(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.rank == b.rank; }), all.end());
    return all;
}

}  // namespace

scratch_memory::piece scratch_memory::take(std::size_t bytes) {
    auto const fits = std::find_if(free_.begin(), free_.end(), [&](piece const& each) { return each.size >= bytes; });
    if (fits == free_.end()) return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    piece found = std::move(*fits);
    free_.erase(fits);
    return found;
}

void scratch_memory::put_back(piece what) {
    if (free_.size() == 4) free_.erase(free_.begin());
    free_.push_back(std::move(what));
}

world::world(membership members)
    : members_(std::move(members)), id_(id_of_world(members_.name)), listener_(&rank_listener::on(members_.interface)) {
    for (int other = 0; other < size(); ++other) peers_.push_back(other == rank() ? nullptr : std::make_unique<peer>());
}

std::string world::name_of(int other) const {
    return fmt::format("rank {} on {}", other, members_.hosts[static_cast<std::size_t>(other)]);
}

void world::send(int to, ticket owner, frame const& head, std::byte const* data, transfers& counts) {
    reach(to);
    at(to).wire.send(owner, head, data, counts);
}

void world::receive(int from, ticket owner, frame const& head, std::byte* to, transfers& counts) {
    reach(from);
    at(from).wire.receive(owner, head, to, counts);
}

void world::pump() {
    bool const look = ++pumps_ % pumps_between_looks == 0;
    if (look || !unlinked_.empty() || !unproven_.empty()) advance_links();
    for (int const other : linked_) {
        peer& each = at(other);
        if (!look && !each.wire.wants_to_send() && !each.wire.wants_to_receive()) continue;
        each.wire.pump(look);
        note_end(each);
    }
}

void world::sleep(milliseconds at_most) noexcept try {
    polled_.clear();
    for (int const other : linked_) {
        line const& wire = at(other).wire;
        if (!wire.is_open() || wire.ended() != line::end::none) continue;
        short const events = static_cast<short>((wire.wants_to_receive() ? POLLIN : 0) | (wire.wants_to_send() ? POLLOUT : 0));
        if (events != 0) polled_.push_back({wire.socket(), events, 0});
    }
    for (int const other : unlinked_)
        if (attempt const& one = at(other).calling; one.socket)
            polled_.push_back(
                {one.socket.get(), static_cast<short>(one.where == attempt::phase::connecting ? POLLOUT : POLLIN), 0});
    for (caller_so_far const& each : unproven_) polled_.push_back({each.socket.get(), POLLIN, 0});
    if (!over_) polled_.push_back({listener_->socket(), POLLIN, 0});  // otherwise nobody accepts callers any more
    ::poll(polled_.data(), polled_.size(), static_cast<int>(at_most.count()));
    pumps_ |= pumps_between_looks - 1;  // the next one looks
} catch (...) {                         // out of memory: it does not sleep
}

// ---- connections

void world::reach(int other) {
    peer& to = at(other);
    if (to.wanted) return;
    to.wanted = true;
    to.wanted_since = clock::now();
    if (to.wire.is_open()) return;
    unlinked_.push_back(other);
    if (rank() < other) start_call(other, to.wanted_since);
}

shared_key const& world::key_of(int other) {
    auto& key = at(other).key;
    if (!key) key = agree(listener_->keys(), members_.ranks[static_cast<std::size_t>(other)].key, members_.name);
    return *key;
}

void world::link(int other, unique_socket socket) {
    peer& to = at(other);
    to.calling = {};
    std::erase(unlinked_, other);
    std::erase_if(unproven_, [other](caller_so_far const& each) { return each.from == other; });
    linked_.push_back(other);
    to.wire.open(std::move(socket));
}

void world::advance_links() {
    auto const now = clock::now();
    for (auto& come : listener_->take_callers(id_)) admit(std::move(come), now);
    hear_callers();
    auto const waiting = unlinked_;
    for (int const other : waiting) call(other, now);
}

void world::hear_callers() {
    auto const now = clock::now();
    for (std::size_t i = 0; i < unproven_.size();) {
        if (hear(unproven_[i])) {
            int const from = unproven_[i].from;
            link(from, std::move(unproven_[i].socket));  // takes all of that rank out of the list
            i = 0;
        } else if (!unproven_[i].socket || now - unproven_[i].since > unproven_patience) {
            unproven_.erase(unproven_.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
}

/// Admits a caller. One that asks to be called is called, which does no harm; one that dials has to prove who it is.
void world::admit(caller come, clock::time_point now) {
    int const from = come.what.from;
    if (over_ || come.what.to != rank() || from < 0 || from >= size() || from == rank()) return;
    if (come.what.what == greeting::kind::call_me) {
        if (rank() < from) reach(from);
        return;
    }
    if (from > rank() || at(from).wire.is_open() || at(from).wire.ended() != line::end::none) return;
    if (unproven_.size() == most_unproven) unproven_.erase(unproven_.begin());
    caller_so_far one;
    one.from = from;
    one.text = come.text;
    one.of_called = make_nonce();
    one.since = now;
    key_proof const mine = prove(key_of(from), end_of_link::called, one.text, one.of_called);
    std::array<unsigned char, answer_bytes> answer;
    std::copy(mine.begin(), mine.end(), std::copy(one.of_called.begin(), one.of_called.end(), answer.begin()));
    if (::send(come.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != answer_bytes) return;
    one.socket = std::move(come.socket);
    unproven_.push_back(std::move(one));
}

/// Returns true once it has proven that it is that rank; closes one that proves anything else.
bool world::hear(caller_so_far& one) {
    auto const got = ::recv(one.socket.get(), one.got.data() + one.received, one.got.size() - one.received, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got > 0) one.received += static_cast<std::size_t>(got);
    if (got > 0 && one.received < one.got.size()) return false;
    if (got > 0 && is_proven(prove(key_of(one.from), end_of_link::caller, one.text, one.of_called), one.got)) return true;
    one.socket.reset();
    return false;
}

void world::call(int other, clock::time_point now) {
    peer& to = at(other);
    attempt& one = to.calling;
    if (to.wire.ended() != line::end::none) return;
    switch (one.where) {
        case attempt::phase::idle:
            if (now < one.next || (other < rank() && now - to.wanted_since < before_asking)) return;
            return start_call(other, now);
        case attempt::phase::connecting: return finish_connect(other, now);
        case attempt::phase::greeted: return read_answer(other, now);
    }
}

void world::start_call(int other, clock::time_point now) {
    attempt& one = at(other).calling;
    auto const& there = members_.ranks[static_cast<std::size_t>(other)];
    auto const address = parse_address(there.addresses[one.address % there.addresses.size()], there.port);
    one.since = now;
    one.got = 0;
    one.socket = own_socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!one.socket) return try_again(other, now, std::strerror(errno));
    if (::connect(one.socket.get(), address.get(), address.length) != 0 && errno != EINPROGRESS && errno != EINTR) {
        bool const refused = errno == ECONNREFUSED;
        one.refused += refused ? 1 : 0;
        return try_again(other, now, std::strerror(errno));
    }
    one.where = attempt::phase::connecting;
    finish_connect(other, now);
}

void world::finish_connect(int other, clock::time_point now) {
    attempt& one = at(other).calling;
    auto const& there = members_.ranks[static_cast<std::size_t>(other)];
    pollfd ready{one.socket.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0) {
        if (there.addresses.size() > 1 && now - one.since > longest_connect) try_again(other, now, "no answer");
        return;
    }
    int fault = 0;
    socklen_t size = sizeof fault;
    ::getsockopt(one.socket.get(), SOL_SOCKET, SO_ERROR, &fault, &size);
    one.refused += fault == ECONNREFUSED ? 1 : 0;
    if (fault != 0) return try_again(other, now, std::strerror(fault));
    one.refused = 0;
    one.what = {other < rank() ? greeting::kind::call_me : greeting::kind::dial, id_, rank(), other, make_nonce()};
    one.text = write_greeting(one.what);
    if (::send(one.socket.get(), one.text.data(), one.text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != greeting_bytes)
        return try_again(other, now, "it closed the connection");
    one.where = attempt::phase::greeted;
}

/// Reads the answer of `other`. A request to be called has no answer: the other rank closes the connection, and dials.
void world::read_answer(int other, clock::time_point now) {
    attempt& one = at(other).calling;
    auto const got = ::recv(one.socket.get(), one.answer.data() + one.got, one.answer.size() - one.got, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (now - one.since > longest_answer) try_again(other, now, "nobody answers");
        return;
    }
    bool const asked_back = one.what.what == greeting::kind::call_me;
    if (got <= 0 || asked_back) return try_again(other, now, asked_back ? "it has not called back" : "it closed the connection");
    one.got += static_cast<std::size_t>(got);
    if (one.got < one.answer.size()) return;
    nonce of_called;
    std::copy_n(one.answer.begin(), of_called.size(), of_called.begin());
    auto const& key = key_of(other);
    if (!is_proven(prove(key, end_of_link::called, one.text, of_called), std::span(one.answer).subspan(of_called.size())))
        return try_again(other, now, "another process answers there");
    key_proof const mine = prove(key, end_of_link::caller, one.text, of_called);
    if (::send(one.socket.get(), mine.data(), mine.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(mine.size()))
        return try_again(other, now, "it closed the connection");
    link(other, std::move(one.socket));
}

void world::try_again(int other, clock::time_point now, std::string fault) {
    peer& to = at(other);
    attempt& one = to.calling;
    auto const& there = members_.ranks[static_cast<std::size_t>(other)];
    auto const where = with_port(there.addresses[one.address % there.addresses.size()], there.port);
    bool const asked_back = one.where == attempt::phase::greeted && one.what.what == greeting::kind::call_me;
    one.socket.reset();
    one.where = attempt::phase::idle;
    one.next = now + (asked_back ? between_requests : between_tries);
    one.fault = fmt::format("{}: {}", where, fault);
    ++one.address;
    if (one.refused < there.addresses.size()) return;
    to.wire.lose(fmt::format("nothing listens any more at {}", where));
    note_end(to);
}

// ---- the ranks that keep others waiting

/// Returns what is known of a rank whose connection has ended.
std::vector<late_rank> world::blame_of(int other) const {
    line const& wire = at(other).wire;
    auto const state = [&](std::string why) -> std::vector<late_rank> {
        if (members_.processes.empty()) return {{other, true, std::move(why)}};
        auto const& process = members_.processes[static_cast<std::size_t>(other)];
        auto const known = state_of(process);
        if (known != process_state::unknown) why = fmt::format("{}; {}", why, describe(process, known));
        return {{other, true, std::move(why)}};
    };
    switch (wire.ended()) {
        case line::end::lost: return state(fmt::format("the connection to it has ended: {}", wire.words()));
        case line::end::left: return {{other, true, "it has destroyed its communicator"}};
        case line::end::gave_up: {
            auto told = detail::read_blame(wire.words(), name_of(other), size());
            if (std::any_of(told.begin(), told.end(), [this](late_rank const& each) { return each.rank == rank(); }))
                return {{other, true, "it gave up waiting for this rank"}};
            if (told.empty()) return {{other, true, "it gave up"}};
            return told;
        }
        default: return {};
    }
}

std::vector<late_rank> world::culprits(ticket owner) const {
    std::vector<late_rank> seen, told;
    for (int other = 0; other < size(); ++other) {
        if (other == rank() || at(other).wire.ended() == line::end::none || !at(other).wire.waits_for(owner)) continue;
        auto& into = at(other).wire.ended() == line::end::gave_up ? told : seen;
        append(into, blame_of(other));
    }
    return in_order(seen.empty() ? std::move(told) : std::move(seen));
}

std::vector<late_rank> world::reports() const {
    std::vector<late_rank> told;
    for (int const other : linked_)
        if (at(other).wire.ended() == line::end::gave_up) append(told, blame_of(other));
    return in_order(std::move(told));
}

std::string world::why_silent(int other) const {
    std::string why = "nothing has come from it";
    if (!at(other).wire.is_open()) {
        attempt const& one = at(other).calling;
        auto const& there = members_.ranks[static_cast<std::size_t>(other)];
        auto const where = with_port(there.addresses[one.address % there.addresses.size()], there.port);
        why = fmt::format("there is no connection to it; {}", one.fault.empty() ? where + " does not answer" : one.fault);
    }
    if (members_.processes.empty()) return why;
    auto const& process = members_.processes[static_cast<std::size_t>(other)];
    auto const state = state_of(process);
    return state == process_state::unknown ? why : fmt::format("{}, {}", why, describe(process, state));
}

std::vector<late_rank> world::awaited(ticket owner) const {
    std::vector<late_rank> late;
    for (int other = 0; other < size(); ++other) {
        if (other == rank() || !at(other).wire.waits_for(owner)) continue;
        auto told = detail::read_blame(at(other).wire.excuse(), name_of(other), size(), "waits for it");
        std::erase_if(told, [this](late_rank const& each) { return each.rank == rank(); });
        for (auto& each : told) each.dead = false;
        if (told.empty()) told.push_back({other, false, why_silent(other)});
        append(late, told);
    }
    return in_order(std::move(late));
}

void world::tell_awaited(frame const& in, std::vector<late_rank> const& late) {
    frame const head{.what = frame::kind::waits, .sequence = in.sequence, .signature = in.signature};
    auto text = detail::write_blame(late);
    if (over_ || (text == excuse_ && head == excused_)) return;
    excuse_ = std::move(text);
    excused_ = head;
    for (int const other : linked_)
        if (at(other).wire.is_open() && at(other).wire.ended() == line::end::none) at(other).wire.tell(head, excuse_);
}

line const* world::disagreement(ticket owner, int& with) const {
    for (with = 0; with < size(); ++with)
        if (with != rank() && at(with).wire.ended() == line::end::differs && at(with).wire.waits_for(owner))
            return &at(with).wire;
    return nullptr;
}

// ---- the end

void world::give_up(std::vector<late_rank> const& blamed) noexcept {
    if (over_) return;
    auto const is_begun = [this](int other) { return at(other).calling.where != attempt::phase::idle; };
    try {
        advance_links();
    } catch (...) {  // out of memory: the linked ranks learn of it
    }
    over_ = true;
    try {
        auto const words = detail::write_blame(blamed);
        for (int other = 0; other < size(); ++other)
            if (other != rank()) at(other).wire.drop();
        std::size_t told = 0;
        // A word that is lost with its connection leaves the others to blame this rank. Those who wait for it read soon; a rank that has called, or is being
        // called, waits for it as well; those to blame may never read.
        auto const until = clock::now() + longest_parting;
        for (;;) {
            while (told < linked_.size()) {
                line& wire = at(linked_[told++]).wire;
                if (wire.is_open()) wire.tell({.what = frame::kind::gave_up}, words);
            }
            bool waits = !unproven_.empty();
            for (int const other : linked_)
                waits = (at(other).wire.part() && at(other).wire.ended() == line::end::none &&
                         !std::ranges::count(blamed, other, &late_rank::rank)) ||
                        waits;
            for (int const other : unlinked_) waits = waits || is_begun(other);
            if (!waits || clock::now() > until) return;
            sleep(milliseconds(1));
            hear_callers();
            auto const calling = unlinked_;
            for (int const other : calling)
                if (is_begun(other)) call(other, clock::now());
        }
    } catch (...) {  // out of memory: the others see the connections end
    }
}

void world::leave() noexcept try {
    if (over_) return;
    over_ = true;
    for (int const other : linked_)
        if (at(other).wire.is_open()) at(other).wire.tell({.what = frame::kind::left}, {});
} catch (...) {
}

}  // namespace muster::tcp
