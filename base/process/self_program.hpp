// Finds the file of the running program.
#pragma once

#include <filesystem>

namespace muster {

/// The absolute path of the program that this process runs, with links resolved. Throws errc::system.
std::filesystem::path self_program();

}  // namespace muster
