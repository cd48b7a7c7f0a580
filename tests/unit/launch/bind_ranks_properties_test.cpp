// What must hold for any machine and any request: random ones, always the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/error.hpp"
#include "launch/placement/bind_ranks.hpp"

namespace muster {
namespace {

class generator {
  public:
    explicit generator(unsigned seed) : random_(seed) {}
    int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
    bool one_in(int n) { return between(1, n) == 1; }

    topology machine() {
        topology t;
        t.host = "h";
        int const numas = between(1, 4);
        int const threads = between(1, 2);
        int const cores = between(1, 24);
        for (int c = 0; c < cores; ++c) {
            core next{cpuset{{c}}, c * numas / cores, c * numas / cores / 2};
            if (threads == 2) next.cpus.add(cpuset{{c + cores}});
            if (!one_in(6)) t.cores.push_back(next);  // a control group leaves gaps
        }
        if (t.cores.empty()) t.cores.push_back({cpuset{{0}}, 0, 0});
        int const gpus = between(0, 8);
        for (int i = 0; i < gpus; ++i) {
            gpu g;
            g.index = i;
            g.uuid = "GPU-" + std::to_string(i);
            if (!one_in(4)) g.numa = between(0, numas - 1);
            if (one_in(3)) {
                int const first = between(0, cores - 1);
                for (int c = first; c <= between(first, cores - 1); ++c) g.near.cpus.push_back(c);
            }
            t.gpus.push_back(g);
        }
        t.gpus_in_node = gpus;
        for (int i = between(0, 4); i > 0; --i) t.nics.push_back({"n" + std::to_string(i), between(-1, numas - 1), one_in(2)});
        return t;
    }

    placement_request wanted(topology const& t) {
        placement_request r;
        r.bind_to = static_cast<bind_policy>(between(0, 5));
        r.gpus_seen = static_cast<gpu_visibility>(between(0, 2));
        r.smt = one_in(2);
        if (one_in(4)) r.ranks_per_gpu = between(1, 3);
        if (one_in(4)) r.slots_per_node = between(1, 12);
        if (one_in(4)) r.cpus_per_rank = between(1, 3);
        if (one_in(4)) r.reserved_cpus = std::to_string(between(0, 24));
        if (one_in(4))
            for (std::size_t i = 0; i < t.gpus.size(); ++i) r.gpu_cpus.push_back(std::to_string(between(0, 24)));
        return r;
    }

  private:
    std::mt19937 random_;
};

bool overlap(binding const& a, binding const& b) {
    return !intersect(a.cores, b.cores).empty();
}

void check(topology const& t, placement_request const& wanted, std::vector<binding> const& ranks) {
    auto const reserved = cpuset::from_list(wanted.reserved_cpus);
    std::map<int, int> on_gpu;
    std::set<int> used;
    std::size_t free_cores = 0;
    auto const usable =
        std::count_if(t.cores.begin(), t.cores.end(), [&](core const& c) { return intersect(c.cpus, reserved).empty(); });
    bool const crowded = wanted.bind_to == bind_policy::share && static_cast<std::ptrdiff_t>(ranks.size()) > usable;
    for (auto const& b : ranks) {
        EXPECT_FALSE(b.why.empty());
        EXPECT_EQ(b.device.has_value(), !t.gpus.empty());
        EXPECT_EQ(b.cores.empty(), wanted.bind_to == bind_policy::none || crowded);
        EXPECT_EQ(intersect(b.cores, t.allowed()), b.cores);
        EXPECT_TRUE(intersect(b.cores, reserved).empty());
        EXPECT_EQ(b.nic.has_value(), !t.nics.empty());
        used.insert(b.cores.cpus.begin(), b.cores.cpus.end());
        if (b.device) ++on_gpu[b.device->index];
    }
    for (auto const& c : t.cores) {
        bool const taken = std::any_of(c.cpus.cpus.begin(), c.cpus.cpus.end(), [&](int cpu) { return used.contains(cpu); });
        if (!taken && intersect(c.cpus, reserved).empty()) ++free_cores;
        if (wanted.smt) continue;
        int threads = 0;
        for (int const cpu : c.cpus.cpus) threads += used.contains(cpu);
        EXPECT_LE(threads, 1);
    }
    if (!wanted.slots_per_node) {
        for (auto const& [index, count] : on_gpu) EXPECT_LE(count, wanted.ranks_per_gpu);
    }
    bool const asked = wanted.bind_to != bind_policy::share && wanted.bind_to != bind_policy::core;
    for (std::size_t a = 0; a < ranks.size() && !asked; ++a) {
        if (wanted.cpus_per_rank || wanted.bind_to == bind_policy::core) {
            int cores = 0;
            for (auto const& c : t.cores) cores += !intersect(c.cpus, ranks[a].cores).empty();
            EXPECT_EQ(cores, wanted.cpus_per_rank.value_or(1));
        }
        for (std::size_t b = a + 1; b < ranks.size(); ++b)
            if (overlap(ranks[a], ranks[b])) {
                EXPECT_EQ(free_cores, 0u) << "ranks " << a << " and " << b << " share a core";
            }
    }
}

TEST(binding_properties, hold_for_any_machine_and_request) {
    generator make(4711);
    int placed = 0, refused = 0;
    for (int i = 0; i < 20'000; ++i) {
        auto const machine = make.machine();
        auto const wanted = make.wanted(machine);
        int const ranks = make.between(1, 12);
        try {
            auto const bound = bind_ranks(machine, wanted, ranks);
            ASSERT_EQ(bound.size(), static_cast<std::size_t>(ranks));
            check(machine, wanted, bound);
            EXPECT_EQ(bind_ranks(machine, wanted, ranks), bound);
            ++placed;
        } catch (error const& e) {
            EXPECT_TRUE(e.code() == errc::placement || e.code() == errc::usage) << e.what();
            bool const gpus_suffice = machine.gpus.empty() || wanted.slots_per_node ||
                                      ranks <= static_cast<int>(machine.gpus.size()) * wanted.ranks_per_gpu;
            bool const plain = !wanted.cpus_per_rank && wanted.reserved_cpus.empty() && wanted.bind_to != bind_policy::gpu;
            EXPECT_FALSE(gpus_suffice && plain) << e.what();
            ++refused;
        }
        if (HasFailure()) FAIL() << "case " << i;
    }
    EXPECT_GT(placed, 5000);
    EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace muster
