// The functions of a library that is opened at run time: finds all that a table names, and keeps the library open.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/shared_library.hpp"

namespace muster {

/// Keeps it in a list for ever, so that no leak is reported. Returns it.
shared_library const* keep_reachable(shared_library const* opened);

/// A table of functions, or why it cannot be used.
template <typename Table>
struct found_functions {
    std::shared_ptr<Table const> use;  ///< null where `why_not` says something
    std::string why_not;
};

/// Tries the names in order, as dlopen does. `Table` has for_each_function(table, visit), as comm/cuda/driver.hpp has it. Never
/// throws for a missing library. The library is never closed: it keeps threads and handlers until the process ends.
template <typename Table>
found_functions<Table> find_functions(std::span<std::string const> names, std::string_view product) {
    auto const* const opened = keep_reachable(new shared_library(names));
    if (!*opened) return {nullptr, fmt::format("no {}: {}", product, opened->missing())};
    auto table = std::make_shared<Table>();
    std::string missing;
    for_each_function(*table, [&](char const* name, auto& function) {
        function = opened->template symbol<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
        if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
    });
    if (!missing.empty()) return {nullptr, fmt::format("{} ({}) lacks {}", product, opened->name(), missing)};
    return {std::move(table), {}};
}

}  // namespace muster
