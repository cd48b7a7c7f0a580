#include "launch/samples/remarks/oddities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/units.hpp"

namespace muster {

namespace {

// Thresholds: shares are 0 to 1 of the time.
constexpr double awaited_share = 0.15;  ///< ranks that share cores differ by 10 % within seconds
constexpr double awaited_share_of_run = 0.10;
constexpr double throttled_share = 0.05;  ///< a period or two of a quota is noise
constexpr double blocked_cores = 0.2;     ///< a healthy rank may be in D at two looks, but then computes in between
constexpr double waits_itself = 0.5;      ///< of the others' waits: on a busy machine ranks wait for each other by turns
constexpr double core_wait = 0.2;         ///< of the time, more than the others: what a system does besides takes some percent
constexpr double core_wait_of_awaited = 0.1;  ///< likewise, of a rank for which they wait
constexpr double data_wait = 0.2;             ///< of the time, more than the others
constexpr double memory_share = 0.95;         ///< of the cgroup's limit: the kernel's kill is near
constexpr double memory_pressure = 0.10;      ///< a healthy run hardly ever waits for memory
constexpr double io_pressure = 0.40;          ///< loaders read ahead: waiting now and then is their work
constexpr double faults_per_s = 50;           ///< 200 KiB/s from a disk: more than code that is touched for the first time
constexpr double settled_after_s = 30;        ///< before that a rank loads its libraries by major faults
constexpr double clock_share = 0.90;          ///< of the others' clock: GPUs of one kind differ by a few percent
constexpr double clock_share_alone = 0.8;     ///< of the highest clock, for a GPU that reports a reason: all GPUs may be slowed
constexpr int working_percent = 50;           ///< an idle GPU lowers its clock, and differs from busy ones for good reasons
constexpr double idle_share = 0.4;            ///< of the others' median: a second's figure jumps by a quarter
constexpr double silent_times = 10;           ///< the others' median silence
constexpr double silent_s = 60;               ///< output comes in bursts
constexpr std::size_t silent_ranks = 4;       ///< with fewer, rank 0 alone may write: that is no sign
constexpr double steal_share = 0.05;          ///< of processor time; a shared machine takes 1 to 2 %

/// The medians of all values without one of them.
class others_values {
  public:
    void add(std::optional<double> value) {
        if (value) sorted_.push_back(*value);
    }
    void sort() { std::ranges::sort(sorted_); }
    std::size_t size() const { return sorted_.size(); }
    /// Returns the median without `own`, which must be among the values; nothing if it is the only one.
    std::optional<double> median_without(double own) const {
        if (sorted_.size() < 2) return std::nullopt;
        auto const skipped = static_cast<std::size_t>(std::ranges::lower_bound(sorted_, own) - sorted_.begin());
        auto const at = [&](std::size_t i) { return sorted_[i < skipped ? i : i + 1]; };
        auto const count = sorted_.size() - 1;
        return (at((count - 1) / 2) + at(count / 2)) / 2;
    }

  private:
    std::vector<double> sorted_;
};

int percent(double share) {
    return static_cast<int>(share * 100 + 0.5);
}

std::optional<double> waiting_of(rank_sample const& rank) {
    return rank.waits ? rank.waits->waiting : std::nullopt;
}
/// Returns the clock of a GPU that works; nothing for one that does not, or of which it is not known.
std::optional<double> working_clock(gpu_sample const& gpu) {
    return gpu.busy_percent.value_or(0) >= working_percent ? std::optional<double>(gpu.clock_mhz) : std::nullopt;
}

class oddity_finder {
  public:
    oddity_finder(run_samples const& samples, tense wording) : samples_(samples), wording_(wording) {
        for (auto const& node : samples.nodes)
            for (auto const& rank : node.ranks) {
                waiting_.add(waiting_of(rank));
                silent_.add(rank.silent_s);
                core_waits_.add(rank.core_wait);
                data_waits_.add(rank.data_wait);
                auto const* const gpu = gpu_of(node, rank);
                if (gpu == nullptr) continue;
                busy_.add(gpu->busy_percent);
                clocks_.add(working_clock(*gpu));
            }
        for (auto* const values : {&waiting_, &silent_, &busy_, &clocks_, &core_waits_, &data_waits_}) values->sort();
    }

    /// Where half of the ranks wait much less than the others, the ranks have different work, and none is late.
    std::vector<oddity> find() {
        std::size_t awaited = 0;
        for (auto const& node : samples_.nodes)
            for (auto const& rank : node.ranks) awaited += share_kept_waiting(rank) > least_awaited() ? 1 : 0;
        have_roles_ = awaited > 1 && 2 * awaited >= waiting_.size();
        std::vector<oddity> of_nodes;
        for (auto const& node : samples_.nodes) {
            host_ = node.host;
            rank_ = -1;
            node_reason_.clear();
            if (node.steal && *node.steal > steal_share) {
                node_reason_ = fmt::format("the hypervisor {} {} % of the node's processor time to others", verb("gives", "gave"),
                                           percent(*node.steal));
                of_nodes.push_back({-1, host_, node_reason_, oddity_kind::steal});
            }
            for (auto const& rank : node.ranks) look_at(node, rank);
        }
        std::ranges::stable_sort(found_, {}, &oddity::rank);
        found_.insert(found_.end(), of_nodes.begin(), of_nodes.end());
        return std::move(found_);
    }

  private:
    std::string_view verb(std::string_view present, std::string_view past) const {
        return wording_ == tense::past ? past : present;
    }
    double least_awaited() const { return wording_ == tense::past ? awaited_share_of_run : awaited_share; }
    void add(oddity_kind kind, std::string reason) { found_.push_back({rank_, host_, std::move(reason), kind}); }

    /// Returns how much more of the time the others wait than this rank; 0 if that is not known, or if they never waited for this one.
    double share_kept_waiting(rank_sample const& rank) const {
        auto const own = waiting_of(rank);
        if (!own || rank.waits->kept_waiting_s == 0.0) return 0;
        auto const others = waiting_.median_without(*own).value_or(*own);
        return *own < waits_itself * others ? others - *own : 0;
    }

    /// Adds the likeliest cause of a wait first.
    void look_at(node_sample const& node, rank_sample const& rank) {
        rank_ = rank.rank;
        auto const first = found_.size();
        double const kept_waiting = share_kept_waiting(rank);
        bool const is_awaited = !have_roles_ && kept_waiting > least_awaited();
        look_at_processor(rank, is_awaited);
        look_at_memory(rank);
        look_at_data(rank);
        if (auto const* const gpu = gpu_of(node, rank)) look_at_gpu(*gpu);
        auto const causes = found_.size();
        if (auto const* const gpu = gpu_of(node, rank)) look_at_gpu_use(*gpu);
        look_at_output(rank);
        if (!is_awaited) return;
        auto const& cause = causes > first ? found_[first].reason : node_reason_;
        auto reason = fmt::format("{} the others waiting {} % of the time{}{}", verb("keeps", "kept"), percent(kept_waiting),
                                  cause.empty() ? "" : ": ", cause);
        found_.insert(found_.begin() + static_cast<std::ptrdiff_t>(first),
                      {rank_, host_, std::move(reason), oddity_kind::awaited});
    }

    void look_at_processor(rank_sample const& rank, bool is_awaited) {
        auto const where = rank.where.empty() ? "" : fmt::format(", in {}", rank.where);
        if (rank.state == 'T' || rank.state == 't')
            add(oddity_kind::stopped, fmt::format("it is stopped, by a {}", rank.state == 'T' ? "signal" : "debugger"));
        if (rank.blocked_s.value_or(0) > 0 && rank.cores.value_or(0) < blocked_cores)
            add(oddity_kind::blocked, fmt::format("it {} blocked in the kernel for {} (state D{})", verb("has been", "had been"),
                                                  format_duration(duration(*rank.blocked_s)), where));
        bool const is_throttled = rank.cgroup.throttled && *rank.cgroup.throttled > throttled_share;
        if (is_throttled)
            add(oddity_kind::throttled,
                fmt::format("its cgroup's quota held it back {} % of the time", percent(*rank.cgroup.throttled)));
        // Where all ranks share their cores, it is the layout of the run, and none of them is odd.
        auto const others = rank.core_wait ? core_waits_.median_without(*rank.core_wait) : std::nullopt;
        if (others && !is_throttled && *rank.core_wait - *others > (is_awaited ? core_wait_of_awaited : core_wait))
            add(oddity_kind::shares_cores, fmt::format("it {} for a core {} % of the time, which it shares",
                                                       verb("waits", "waited"), percent(*rank.core_wait)));
    }

    /// Where all ranks wait for data, none of them is odd: the run's end says it.
    void look_at_data(rank_sample const& rank) {
        auto const others = rank.data_wait ? data_waits_.median_without(*rank.data_wait) : std::nullopt;
        if (others && *rank.data_wait - *others > data_wait)
            add(oddity_kind::data_wait,
                fmt::format("it {} for data {} % of the time", verb("waits", "waited"), percent(*rank.data_wait)));
    }

    void look_at_memory(rank_sample const& rank) {
        auto const& cgroup = rank.cgroup;
        if (rank.faults_per_s && *rank.faults_per_s > faults_per_s && rank.age_s > settled_after_s)
            add(oddity_kind::swapping,
                fmt::format("{:.0f} of its pages a second {} from swap or a disk", *rank.faults_per_s, verb("come", "came")));
        if (cgroup.memory_pressure && *cgroup.memory_pressure > memory_pressure)
            add(oddity_kind::memory_pressure,
                fmt::format("its cgroup waits for memory {} % of the time", percent(*cgroup.memory_pressure)));
        if (cgroup.io_pressure && *cgroup.io_pressure > io_pressure)
            add(oddity_kind::io_pressure,
                fmt::format("its cgroup waits for disks or file systems {} % of the time", percent(*cgroup.io_pressure)));
        if (cgroup.memory_bytes && cgroup.memory_limit_bytes &&
            static_cast<double>(*cgroup.memory_bytes) > memory_share * static_cast<double>(*cgroup.memory_limit_bytes))
            add(oddity_kind::memory_limit, fmt::format("its cgroup uses {} of {} of memory", format_bytes(*cgroup.memory_bytes),
                                                       format_bytes(*cgroup.memory_limit_bytes)));
    }

    void look_at_gpu(gpu_sample const& gpu) {
        auto const clock = working_clock(gpu);
        auto const others = clock ? clocks_.median_without(*clock) : std::nullopt;
        bool const is_below_others = others && *clock < clock_share * *others;
        bool const is_below_own = !gpu.slowed.empty() && gpu.clock_mhz && gpu.most_clock_mhz &&
                                  *gpu.clock_mhz < clock_share_alone * *gpu.most_clock_mhz;
        if (is_below_others || is_below_own)
            add(oddity_kind::gpu_slowed,
                fmt::format("its GPU {} at {}{} MHz{}", verb("runs", "ran"), *gpu.clock_mhz,
                            gpu.most_clock_mhz ? fmt::format(" of {}", *gpu.most_clock_mhz) : "",
                            !gpu.slowed.empty() ? ": " + gpu.slowed : fmt::format(", the others' at {:.0f}", *others)));
        if (gpu.ecc_errors.value_or(0) > 0)
            add(oddity_kind::gpu_errors, fmt::format("its GPU's memory has had {} uncorrected errors", *gpu.ecc_errors));
    }

    void look_at_gpu_use(gpu_sample const& gpu) {
        auto const others = gpu.busy_percent ? busy_.median_without(*gpu.busy_percent) : std::nullopt;
        if (others && *others >= working_percent && *gpu.busy_percent < idle_share * *others)
            add(oddity_kind::gpu_idle,
                fmt::format("its GPU is busy {} % of the time, the others' {:.0f} %", *gpu.busy_percent, *others));
    }

    void look_at_output(rank_sample const& rank) {
        auto const others = rank.silent_s ? silent_.median_without(*rank.silent_s) : std::nullopt;
        if (others && silent_.size() >= silent_ranks && *rank.silent_s > std::max(silent_s, silent_times * *others))
            add(oddity_kind::silent, fmt::format("it has written nothing for {}, the others for {}",
                                                 format_duration(duration(*rank.silent_s)), format_duration(duration(*others))));
    }

    run_samples const& samples_;
    others_values waiting_, silent_, busy_, clocks_, core_waits_, data_waits_;
    std::vector<oddity> found_;
    tense wording_;
    std::string host_, node_reason_;
    int rank_ = -1;
    bool have_roles_ = false;
};

}  // namespace

std::string_view to_string(oddity_kind kind) noexcept {
    static constexpr std::string_view names[]{"awaited",  "stopped",      "blocked",         "throttled",      "shares cores",
                                              "swapping", "memory limit", "memory pressure", "I/O pressure",   "GPU slowed",
                                              "GPU idle", "GPU errors",   "silent",          "waits for data", "steal"};
    static_assert(std::size(names) == static_cast<std::size_t>(oddity_kind::steal) + 1);
    return names[static_cast<std::size_t>(kind)];
}

gpu_sample const* gpu_of(node_sample const& node, rank_sample const& rank) {
    auto const found = std::ranges::find(node.gpus, rank.gpu, &gpu_sample::number);
    return rank.gpu.empty() || found == node.gpus.end() ? nullptr : &*found;
}

std::vector<oddity> find_oddities(run_samples const& samples, tense wording) {
    return oddity_finder(samples, wording).find();
}

}  // namespace muster
