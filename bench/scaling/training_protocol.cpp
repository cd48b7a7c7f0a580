#include "bench/scaling/training_protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

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
    auto const found = std::find_if(rows.begin(), rows.end(), [&](auto const& row) { return row.name == name; });
    if (found != rows.end()) return *found;
    std::vector<std::string> names;
    for (auto const& row : rows) names.emplace_back(row.name);
    throw parse_error("--protocol", name, 0, "expected " + join(names, ", "), errc::usage);
}

}  // namespace muster
