#include "bench/scaling/training_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "bench/scaling/training_protocol.hpp"
#include "bench/training/choose_network.hpp"
#include "bench/training/timed_training.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr char const* training_options_of_scale[]{"data",         "net",      "images",     "epochs",     "seed",
                                                  "lr",           "momentum", "dropout",    "protocol",   "target-accuracy",
                                                  "bucket-bytes", "steps",    "compute-ms", "compute-by", "kernels",
                                                  "device",       "graph",    "gpu-backend"};

/// What is handed to the training as it stands.
constexpr char const* handed_on[]{"images",     "seed",       "lr",      "momentum", "dropout", "bucket-bytes", "steps",
                                  "compute-ms", "compute-by", "kernels", "device",   "graph",   "gpu-backend"};

[[noreturn]] void refuse_training(std::string const& what) {
    throw error(errc::usage, what);
}

training_protocol const& protocol_of(given_options const& given) {
    std::string name = given.has("protocol") ? given.text("protocol") : "";
    for (std::string const series : {"strong", "weak"}) {
        if (!given.has(series)) continue;
        if (!name.empty() && name != series)
            refuse_training(fmt::format("--{} and --protocol {} exclude each other; give one", series, name));
        name = series;
    }
    return training_protocol_named(name.empty() ? "fast" : name);
}

void add_data(given_options const& given, study_plan& plan, std::string const& net) {
    bool const timed = is_timed_network(net);
    if (timed) {
        plan.notes.push_back(std::string(timed_note));
        if (given.has("data")) refuse_training(fmt::format("--data: {} is not trained, its compute is timed; leave it out", net));
        return;
    }
    facts_of_network(net);
    auto const data = given.has("data") ? given.text("data") : std::string();
    if (data.empty()) {
        if (net == "mnist" && !given.has("images"))
            refuse_training(
                "muster-bench scale: --data is missing; give --data FILE.h5 for the built-in training, or a program behind --");
        plan.notes.push_back("generated images, no data set");
        return;
    }
    if (std::error_code fault; !fs::exists(data, fault))
        throw error(errc::not_found, fmt::format("--data: no file '{}'; make one with muster-stage convert", data));
    plan.program.insert(plan.program.end(), {"--data", fs::absolute(data).string()});
}

/// --batch is of all ranks in a strong series, else of one.
void add_batch(given_options const& given, study_plan& plan) {
    bool const strong = plan.series == work_series::strong;
    int const most = *std::max_element(plan.ranks.begin(), plan.ranks.end());
    long const batch = given.has("batch") ? given.integer("batch", 1, 1'000'000) : strong ? 64L * most : 64;
    if (!strong && !given.has("batch")) return;
    for (int const ranks : plan.ranks)
        if (strong && batch % ranks != 0)
            refuse_training(fmt::format("--batch: {} does not divide among {} ranks; give a multiple of every number of ranks",
                                        batch, ranks));
    if (plan.series != work_series::as_given) plan.batch = batch;
    plan.program.insert(plan.program.end(), {strong ? "--global-batch" : "--batch", std::to_string(batch)});
}

void add_epochs(given_options const& given, study_plan& plan, training_protocol const& protocol) {
    auto const epochs = given.has("epochs") ? given.integer("epochs", 1, 1'000'000) : protocol.epochs;
    if (epochs < protocol.epochs)
        plan.notes.push_back(fmt::format("shortened: {} of the protocol's {} epochs", epochs, protocol.epochs));
    plan.program.insert(plan.program.end(), {"--epochs", std::to_string(epochs)});
}

void add_target(given_options const& given, study_plan& plan, training_protocol const& protocol) {
    bool const wanted = protocol.judged.name == "time_to_accuracy_s";
    if (!wanted && given.has("target-accuracy")) refuse_training("--target-accuracy is for --protocol accuracy; give that too");
    if (wanted)
        plan.program.insert(plan.program.end(),
                            {"--target-accuracy", given.has("target-accuracy") ? given.text("target-accuracy") : "97%"});
}

}  // namespace

std::span<char const* const> training_option_names() noexcept {
    return training_options_of_scale;
}

void read_training_request(given_options const& given, study_plan& plan) {
    for (auto const* name : {"metric", "metric-file", "time-metric", "rate-metric"})
        if (given.has(name)) refuse_training(fmt::format("--{} is for a program of your own; name one behind --", name));
    auto const& protocol = protocol_of(given);
    auto const net = given.has("net") ? given.text("net") : std::string("mnist");
    if (is_timed_network(net) &&
        (protocol.averages_loss || protocol.judged.name == "time_to_accuracy_s" || protocol.series == work_series::strong))
        refuse_training(
            fmt::format("--protocol {}: {} is not trained, its compute is timed; give fast, steady or weak", protocol.name, net));
    plan.built_in = true;
    plan.protocol = protocol.name;
    plan.judged = protocol.judged;
    plan.series = protocol.series;
    plan.program = {self_program().string(), "train"};
    if (given.has("net")) plan.program.insert(plan.program.end(), {"--net", net});
    add_data(given, plan, net);
    if (protocol.averages_loss) plan.program.insert(plan.program.end(), {"--protocol", "published"});
    add_epochs(given, plan, protocol);
    add_batch(given, plan);
    add_target(given, plan, protocol);
    for (auto const* name : handed_on)
        if (given.has(name)) plan.program.insert(plan.program.end(), {fmt::format("--{}", name), given.text(name)});
}

std::string training_name(given_options const& given, study_plan const& plan) {
    std::string out = "muster-bench train";
    if (given.has("net")) out += ", " + given.text("net");
    return plan.notes.empty() ? out : fmt::format("{} ({})", out, join(plan.notes, "; "));
}

}  // namespace muster
