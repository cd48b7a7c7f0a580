#include "bench/study/program_software.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

using versions = std::vector<std::pair<std::string, std::string>>;
constexpr std::chrono::milliseconds patience{10000};

constexpr char const* ask_python = R"(
import platform
print("python", platform.python_version(), sep="\t")
try:
    from importlib import metadata
except ImportError:
    raise SystemExit
for name in ("torch", "numpy", "mpi4py", "horovod", "tensorflow", "jax", "jaxlib"):
    try:
        print(name, metadata.version(name), sep="\t")
    except metadata.PackageNotFoundError:
        pass
)";

void add_answer(versions& to, std::vector<std::string> const& command, environment const& variables) {
    auto const answer = run_captured(command, variables, patience);
    if (answer.exit_status == 0)
        for (auto& each : read_versions(answer.out)) to.push_back(std::move(each));
}

void add_gpus(versions& to, environment const& variables) {
    auto const answer = run_captured({"nvidia-smi", "--query-gpu=index,name,uuid,clocks.sm,clocks.mem", "--format=csv,noheader"},
                                     variables, patience);
    if (answer.exit_status != 0) return;
    for (auto const line : split(answer.out, '\n')) {
        auto const comma = line.find(',');
        if (comma != line.npos)
            to.emplace_back(fmt::format("gpu {}", trim(line.substr(0, comma))), without_controls(trim(line.substr(comma + 1))));
    }
}

}  // namespace

versions read_versions(std::string_view text) {
    versions out;
    for (auto const line : split(text, '\n')) {
        auto const tab = line.find('\t');
        if (tab != line.npos && tab > 0)
            out.emplace_back(without_controls(line.substr(0, tab)), without_controls(trim(line.substr(tab + 1))));
    }
    return out;
}

versions software_of(std::vector<std::string> const& program, environment const& variables) {
    versions out;
    auto const name = program.empty() ? std::string() : std::filesystem::path(program.front()).filename().string();
    if (name.starts_with("python")) add_answer(out, {program.front(), "-c", ask_python}, variables);
    if (!find_program_or_nothing("mpirun", variables).empty()) {
        auto const answer = run_captured({"mpirun", "--version"}, variables, patience);
        auto const first = answer.out.substr(0, answer.out.find('\n'));
        if (answer.exit_status == 0 && !first.empty()) out.emplace_back("mpirun", without_controls(trim(first)));
    }
    if (!find_program_or_nothing("nvidia-smi", variables).empty()) add_gpus(out, variables);
    std::sort(out.begin(), out.end());  // as JSON keeps them
    return out;
}

std::string program_name(std::vector<std::string> const& program) {
    constexpr std::string_view interpreters[]{"python", "bash", "sh", "perl", "julia", "Rscript"};
    auto name = std::filesystem::path(program.front()).filename().string();
    auto const interprets = [&](std::string_view one) { return name.starts_with(one); };
    if (std::none_of(std::begin(interpreters), std::end(interpreters), interprets)) return name;
    auto const script =
        std::find_if(program.begin() + 1, program.end(), [](auto const& word) { return !word.empty() && word.front() != '-'; });
    return script == program.end() ? name : std::filesystem::path(*script).filename().string();
}

}  // namespace muster
