#include "bench/training/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/version.hpp"
#include "bench/network/mnist_network.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/mpi_version.hpp"
#include "comm/fail_together.hpp"
#include "comm/gradients/gradient_reducer.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/dataset.hpp"
#include "io/loader/loader.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
}

// One split: its samples in memory, handed out in batches.
struct split_source {
    sampler order;
    loader batches;
};

split_source open_split(training_options const& options, identity const& who, std::string const& split, bool shuffle) {
    auto const file = dataset::open(options.data, split);
    auto const shape = file.shape();
    if (shape.channels != 1 || shape.height != 28 || shape.width != 28 || file.classes() > mnist_network::classes ||
        file.size() == 0 || file.info().type != element_type::u8 || file.label_bytes() != 1)
        throw error(errc::invalid_data, fmt::format("{}: split '{}' holds {} images of {}x{}x{} in {} classes; this network "
                                                    "takes 1x28x28 bytes in at most {} classes (MNIST, "
                                                    "Fashion-MNIST)",
                                                    options.data, split, file.size(), shape.channels, shape.height, shape.width,
                                                    file.classes(), mnist_network::classes));
    sampler const order(file.size(), {.seed = options.seed, .shuffle = shuffle});
    loader_options settings;
    settings.batch = static_cast<std::size_t>(options.batch);
    settings.rank = who.rank;
    settings.world = who.world_size;
    settings.local_size = who.local_size;
    return {order, loader(file, order, settings)};
}

class trainer {
  public:
    trainer(training_options const& options, communicator& ranks, kernel_table const& kernels)
        : options_(options),
          ranks_(ranks),
          kernels_(kernels),
          net_(options.batch, kernels, static_cast<float>(options.dropout)),
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

    training_options const& options_;
    communicator& ranks_;
    kernel_table const& kernels_;
    mnist_network net_;
    aligned_vector<float> velocity_;
    std::unique_ptr<split_source> train_, test_;
    std::unique_ptr<gradient_reducer> reducer_;
    mnist_network::ready_function ready_;
    double allreduce_wait_ = 0;
};

void trainer::make_reducer() {
    std::vector<gradient_view> gradients;
    for (std::size_t i = 0; i < net_.table().size(); ++i) gradients.push_back({net_.table()[i].shape.name, net_.gradient(i)});
    gradient_reducer_options how;
    how.bucket_bytes = how.first_bucket_bytes = options_.bucket_bytes;
    reducer_ = std::make_unique<gradient_reducer>(ranks_, std::move(gradients), how);
    ready_ = [this](std::size_t index) { reducer_->ready(index); };
}

void trainer::prepare(train_record& record) {
    auto const begin = clock::now();
    run_on_all(ranks_, "open the data", [&] {
        train_ = std::make_unique<split_source>(open_split(options_, ranks_.who(), "train", true));
        test_ = std::make_unique<split_source>(open_split(options_, ranks_.who(), "test", false));
    });
    record.open_data_s = seconds_since(begin);
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
    auto const begin = clock::now();
    reducer_->finish();
    allreduce_wait_ += seconds_since(begin);
    kernels_.sgd(net_.parameters().data(), net_.gradients().data(), velocity_.data(), velocity_.size(),
                 static_cast<float>(options_.rate * ranks_.size()), static_cast<float>(options_.momentum));
    if (options_.published_protocol) reduce("loss of the step", {&loss, 1}, reduction::average);
}

epoch_record trainer::train(int epoch) {
    epoch_record record;
    record.epoch = epoch;
    auto range = train_->batches.epoch(static_cast<std::uint64_t>(epoch));
    auto const steps = range.size();
    loss_result sum;
    double loader_wait = 0, first_step = 0;
    std::int64_t later_images = 0;
    allreduce_wait_ = 0;
    ranks_.barrier().wait();
    auto const begin = clock::now();
    auto it = range.begin();
    loader_wait += seconds_since(begin);
    std::uint64_t done = 0;
    while (it != range.end()) {
        step(*it, static_cast<std::uint64_t>(epoch) * steps + done, sum);
        record.images += static_cast<std::int64_t>(it->global_count);
        if (done > 0) later_images += static_cast<std::int64_t>(it->global_count);
        if (++done == 1) first_step = seconds_since(begin);
        auto const waited = clock::now();
        ++it;
        loader_wait += seconds_since(waited);
    }
    double const total = seconds_since(begin);
    record.steps = static_cast<std::int64_t>(done);

    std::array slowest{total, first_step, total - first_step, allreduce_wait_, loader_wait};
    std::array sums{sum.loss_sum, allreduce_wait_, loader_wait};
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
    // The weights are checked too: ReLU turns a NaN into 0, so that the loss may stay finite over weights that are not.
    auto const weights = net_.parameters();
    bool const finite = std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); });
    if (!finite || !std::isfinite(record.train_loss))
        throw error(errc::invalid_data,
                    fmt::format("training diverged in epoch {}: the loss is {}, {}; lower --lr (it is {} x {} ranks)", epoch + 1,
                                record.train_loss, finite ? "the weights are still finite" : "not all weights are finite",
                                options_.rate, ranks_.size()));
    return record;
}

void trainer::test(epoch_record& into, int epoch) {
    ranks_.barrier().wait();
    auto const begin = clock::now();
    loss_result sum;
    std::int64_t images = 0;
    for (auto const& part : test_->batches.epoch(static_cast<std::uint64_t>(epoch))) {
        if (part.count == 0) continue;
        net_.load(part.images, static_cast<int>(part.count));
        net_.forward(false);
        auto const result = net_.evaluate(part.labels);
        sum.loss_sum += result.loss_sum;
        sum.correct += result.correct;
        images += static_cast<std::int64_t>(part.count);
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
    expect(counts[1] == static_cast<std::int64_t>(test_->order.size()), "every test image is counted once");
}

void trainer::describe(train_record& record) {
    constexpr std::size_t width = 128;
    std::array<std::uint8_t, width> mine{};
    auto const cores = allowed_cores();
    std::memcpy(mine.data(), cores.data(), std::min(cores.size(), width - 1));
    std::vector<std::uint8_t> all(width * static_cast<std::size_t>(ranks_.size()));
    ranks_.allgather("cores", view_of(std::span(mine)), view_of(std::span(all))).wait();
    for (int r = 0; r < ranks_.size(); ++r)
        record.ranks.push_back(
            {r, ranks_.host_of(r), reinterpret_cast<char const*>(all.data()) + width * static_cast<std::size_t>(r)});
    double const steps = static_cast<double>(std::max<std::int64_t>(1, record.epochs_done.front().steps)) * record.epochs;
    for (std::size_t i = 0; i < net_.layers().size(); ++i) {
        auto const& layer = *net_.layers()[i];
        auto const work = layer.dense_work(i > 0);
        double const unit = 1e6 / (steps * options_.batch);
        record.profile.push_back({std::string(layer.name()), net_.profile()[i].forward * unit, net_.profile()[i].backward * unit,
                                  (work.forward + work.backward) / 1e6});
    }
}

}  // namespace

train_record run_training(training_options const& options, communicator& ranks, kernel_table const& kernels,
                          std::chrono::steady_clock::time_point began, std::function<void(epoch_record const&)> const& progress) {
    train_record record;
    record.data = options.data;
    record.world_size = ranks.size();
    record.batch = options.batch;
    record.epochs = options.epochs;
    record.seed = options.seed;
    record.rate = options.rate * ranks.size();
    record.momentum = options.momentum;
    record.dropout = options.dropout;
    record.bucket_bytes = options.bucket_bytes;
    record.protocol = options.published_protocol ? "published" : "fast";
    record.kernels = kernels.name;
    record.backend = ranks.backend();
    record.identity_source = to_string(ranks.who().from);
    record.version = version();
    record.mpi_library = mpi_library_version();
    record.communicator_s = seconds_since(began);

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
    }
    record.weights_checksum = format_checksum(work.common_checksum("after training"));
    work.describe(record);
    return record;
}

}  // namespace muster
