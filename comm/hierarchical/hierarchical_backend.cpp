#include "comm/hierarchical/hierarchical_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <vector>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend/slot_table.hpp"
#include "comm/mpi/mpi_backend.hpp"
#include "comm/shm/shm_backend.hpp"
#include "comm/tcp/tcp_backend.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

namespace {

using nodes = std::map<int, std::vector<std::pair<int, int>>>;  // node rank -> local rank and rank, sorted

std::string refusal_of(nodes const& by_node) {
    if (by_node.size() == 1) return "all ranks are on one node";
    auto const& [first, members] = *by_node.begin();
    for (auto const& [node, others] : by_node) {
        if (others.size() != members.size())
            return fmt::format("node {} has {} ranks and node {} has {}; steps need the same number on each", first,
                               members.size(), node, others.size());
        for (std::size_t i = 1; i < others.size(); ++i)
            if (others[i].first == others[i - 1].first)
                return fmt::format("ranks {} and {} both call themselves local rank {} of node {}", others[i - 1].second,
                                   others[i].second, others[i].first, node);
    }
    return members.size() == 1 ? "every node has one rank" : "";
}

}  // namespace

node_groups group_by_node(std::span<node_place const> places, int rank) {
    nodes by_node;
    for (std::size_t i = 0; i < places.size(); ++i)
        by_node[places[i].node_rank].emplace_back(places[i].local_rank, static_cast<int>(i));
    for (auto& [node, members] : by_node) std::sort(members.begin(), members.end());
    node_groups result;
    result.refusal = refusal_of(by_node);
    if (!result.refusal.empty()) return result;
    int const own_node = places[static_cast<std::size_t>(rank)].node_rank;
    for (auto const& [local_rank, member] : by_node[own_node]) {
        if (member == rank) result.local_place = static_cast<int>(result.local.size());
        result.local.push_back(member);
    }
    for (auto const& [node, members] : by_node) {
        if (node == own_node) result.node_place = static_cast<int>(result.across.size());
        result.across.push_back(members[static_cast<std::size_t>(result.local_place)].second);
    }
    return result;
}

identity identity_on_node(identity const& who, node_groups const& groups, std::string_view purpose) {
    identity local = who;
    // Backends count the worlds of a name, so all worlds of this name must have the same ranks.
    local.nspace = fmt::format("{}.{:x}.{}", who.nspace, static_cast<std::uint64_t>(fingerprint_of(groups.local)), purpose);
    local.rank = local.local_rank = groups.local_place;
    local.world_size = local.local_size = static_cast<int>(groups.local.size());
    local.node_rank = 0;
    local.node_count = 1;
    return local;
}

collective node_reduction::scatter() const {
    collective next{collective::kind::reducescatter, whole_.in, share(), step()};
    next.scale.before = whole_.scale.before;
    return next;
}

collective node_reduction::across(tensor_view const& share) const {
    return {collective::kind::allreduce, share, share, step()};
}

collective node_reduction::gather() const {
    collective next{collective::kind::allgather, share(), whole_.out};
    auto const size = static_cast<int>(groups_.local.size());
    for (int place = 0; place < size; ++place) next.receive_counts.push_back(range_of(place).count);
    return next;
}

void node_reduction::finish(tensor_view const& share) const noexcept {
    if (whole_.how == reduction::average && !divides_early())
        divide(share.type, share.data, share.count, static_cast<int>(groups_.local.size() * groups_.across.size()));
    if (whole_.scale.after != 1) multiply(share.type, share.data, share.data, share.count, whole_.scale.after);
}

namespace {

/// One collective under way.
struct slot {
    enum class stage { idle, flat, scatter, across, gather, finished };
    stage where = stage::idle;
    ticket inner = 0;      // ticket of the stage's backend; 0: finished at once
    bool waiting = false;  // the stage is over, the next one waits for others to start
    collective what;
    std::exception_ptr failure;
};

/// Each stage has its own backend, on which all collectives start in the order in which the caller started them: the same on all
/// ranks, however fast their stages end.
struct stages {
    std::unique_ptr<collective_backend> scatter, across, gather;
};

class hierarchical_backend final : public collective_backend {
  public:
    hierarchical_backend(std::unique_ptr<collective_backend> world, stages steps, node_groups groups, comm_options const& options)
        : world_(std::move(world)),
          steps_(std::move(steps)),
          groups_(std::move(groups)),
          from_bytes_(options.hierarchical_bytes) {}

    std::vector<std::string> const& hosts() const noexcept override { return world_->hosts(); }
    bool crowded() const noexcept override { return world_->crowded(); }
    void const* native() const noexcept override { return world_->native(); }
    comm_buffer allocate(std::size_t bytes) override { return (steps_.scatter ? steps_.scatter : world_)->allocate(bytes); }

    ticket start(collective const& what) override {
        bool const in_steps = what.what == collective::kind::allreduce && steps_.scatter != nullptr && what.out.count != 0 &&
                              what.out.bytes() >= from_bytes_;
        ticket flat = 0;
        if (!in_steps) {
            flat = world_->start(what);
            if (flat == 0) return 0;
        }
        ticket const which = take_slot();
        slot& next = slots_.at(which);
        next.failure = nullptr;
        next.waiting = false;
        next.where = in_steps ? slot::stage::scatter : slot::stage::flat;
        next.inner = in_steps ? steps_.scatter->start(steps_of(what).scatter()) : flat;
        if (!in_steps) return which;
        next.what = what;
        in_steps_.push_back(which);
        return which;
    }

    bool done(ticket which) override {
        slot& asked = slots_.at(which);
        if (asked.where == slot::stage::flat) {
            advance_steps();
            if (!finished_inside(asked)) return false;
        } else {
            if (asked.where != slot::stage::finished) advance_steps();
            if (asked.where != slot::stage::finished) return false;
        }
        auto const failure = std::move(asked.failure);
        asked.where = slot::stage::idle;
        slots_.put_back(which);
        if (failure) std::rethrow_exception(failure);
        return true;
    }

    void progress() override {
        world_->progress();
        advance_steps();
    }

    void abandon(ticket which) noexcept override {
        slot& lost = slots_.at(which);
        // The whole world must learn of it, not only the group in which it happened.
        if (lost.where != slot::stage::flat) world_->abandon(0);
        if (auto* const inside = backend_of(lost); inside != nullptr && lost.inner != 0 && !lost.waiting) {
            inside->late_ranks(lost.inner);
            inside->abandon(lost.inner);
        }
        std::erase(in_steps_, which);
        lost.where = slot::stage::idle;  // never taken again
    }

    std::vector<late_rank> late_ranks(ticket which) noexcept override try {
        slot& asked = slots_.at(which);
        if (asked.where == slot::stage::flat) return world_->late_ranks(asked.inner);
        if (auto known = world_->late_ranks(0); !known.empty()) return known;
        auto* const inside = backend_of(asked);
        if (inside == nullptr || asked.inner == 0) return {};
        auto late = inside->late_ranks(asked.inner);
        for (auto& each : late) each.rank = members_of(asked)[static_cast<std::size_t>(each.rank)];
        return late;
    } catch (...) {
        return {};
    }

    std::unique_ptr<collective_backend> subset(std::span<int const> ranks) override { return world_->subset(ranks); }

  private:
    ticket take_slot() {
        ticket const which = slots_.take();
        in_steps_.reserve(slots_.size());  // so that nothing fails after the start
        return which;
    }

    collective_backend* backend_of(slot const& of) const noexcept {
        switch (of.where) {
            case slot::stage::flat: return world_.get();
            case slot::stage::scatter: return steps_.scatter.get();
            case slot::stage::across: return steps_.across.get();
            case slot::stage::gather: return steps_.gather.get();
            default: return nullptr;
        }
    }

    node_reduction steps_of(collective const& what) const noexcept { return {groups_, what}; }

    /// Returns whether the current stage's collective is over. A failure is kept, and ends it.
    bool finished_inside(slot& of) {
        try {
            return of.inner == 0 || backend_of(of)->done(of.inner);
        } catch (comm_error const& problem) {
            of.failure = of.where == slot::stage::flat ? std::current_exception() : of_the_world(problem, of);
            of.inner = 0;
            return true;
        } catch (...) {
            of.failure = std::current_exception();
            of.inner = 0;
            return true;
        }
    }

    std::vector<int> const& members_of(slot const& of) const noexcept {
        return of.where == slot::stage::across ? groups_.across : groups_.local;
    }

    /// Translates ranks: a step numbers them by their place among its own.
    std::exception_ptr of_the_world(comm_error const& problem, slot const& of) const {
        auto const& members = members_of(of);
        std::vector<int> culprits;
        for (int const each : problem.culprits()) culprits.push_back(members[static_cast<std::size_t>(each)]);
        return std::make_exception_ptr(comm_error(
            problem.code(),
            fmt::format("in the step of ranks [{}], numbered there in this order: {}", fmt::join(members, ", "), problem.what()),
            std::move(culprits)));
    }

    /// Makes one pass in the order of the starts. The first collective that has not passed a stage holds back those after it.
    void advance_steps() {
        bool across_open = true, gather_open = true;
        for (ticket const which : in_steps_) {
            slot& current = slots_.at(which);
            while (current.where != slot::stage::finished) {
                if (!current.waiting) current.waiting = finished_inside(current);
                if (!current.waiting) break;
                if (current.failure || current.where == slot::stage::gather)
                    current.where = slot::stage::finished;
                else if (current.where == slot::stage::scatter && across_open)
                    begin(current, slot::stage::across);
                else if (current.where == slot::stage::across && gather_open)
                    begin(current, slot::stage::gather);
                else
                    break;
            }
            across_open = across_open && current.where != slot::stage::scatter;
            gather_open = gather_open && current.where != slot::stage::scatter && current.where != slot::stage::across;
        }
        std::erase_if(in_steps_, [&](ticket which) { return slots_.at(which).where == slot::stage::finished; });
    }

    void begin(slot& next, slot::stage stage) {
        next.waiting = false;
        next.where = stage;
        node_reduction const steps = steps_of(next.what);
        try {
            if (stage == slot::stage::across) {
                next.inner = steps_.across->start(steps.across(steps.share()));
                return;
            }
            steps.finish(steps.share());
            next.inner = steps_.gather->start(steps.gather());
        } catch (...) {
            next.failure = std::current_exception();
            next.where = slot::stage::finished;
        }
    }

    std::unique_ptr<collective_backend> world_;
    stages steps_;  // null: every collective goes flat
    node_groups groups_;
    std::size_t from_bytes_;
    detail::slot_table<slot> slots_;
    std::vector<ticket> in_steps_;  // in the order of their start
};

/// The backend across nodes: MPI if it knows the ranks, else tcp.
struct across_nodes {
    std::string_view name;
    std::unique_ptr<collective_backend> (*create)(identity const&, comm_options const&);
    std::string refusal;  ///< of both, or ""
};

across_nodes way_across(identity const& who, comm_options const& options) {
    auto const no_mpi =
        options.addresses.empty() ? mpi_unavailable(who, options) : std::optional<std::string>("addresses are given");
    if (!no_mpi) return {"mpi", make_mpi_backend, {}};
    auto const no_tcp = tcp_unavailable(who, options);
    return {"tcp", make_tcp_backend, no_tcp ? fmt::format("{}; {}", *no_mpi, *no_tcp) : std::string{}};
}

/// Returns whether shm serves every node, as all ranks of the world agree; sets `refusal` if it does not.
bool shm_serves_all_nodes(collective_backend& world, identity const& who, comm_options const& options, std::string& refusal) {
    refusal = shm_unavailable(who, options, running_mpi_world_size()).value_or("");
    std::int32_t serves = refusal.empty() ? 1 : 0;
    auto const view = view_of(std::span(&serves, 1));
    run_now(world, {collective::kind::allreduce, view, view, reduction::min}, options, "agreeing on the nodes' backend");
    if (serves == 0 && refusal.empty()) refusal = "it does not serve another node";
    return serves == 1;
}

/// Makes the backends of the steps, and describes them for the log.
stages make_stages(collective_backend& world, std::string_view across, identity const& who, node_groups const& groups,
                   comm_options options, std::string& described) {
    stages steps;
    steps.across = world.subset(groups.across);
    options.backend.clear();
    std::string refusal;
    auto const local = identity_on_node(who, groups, "scatter");
    if (shm_serves_all_nodes(world, local, options, refusal)) {
        steps.scatter = make_shm_backend(local, options, running_mpi_world_size());
        steps.gather = make_shm_backend(identity_on_node(who, groups, "gather"), options, running_mpi_world_size());
        described = "shm";
        return steps;
    }
    described = fmt::format("{}, since not by shm: {}", across, refusal);
    steps.scatter = world.subset(groups.local);
    steps.gather = world.subset(groups.local);
    return steps;
}

}  // namespace

std::optional<std::string> hierarchical_unavailable(identity const& who, comm_options const& options) {
    if (auto const refusal = way_across(who, options).refusal; !refusal.empty()) return "it needs mpi or tcp: " + refusal;
    if (who.node_count <= 1) return "all ranks are on one node";
    if (who.world_size <= who.node_count) return fmt::format("{} ranks on {} nodes: one on each", who.world_size, who.node_count);
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_hierarchical_backend(identity const& who, comm_options const& options) {
    auto const across = way_across(who, options);
    auto world = across.create(who, options);
    node_place const mine{who.node_rank, who.local_rank};
    auto const places = gather_records(*world, mine, options, "telling each other the ranks' places");
    auto groups = group_by_node(places, who.rank);
    stages steps;
    if (groups.refusal.empty()) {
        std::string described;
        steps = make_stages(*world, across.name, who, groups, options, described);
        spdlog::debug("communicator: hierarchical: {} nodes of {} ranks, from {} on; across them by {}, within them by {}",
                      groups.across.size(), groups.local.size(), format_bytes(options.hierarchical_bytes), across.name,
                      described);
    } else
        spdlog::debug("communicator: hierarchical goes flat over {}: {}", across.name, groups.refusal);
    return std::make_unique<hierarchical_backend>(std::move(world), std::move(steps), std::move(groups), options);
}

}  // namespace muster
