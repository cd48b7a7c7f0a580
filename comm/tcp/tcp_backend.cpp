#include "comm/tcp/tcp_backend.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include "base/log.hpp"
#include "base/throw_error.hpp"
#include "comm/backend/argument_checks.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend/processes/co_progress.hpp"
#include "comm/backend/slot_table.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/tcp/listener.hpp"
#include "comm/tcp/schedules.hpp"
#include "comm/tcp/world.hpp"
#include "pmix/client/client.hpp"

namespace muster::tcp {

namespace {

/// Returns the loopback if all ranks are on one node, so that nobody outside can reach them.
std::string interface_of(identity const& who, comm_options const& options) {
    bool const together = who.node_count == 1 && options.network_interface.empty() && options.addresses.empty();
    return together ? "lo" : options.network_interface;
}

/// Returns each rank's text. A record before it shows ranks of another job, or with other options, before they would wait for each
/// other.
std::vector<std::string> texts_by_pmix(identity const& who, comm_options const& options, std::string const& own) {
    static std::atomic<unsigned> worlds{0};
    world_record const mine = describe_world(who, options);
    std::vector<std::byte> told(sizeof mine + own.size());
    std::memcpy(told.data(), &mine, sizeof mine);
    std::memcpy(told.data() + sizeof mine, own.data(), own.size());
    std::vector<world_record> records;
    std::vector<std::string> texts;
    for (auto const& each :
         gather_by_pmix(who, fmt::format("muster.tcp.{}", worlds++), told, options.deadline, pmix_client_stays::for_this)) {
        if (each.size() < sizeof mine)
            throw error(errc::peer_failed, "a rank told no address; use one build of muster on all ranks");
        std::memcpy(&records.emplace_back(), each.data(), sizeof mine);
        texts.emplace_back(reinterpret_cast<char const*>(each.data()) + sizeof mine, each.size() - sizeof mine);
    }
    check_world(records, who);
    return texts;
}

/// Says why these ranks have no way to tell each other where they listen; nothing if they have one.
std::optional<std::string> why_not_meet(identity const& who, comm_options const& options) {
    if (!options.addresses.empty()) return std::nullopt;
    if (!options.members.empty()) return "it needs all ranks of the job step, or their addresses";
    if (who.from == identity::source::singleton) return "no launcher has started this program, and no addresses are given";
    if (!pmix::client_is_available()) return "there is no PMIx library by which the ranks could tell their addresses";
    return std::nullopt;
}

/// Meets by options.addresses, or else by PMIx within options.deadline, collectively. The processes are not known yet. Throws as gather_by_pmix() and
/// parse_endpoint(); errc::usage for a list of another length than the world.
membership meet(identity const& who, comm_options const& options) {
    auto const interface = interface_of(who, options);
    auto const own = address_of_this_process(who.host, interface);
    auto const texts = options.addresses.empty() ? texts_by_pmix(who, options, own) : options.addresses;
    if (texts.size() != static_cast<std::size_t>(who.world_size))
        throw_error(errc::usage, "rank {} on {}: {} addresses are given for {} ranks; give one of each, in their order", who.rank,
                    who.host, texts.size(), who.world_size);
    membership members;
    members.name = numbered_world("tcp/" + who.nspace);
    members.rank = who.rank;
    members.interface = interface;
    members.direct_ranks = options.direct_ranks;
    for (auto const& text : texts) {
        if (text.empty())
            throw comm_error(errc::peer_failed,
                             fmt::format("rank {} has ended, and had not said where it listens", members.ranks.size()),
                             {static_cast<int>(members.ranks.size())});
        members.ranks.push_back(parse_endpoint(text, "the address of a rank"));
        members.hosts.push_back(members.ranks.back().host);
    }
    return members;
}

}  // namespace

}  // namespace muster::tcp

namespace muster {

namespace {

using namespace tcp;
using clock = std::chrono::steady_clock;

/// After another rank gave up, messages of the others still have this long to come.
constexpr std::chrono::milliseconds last_messages{100};
/// A killed process counts as running until the kernel has removed it: on a busy machine some 200 ms.
constexpr std::chrono::milliseconds until_gone{500};

/// A rank polls this often; then the other communicators of this process are moved forward.
constexpr unsigned polls_before_others = 64;

/// Polls before a rank sleeps: with a processor to itself about as long as falling asleep and waking up take.
constexpr unsigned polls_alone = 150, polls_in_a_crowd = 4;

/// The same on all ranks that take part. An alltoall moves something if any two ranks exchange anything, which the others do not know.
bool moves_nothing(collective const& what) noexcept {
    using kind = collective::kind;
    if (what.what == kind::barrier || what.what == kind::alltoall) return false;
    if (what.what == kind::reducescatter) return what.in.count == 0;  // a share may be empty while others are not
    if (what.what == kind::sendrecv) return what.in.count == 0 && what.out.count == 0;
    return what.out.count == 0;
}

/// One collective.
struct tcp_slot {
    enum class state { waiting, under_way, finished, failed, lost };
    state where = state::waiting;
    job work;
    schedule course;
    std::exception_ptr failure;
};

/// Collectives give their messages in the order of their start: each begins when those before it have given all of theirs.
class tcp_backend final : public collective_backend, private co_progress {
  public:
    tcp_backend(membership members, bool crowded) : all_(std::move(members)), crowded_(crowded) {
        sendrecvs_.assign(static_cast<std::size_t>(all_.size()), 0);
        enter();
    }

    ~tcp_backend() override {
        co_progress::leave();
        if (std::uncaught_exceptions() > 0 || !active_.empty()) all_.give_up({});
        all_.leave();
        for (auto const& each : slots_.all()) each->course = {};
    }

    std::vector<std::string> const& hosts() const noexcept override { return all_.members().hosts; }
    /// Returns true: a waiting rank sleeps until something comes, after a few polls.
    bool crowded() const noexcept override { return true; }
    void const* native() const noexcept override { return nullptr; }

    void know(std::vector<world_record> const& records) {
        all_.members().hosts = hosts_of(records);
        all_.members().processes = processes_of(records);
        crowded_ = is_crowded(records, hosts()[static_cast<std::size_t>(all_.rank())]);
    }

    void give_way(bool waited_long) noexcept override {
        if (++vain_polls_ < (crowded_ ? polls_in_a_crowd : polls_alone)) return;
        drive_others();
        use const held(*this);
        all_.sleep(std::chrono::milliseconds(waited_long ? 10 : 1));
    }

    ticket start(collective const& what) override {
        use const held(*this);
        if (failure_) std::rethrow_exception(failure_);
        std::uint32_t const number = next_number(what);
        if (moves_nothing(what)) return 0;
        ticket const which = slots_.take();
        tcp_slot& next = slots_.at(which);
        next.work = {which, number, what, false};
        next.where = tcp_slot::state::waiting;
        next.failure = nullptr;
        active_.push_back(which);
        begin_some();
        if (next.where != tcp_slot::state::finished) return which;
        slots_.put_back(which);
        return 0;
    }

    bool done(ticket which) override {
        if (++polls_ % polls_before_others == 0) drive_others();
        use const held(*this);
        tcp_slot& asked = slots_.at(which);
        if (asked.where != tcp_slot::state::finished && !failure_) advance();
        if (asked.where == tcp_slot::state::finished) {
            vain_polls_ = 0;
            slots_.put_back(which);
            return true;
        }
        if (!failure_ && all_.is_harmed()) look_for_harm(asked);
        if (asked.where != tcp_slot::state::failed) return false;
        asked.where = tcp_slot::state::lost;
        std::rethrow_exception(asked.failure);
    }

    void progress() override {
        use const held(*this);
        if (!failure_) advance();
    }

    /// Tells the other ranks that wait for this one. Of 0: does nothing else.
    void abandon(ticket which) noexcept override {
        use const held(*this);
        if (which != 0 && slots_.at(which).where == tcp_slot::state::finished) return;
        if (!failure_) fail(evidence_, "a collective was given up");
        if (which != 0) slots_.at(which).where = tcp_slot::state::lost;
    }

    std::vector<late_rank> late_ranks(ticket which) noexcept override try {
        use const held(*this);
        if (!failure_) all_.pump();
        if (which != 0) evidence_ = all_.culprits(which);
        if (which == 0)
            evidence_ = all_.reports();
        else if (evidence_.empty())
            evidence_ = old_reports();
        if (evidence_.empty()) {
            evidence_ = lost_ranks(all_.members().processes, all_.rank());
            // A rank that gave up may be gone by now: that is a consequence, and probably so for ranks whose part has come, or that
            // never were linked with this rank, if another rank is at fault.
            std::erase_if(evidence_, [this](late_rank const& each) { return all_.gave_up(each.rank); });
            auto const others = [this, which](late_rank const& each) { return which != 0 && !all_.waits_for(each.rank, which); };
            if (!std::all_of(evidence_.begin(), evidence_.end(), others)) std::erase_if(evidence_, others);
            auto const strangers = [this](late_rank const& each) { return !all_.has_met(each.rank); };
            if (!std::all_of(evidence_.begin(), evidence_.end(), strangers)) std::erase_if(evidence_, strangers);
        }
        if (evidence_.empty() && which != 0 && !failure_) {
            evidence_ = all_.awaited(which);
            all_.tell_awaited(head_of(slots_.at(which).work, 0, 0), evidence_);
        }
        return evidence_;
    } catch (...) {
        return {};
    }

    /// Cannot tell in larger worlds, where a rank mostly waits for one that waits itself.
    int awaited(ticket which) noexcept override {
        use const held(*this);
        if (all_.size() > all_.members().direct_ranks) return -1;
        int only = -1;
        for (int rank = 0; rank < all_.size(); ++rank)
            if (rank != all_.rank() && all_.waits_for(rank, which)) {
                if (only >= 0) return -1;
                only = rank;
            }
        return only;
    }

    std::unique_ptr<collective_backend> subset(std::span<int const> ranks) override {
        membership const& whole = all_.members();
        auto const number = subsets_++;
        auto const place = std::find(ranks.begin(), ranks.end(), all_.rank());
        if (place == ranks.end()) return nullptr;
        membership part{.name = fmt::format("{}/{}", whole.name, number),
                        .rank = static_cast<int>(place - ranks.begin()),
                        .ranks = {},
                        .processes = {},
                        .hosts = {},
                        .interface = whole.interface,
                        .direct_ranks = whole.direct_ranks};
        for (int const rank : ranks) {
            auto const at = static_cast<std::size_t>(rank);
            part.ranks.push_back(whole.ranks[at]);
            part.hosts.push_back(whole.hosts[at]);
            part.processes.push_back(whole.processes[at]);
        }
        return std::make_unique<tcp_backend>(std::move(part), crowded_);
    }

  private:
    std::uint32_t next_number(collective const& what) noexcept {
        return what.what == collective::kind::sendrecv ? sendrecvs_[static_cast<std::size_t>(what.root)]++ : sequence_++;
    }

    void drive() noexcept override try {
        if (!failure_ && !active_.empty()) advance();
    } catch (...) {  // out of memory: done() tries again
    }

    void advance() {
        all_.pump();
        begin_some();
    }

    /// Makes one pass in the order of the starts.
    void begin_some() {
        bool open = true;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < active_.size(); ++i) {
            tcp_slot& next = slots_.at(active_[i]);
            if (next.where == tcp_slot::state::waiting && open) {
                next.course = schedule_of(all_, next.work);
                next.where = tcp_slot::state::under_way;
            }
            if (next.where == tcp_slot::state::under_way && goes_to_its_end(next)) continue;
            open = open && next.work.posted;
            active_[kept++] = active_[i];
        }
        active_.resize(kept);
        if (!broken_.empty()) fail({}, broken_);
    }

    bool goes_to_its_end(tcp_slot& next) try {
        if (!next.course.advance()) return false;
        next.course = {};
        next.where = tcp_slot::state::finished;
        return true;
    } catch (std::exception const& problem) {  // out of memory
        broken_ = problem.what();
        return false;
    }

    void look_for_harm(tcp_slot const& asked) {
        ticket const which = asked.work.owner;
        int with = 0;
        if (line const* const other = all_.disagreement(which, with)) return fail_by_disagreement(asked, *other, with);
        auto culprits = all_.culprits(which);
        if (culprits.empty()) culprits = old_reports();
        if (culprits.empty()) return harmed_since_.reset();
        if (!harmed_since_) harmed_since_ = clock::now();
        auto const since = clock::now() - *harmed_since_;
        // Ranks that do not know each other's processes yet know only the connections: the others' words may be on their way.
        bool const strangers = all_.members().processes.empty();
        if (culprits.empty() || since < (strangers ? last_messages : some_still_run(culprits) ? until_gone : clock::duration{}))
            return;
        if (some_still_run(culprits))
            blame_the_gone(culprits);
        else if (auto now = all_.culprits(which); !now.empty())
            culprits = std::move(now);  // a process may have ended since the words about it were found
        fail(culprits, fmt::format("it {}: waiting for {}. Look at {}", lost_rank_words, describe_late(culprits, hosts()),
                                   culprits.size() == 1 ? "that rank" : "those ranks"));
    }

    /// A rank that still runs has closed its connection because of another one, if there is one whose process is gone.
    void blame_the_gone(std::vector<late_rank>& culprits) const {
        auto lost = lost_ranks(all_.members().processes, all_.rank());
        std::erase_if(lost, [this](late_rank const& each) { return !each.dead || all_.gave_up(each.rank); });
        if (!lost.empty()) culprits = std::move(lost);
    }

    /// Messages on their way from ranks that have not given up come first.
    std::vector<late_rank> old_reports() {
        auto told = all_.reports();
        if (!told.empty() && !told_since_) told_since_ = clock::now();
        if (told.empty() || clock::now() - *told_since_ < last_messages) return {};
        return told;
    }

    /// A process closes its connections a moment before it is gone.
    bool some_still_run(std::vector<late_rank> const& culprits) const noexcept {
        auto const& processes = all_.members().processes;
        return std::any_of(culprits.begin(), culprits.end(), [&](late_rank const& each) {
            return !processes.empty() && state_of(processes[static_cast<std::size_t>(each.rank)]) == process_state::running;
        });
    }

    void fail_by_disagreement(tcp_slot const& asked, line const& other, int with) {
        collective const& what = asked.work.what;
        bool const one_count = counts_are_equal(what) && what.what != collective::kind::sendrecv;
        std::string const why =
            one_count ? "is at another collective: the tensor has another size, type, reduction or factor there, or the ranks "
                        "start their collectives in different orders"
                      : "sends another number of elements than is expected of it, or is at another collective";
        std::vector<late_rank> const culprit{{with, false, why}};
        auto const got = other.got();
        fail(culprit, fmt::format("{} {}; it has {}", all_.name_of(with), why, describe_signature(got.signature, got.count)));
    }

    /// Fails everything under way, and tells the other ranks.
    void fail(std::vector<late_rank> const& culprits, std::string const& why) noexcept try {
        all_.give_up(culprits);
        for (ticket const each : active_) {
            tcp_slot& one = slots_.at(each);
            one.course = {};
            one.where = tcp_slot::state::failed;
            one.failure = failure_of(one.work, culprits, why);
        }
        failure_ = active_.empty() ? failure_of({}, culprits, why) : slots_.at(active_.front()).failure;
        active_.clear();
    } catch (...) {  // out of memory
        failure_ = std::current_exception();
    }

    std::exception_ptr failure_of(job const& of, std::vector<late_rank> const& culprits, std::string const& why) const {
        collective const& what = of.what;
        return std::make_exception_ptr(
            comm_error(errc::peer_failed,
                       fmt::format("{} on {} of {}: {}", describe_signature(signature_of(what), what.in.count),
                                   all_.name_of(all_.rank()), all_.size(), why),
                       ranks_of(culprits)));
    }

    world all_;
    bool crowded_;
    unsigned subsets_ = 0;
    unsigned polls_ = 0;
    unsigned vain_polls_ = 0;
    std::uint32_t sequence_ = 0;
    std::vector<std::uint32_t> sendrecvs_;  // counts those with each rank
    std::vector<late_rank> evidence_;
    std::optional<clock::time_point> harmed_since_, told_since_;
    std::string broken_;  // what went wrong on this rank itself
    std::exception_ptr failure_;
    detail::slot_table<tcp_slot> slots_;
    std::vector<ticket> active_;  // in the order of their start
};

}  // namespace

std::optional<std::string> tcp_unavailable(identity const& who, comm_options const& options) {
    return tcp::why_not_meet(who, options);
}

std::unique_ptr<collective_backend> make_tcp_backend(identity const& who, comm_options const& options) {
    auto made = std::make_unique<tcp_backend>(tcp::meet(who, options), false);
    auto const records = gather_records(*made, describe_world(who, options), options, "telling each other who is there");
    check_world(records, who);
    made->know(records);
    return made;
}

std::string tcp_address(std::string const& host, std::string const& interface) {
    return tcp::address_of_this_process(host, interface);
}

}  // namespace muster
