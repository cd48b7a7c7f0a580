#include "bench/training/training.hpp"

#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "base/version.hpp"
#include "bench/tools/mpi_version.hpp"
#include "bench/training/gpu_trainer.hpp"
#include "bench/training/trainer.hpp"

namespace muster {

namespace {

double seconds_from(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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
    record.kernels = options.on_gpu ? "cuda" : kernels.name;
    record.backend = ranks.backend();
    record.identity_source = to_string(ranks.who().from);
    record.version = version();
    record.mpi_library = mpi_library_version();
    record.communicator_s = seconds_from(began);
    if (options.global_batch && options.batch % ranks.size() != 0)
        throw error(errc::usage, fmt::format("--global-batch: {} images do not divide among {} ranks; give a multiple",
                                             options.batch, ranks.size()));

    auto const made = options.on_gpu ? make_gpu_trainer(options, ranks) : make_cpu_trainer(options, ranks, kernels);
    trainer& work = *made;
    work.prepare(record);
    ranks.barrier().wait();
    std::array slowest{seconds_from(began), record.communicator_s, record.open_data_s};
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
