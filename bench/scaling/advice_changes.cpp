#include "bench/scaling/advice_changes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/units.hpp"
#include "bench/training/choose_network.hpp"
#include "bench/training/timed_training.hpp"

namespace muster {

namespace {

using words = std::vector<std::string>;

constexpr long usual_batch = 64;  // of muster-bench train

/// Without the options `names`, each of which has a value.
words without(words const& all, std::initializer_list<std::string_view> names) {
    words out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        bool const whole = std::ranges::find(names, all[i]) != names.end();
        bool const joined = std::ranges::any_of(names, [&](auto name) { return all[i].starts_with(std::string(name) + "="); });
        if (whole) ++i;
        if (!whole && !joined) out.push_back(all[i]);
    }
    return out;
}

std::string value_of_option(words const& all, std::string_view name, std::string const& otherwise) {
    auto const at = std::ranges::find(all, name);
    return at == all.end() || at + 1 == all.end() ? otherwise : *(at + 1);
}

/// An option of the built-in training, which is given once.
words with_option(words const& program, std::string const& name, std::string const& value) {
    auto out = without(program, {name});
    out.insert(out.end(), {name, value});
    return out;
}

class changes_for_plan {
  public:
    explicit changes_for_plan(study_plan const& plan) : plan_(plan) {}

    std::vector<tried_advice> of(scaling_finding const& found) const {
        switch (found.why) {
            case cause::shared_core: return {own_cores(found)};
            case cause::communication: return less_communication(found);
            case cause::input: return {free_workers(found)};
            case cause::serial_part: return {more_work(found)};
            case cause::oversubscribed: return {not_tried(found, "the table has the smaller numbers of ranks")};
            case cause::imbalance: return {not_tried(found, "what else runs on that rank's cores is not this study's to change")};
        }
        return {not_tried(found, "there is nothing to switch")};
    }

  private:
    tried_advice base(scaling_finding const& found) const {
        tried_advice out;
        out.cause = to_string(found.why);
        out.advice = found.advice;
        out.ranks = found.ranks;
        out.metric = plan_.judged.name;
        out.rate = plan_.judged.rate;
        return out;
    }

    tried_advice not_tried(scaling_finding const& found, std::string why) const {
        auto out = base(found);
        out.not_tried = std::move(why);
        return out;
    }

    /// With the plan's own launch and program, of which one is then changed.
    tried_advice tried(scaling_finding const& found, std::string change) const {
        auto out = base(found);
        out.change = std::move(change);
        out.launch = plan_.launch;
        out.program = plan_.program;
        return out;
    }

    /// Bound otherwise; of the built-in training the number of cores is not to limit the ranks, as in its other runs.
    tried_advice bound(scaling_finding const& found, std::string change, char const* to) const {
        auto out = tried(found, std::move(change));
        out.launch = without(plan_.launch, {"--bind-to", "--cpu-map"});
        if ((plan_.built_in || plan_.as_published) && plan_.launch.empty())
            out.launch.insert(out.launch.end(), {"--slots-per-node", std::to_string(found.ranks)});
        out.launch.insert(out.launch.end(), {"--bind-to", to});
        return out;
    }

    tried_advice own_cores(scaling_finding const& found) const {
        return bound(found, "--bind-to core, and no --cpu-map,", "core");
    }

    /// A loader's workers inherit the rank's binding.
    tried_advice free_workers(scaling_finding const& found) const {
        return bound(found, "--bind-to none, so that workers run on any core,", "none");
    }

    std::vector<tried_advice> less_communication(scaling_finding const& found) const {
        if (!plan_.built_in) {
            auto narrow = tried(found, "MUSTER_COMPRESSION=bf16");
            narrow.settings = {"MUSTER_COMPRESSION=bf16"};
            auto fused = tried(found, "MUSTER_FUSION_BYTES=64MiB");
            fused.settings = {"MUSTER_FUSION_BYTES=64MiB"};
            return {narrow, fused, not_tried(found, "more work a rank and step is the program's own matter")};
        }
        auto const now = parse_bytes(
            value_of_option(plan_.program, "--bucket-bytes", std::to_string(default_bucket_bytes(network()))), "--bucket-bytes");
        auto const more = format_bytes(16 * now);
        auto larger = tried(found, "--bucket-bytes " + more);
        larger.program = with_option(plan_.program, "--bucket-bytes", std::to_string(16 * now));
        return {larger, more_work(found)};
    }

    tried_advice more_work(scaling_finding const& found) const {
        if (!plan_.built_in) return not_tried(found, "how much work a step has is the program's own matter");
        if (is_timed_network(network()))
            return not_tried(found, network() + "'s compute is timed, so that more images a step would take no longer");
        char const* name = plan_.series == work_series::strong ? "--global-batch" : "--batch";  // training_request.cpp has them
        long const now = std::stol(value_of_option(plan_.program, name, std::to_string(usual_batch)));
        auto out = tried(found, fmt::format("{} {}, which also changes what is learnt,", name, 4 * now));
        out.program = with_option(plan_.program, name, std::to_string(4 * now));
        return out;
    }

    /// That the built-in training trains, or whose gradients it reduces.
    std::string network() const { return value_of_option(plan_.program, "--net", "mnist"); }

    study_plan const& plan_;
};

}  // namespace

std::vector<tried_advice> advice_changes(study_plan const& plan, std::vector<scaling_finding> const& causes) {
    changes_for_plan const changes(plan);
    std::vector<tried_advice> out;
    for (auto const& found : causes)
        for (auto& each : changes.of(found)) {
            bool const known = each.not_tried.empty() && std::ranges::any_of(out, [&](auto const& other) {
                                   return other.ranks == each.ranks && other.change == each.change;
                               });
            if (!known) out.push_back(std::move(each));
        }
    return out;
}

}  // namespace muster
