// The program `muster`: a table of subcommands.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/self_program.hpp"
#include "base/text.hpp"
#include "launch/help/command_table.hpp"
#include "launch/help/help.hpp"
#include "launch/help/version_text.hpp"

namespace {

using namespace muster;
namespace fs = std::filesystem;

/// Descriptors 0 to 2 must be open, or the first pipe made would become a rank's standard output by accident.
void open_standard_descriptors() {
    for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR))
        if (fd > STDERR_FILENO) {
            ::close(fd);
            return;
        }
}

/// Becomes muster-NAME, which lies beside this program; returns only if there is none.
void exec_sibling(std::string const& name, std::vector<std::string> const& args) {
    auto const path = self_program().parent_path() / ("muster-" + name);
    if (::access(path.c_str(), X_OK) != 0) return;
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (auto const& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    ::execv(path.c_str(), argv.data());
    throw_system("execv", path.string());
}

int unknown_command(std::string const& name) {
    if (find_command(name) != nullptr)
        throw error(errc::unavailable,
                    fmt::format("muster-{0} does not lie beside muster; build with MPI and parallel HDF5 to have it", name));
    std::vector<std::string> names;
    for (auto const& row : commands())
        if (!row.hidden) names.emplace_back(row.name);
    auto const near = nearest(name, names);
    throw error(errc::usage, fmt::format("no command '{}'{}; muster --help lists them", name,
                                         near ? fmt::format(", did you mean '{}'?", *near) : ""));
}

int dispatch(std::vector<std::string> words, environment const& variables) {
    if (words.size() == 2 && words.front() == "help") words = {words.back(), "--help"};
    if (words.empty() || words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
        fmt::print("{}", overview());
        return words.empty() ? 2 : 0;
    }
    if (words.front() == "--version") {
        fmt::print("{}", version_text());
        return 0;
    }
    std::vector<std::string> const args(words.begin() + 1, words.end());
    auto const* row = find_command(words.front());
    if (row != nullptr && row->run != nullptr) return row->run(args, variables);
    if (words.front().find('/') == std::string::npos) exec_sibling(words.front(), args);
    return unknown_command(words.front());
}

}  // namespace

int main(int argc, char** argv) try {
    open_standard_descriptors();
    auto const variables = muster::environment::capture();
    muster::init_log(variables.get_or("MUSTER_LOG", "warning"));
    return dispatch({argv + 1, argv + argc}, variables);
} catch (muster::error const& e) {
    fmt::print(stderr, "muster: error: {}\n", e.what());
    return muster::exit_code(e.code());
} catch (std::exception const& e) {
    fmt::print(stderr, "muster: error: {}\n", e.what());
    return muster::exit_code(muster::errc::internal);
}
