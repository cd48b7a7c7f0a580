// Tests of the table of Slurm's commands, and of the sources: none is run that is not in it.
#include "launch/scheduler/commands/slurm_commands.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

std::string source_text(fs::path const& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(slurm_commands, have_their_values_as_single_words) {
    EXPECT_EQ(slurm_words(slurm_ask::jobs_by_number, {"1,2_3", "JobID:|, State"}),
              (words{"squeue", "-h", "-t", "all", "-j", "1,2_3", "-O", "JobID:|, State"}));
    EXPECT_EQ(slurm_words(slurm_ask::job_in_detail, {"7"}),
              (words{"env", "SLURM_TIME_FORMAT=%s", "scontrol", "-d", "-o", "show", "job", "7"}));
    EXPECT_EQ(slurm_words(slurm_ask::accounts, {"u v"}).at(5), "user=u v");
    EXPECT_EQ(slurm_words(slurm_ask::step, {"{}", "pmix"}), (words{"srun", "--job-name={}", "--mpi=pmix"}));
    EXPECT_EQ(slurm_program(slurm_ask::job_in_detail), "scontrol");
    EXPECT_EQ(slurm_program(slurm_ask::jobs_of_user), "squeue");
    EXPECT_THROW(slurm_words(slurm_ask::cancel), error);
    EXPECT_THROW(slurm_words(slurm_ask::config, {"1"}), error);
}

TEST(slurm_commands, each_has_its_forms_and_a_reader_that_is_there) {
    std::set<slurm_ask> seen;
    for (auto const& row : slurm_commands()) {
        EXPECT_TRUE(seen.insert(row.what).second) << row.words << " is there twice";
        EXPECT_FALSE(row.forms.empty()) << row.words;
        std::vector<std::string> functions;
        for (auto const word : split(row.reader, ' ')) {
            if (word.find('/') == std::string_view::npos) {
                if (!word.empty()) functions.emplace_back(word);
                continue;
            }
            auto const header = source_text(fs::path(MUSTER_SOURCE_DIR) / word);
            for (auto const& name : functions)
                EXPECT_THAT(header, testing::HasSubstr(" " + name + "(")) << row.words << ": " << word;
            functions.clear();
        }
        EXPECT_TRUE(functions.empty()) << row.words << ": a reader without the file that declares it";
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(slurm_ask::exclude_nodes) + 1);
}

constexpr char const* programs =
    "srun|sbatch|salloc|squeue|sinfo|scontrol|scancel|sacct|sacctmgr|sstat|sattach|sbcast|sprio|sshare|sdiag|sreport|strigger|"
    "scrontab|scrun";

bool names_program(std::string_view line) {  // std::regex is slow
    for (auto const name : split(programs, '|'))
        if (line.find(name) != std::string_view::npos) return true;
    return false;
}

/// Lines that name one of Slurm's programs as a word of its own that a command could begin with. "srun" is also the name of an engine, "sbatch" that of an option.
std::vector<std::string> commands_in(std::string const& text, std::string const& extension) {
    static std::regex const literal(fmt::format("\"({})\"", programs));
    static std::regex const engine(
        "(== |!= |\\? |\"--engine\", )\"srun\"|engine_row\\{\"srun\"|\"srun\", fate::|\\{\"sbatch\", 0|list\\(\"sbatch\"|slurm, "
        "\"sbatch\"");
    static std::regex const in_script(fmt::format("(^|[;&|(`] *|\\bexec +)({})( |$)", programs));
    static std::regex const in_python(fmt::format("[\\[(][\"']({})[\"' ]", programs));
    std::vector<std::string> found;
    for (auto const view : split(text, '\n')) {
        if (!names_program(view)) continue;
        std::string const line(view);
        bool const is_code = extension == ".cpp" || extension == ".hpp";
        auto const bare =
            is_code ? std::regex_replace(line.substr(0, line.find("//")), engine, "") : line.substr(0, line.find('#'));
        if (std::regex_search(bare, is_code ? literal : extension == ".py" ? in_python : in_script)) found.push_back(line);
    }
    return found;
}

TEST(slurm_commands, are_all_that_the_sources_run) {
    std::set<std::string> const kinds{".cpp", ".hpp", ".py", ".sh", ".mustache", ".in"};
    std::vector<std::string> strangers;
    int files = 0;
    for (auto const* folder : {"base", "pmix", "comm", "io", "jobscripts", "launch", "bench", "python"})
        for (auto const& entry : fs::recursive_directory_iterator(fs::path(MUSTER_SOURCE_DIR) / folder)) {
            auto const extension = entry.path().extension().string();
            auto const name = fs::relative(entry.path(), MUSTER_SOURCE_DIR).generic_string();
            if (!entry.is_regular_file() || !kinds.contains(extension)) continue;
            ++files;
            if (name == "launch/scheduler/commands/slurm_commands.cpp") continue;
            for (auto const& line : commands_in(source_text(entry.path()), extension)) strangers.push_back(name + ": " + line);
        }
    EXPECT_GT(files, 500);
    EXPECT_THAT(strangers, testing::IsEmpty())
        << "add them to launch/scheduler/commands/slurm_commands.cpp, and run them by slurm_words";
}

TEST(slurm_commands, are_found_where_a_source_runs_them) {
    EXPECT_EQ(commands_in("run_captured({\"squeue\", \"-h\"}, v);\n", ".cpp").size(), 1u);
    EXPECT_EQ(commands_in("x = {\"srun\", \"--version\"};\n", ".cpp").size(), 1u);
    EXPECT_EQ(commands_in("find_program(\"sstat\")\n", ".hpp").size(), 1u);
    EXPECT_EQ(commands_in("engine.name == \"srun\" // \"sacct\"\n\"srun is not there\"\n", ".cpp").size(), 0u);
    EXPECT_EQ(commands_in("subprocess.run(['sacct', '-j'])\n", ".py").size(), 1u);
    EXPECT_EQ(commands_in("n=$(squeue -h)\nexec srun x\n# srun\necho by srun\n", ".mustache").size(), 2u);
}

TEST(slurm_commands, show_all_whatever_the_users_own_views_are) {
    EXPECT_EQ(without_slurm_views({{"SQUEUE_PARTITION", "a"},
                                   {"SQUEUE_FORMAT2", "x"},
                                   {"SQUEUE_STATES", "R"},
                                   {"SQUEUE_ALL", "1"},
                                   {"SINFO_PARTITION", "a"},
                                   {"SCANCEL_STATE", "RUNNING"},
                                   {"SINFO_FORMAT", "%n"},
                                   {"SLURM_TIME_FORMAT", "relative"},
                                   {"SLURM_CLUSTERS", "b"},
                                   {"SBATCH_PARTITION", "a"},
                                   {"PATH", "/bin"}}),
              (environment{{"SQUEUE_ALL", "1"}, {"SLURM_CLUSTERS", "b"}, {"SBATCH_PARTITION", "a"}, {"PATH", "/bin"}}));
}

}  // namespace
}  // namespace muster
