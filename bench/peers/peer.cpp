#include "bench/peers/peer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

peer_record run_torch_peer(std::string const& python, std::vector<std::string> const& options, environment const& variables) {
    auto own = variables;
    own.set("OMP_NUM_THREADS", "1");
    own.set("MKL_NUM_THREADS", "1");
    own.set("PYTHONDONTWRITEBYTECODE", "1");
    std::vector<std::string> command{python, "-"};
    command.insert(command.end(), options.begin(), options.end());
    auto how = foreground();
    how.input = find_text(peer_files(), "torch_mnist.py");
    auto const result = run_program(command, own, how);
    if (result.exit_status != 0)
        throw error(
            errc::unavailable,
            fmt::format(
                "the PyTorch peer ended with exit code {}; its messages are above. It needs torch, numpy and h5py in {} (Debian: "
                "apt install python3-torch python3-h5py, and --python /usr/bin/python3)",
                result.exit_status, python));
    std::string const origin = "what the PyTorch peer printed";
    auto const document = parse_json(result.out, origin);
    checked_json const from(document, origin);
    peer_record r;
    r.name = from.at("name").text();
    r.version = from.at("version").text();
    r.details = from.at("details").text();
    r.parameters = static_cast<int>(from.at("parameters").integer(1, 1'000'000'000));
    r.startup_s = from.at("startup_s").number();
    r.images_per_s = from.at("images_per_s").number();
    for (auto const& e : from.at("epochs_done").items()) {
        r.train_s += e.at("train_s").number();
        r.accuracy =
            static_cast<double>(e.at("correct").integer()) / static_cast<double>(e.at("test_images").integer(1, INT64_MAX));
    }
    return r;
}

}  // namespace muster
