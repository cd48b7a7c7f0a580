#include "comm/cuda/driver.hpp"

#include <fmt/format.h>

#include <array>

namespace muster::cuda {

std::string describe(driver const& with, int code) {
    char const* name = nullptr;
    char const* text = nullptr;
    if (with.error_name == nullptr || with.error_name(code, &name) != success || name == nullptr)
        return fmt::format("error {}", code);
    if (with.error_string == nullptr || with.error_string(code, &text) != success || text == nullptr) return name;
    return fmt::format("{} ({})", name, text);
}

void check(driver const& with, int code, std::string_view call) {
    if (code != success) throw cuda_error(call, code, describe(with, code));
}

found_driver find_driver(std::span<std::string const> names) {
    found_driver found;
    shared_library const library(names);
    auto const refuse = [&](std::string why) {
        found.why_not = std::move(why);
        found.devices = 0;
        return found;
    };
    if (!library) return refuse("no CUDA driver: " + library.missing());
    driver const with(library);
    if (auto const& missing = with.from.missing(); !missing.empty())
        return refuse(fmt::format("the CUDA driver {} is too old: it lacks {}", library.name(), missing));
    int const code = with.init(0);
    if (code == error_no_device) return refuse(fmt::format("the CUDA driver {} finds no GPU", library.name()));
    if (code != success)
        return refuse(fmt::format("the CUDA driver {} does not start: {}", library.name(), describe(with, code)));
    if (int const counted = with.device_count(&found.devices); counted != success)
        return refuse(fmt::format("the CUDA driver {} counts no GPUs: {}", library.name(), describe(with, counted)));
    if (found.devices == 0)
        return refuse("the CUDA driver shows this process no GPU; see CUDA_VISIBLE_DEVICES and what the job asked for");
    found.use = &keep_functions(with);
    return found;
}

found_driver const& find_driver() {
    static std::array<std::string, 2> const names{"libcuda.so.1", "libcuda.so"};
    static found_driver const found = find_driver(names);
    return found;
}

}  // namespace muster::cuda
