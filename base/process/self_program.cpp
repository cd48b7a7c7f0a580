#include "base/process/self_program.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster {

std::filesystem::path self_program() {
    std::error_code fault;
    auto path = std::filesystem::read_symlink("/proc/self/exe", fault);
    if (fault) throw error(errc::system, fmt::format("cannot read the link /proc/self/exe: {}; mount /proc", fault.message()));
    return path;
}

}  // namespace muster
