#include "bench/training/gpu_trainer.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "bench/gpu/step/gpu_images.hpp"
#include "bench/gpu/step/gpu_network.hpp"
#include "bench/gpu/step/gpu_reducer.hpp"
#include "bench/gpu/step/step_graph.hpp"
#include "bench/training/choose_network.hpp"
#include "bench/training/rank_places.hpp"
#include "bench/training/training_split.hpp"
#include "comm/fail_together.hpp"

namespace muster {

namespace {

using gpu_clock = std::chrono::steady_clock;

constexpr int upload_images = 1000;  // copied to the GPU at once

double gpu_seconds_since(gpu_clock::time_point begin) {
    return std::chrono::duration<double>(gpu_clock::now() - begin).count();
}

/// The whole split, in this rank's GPU, in the order of the CPU's trainer.
std::unique_ptr<gpu_images> read_into_gpu(training_options const& options, char const* split, bool shuffle, std::size_t generated,
                                          int batch, gpu_compute const& with, image_input const& input, identity const& who,
                                          std::string& source) {
    identity alone = who;  // so that this rank reads all images
    alone.rank = alone.local_rank = 0;
    alone.world_size = alone.local_size = 1;
    auto const from = open_training_split({options.data, split, upload_images, options.seed, false, generated}, input, alone);
    source = from->source();
    auto made = std::make_unique<gpu_images>(with, input, sampler(from->size(), {.seed = options.seed, .shuffle = shuffle}),
                                             batch, who.rank, who.world_size);
    from->begin(0);
    std::size_t first = 0;
    while (auto const* part = from->next()) {
        made->fill(first, part->images, part->labels);
        first += part->count;
    }
    return made;
}

class gpu_trainer final : public trainer {
  public:
    gpu_trainer(training_options const& options, communicator& ranks, std::unique_ptr<gpu_compute> with)
        : trainer(options, ranks),
          with_(std::move(with)),
          net_(options.net, batch_, static_cast<float>(options.dropout), *with_),
          buckets_(plan_gpu_buckets(net_.table(), net_.layers().size(), options.bucket_bytes)) {}

    void prepare(train_record& record) override;
    epoch_record train(int epoch) override;
    void test(epoch_record& into, int epoch) override;
    void describe(train_record& record) override;
    std::span<float const> weights() override;

  private:
    std::vector<step_part> parts_of_training(int images);
    std::vector<step_part> parts_of_test(int images);
    step_graph& graph_of(bool training, int images);
    void step(gpu_images::part const& part, std::uint64_t number);
    void set_step(std::size_t first, float share, std::uint64_t number);

    std::unique_ptr<gpu_compute> with_;  // before what is on it
    gpu_network net_;
    std::vector<gpu_bucket> buckets_;
    std::vector<float> host_weights_;
    std::unique_ptr<gpu_images> train_, test_;
    std::unique_ptr<gpu_reducer> reducer_;
    std::map<std::pair<bool, int>, std::unique_ptr<step_graph>> graphs_;  // by training or test, and the number of images
};

void gpu_trainer::prepare(train_record& record) {
    auto const begin = gpu_clock::now();
    std::string unused;
    run_on_all(ranks_, "copy the data to the GPU", [&] {
        auto const& facts = facts_of_network(options_.net);
        auto const count = [](std::size_t asked, std::size_t usual) { return asked > 0 ? asked : usual; };
        train_ = read_into_gpu(options_, "train", true, count(options_.generated_train, facts.train_images), batch_, *with_,
                               net_.input(), ranks_.who(), record.data);
        test_ = read_into_gpu(options_, "test", false, count(options_.generated_test, facts.test_images), batch_, *with_,
                              net_.input(), ranks_.who(), unused);
    });
    record.open_data_s = gpu_seconds_since(begin);
    if (options_.data.empty()) record.data_note = record.data;
    record.parameters = net_.table().parameters();
    record.rate = rate_;
    record.batch = batch_;
    net_.initialise(options_.seed);
    common_checksum("before the first step");  // they are drawn from the seed on every rank
    comm_options device = ranks_.options();
    device.backend = options_.gpu.backend;
    device.device = with_->on().ordinal();
    reducer_ = make_gpu_reducer(options_.gpu.graph == graph_use::step ? gpu_reduction::graph : gpu_reduction::parts, ranks_,
                                device, *with_, net_.gradients(), buckets_);
    record.gpu.name = with_->on().name();
    record.gpu.uuid = with_->on().uuid();
    record.gpu.clock_mhz = with_->clock_mhz();
    record.gpu.driver = with_->driver_version();
    record.gpu.cudnn = with_->cudnn_version();
    record.gpu.cublas = with_->cublas_version();
    record.gpu.reduction = reducer_->name();
}

std::vector<step_part> gpu_trainer::parts_of_training(int images) {
    std::vector<step_part> parts;
    auto const& from = train_->source();
    if (images > 0)
        parts.push_back({[this, &from, images] {
            net_.gather(from, images);
            net_.forward(images, true);
            net_.loss(from, images, true);
        }});
    else
        parts.push_back({[this] { net_.no_images(); }});
    for (std::size_t i = net_.layers().size(); i-- > 0;) {
        if (images > 0) parts.push_back({[this, i, images] { net_.backward(i, images); }});
        for (std::size_t b = 0; b < buckets_.size(); ++b)
            if (buckets_[b].after_layer == i) parts.push_back({[this, b] { reducer_->reduce(b); }, reducer_->in_graph()});
    }
    parts.push_back({[this] { reducer_->join(); }, reducer_->in_graph()});
    parts.push_back({[this] { net_.descend(static_cast<float>(rate_), static_cast<float>(options_.momentum)); }});
    return parts;
}

std::vector<step_part> gpu_trainer::parts_of_test(int images) {
    return {{[this, images] {
        net_.gather(test_->source(), images);
        net_.forward(images, false);
        net_.loss(test_->source(), images, false);
    }}};
}

step_graph& gpu_trainer::graph_of(bool training, int images) {
    auto& made = graphs_[{training, images}];
    if (!made)
        made = std::make_unique<step_graph>(with_->on(), with_->stream(), options_.gpu.graph != graph_use::off,
                                            training ? parts_of_training(images) : parts_of_test(images));
    return *made;
}

void gpu_trainer::set_step(std::size_t first, float share, std::uint64_t number) {
    net_.set_step(first, share, options_.seed, number, [this](cuda::event_handle event) { reducer_->wait_for(event); });
}

void gpu_trainer::step(gpu_images::part const& part, std::uint64_t number) {
    // The reducer averages over the ranks; this share makes that the mean over all images of the step, also where ranks have
    // unequal numbers.
    float const share = static_cast<float>(ranks_.size()) / static_cast<float>(part.global_count);
    set_step(part.first, share, number * static_cast<std::uint64_t>(ranks_.size()) + static_cast<std::uint64_t>(ranks_.rank()));
    graph_of(true, part.count).run();
    if (!options_.published_protocol) return;
    reducer_->wait();
    double loss = train_->results(part.first, static_cast<std::size_t>(part.count)).loss_sum;
    reduce("loss of the step", {&loss, 1}, reduction::average);
}

epoch_record gpu_trainer::train(int epoch) {
    epoch_record record;
    record.epoch = epoch;
    own_times mine;
    auto const steps = train_->begin(static_cast<std::uint64_t>(epoch));
    ranks_.barrier().wait();
    auto const begin = gpu_clock::now();
    for (std::size_t i = 0; i < steps; ++i) {
        auto const part = train_->step(i);
        step(part, static_cast<std::uint64_t>(epoch) * steps + i);
        record.images += static_cast<std::int64_t>(part.global_count);
        if (i > 0) {
            mine.later_images += static_cast<std::int64_t>(part.global_count);
            continue;
        }
        reducer_->wait();
        mine.first_step_s = gpu_seconds_since(begin);
    }
    reducer_->wait();
    mine.total_s = gpu_seconds_since(begin);
    record.steps = static_cast<std::int64_t>(steps);
    mine.loss_sum = train_->results().loss_sum;
    sum_up(record, mine);
    return record;
}

void gpu_trainer::test(epoch_record& into, int epoch) {
    auto const steps = test_->begin(static_cast<std::uint64_t>(epoch));
    ranks_.barrier().wait();
    auto const begin = gpu_clock::now();
    std::int64_t images = 0;
    for (std::size_t i = 0; i < steps; ++i) {
        auto const part = test_->step(i);
        if (part.count == 0) continue;
        set_step(part.first, 1, 0);
        graph_of(false, part.count).run();
        images += part.count;
    }
    reducer_->wait();
    sum_up_test(into, test_->results(), images, test_->size(), begin);
}

std::span<float const> gpu_trainer::weights() {
    return host_weights_ = net_.download_parameters();
}

void gpu_trainer::describe(train_record& record) {
    record.ranks = places_of_ranks(ranks_);
    std::size_t most = 0;
    for (auto const& [which, graph] : graphs_)
        if (which.first) most = std::max(most, graph->graphs());
    record.gpu.graphs = static_cast<int>(most);
}

}  // namespace

std::string gpu_training_lacks() {
    return gpu_compute::lacking();
}

std::unique_ptr<trainer> make_gpu_trainer(training_options const& options, communicator& ranks) {
    auto with = run_on_all(ranks, "open the GPU", [&] {
        if (auto const why = gpu_training_lacks(); !why.empty()) throw error(errc::unavailable, "--device cuda: " + why);
        auto const& found = cuda::find_driver();
        return std::make_unique<gpu_compute>(
            cuda::device::open(found, cuda::choose_device(found, options.gpu.device, ranks.who().local_rank)));
    });
    return run_on_all(ranks, "make the network on the GPU",
                      [&] { return std::make_unique<gpu_trainer>(options, ranks, std::move(with)); });
}

}  // namespace muster
