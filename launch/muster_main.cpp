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
#include "base/text.hpp"
#include "base/version.hpp"
#include "launch/doctor_command.hpp"
#include "launch/plan_command.hpp"
#include "launch/run_command.hpp"
#include "launch/script_command.hpp"

namespace {

using namespace muster;
namespace fs = std::filesystem;

struct subcommand {
    char const* name;
    char const* what;
    int (*run)(std::vector<std::string> const& args, environment const& variables);
};

constexpr subcommand subcommands[]{
    {"run", "start a program on every GPU (or core) of this node", run_command},
    {"plan", "show where each rank would go", plan_command},
    {"script", "print an sbatch or qsub script for a site", script_command},
    {"doctor", "what is here, what is missing, and what to do about it", doctor_command},
};

/// Programs of their own, found beside this one, since they need MPI and HDF5 and a login node may have neither.
constexpr subcommand siblings[]{
    {"stage", "convert, verify and inspect datasets (muster-stage)", nullptr},
    {"bench", "train, measure scaling, report (muster-bench)", nullptr},
};

void print_help() {
    fmt::print("muster {}: one rank per GPU\n\n  muster run -- python train.py\n\ncommands (each has --help)\n", version());
    for (auto const& s : subcommands) fmt::print("  {:10}{}\n", s.name, s.what);
    for (auto const& s : siblings) fmt::print("  {:10}{}\n", s.name, s.what);
}

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
    std::error_code fault;
    auto const path = fs::read_symlink("/proc/self/exe", fault).parent_path() / ("muster-" + name);
    if (fault || ::access(path.c_str(), X_OK) != 0) return;
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (auto const& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    ::execv(path.c_str(), argv.data());
    throw_system("execv", path.string());
}

int unknown_command(std::string const& name) {
    std::vector<std::string> names;
    for (auto const& s : subcommands) names.emplace_back(s.name);
    for (auto const& s : siblings) names.emplace_back(s.name);
    for (auto const& s : siblings)
        if (name == s.name)
            throw error(errc::unavailable,
                        fmt::format("muster-{0} does not lie beside muster; build with MPI and parallel HDF5 to have it", name));
    auto const near = nearest(name, names);
    throw error(errc::usage, fmt::format("no command '{}'{}; muster --help lists them", name,
                                         near ? fmt::format(", did you mean '{}'?", *near) : ""));
}

int dispatch(std::vector<std::string> const& words, environment const& variables) {
    if (words.empty() || words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
        print_help();
        return words.empty() ? 2 : 0;
    }
    if (words.front() == "--version") {
        fmt::print("muster {}\n", version());
        return 0;
    }
    std::vector<std::string> const args(words.begin() + 1, words.end());
    for (auto const& s : subcommands)
        if (words.front() == s.name) return s.run(args, variables);
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
