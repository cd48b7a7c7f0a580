#include "bench/training/timed_training.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <thread>

#include "base/error.hpp"
#include "base/version.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/mpi_version.hpp"
#include "bench/training/communication_watch.hpp"
#include "bench/training/rank_places.hpp"
#include "comm/gradients/gradient_reducer.hpp"

namespace muster {

namespace {

using wall_clock = std::chrono::steady_clock;

double elapsed_s(wall_clock::time_point begin) {
    return std::chrono::duration<double>(wall_clock::now() - begin).count();
}

double thread_s() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// One tensor: its part of all gradients, and the time of the backward pass before it is ready.
struct timed_tensor {
    std::string name;
    std::size_t first, count;
    double backward_s;
};

/// The last tensor of the network first, as the backward pass completes them.
std::vector<timed_tensor> tensors_of(timed_options const& options) {
    auto const set = gradients_of(options.net);
    double const all = std::accumulate(set.work.begin(), set.work.end(), 0.0);
    std::vector<timed_tensor> out;
    std::size_t first = 0;
    for (std::size_t i = set.elements.size(); i-- > 0;) {
        out.push_back(
            {fmt::format("{} tensor {}", set.name, i), first, set.elements[i], set.work[i] / all * options.compute_s * 2 / 3});
        first += set.elements[i];
    }
    return out;
}

class timed_trainer {
  public:
    timed_trainer(timed_options const& options, communicator& ranks)
        : options_(options), ranks_(ranks), tensors_(tensors_of(options)) {
        std::size_t const count = tensors_.back().first + tensors_.back().count;
        gradients_.assign(count, static_cast<float>(ranks.rank()));
        std::vector<gradient_view> views;
        for (auto const& t : tensors_) views.push_back({t.name, std::span(gradients_).subspan(t.first, t.count)});
        gradient_reducer_options how;
        how.bucket_bytes = how.first_bucket_bytes = options.bucket_bytes;
        reducer_ = std::make_unique<gradient_reducer>(ranks, std::move(views), how);
        watch_ = std::make_unique<communication_watch>(*reducer_);
    }

    std::size_t parameters() const noexcept { return gradients_.size(); }
    epoch_record epoch(int number);

  private:
    void compute(double seconds) const;
    void step();
    void check_average();

    timed_options const& options_;
    communicator& ranks_;
    std::vector<timed_tensor> tensors_;
    std::vector<float> gradients_;
    std::unique_ptr<gradient_reducer> reducer_;
    std::unique_ptr<communication_watch> watch_;
    bool checked_ = false;
};

void timed_trainer::compute(double seconds) const {
    if (seconds <= 0) return;
    if (!options_.burn) return std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    double const until = thread_s() + seconds;
    while (thread_s() < until) {
    }
}

void timed_trainer::step() {
    compute(options_.compute_s / 3);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        compute(tensors_[i].backward_s);
        watch_->ready(i);
    }
    watch_->finish();
}

void timed_trainer::check_average() {
    float const wanted = static_cast<float>(ranks_.size() - 1) / 2;
    for (auto const& t : tensors_)
        for (std::size_t const at : {t.first, t.first + t.count / 2, t.first + t.count - 1})
            if (!(std::abs(gradients_[at] - wanted) <= 1e-5f * std::max(1.0f, wanted)))
                throw error(errc::internal, fmt::format("rank {}: {} holds {} after the reduction, expected the average {}; try "
                                                        "another --backend",
                                                        ranks_.rank(), t.name, gradients_[at], wanted));
    checked_ = true;
}

epoch_record timed_trainer::epoch(int number) {
    epoch_record record;
    record.epoch = number;
    record.steps = options_.steps;
    record.images = std::int64_t{options_.steps} * options_.batch * ranks_.size();
    watch_->begin();
    ranks_.barrier().wait();
    auto const begin = wall_clock::now();
    double first_step = 0;
    for (int i = 0; i < options_.steps; ++i) {
        step();
        if (i == 0) first_step = elapsed_s(begin);
        if (!checked_) check_average();
    }
    double const total = elapsed_s(begin);
    auto const spent = watch_->end(ranks_);
    std::array slowest{total, first_step, total - first_step, spent.finish_s};
    std::array sums{spent.finish_s, spent.exposed_s, spent.hidden_s, spent.waiting_s};
    ranks_.allreduce("times", view_of(std::span(slowest)), reduction::max).wait();
    ranks_.allreduce("times of the communication", view_of(std::span(sums)), reduction::average).wait();
    record.train_s = slowest[0];
    record.first_step_s = slowest[1];
    record.steady_s = slowest[2];
    record.allreduce_wait_s = slowest[3];
    record.allreduce_wait_mean_s = sums[0];
    record.exposed_s = sums[1];
    record.hidden_s = sums[2];
    record.waiting_s = sums[3];
    auto const later = record.images * (options_.steps - 1) / options_.steps;
    record.images_per_s = later > 0 ? static_cast<double>(later) / record.steady_s : 0;
    return record;
}

}  // namespace

bool is_timed_network(std::string_view name) noexcept {
    return name == "resnet50" || name == "gpt2-small";
}

train_record run_timed_training(timed_options const& options, communicator& ranks, wall_clock::time_point began,
                                std::function<void(epoch_record const&)> const& progress) {
    train_record record;
    record.net = options.net;
    record.data_note = "no data";
    record.compute_note =
        fmt::format("{}: {:g} ms a step by {}", timed_note, options.compute_s * 1e3, options.burn ? "processor time" : "waiting");
    record.world_size = ranks.size();
    record.batch = options.batch;
    record.epochs = options.epochs;
    record.bucket_bytes = options.bucket_bytes;
    record.protocol = "timed";
    record.kernels = "none";
    record.backend = ranks.backend();
    record.identity_source = to_string(ranks.who().from);
    record.version = version();
    record.mpi_library = mpi_library_version();
    record.communicator_s = elapsed_s(began);
    timed_trainer work(options, ranks);
    record.parameters = work.parameters();
    ranks.barrier().wait();
    std::array slowest{elapsed_s(began), record.communicator_s};
    ranks.allreduce("start-up times", view_of(std::span(slowest)), reduction::max).wait();
    record.startup_s = slowest[0];
    record.communicator_s = slowest[1];
    for (int e = 0; e < options.epochs; ++e) {
        record.epochs_done.push_back(work.epoch(e));
        if (progress) progress(record.epochs_done.back());
    }
    record.ranks = places_of_ranks(ranks);
    return record;
}

}  // namespace muster
