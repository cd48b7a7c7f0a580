#include "bench/communication/bucket_times.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "comm/gradients/bucket_plan.hpp"

namespace muster {

bucket_times times_of_buckets(gradient_set const& gradients, std::size_t bucket_bytes, double backward_s,
                              link_fit const& allreduce) {
    std::vector<std::size_t> const elements(gradients.elements.rbegin(), gradients.elements.rend());  // as they become ready
    std::vector<double> work(gradients.work.rbegin(), gradients.work.rend());
    if (work.empty()) work.assign(elements.begin(), elements.end());
    double const whole = std::accumulate(work.begin(), work.end(), 0.0);
    bucket_times out;
    double done = 0, free_at = 0;
    for (auto const& bucket : plan_buckets(elements, bucket_bytes, bucket_bytes)) {
        std::size_t bytes = 0;
        for (std::size_t i = bucket.first; i < bucket.first + bucket.count; ++i) {
            bytes += elements[i] * sizeof(float);
            done += work[i];
        }
        double const takes = allreduce.us(static_cast<double>(bytes)) * 1e-6;
        free_at = std::max(free_at, whole > 0 ? done / whole * backward_s : backward_s) + takes;
        ++out.buckets;
        out.needed_s += takes;
        out.latency_s += allreduce.alpha_us * 1e-6;
    }
    out.exposed_s = std::max(0.0, free_at - backward_s);
    return out;
}

}  // namespace muster
