#include "bench/training/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "io/dataset/checksum.hpp"

namespace muster {

trainer::trainer(training_options const& options, communicator& ranks)
    : options_(options),
      ranks_(ranks),
      batch_(options.global_batch ? options.batch / ranks.size() : options.batch),
      rate_(options.global_batch ? options.rate : options.rate * ranks.size()) {}

std::uint64_t trainer::common_checksum(std::string_view when) {
    auto const bytes = std::as_bytes(this->weights());
    std::uint64_t const own = xxh3_64({reinterpret_cast<std::uint8_t const*>(bytes.data()), bytes.size()});
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks_.size()));
    std::array const mine{static_cast<std::int64_t>(own)};
    ranks_.allgather("checksum of the weights", input_of(std::span(mine)), view_of(std::span(all))).wait();
    std::string different;
    for (std::size_t r = 1; r < all.size(); ++r)
        if (all[r] != all[0]) different += fmt::format(" {} ({})", r, ranks_.host_of(static_cast<int>(r)));
    if (!different.empty())
        throw error(errc::peer_failed,
                    fmt::format("the weights of these ranks differ from rank 0's {}:{}; do all run the same program on "
                                "processors with the same kernels? --kernels baseline gives the same arithmetic everywhere",
                                when, different));
    return own;
}

void trainer::sum_up(epoch_record& record, own_times const& mine) {
    auto const& spent = mine.communication;
    std::array slowest{mine.total_s, mine.first_step_s, mine.total_s - mine.first_step_s, spent.finish_s, mine.loader_wait_s};
    std::array sums{mine.loss_sum, spent.finish_s, mine.loader_wait_s, spent.exposed_s, spent.hidden_s, spent.waiting_s};
    reduce("times", slowest, reduction::max);
    reduce("loss", sums, reduction::sum);
    record.train_s = slowest[0];
    record.first_step_s = slowest[1];
    record.steady_s = slowest[2];
    record.allreduce_wait_s = slowest[3];
    record.loader_wait_s = slowest[4];
    record.images_per_s = mine.later_images > 0 ? static_cast<double>(mine.later_images) / record.steady_s : 0;
    record.train_loss = sums[0] / static_cast<double>(record.images);
    record.allreduce_wait_mean_s = sums[1] / ranks_.size();
    record.loader_wait_mean_s = sums[2] / ranks_.size();
    record.exposed_s = sums[3] / ranks_.size();
    record.hidden_s = sums[4] / ranks_.size();
    record.waiting_s = sums[5] / ranks_.size();
    check_finite(record);
}

// The weights are checked too: ReLU turns a NaN into 0, so that the loss may stay finite over weights that are not.
void trainer::check_finite(epoch_record const& record) {
    auto const values = weights();
    bool const finite = std::all_of(values.begin(), values.end(), [](float w) { return std::isfinite(w); });
    if (finite && std::isfinite(record.train_loss)) return;
    throw error(errc::invalid_data,
                fmt::format("training diverged in epoch {}: the loss is {}, {}; lower --lr (it is {} on {} ranks)",
                            record.epoch + 1, record.train_loss,
                            finite ? "the weights are still finite" : "not all weights are finite", rate_, ranks_.size()));
}

void trainer::sum_up_test(epoch_record& into, loss_result const& mine, std::int64_t images, std::size_t of,
                          std::chrono::steady_clock::time_point began) {
    std::array counts{mine.correct, images};
    ranks_.allreduce("hits", view_of(std::span(counts)), reduction::sum).wait();
    std::array loss{mine.loss_sum};
    reduce("test loss", loss, reduction::sum);
    std::array seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
    reduce("test time", seconds, reduction::max);
    into.test_s = seconds[0];
    into.correct = counts[0];
    into.test_images = counts[1];
    into.test_loss = loss[0] / static_cast<double>(counts[1]);
    expect(counts[1] == static_cast<std::int64_t>(of), "every test image is counted once");
}

}  // namespace muster
