// The interface of a training over ranks: prepares data and weights, trains and tests epochs, and keeps the ranks in agreement.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string_view>

#include "bench/network/kernel_table.hpp"
#include "bench/network/loss.hpp"
#include "bench/training/communication_watch.hpp"
#include "bench/training/train_record.hpp"
#include "bench/training/training.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// One rank's. Every call is collective; all throw as run_training does.
class trainer {
  public:
    trainer(training_options const& options, communicator& ranks);
    trainer(trainer const&) = delete;
    trainer& operator=(trainer const&) = delete;
    virtual ~trainer() = default;

    /// Opens the data, gives all ranks rank 0's first weights, and writes into the record what is known then.
    virtual void prepare(train_record& record) = 0;
    virtual epoch_record train(int epoch) = 0;
    virtual void test(epoch_record& into, int epoch) = 0;
    /// After the last epoch: what the record still lacks.
    virtual void describe(train_record& record) = 0;
    /// The parameters, in the order of parameter_table; in host memory, good until the next call.
    virtual std::span<float const> weights() = 0;

    /// XXH3-64 of the weights. Throws errc::peer_failed naming the ranks whose weights differ from rank 0's.
    std::uint64_t common_checksum(std::string_view when);
    void reduce(std::string_view name, std::span<double> values, reduction how) {
        ranks_.allreduce(name, view_of(values), how).wait();
    }

  protected:
    /// What a rank knows of an epoch.
    struct own_times {
        double total_s = 0, first_step_s = 0, loader_wait_s = 0;
        communication_split communication{};
        std::int64_t later_images = 0;  ///< of all ranks, after the first step
        double loss_sum = 0;
    };
    /// Fills in what all ranks know of it together, and throws if the training has diverged.
    void sum_up(epoch_record& into, own_times const& mine);
    /// The same of a test: `mine` over `images` of `of` images.
    void sum_up_test(epoch_record& into, loss_result const& mine, std::int64_t images, std::size_t of,
                     std::chrono::steady_clock::time_point began);

    training_options const& options_;
    communicator& ranks_;
    int batch_;  ///< of this rank
    double rate_;

  private:
    void check_finite(epoch_record const& record);
};

/// Of processors. `kernels` outlive it.
std::unique_ptr<trainer> make_cpu_trainer(training_options const& options, communicator& ranks, kernel_table const& kernels);

}  // namespace muster
