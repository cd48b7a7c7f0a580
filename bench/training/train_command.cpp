#include "bench/training/train_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/units.hpp"
#include "bench/network/choose_kernels.hpp"
#include "bench/tools/options.hpp"
#include "bench/training/choose_network.hpp"
#include "bench/training/gpu_trainer.hpp"
#include "bench/training/timed_training.hpp"
#include "bench/training/training.hpp"
#include "comm/run_with_ranks.hpp"
#include "pmix/identity.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

constexpr option_row train_options[]{
    {"net", 0, "NAME", "mnist, cifar10, or resnet50, gpt2-small: their gradients with timed compute, no training", "mnist"},
    {"data", 0, "FILE.h5|DIR", "splits \"train\" and \"test\"; DIR: CIFAR-10's binary files; cifar10 without: generated images",
     ""},
    {"images", 0, "TRAIN,TEST", "how many images are generated; default: as CIFAR-10 has, 50000,10000", ""},
    {"epochs", 0, "N", "passes over the training images", "1"},
    {"batch", 0, "N", "images a rank and step", "64"},
    {"global-batch", 0, "N", "instead: images of all ranks together and step; --lr is not multiplied then", ""},
    {"seed", 0, "N", "seed of the weights, the order of the images and dropout", "42"},
    {"lr", 0, "X", "learning rate of one rank; multiplied by the number of ranks", "0.01"},
    {"momentum", 0, "X", "momentum", "0.5"},
    {"dropout", 0, "X", "probability of both dropouts", "0.5"},
    {"target-accuracy", 0, "X%", "end after the epoch whose test reaches it", ""},
    {"bucket-bytes", 0, "SIZE", "gradients are reduced in pieces of about this size; default: 64KiB for mnist, else 1MiB", ""},
    {"protocol", 0, "NAME", "fast, or published: every step also averages the loss over the ranks and waits for it", "fast"},
    {"steps", 0, "N", "of timed compute: steps of an epoch", "20"},
    {"compute-ms", 0, "X", "of timed compute: a step without communication, a third of it forward", "100"},
    {"compute-by", 0, "HOW", "of timed compute: burn (processor time) or wait (as for an accelerator)", "burn"},
    {"device", 0, "NAME", "cpu; cuda: this rank's GPU, by cuDNN and cuBLAS; auto: cuda where all of it is there", "cpu"},
    {"graph", 0, "HOW", "of a GPU's step: step (one graph, NCCL in it), parts (graphs between the allreduces) or off", "step"},
    {"kernels", 0, "NAME", "auto (the best that this processor has), avx512, avx2 or baseline", "auto"},
    {"backend", 0, "NAME", "self, shm, mpi or hierarchical; default: chosen by where the ranks are", ""},
    {"gpu-backend", 0, "NAME", "of a GPU's allreduces with --graph parts or off: nccl or nccl_mpi", "nccl"},
    {"threads", 0, "N", "compute threads a rank; only 1: for more cores start more ranks", "1"},
    {"profile", 0, "", "time and arithmetic of each layer", ""},
    {"json", 0, "FILE|-", "the record of the run (schema muster.train/1); -: on standard output, instead of the text", ""},
};

struct command_line {
    training_options training;
    timed_options timed;
    std::string kernels, backend, json;
    bool profile = false;
};

double real_of(given_options const& given, char const* name, double below) {
    double const value = given.real(name);
    if (!(value >= 0 && value < below))
        throw error(errc::usage, below == std::numeric_limits<double>::infinity()
                                     ? fmt::format("--{} is {}, expected at least 0", name, value)
                                     : fmt::format("--{} is {}, expected at least 0 and below {}", name, value, below));
    return value;
}

void refuse_given(given_options const& given, std::initializer_list<char const*> names, char const* belongs_to) {
    for (auto const* name : names)
        if (given.has(name)) throw error(errc::usage, fmt::format("--{} is for {}", name, belongs_to));
}

/// "50000,10000".
void read_images(given_options const& given, training_options& t) {
    auto const text = given.text("images");
    if (text.empty()) return;
    auto const counts = parse_list(text, "--images", 1, 10'000'000);
    if (counts.size() != 2) throw error(errc::usage, fmt::format("--images is '{}', expected two numbers: TRAIN,TEST", text));
    if (!t.data.empty()) throw error(errc::usage, "--images is for generated images; leave it out, or --data");
    t.generated_train = static_cast<std::size_t>(counts[0]);
    t.generated_test = static_cast<std::size_t>(counts[1]);
}

/// --device, --graph, --gpu-backend.
void read_device(given_options const& given, environment const& variables, training_options& t) {
    auto const device = given.text("device"), graph = given.text("graph");
    if (device != "cpu" && device != "cuda" && device != "auto")
        throw error(errc::usage, fmt::format("--device is '{}', expected cpu, cuda or auto", device));
    t.on_gpu = device == "cuda" || (device == "auto" && gpu_training_lacks().empty());
    if (!t.on_gpu) {
        if (device == "cpu") refuse_given(given, {"graph", "gpu-backend"}, "a GPU; give --device cuda");
        return;
    }
    if (is_timed_network(t.net))
        throw error(errc::usage,
                    fmt::format("--device {}: {} is not trained, its compute is timed; leave --device out", device, t.net));
    if (device == "cuda") refuse_given(given, {"kernels"}, "processors; leave it out, or give --device cpu");
    refuse_given(given, {"profile"}, "processors; leave it out, or give --device cpu");
    if (auto const why = gpu_training_lacks(); !why.empty()) throw error(errc::unavailable, "--device cuda: " + why);
    if (graph == "step")
        t.gpu.graph = graph_use::step;
    else if (graph == "parts")
        t.gpu.graph = graph_use::parts;
    else if (graph == "off")
        t.gpu.graph = graph_use::off;
    else
        throw error(errc::usage, fmt::format("--graph is '{}', expected step, parts or off", graph));
    t.gpu.backend = given.text("gpu-backend");
    if (t.gpu.graph == graph_use::step && given.has("gpu-backend"))
        throw error(errc::usage, "--gpu-backend: a graph of the whole step holds NCCL's own allreduces; give --graph parts too");
    if (auto const index = variables.get("MUSTER_GPU_INDEX"); index && !index->empty())
        t.gpu.device = static_cast<int>(parse_integer(*index).value_or(-1));
}

training_options read_training(given_options const& given, environment const& variables) {
    training_options t;
    t.net = given.text("net");
    read_device(given, variables, t);
    t.data = given.text("data");
    t.epochs = count_of(given, "epochs");
    t.batch = static_cast<int>(given.integer("batch", 1, 65536));
    if (!given.text("global-batch").empty()) {
        t.batch = static_cast<int>(given.integer("global-batch", 1, 1'000'000));
        t.global_batch = true;
    }
    t.seed = seed_of(given, "seed");
    t.rate = real_of(given, "lr", std::numeric_limits<double>::infinity());
    t.momentum = real_of(given, "momentum", 1);
    t.dropout = real_of(given, "dropout", 1);
    auto const bucket = given.text("bucket-bytes");
    t.bucket_bytes = bucket.empty() ? default_bucket_bytes(t.net) : parse_bytes(bucket, "--bucket-bytes");
    auto const protocol = given.text("protocol");
    if (protocol != "fast" && protocol != "published")
        throw error(errc::usage, fmt::format("--protocol is '{}', expected fast or published", protocol));
    t.published_protocol = protocol == "published";
    if (!given.text("target-accuracy").empty())
        t.target_accuracy = parse_share(given.text("target-accuracy"), "--target-accuracy");
    read_images(given, t);
    if (is_timed_network(t.net)) return t;
    facts_of_network(t.net);
    if (t.net == "mnist" && t.data.empty() && t.generated_train == 0)
        throw error(errc::usage,
                    "--data is missing; give --data FILE.h5 as muster-stage convert writes it, or --images TRAIN,TEST for "
                    "generated images");
    return t;
}

timed_options read_timed(given_options const& given, training_options const& common) {
    refuse_given(given, {"data", "images", "target-accuracy", "lr", "momentum", "dropout", "profile"},
                 "a network that is trained");
    timed_options t;
    t.net = common.net;
    t.epochs = common.epochs;
    t.batch = common.batch;
    t.bucket_bytes = common.bucket_bytes;
    t.steps = count_of(given, "steps");
    t.compute_s = real_of(given, "compute-ms", 1e9) / 1e3;
    auto const how = given.text("compute-by");
    if (how != "burn" && how != "wait") throw error(errc::usage, fmt::format("--compute-by is '{}', expected burn or wait", how));
    t.burn = how == "burn";
    if (common.global_batch) throw error(errc::usage, "--global-batch is for a network that is trained");
    return t;
}

command_line read_command_line(given_options const& given, environment const& variables) {
    command_line c;
    c.training = read_training(given, variables);
    if (is_timed_network(c.training.net))
        c.timed = read_timed(given, c.training);
    else
        refuse_given(given, {"steps", "compute-ms", "compute-by"}, "a network whose compute is timed; give --net resnet50");
    if (int const threads = count_of(given, "threads", 0); threads != 1)
        throw error(errc::usage, fmt::format("--threads is {}: a rank computes with one thread; start more ranks instead: muster "
                                             "run -n {} -- muster-bench train …",
                                             threads, std::max(2, threads)));
    c.kernels = given.text("kernels");
    c.backend = given.text("backend");
    c.json = given.text("json");
    c.profile = given.has("profile");
    return c;
}

void print_epoch(epoch_record const& e, int epochs) {
    if (e.test_images == 0) {
        fmt::print("epoch {}/{}: {} steps, {:.3f} s ({:.1f} ms a step after the first)\n", e.epoch + 1, epochs, e.steps,
                   e.train_s, e.steps > 1 ? 1000 * e.steady_s / static_cast<double>(e.steps - 1) : 0.0);
        std::fflush(stdout);
        return;
    }
    fmt::print(
        "epoch {}/{}: {} images in {} steps, {:.3f} s ({:.0f} images/s after the first step, {:.1f} ms), loss {:.4f}; test "
        "{:.3f} s, loss {:.4f}, "
        "accuracy {:.2f}%\n",
        e.epoch + 1, epochs, e.images, e.steps, e.train_s, e.images_per_s, 1000 * e.first_step_s, e.train_loss, e.test_s,
        e.test_loss, 100 * e.accuracy());
    std::fflush(stdout);
}

void print_target(train_record const& r) {
    if (r.target_accuracy == 0) return;
    if (r.reached_target)
        fmt::print("accuracy {:.2f}% reached after {} epoch{}: {:.3f} s, with start-up {:.3f} s\n", 100 * r.target_accuracy,
                   r.epochs_done.size(), r.epochs_done.size() == 1 ? "" : "s", r.train_s() + r.test_s(),
                   r.startup_s + r.train_s() + r.test_s());
    else
        fmt::print("accuracy {:.2f}% NOT reached in {} epochs: {:.2f}%\n", 100 * r.target_accuracy, r.epochs_done.size(),
                   100 * r.accuracy());
}

void print_end(train_record const& r) {
    double finish = 0, loader = 0, exposed = 0, hidden = 0, waiting = 0;
    for (auto const& e : r.epochs_done) {
        finish += e.allreduce_wait_mean_s;
        loader += e.loader_wait_mean_s;
        exposed += e.exposed_s;
        hidden += e.hidden_s;
        waiting += e.waiting_s;
    }
    print_target(r);
    fmt::print(
        "start-up {:.3f} s (communicator {:.3f}, data {:.3f}), training {:.3f} s (waiting for gradients {:.3f}, for batches "
        "{:.3f}), test {:.3f} s\n",
        r.startup_s, r.communicator_s, r.open_data_s, r.train_s(), finish, loader, r.test_s());
    if (!r.gpu.name.empty())
        fmt::print("on {} ({}), at most {} MHz, driver for CUDA {}, cuDNN {}, cuBLAS {}; gradients: {}; a step is {}\n",
                   r.gpu.name, r.gpu.uuid, r.gpu.clock_mhz, r.gpu.driver, r.gpu.cudnn, r.gpu.cublas, r.gpu.reduction,
                   r.gpu.graphs == 0   ? "put call by call"
                   : r.gpu.graphs == 1 ? std::string("one graph")
                                       : fmt::format("{} graphs", r.gpu.graphs));
    else
        fmt::print(
            "communication: exposed {:.3f} s, hidden behind the backward pass {:.3f} s; waiting for other ranks {:.3f} s\n",
            exposed, hidden, waiting);
    fmt::print("network {} with {} parameters{}{}{}\n", r.net, r.parameters, r.data_note.empty() ? "" : ", on " + r.data_note,
               r.compute_note.empty() ? "" : ", ", r.compute_note);
    if (r.weights_checksum.empty())
        fmt::print("{} rank{} on backend {}\n", r.world_size, r.world_size == 1 ? "" : "s", r.backend);
    else
        fmt::print("{} rank{} on backend {}, {} kernels, weights {} on all ranks\n", r.world_size, r.world_size == 1 ? "" : "s",
                   r.backend, r.kernels, r.weights_checksum);
}

// GFLOP/s of one core when it does nothing but multiply-adds in registers: the best of a few short bursts.
double peak_gflops(kernel_table const& kernels) {
    constexpr long rounds = 200'000;
    double best = 0;
    for (int i = 0; i < 20; ++i) {
        auto const begin = clock::now();
        [[maybe_unused]] float const volatile keep = kernels.peak(rounds);
        double const seconds = std::chrono::duration<double>(clock::now() - begin).count();
        best = std::max(best, static_cast<double>(rounds) * kernels.peak_flops / seconds / 1e9);
    }
    return best;
}

void print_profile(train_record const& r, kernel_table const& kernels) {
    double const peak = peak_gflops(kernels);
    std::vector<std::vector<std::string>> rows{{"layer", "forward us", "backward us", "dense MFLOP", "dense GFLOP/s", "of peak"}};
    double us = 0, mflop = 0;
    auto const add = [&](std::string const& name, double forward, double backward, double work) {
        double const rate = work / (forward + backward) * 1e3;
        rows.push_back({name, fmt::format("{:.3f}", forward), fmt::format("{:.3f}", backward), fmt::format("{:.3f}", work),
                        fmt::format("{:.1f}", rate), fmt::format("{:.0f}%", 100 * rate / peak)});
    };
    double forward = 0, backward = 0;
    for (auto const& l : r.profile) {
        add(l.name, l.forward_us, l.backward_us, l.dense_mflop);
        forward += l.forward_us;
        backward += l.backward_us;
        mflop += l.dense_mflop;
    }
    add("all layers", forward, backward, mflop);
    us = forward + backward;
    fmt::print("\nan image on rank 0, {} kernels:\n{}", r.kernels, align_columns(rows));
    fmt::print(
        "peak of this core: {:.1f} GFLOP/s of multiply-adds in registers. Dense work is what the formulas say without leaving "
        "anything out; dropped\n"
        "channels and gradients that pooling and ReLU stop are not computed, so that it can exceed the peak. Bound by dense "
        "arithmetic: {:.0f}\n"
        "images/s; the layers alone: {:.0f} images/s.\n",
        peak, peak * 1e3 / mflop, 1e6 / us);
}

}  // namespace

constexpr command_row train_row{
    .name = "train",
    .summary = "train a network of the published tables, data-parallel, timed",
    .synopsis = "[--net NAME] [--data FILE.h5] [options]",
    .examples =
        "  muster run -n 2 -- muster-bench train --data fashion-mnist.h5\n"
        "  muster-bench train --data fashion-mnist.h5 --profile\n"
        "  muster run -n 2 -- muster-bench train --net cifar10 --data cifar-10-batches-bin\n"
        "  muster run -n 2 -- muster-bench train --net resnet50 --compute-ms 55\n"
        "  muster run -- muster-bench train --net cifar10 --device cuda\n",
    .options = train_options,
};

int train_command(given_options const& given, environment const& variables) {
    auto const began = clock::now();
    auto const line = read_command_line(given, variables);
    auto const& kernels = choose_kernels(line.kernels);
    auto const who = identify(variables);
    init_log(variables.get_or("MUSTER_LOG", "warning"), who.host, who.rank);
    comm_options how;
    how.backend = line.backend;
    bool const speaks = who.rank == 0, to_stdout = line.json == "-";
    auto const progress = [&](epoch_record const& e) {
        if (speaks && !to_stdout) print_epoch(e, line.training.epochs);
    };
    return run_with_ranks("muster-bench", who, how, [&](communicator& ranks) {
        auto const record = is_timed_network(line.training.net) ? run_timed_training(line.timed, ranks, began, progress)
                                                                : run_training(line.training, ranks, kernels, began, progress);
        if (!speaks) return 0;
        if (!to_stdout) print_end(record);
        if (to_stdout)
            fmt::print("{}\n", to_json(record).dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
        else if (!line.json.empty())
            write_json_file(line.json, to_json(record));
        if (line.profile && !to_stdout) print_profile(record, kernels);
        return 0;
    });
}

}  // namespace muster
