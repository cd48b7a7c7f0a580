#include "bench/training/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/error.hpp"
#include "base/version.hpp"
#include "bench/tools/mpi_version.hpp"
#include "bench/training/choose_network.hpp"
#include "bench/training/communication_watch.hpp"
#include "bench/training/rank_places.hpp"
#include "bench/training/training_split.hpp"
#include "comm/fail_together.hpp"
#include "comm/gradients/gradient_reducer.hpp"
#include "io/dataset/checksum.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
}

class trainer {
  public:
    trainer(training_options const& options, communicator& ranks, kernel_table const& kernels)
        : options_(options),
          ranks_(ranks),
          kernels_(kernels),
          batch_(options.global_batch ? options.batch / ranks.size() : options.batch),
          rate_(options.global_batch ? options.rate : options.rate * ranks.size()),
          net_(make_network(options.net, batch_, kernels, static_cast<float>(options.dropout))),
          velocity_(net_.parameters().size(), 0.0f) {}

    void prepare(train_record& record);
    epoch_record train(int epoch);
    void test(epoch_record& into, int epoch);
    std::uint64_t common_checksum(std::string_view when);
    void describe(train_record& record);
    void reduce(std::string_view name, std::span<double> values, reduction how) {
        ranks_.allreduce(name, view_of(values), how).wait();
    }

  private:
    void step(batch const& images, std::uint64_t number, loss_result& sum);
    void make_reducer();
    void check_finite(epoch_record const& record);

    training_options const& options_;
    communicator& ranks_;
    kernel_table const& kernels_;
    int batch_;  // of this rank
    double rate_;
    network net_;
    aligned_vector<float> velocity_;
    std::unique_ptr<training_split> train_, test_;
    std::unique_ptr<gradient_reducer> reducer_;
    std::unique_ptr<communication_watch> watch_;
    network::ready_function ready_;
};

void trainer::make_reducer() {
    std::vector<gradient_view> gradients;
    for (std::size_t i = 0; i < net_.table().size(); ++i) gradients.push_back({net_.table()[i].shape.name, net_.gradient(i)});
    gradient_reducer_options how;
    how.bucket_bytes = how.first_bucket_bytes = options_.bucket_bytes;
    reducer_ = std::make_unique<gradient_reducer>(ranks_, std::move(gradients), how);
    watch_ = std::make_unique<communication_watch>(*reducer_);
    ready_ = [this](std::size_t index) { watch_->ready(index); };
}

void trainer::prepare(train_record& record) {
    auto const begin = clock::now();
    run_on_all(ranks_, "open the data", [&] {
        auto const& facts = facts_of_network(options_.net);
        auto const open = [&](char const* split, bool shuffle, std::size_t asked, std::size_t usual) {
            return open_training_split({options_.data, split, batch_, options_.seed, shuffle, asked > 0 ? asked : usual},
                                       net_.input(), ranks_.who());
        };
        train_ = open("train", true, options_.generated_train, facts.train_images);
        test_ = open("test", false, options_.generated_test, facts.test_images);
    });
    record.open_data_s = seconds_since(begin);
    record.data = train_->source();
    if (options_.data.empty()) record.data_note = train_->source();
    record.parameters = net_.parameters().size();
    record.rate = rate_;
    record.batch = batch_;
    net_.initialise(options_.seed);
    ranks_.broadcast("initial weights", view_of(net_.parameters()), 0).wait();
    common_checksum("before the first step");
    make_reducer();
}

std::uint64_t trainer::common_checksum(std::string_view when) {
    auto const weights = std::as_bytes(net_.parameters());
    std::uint64_t const own = xxh3_64({reinterpret_cast<std::uint8_t const*>(weights.data()), weights.size()});
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

void trainer::step(batch const& images, std::uint64_t number, loss_result& sum) {
    double loss = 0;
    if (images.count == 0) {
        net_.no_images(ready_);
    } else {
        net_.load(images.images, static_cast<int>(images.count));
        net_.resample(options_.seed,
                      number * static_cast<std::uint64_t>(ranks_.size()) + static_cast<std::uint64_t>(ranks_.rank()));
        net_.forward(true);
        // The reducer averages over the ranks; this share makes that the mean over all images of the step, also where ranks have
        // unequal numbers.
        float const share = static_cast<float>(ranks_.size()) / static_cast<float>(images.global_count);
        auto const result = net_.backward(images.labels, ready_, share);
        loss = result.loss_sum;
        sum.loss_sum += result.loss_sum;
        sum.correct += result.correct;
    }
    watch_->finish();
    kernels_.sgd(net_.parameters().data(), net_.gradients().data(), velocity_.data(), velocity_.size(), static_cast<float>(rate_),
                 static_cast<float>(options_.momentum));
    if (options_.published_protocol) reduce("loss of the step", {&loss, 1}, reduction::average);
}

epoch_record trainer::train(int epoch) {
    epoch_record record;
    record.epoch = epoch;
    auto const steps = train_->begin(static_cast<std::uint64_t>(epoch));
    loss_result sum;
    double loader_wait = 0, first_step = 0;
    std::int64_t later_images = 0;
    watch_->begin();
    ranks_.barrier().wait();
    auto const begin = clock::now();
    auto const* part = train_->next();
    loader_wait += seconds_since(begin);
    std::uint64_t done = 0;
    while (part != nullptr) {
        auto const images = static_cast<std::int64_t>(part->global_count);
        step(*part, static_cast<std::uint64_t>(epoch) * steps + done, sum);
        record.images += images;
        if (done > 0) later_images += images;
        if (++done == 1) first_step = seconds_since(begin);
        auto const waited = clock::now();
        part = train_->next();
        loader_wait += seconds_since(waited);
    }
    double const total = seconds_since(begin);
    record.steps = static_cast<std::int64_t>(done);

    auto const spent = watch_->end(ranks_);
    std::array slowest{total, first_step, total - first_step, spent.finish_s, loader_wait};
    std::array sums{sum.loss_sum, spent.finish_s, loader_wait, spent.exposed_s, spent.hidden_s, spent.waiting_s};
    reduce("times", slowest, reduction::max);
    reduce("loss", sums, reduction::sum);
    record.train_s = slowest[0];
    record.first_step_s = slowest[1];
    record.steady_s = slowest[2];
    record.allreduce_wait_s = slowest[3];
    record.loader_wait_s = slowest[4];
    record.images_per_s = later_images > 0 ? static_cast<double>(later_images) / record.steady_s : 0;
    record.train_loss = sums[0] / static_cast<double>(record.images);
    record.allreduce_wait_mean_s = sums[1] / ranks_.size();
    record.loader_wait_mean_s = sums[2] / ranks_.size();
    record.exposed_s = sums[3] / ranks_.size();
    record.hidden_s = sums[4] / ranks_.size();
    record.waiting_s = sums[5] / ranks_.size();
    check_finite(record);
    return record;
}

// The weights are checked too: ReLU turns a NaN into 0, so that the loss may stay finite over weights that are not.
void trainer::check_finite(epoch_record const& record) {
    auto const weights = net_.parameters();
    bool const finite = std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); });
    if (finite && std::isfinite(record.train_loss)) return;
    throw error(errc::invalid_data,
                fmt::format("training diverged in epoch {}: the loss is {}, {}; lower --lr (it is {} on {} ranks)",
                            record.epoch + 1, record.train_loss,
                            finite ? "the weights are still finite" : "not all weights are finite", rate_, ranks_.size()));
}

void trainer::test(epoch_record& into, int epoch) {
    ranks_.barrier().wait();
    auto const begin = clock::now();
    loss_result sum;
    std::int64_t images = 0;
    test_->begin(static_cast<std::uint64_t>(epoch));
    while (auto const* part = test_->next()) {
        if (part->count == 0) continue;
        net_.load(part->images, static_cast<int>(part->count));
        net_.forward(false);
        auto const result = net_.evaluate(part->labels);
        sum.loss_sum += result.loss_sum;
        sum.correct += result.correct;
        images += static_cast<std::int64_t>(part->count);
    }
    std::array counts{sum.correct, images};
    ranks_.allreduce("hits", view_of(std::span(counts)), reduction::sum).wait();
    std::array loss{sum.loss_sum};
    reduce("test loss", loss, reduction::sum);
    std::array seconds{seconds_since(begin)};
    reduce("test time", seconds, reduction::max);
    into.test_s = seconds[0];
    into.correct = counts[0];
    into.test_images = counts[1];
    into.test_loss = loss[0] / static_cast<double>(counts[1]);
    expect(counts[1] == static_cast<std::int64_t>(test_->size()), "every test image is counted once");
}

void trainer::describe(train_record& record) {
    record.ranks = places_of_ranks(ranks_);
    double const steps = static_cast<double>(std::max<std::int64_t>(1, record.epochs_done.front().steps)) *
                         static_cast<double>(record.epochs_done.size());
    for (std::size_t i = 0; i < net_.layers().size(); ++i) {
        auto const& layer = *net_.layers()[i];
        auto const work = layer.dense_work(i > 0);
        double const unit = 1e6 / (steps * batch_);
        record.profile.push_back({std::string(layer.name()), net_.profile()[i].forward * unit, net_.profile()[i].backward * unit,
                                  (work.forward + work.backward) / 1e6});
    }
}

}  // namespace

train_record run_training(training_options const& options, communicator& ranks, kernel_table const& kernels,
                          std::chrono::steady_clock::time_point began, std::function<void(epoch_record const&)> const& progress) {
    train_record record;
    record.net = options.net;
    record.world_size = ranks.size();
    record.epochs = options.epochs;
    record.seed = options.seed;
    record.momentum = options.momentum;
    record.dropout = options.dropout;
    record.bucket_bytes = options.bucket_bytes;
    record.protocol = options.published_protocol ? "published" : "fast";
    record.target_accuracy = options.target_accuracy;
    record.kernels = kernels.name;
    record.backend = ranks.backend();
    record.identity_source = to_string(ranks.who().from);
    record.version = version();
    record.mpi_library = mpi_library_version();
    record.communicator_s = seconds_since(began);
    if (options.global_batch && options.batch % ranks.size() != 0)
        throw error(errc::usage, fmt::format("--global-batch: {} images do not divide among {} ranks; give a multiple",
                                             options.batch, ranks.size()));

    trainer work(options, ranks, kernels);
    work.prepare(record);
    ranks.barrier().wait();
    std::array slowest{seconds_since(began), record.communicator_s, record.open_data_s};
    work.reduce("start-up times", slowest, reduction::max);
    record.startup_s = slowest[0];
    record.communicator_s = slowest[1];
    record.open_data_s = slowest[2];
    for (int e = 0; e < options.epochs; ++e) {
        record.epochs_done.push_back(work.train(e));
        work.test(record.epochs_done.back(), e);
        if (progress) progress(record.epochs_done.back());
        record.reached_target = options.target_accuracy > 0 && record.accuracy() >= options.target_accuracy;
        if (record.reached_target) break;
    }
    record.weights_checksum = format_checksum(work.common_checksum("after training"));
    work.describe(record);
    return record;
}

}  // namespace muster
