#include <algorithm>
#include <memory>

#include "bench/training/choose_network.hpp"
#include "bench/training/communication_watch.hpp"
#include "bench/training/rank_places.hpp"
#include "bench/training/trainer.hpp"
#include "bench/training/training_split.hpp"
#include "comm/fail_together.hpp"
#include "comm/gradients/gradient_reducer.hpp"

namespace muster {

namespace {

using train_clock = std::chrono::steady_clock;

double train_seconds_since(train_clock::time_point begin) {
    return std::chrono::duration<double>(train_clock::now() - begin).count();
}

class cpu_trainer final : public trainer {
  public:
    cpu_trainer(training_options const& options, communicator& ranks, kernel_table const& kernels)
        : trainer(options, ranks),
          kernels_(kernels),
          net_(make_network(options.net, batch_, kernels, static_cast<float>(options.dropout))),
          velocity_(net_.parameters().size(), 0.0f) {}

    void prepare(train_record& record) override;
    epoch_record train(int epoch) override;
    void test(epoch_record& into, int epoch) override;
    void describe(train_record& record) override;
    std::span<float const> weights() override { return net_.parameters(); }

  private:
    void step(batch const& images, std::uint64_t number, loss_result& sum);
    void make_reducer();

    kernel_table const& kernels_;
    network net_;
    aligned_vector<float> velocity_;
    std::unique_ptr<training_split> train_, test_;
    std::unique_ptr<gradient_reducer> reducer_;
    std::unique_ptr<communication_watch> watch_;
    network::ready_function ready_;
};

void cpu_trainer::make_reducer() {
    std::vector<gradient_view> gradients;
    for (std::size_t i = 0; i < net_.table().size(); ++i) gradients.push_back({net_.table()[i].shape.name, net_.gradient(i)});
    gradient_reducer_options how;
    how.bucket_bytes = how.first_bucket_bytes = options_.bucket_bytes;
    reducer_ = std::make_unique<gradient_reducer>(ranks_, std::move(gradients), how);
    watch_ = std::make_unique<communication_watch>(*reducer_);
    ready_ = [this](std::size_t index) { watch_->ready(index); };
}

void cpu_trainer::prepare(train_record& record) {
    auto const begin = train_clock::now();
    run_on_all(ranks_, "open the data", [&] {
        auto const& facts = facts_of_network(options_.net);
        auto const open = [&](char const* split, bool shuffle, std::size_t asked, std::size_t usual) {
            return open_training_split({options_.data, split, batch_, options_.seed, shuffle, asked > 0 ? asked : usual},
                                       net_.input(), ranks_.who());
        };
        train_ = open("train", true, options_.generated_train, facts.train_images);
        test_ = open("test", false, options_.generated_test, facts.test_images);
    });
    record.open_data_s = train_seconds_since(begin);
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

void cpu_trainer::step(batch const& images, std::uint64_t number, loss_result& sum) {
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

epoch_record cpu_trainer::train(int epoch) {
    epoch_record record;
    record.epoch = epoch;
    auto const steps = train_->begin(static_cast<std::uint64_t>(epoch));
    loss_result sum;
    own_times mine;
    watch_->begin();
    ranks_.barrier().wait();
    auto const begin = train_clock::now();
    auto const* part = train_->next();
    mine.loader_wait_s += train_seconds_since(begin);
    std::uint64_t done = 0;
    while (part != nullptr) {
        auto const images = static_cast<std::int64_t>(part->global_count);
        step(*part, static_cast<std::uint64_t>(epoch) * steps + done, sum);
        record.images += images;
        if (done > 0) mine.later_images += images;
        if (++done == 1) mine.first_step_s = train_seconds_since(begin);
        auto const waited = train_clock::now();
        part = train_->next();
        mine.loader_wait_s += train_seconds_since(waited);
    }
    mine.total_s = train_seconds_since(begin);
    record.steps = static_cast<std::int64_t>(done);
    mine.communication = watch_->end(ranks_);
    mine.loss_sum = sum.loss_sum;
    sum_up(record, mine);
    return record;
}

void cpu_trainer::test(epoch_record& into, int epoch) {
    ranks_.barrier().wait();
    auto const begin = train_clock::now();
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
    sum_up_test(into, sum, images, test_->size(), begin);
}

void cpu_trainer::describe(train_record& record) {
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

std::unique_ptr<trainer> make_cpu_trainer(training_options const& options, communicator& ranks, kernel_table const& kernels) {
    return std::make_unique<cpu_trainer>(options, ranks, kernels);
}

}  // namespace muster
