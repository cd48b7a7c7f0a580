#include "comm/nccl/library/nccl_library.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <memory>
#include <type_traits>

namespace muster::nccl {

namespace {

/// NCCL stays open: it keeps threads that run until the process ends. The list keeps it reachable, so that no leak is reported.
struct kept_library {
    shared_library file;
    library functions;
    kept_library* next = nullptr;
};
std::atomic<kept_library*> kept{nullptr};

}  // namespace

library::library(shared_library const& from) {
    for_each_function(*this, [&](char const* name, auto& function) {
        function = from.symbol<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(name);
        if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
    });
}

std::string version_text(int version) {
    // Up to 2.8 a version was written in four digits.
    int const thousands = version < 10000 ? 1000 : 10000;
    return fmt::format("{}.{}.{}", version / thousands, version % thousands / 100, version % 100);
}

found_library find_library(std::span<std::string const> names) {
    found_library found;
    auto opened = std::make_unique<kept_library>(kept_library{shared_library(names), {}, nullptr});
    auto const& file = opened->file;
    if (!file) {
        found.why_not = "no NCCL: " + file.missing();
        return found;
    }
    opened->functions = library(file);
    auto const& with = opened->functions;
    if (with.get_version == nullptr || with.get_version(&found.version) != success) found.version = 0;
    if (!with.missing.empty() || found.version < least_version) {
        found.why_not = fmt::format("{} is NCCL {}, {} or later is needed{}", file.name(), version_text(found.version),
                                    version_text(least_version), with.missing.empty() ? "" : ": it lacks " + with.missing);
        return found;
    }
    found.use = &with;
    opened->next = kept.load();
    while (!kept.compare_exchange_weak(opened->next, opened.get())) {
    }
    static_cast<void>(opened.release());
    return found;
}

found_library const& find_library() {
    static std::array<std::string, 2> const names{"libnccl.so.2", "libnccl.so"};
    static found_library const found = find_library(names);
    return found;
}

}  // namespace muster::nccl
