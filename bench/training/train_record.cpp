#include "bench/training/train_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace muster {

namespace {

using nlohmann::json;
constexpr auto many = std::numeric_limits<std::int64_t>::max();

json to_json(epoch_record const& e) {
    return {{"epoch", e.epoch},
            {"steps", e.steps},
            {"images", e.images},
            {"train_s", e.train_s},
            {"first_step_s", e.first_step_s},
            {"steady_s", e.steady_s},
            {"images_per_s", e.images_per_s},
            {"allreduce_wait_s", e.allreduce_wait_s},
            {"allreduce_wait_mean_s", e.allreduce_wait_mean_s},
            {"loader_wait_s", e.loader_wait_s},
            {"loader_wait_mean_s", e.loader_wait_mean_s},
            {"exposed_s", e.exposed_s},
            {"hidden_s", e.hidden_s},
            {"waiting_s", e.waiting_s},
            {"test_s", e.test_s},
            {"train_loss", e.train_loss},
            {"test_loss", e.test_loss},
            {"correct", e.correct},
            {"test_images", e.test_images},
            {"accuracy", e.accuracy()}};
}

// What records of before do not have.
double number_or(checked_json const& from, char const* key) {
    return from.has(key) ? from.at(key).number() : 0;
}
std::string text_or(checked_json const& from, char const* key, char const* otherwise = "") {
    return from.has(key) ? from.at(key).text() : otherwise;
}

epoch_record read_epoch(checked_json const& from) {
    epoch_record e;
    e.epoch = static_cast<int>(from.at("epoch").integer(0, 1'000'000));
    e.steps = from.at("steps").integer(0, many);
    e.images = from.at("images").integer(0, many);
    e.train_s = from.at("train_s").number();
    e.first_step_s = from.at("first_step_s").number();
    e.steady_s = from.at("steady_s").number();
    e.images_per_s = from.at("images_per_s").number();
    e.allreduce_wait_s = from.at("allreduce_wait_s").number();
    e.allreduce_wait_mean_s = from.at("allreduce_wait_mean_s").number();
    e.loader_wait_s = from.at("loader_wait_s").number();
    e.loader_wait_mean_s = from.at("loader_wait_mean_s").number();
    e.exposed_s = number_or(from, "exposed_s");
    e.hidden_s = number_or(from, "hidden_s");
    e.waiting_s = number_or(from, "waiting_s");
    e.test_s = from.at("test_s").number();
    e.train_loss = from.at("train_loss").number();
    e.test_loss = from.at("test_loss").number();
    e.test_images = from.at("test_images").integer(0, many);
    e.correct = from.at("correct").integer(0, e.test_images);
    return e;
}

gpu_facts read_gpu_facts(checked_json const& from) {
    gpu_facts g;
    g.name = from.at("name").text();
    g.uuid = from.at("uuid").text();
    g.clock_mhz = static_cast<int>(from.at("clock_mhz").integer(0, 1'000'000));
    g.driver = from.at("driver").text();
    g.cudnn = from.at("cudnn").text();
    g.cublas = from.at("cublas").text();
    g.reduction = from.at("reduction").text();
    g.graphs = static_cast<int>(from.at("graphs").integer(0, 1'000'000));
    return g;
}

}  // namespace

double train_record::train_s() const noexcept {
    double sum = 0;
    for (auto const& e : epochs_done) sum += e.train_s;
    return sum;
}

double train_record::test_s() const noexcept {
    double sum = 0;
    for (auto const& e : epochs_done) sum += e.test_s;
    return sum;
}

double train_record::late_epoch_s() const noexcept {
    auto const count = std::min<std::size_t>(5, epochs_done.size());
    double sum = 0;
    for (std::size_t i = epochs_done.size() - count; i < epochs_done.size(); ++i) sum += epochs_done[i].train_s;
    return count > 0 ? sum / static_cast<double>(count) : 0;
}

json to_json(train_record const& r) {
    json out{{"schema", train_schema},
             {"net", r.net},
             {"data", r.data},
             {"data_note", r.data_note},
             {"compute_note", r.compute_note},
             {"world_size", r.world_size},
             {"batch", r.batch},
             {"epochs", r.epochs},
             {"seed", r.seed},
             {"rate", r.rate},
             {"momentum", r.momentum},
             {"dropout", r.dropout},
             {"bucket_bytes", r.bucket_bytes},
             {"parameters", r.parameters},
             {"protocol", r.protocol},
             {"target_accuracy", r.target_accuracy},
             {"reached_target", r.reached_target},
             {"kernels", r.kernels},
             {"backend", r.backend},
             {"identity_source", r.identity_source},
             {"version", r.version},
             {"mpi_library", r.mpi_library},
             {"startup_s", r.startup_s},
             {"communicator_s", r.communicator_s},
             {"open_data_s", r.open_data_s},
             {"weights_checksum", r.weights_checksum},
             {"ranks", json::array()},
             {"epochs_done", json::array()},
             {"profile", json::array()}};
    if (!r.gpu.name.empty())
        out["gpu"] = {{"name", r.gpu.name},     {"uuid", r.gpu.uuid},          {"clock_mhz", r.gpu.clock_mhz},
                      {"driver", r.gpu.driver}, {"cudnn", r.gpu.cudnn},        {"cublas", r.gpu.cublas},
                      {"graphs", r.gpu.graphs}, {"reduction", r.gpu.reduction}};
    for (auto const& p : r.ranks) out["ranks"].push_back({{"rank", p.rank}, {"host", p.host}, {"cores", p.cores}});
    for (auto const& e : r.epochs_done) out["epochs_done"].push_back(to_json(e));
    for (auto const& l : r.profile)
        out["profile"].push_back(
            {{"layer", l.name}, {"forward_us", l.forward_us}, {"backward_us", l.backward_us}, {"dense_mflop", l.dense_mflop}});
    return out;
}

train_record read_train_record(checked_json const& from) {
    if (auto const schema = from.at("schema").text(); schema != train_schema)
        from.at("schema").fail(fmt::format("is '{}', expected '{}'", schema, train_schema));
    train_record r;
    r.net = text_or(from, "net", "mnist");
    r.data = from.at("data").text();
    r.data_note = text_or(from, "data_note");
    r.compute_note = text_or(from, "compute_note");
    r.world_size = static_cast<int>(from.at("world_size").integer(1, 1'000'000));
    r.batch = static_cast<int>(from.at("batch").integer(1, 1'000'000));
    r.epochs = static_cast<int>(from.at("epochs").integer(1, 1'000'000));
    r.seed = from.at("seed").value().is_number_unsigned() ? from.at("seed").value().get<std::uint64_t>()
                                                          : static_cast<std::uint64_t>(from.at("seed").integer(0, many));
    r.rate = from.at("rate").number();
    r.momentum = from.at("momentum").number();
    r.dropout = from.at("dropout").number();
    r.bucket_bytes = static_cast<std::uint64_t>(from.at("bucket_bytes").integer(0, many));
    r.parameters = static_cast<std::uint64_t>(number_or(from, "parameters"));
    r.protocol = from.at("protocol").text();
    r.target_accuracy = number_or(from, "target_accuracy");
    r.reached_target = from.has("reached_target") && from.at("reached_target").boolean();
    r.kernels = from.at("kernels").text();
    r.backend = from.at("backend").text();
    r.identity_source = from.at("identity_source").text();
    r.version = from.at("version").text();
    r.mpi_library = from.at("mpi_library").text();
    if (from.has("gpu")) r.gpu = read_gpu_facts(from.at("gpu"));
    r.startup_s = from.at("startup_s").number();
    r.communicator_s = from.at("communicator_s").number();
    r.open_data_s = from.at("open_data_s").number();
    r.weights_checksum = from.at("weights_checksum").text();
    for (auto const& p : from.at("ranks").items())
        r.ranks.push_back(
            {static_cast<int>(p.at("rank").integer(0, r.world_size - 1)), p.at("host").text(), p.at("cores").text()});
    for (auto const& e : from.at("epochs_done").items()) r.epochs_done.push_back(read_epoch(e));
    if (r.epochs_done.empty()) from.at("epochs_done").fail("is empty: the run finished no epoch");
    for (auto const& l : from.at("profile").items())
        r.profile.push_back(
            {l.at("layer").text(), l.at("forward_us").number(), l.at("backward_us").number(), l.at("dense_mflop").number()});
    return r;
}

}  // namespace muster
