#include "bench/scaling/net_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "bench/peers/peer.hpp"
#include "bench/tools/commands.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr char const* published_table = "published_table.py";

constexpr char const* net_options_of_scale[]{"net", "data",    "images", "epochs", "lr", "protocol", "target-accuracy",
                                             "api", "backend", "device", "python"};

/// Options that are passed to the program of a network that is trained.
constexpr char const* of_trained[]{"images", "lr", "api", "backend", "device"};

[[noreturn]] void refuse_net(std::string const& what) {
    throw error(errc::usage, what);
}

training_protocol const& protocol_of(given_options const& given) {
    std::string name = given.has("protocol") ? given.text("protocol") : "";
    for (std::string const series : {"strong", "weak"}) {
        if (!given.has(series)) continue;
        if (!name.empty() && name != series)
            refuse_net(fmt::format("--{} and --protocol {} exclude each other; give one", series, name));
        name = series;
    }
    return training_protocol_named(name.empty() ? "fast" : name);
}

bool has_torch(std::string const& python, environment const& variables) {
    constexpr std::chrono::seconds patience{20};
    constexpr char const* ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
    return run_captured({python, "-c", ask}, variables, patience).exit_status == 0;
}

/// Returns --python; else the first of the python3 on PATH and the system's that has PyTorch.
std::string python_of(given_options const& given, environment const& variables, bool here) {
    if (given.has("python")) return given.text("python");
    if (!here) return "python3";
    for (std::string const each : {"python3", "/usr/bin/python3"})
        if (!find_program_or_nothing(each, variables).empty() && has_torch(each, variables)) return each;
    throw error(errc::unavailable,
                "no PyTorch: neither python3 nor /usr/bin/python3 finds the module torch; install it (Debian: apt install "
                "python3-torch), or name an interpreter that has it with --python");
}

void add_data(given_options const& given, study_plan& plan) {
    auto const data = given.has("data") ? given.text("data") : std::string();
    if (data.empty()) {
        plan.notes.emplace_back("generated images, no data set");
        return;
    }
    std::error_code fault;
    if (fs::is_directory(data, fault))
        throw_error(errc::usage,
                    "--data {0}: is a folder, and a dataset is one file; make it by: muster stage convert {0} -o data.h5",
                    shell_quote(data));
    if (!fs::is_regular_file(data, fault))
        throw_error(errc::not_found, "--data: no file '{}'; make one with muster stage convert", data);
    plan.program.insert(plan.program.end(), {"--data", fs::absolute(data).string()});
    if (given.has("images")) plan.notes.push_back(fmt::format("only {} of the images", given.text("images")));
}

/// In a strong series --batch counts for all ranks together, else for one.
void add_batch(given_options const& given, study_plan& plan) {
    bool const strong = plan.series == work_series::strong;
    int const most = *std::max_element(plan.ranks.begin(), plan.ranks.end());
    long const batch = given.has("batch") ? given.integer("batch", 1, 1'000'000) : strong ? 64L * most : 64;
    if (!strong && !given.has("batch")) return;
    if (strong) require_divided(batch, plan.ranks);
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
    if (!wanted && given.has("target-accuracy")) refuse_net("--target-accuracy is for --protocol accuracy; give that too");
    if (!wanted) return;
    auto const share = given.has("target-accuracy") ? parse_share(given.text("target-accuracy"), "--target-accuracy") : 0.97;
    plan.program.insert(plan.program.end(), {"--target-accuracy", fmt::format("{:g}", share)});
}

void add_steps(given_options const& given, study_plan& plan, training_protocol const& protocol) {
    if (protocol.averages_loss || protocol.judged.name == "time_to_accuracy_s" || protocol.series == work_series::strong)
        refuse_net(fmt::format("--protocol {}: {} is not trained, its compute is timed; give fast, steady or weak", protocol.name,
                               plan.net));
    for (auto const* name : {"data", "images", "lr", "api", "backend", "device", "python", "target-accuracy"})
        if (given.has(name))
            refuse_net(fmt::format("--{} says nothing of {}, whose compute is timed; leave it out", name, plan.net));
    plan.notes.emplace_back("timed compute, no training");
    plan.program = {self_program().string(), "steps", "--net", plan.net};
    add_epochs(given, plan, protocol);
    add_batch(given, plan);
}

}  // namespace

void require_divided(long batch, std::vector<int> const& ranks) {
    for (int const each : ranks)
        if (batch % each != 0)
            refuse_net(
                fmt::format("--batch: {} does not divide among {} ranks; give a multiple of every number of ranks", batch, each));
}

std::span<char const* const> net_option_names() noexcept {
    return net_options_of_scale;
}

void read_net_request(given_options const& given, environment const& variables, fs::path const& folder, bool here,
                      study_plan& plan) {
    for (auto const* name : {"metric", "metric-file", "time-metric", "rate-metric"})
        if (given.has(name)) refuse_net(fmt::format("--{} is for a program of your own; name one behind --", name));
    auto const& protocol = protocol_of(given);
    plan.net = given.has("net") ? given.text("net") : std::string("mnist");
    plan.protocol = protocol.name;
    plan.judged = protocol.judged;
    plan.series = protocol.series;
    if (is_timed_network(plan.net)) return add_steps(given, plan, protocol);
    if (plan.net != "mnist" && plan.net != "cifar10")
        refuse_net(fmt::format("--net: '{}' is unknown; give mnist, cifar10, resnet50 or gpt2-small", plan.net));
    auto const script = fs::absolute(folder / published_table);
    plan.program = {python_of(given, variables, here), script.string(), "--net", plan.net};
    add_data(given, plan);
    if (protocol.averages_loss) plan.program.emplace_back("--average-loss");
    add_epochs(given, plan, protocol);
    add_batch(given, plan);
    add_target(given, plan, protocol);
    for (auto const* name : of_trained)
        if (given.has(name)) plan.program.insert(plan.program.end(), {fmt::format("--{}", name), given.text(name)});
}

void write_net_program(study_plan const& plan) {
    if (!plan.has_net() || is_timed_network(plan.net)) return;
    auto const& script = plan.program.at(1);
    write_output_file(script, find_text(peer_files(), published_table), "give another folder with -o");
}

std::string net_name(study_plan const& plan) {
    return plan.notes.empty() ? plan.net : fmt::format("{} ({})", plan.net, join(plan.notes, "; "));
}

std::span<training_protocol const> training_protocols() noexcept {
    constexpr auto as_given = work_series::as_given;
    static std::array const rows{
        training_protocol{"fast", 1, {"train_s", false}, as_given, false, "one epoch, batch 64 a rank"},
        training_protocol{"published",
                          32,
                          {"published_s", false},
                          as_given,
                          true,
                          "as published: batch 64 a rank, train and test each epoch, 32 epochs"},
        training_protocol{
            "steady", 32, {"epoch_s", false}, as_given, false, "the mean of the last 5 of 32 epochs, batch 64 a rank"},
        training_protocol{"strong", 1, {"train_s", false}, work_series::strong, false, "a fixed batch of all ranks"},
        training_protocol{"weak", 1, {"images_per_s", true}, work_series::weak, false, "a fixed batch a rank"},
        training_protocol{"accuracy",
                          32,
                          {"time_to_accuracy_s", false},
                          as_given,
                          false,
                          "time until the test reaches the accuracy, in at most 32 epochs"},
    };
    return rows;
}

training_protocol const& training_protocol_named(std::string const& name) {
    auto const rows = training_protocols();
    auto const found = std::ranges::find(rows, name, &training_protocol::name);
    if (found != rows.end()) return *found;
    std::vector<std::string> names;
    for (auto const& row : rows) names.emplace_back(row.name);
    throw parse_error("--protocol", name, 0, "expected " + join(names, ", "), errc::usage);
}

}  // namespace muster
