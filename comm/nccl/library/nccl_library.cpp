#include "comm/nccl/library/nccl_library.hpp"

#include <fmt/format.h>

#include <array>

namespace muster::nccl {

std::string version_text(int version) {
    // Up to 2.8 a version was written in four digits.
    int const thousands = version < 10000 ? 1000 : 10000;
    return fmt::format("{}.{}.{}", version / thousands, version % thousands / 100, version % 100);
}

found_library find_library(std::span<std::string const> names) {
    found_library found;
    shared_library const file(names);
    if (!file) {
        found.why_not = "no NCCL: " + file.missing();
        return found;
    }
    library const with(file);
    auto const& missing = with.from.missing();
    if (with.get_version == nullptr || with.get_version(&found.version) != success) found.version = 0;
    if (!missing.empty() || found.version < least_version) {
        found.why_not = fmt::format("{} is NCCL {}, {} or later is needed{}", file.name(), version_text(found.version),
                                    version_text(least_version), missing.empty() ? "" : ": it lacks " + missing);
        return found;
    }
    found.use = &keep_functions(with);
    return found;
}

found_library const& find_library() {
    static std::array<std::string, 2> const names{"libnccl.so.2", "libnccl.so"};
    static found_library const found = find_library(names);
    return found;
}

}  // namespace muster::nccl
