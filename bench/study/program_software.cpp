#include "bench/study/program_software.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/trust/sha256.hpp"

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

constexpr std::string_view digest_mark = "sha256 ";
constexpr std::size_t digest_bytes = 8, largest_program_bytes = std::size_t{256} << 20;

/// Returns whether it is a program or script, and not a file of data, to which it may write.
bool is_program_file(std::string const& path) {
    constexpr std::string_view endings[]{".py", ".sh", ".bash", ".pl", ".jl", ".R", ".lua", ".rb"};
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
    return (facts.st_mode & S_IXUSR) != 0 || std::ranges::any_of(endings, [&](auto ending) { return path.ends_with(ending); });
}

}  // namespace

versions digests_of(std::vector<std::string> const& program) {
    versions out;
    for (std::size_t i = 0; i < program.size(); ++i) {
        auto const& word = program[i];
        if (i == 0 && word.find('/') == std::string::npos) continue;  // found on PATH: the system's
        if (!is_program_file(word)) continue;
        auto const text = read_text_file(word, largest_program_bytes);
        if (text.empty()) continue;  // a file that cannot be read, or is too large, is not compared
        out.emplace_back(word, fmt::format("{}{}", digest_mark, sha256_digits(text, digest_bytes)));
    }
    return out;
}

bool is_digest(std::string_view version) noexcept {
    return version.starts_with(digest_mark);
}

std::string changed_files(versions const& begun, versions const& now) {
    std::string out;
    for (auto const& [name, then] : begun) {
        auto const found = std::ranges::find(now, name, &versions::value_type::first);
        if (is_digest(then) && found != now.end() && found->second != then)
            out += fmt::format("\n  {}: changed since the study began ({} then, {} now)", name, then, found->second);
    }
    return out;
}

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
    for (auto& file : digests_of(program)) out.push_back(std::move(file));
    std::sort(out.begin(), out.end());  // the order of JSON
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
