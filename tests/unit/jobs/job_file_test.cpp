#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "launch/jobs/job_plan.hpp"
#include "launch/jobs/starter_files.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/settings_file.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char const* job = R"(ranks-per-gpu = 2

[job]
site = "polaris"
gpus = 8
time = "1h"
command = ["python3", "train.py", "a b"]
bind-to = "numa"

[job.env]
A = "1"
)";

std::string job_file_fault(std::string const& text, bool required = true) {
    try {
        parse_job_file(text, "job.toml", required);
    } catch (error const& e) {
        EXPECT_EQ(exit_code(e.code()), 2) << e.what();
        return e.what();
    }
    return "no error";
}

TEST(job_file, holds_settings_and_a_command) {
    auto const read = parse_job_file(job, "job.toml", true);
    ASSERT_TRUE(read);
    EXPECT_THAT(read->command, ElementsAre("python3", "train.py", "a b"));
    std::map<std::string, std::string> values;
    for (auto const& setting : read->settings) values[setting.name] = setting.entries.at(0);
    EXPECT_EQ(
        values,
        (std::map<std::string, std::string>{
            {"site", "polaris"}, {"gpus", "8"}, {"time", "1h"}, {"bind-to", "numa"}, {"env", "A=1"}, {"ranks-per-gpu", "2"}}));
    EXPECT_EQ(parse_job_file("[job]\ncommand = \"python3 'a b'\"\n", "j", true)->command,
              (std::vector<std::string>{"python3", "a b"}));
    EXPECT_EQ(parse_job_file("ranks = 2\n", "muster.toml", false), std::nullopt);
}

TEST(job_file, is_no_matter_of_muster_run) {
    auto const read = parse_settings(job, "muster.toml");
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].name, "ranks-per-gpu");
}

TEST(job_file, shows_each_mistake_with_its_place) {
    EXPECT_THAT(job_file_fault("[job]\ngpu = 8\n"),
                AllOf(HasSubstr("job.toml:2:1"), HasSubstr("unknown key 'gpu'; did you mean 'gpus'?"), HasSubstr("^")));
    EXPECT_THAT(job_file_fault("[job]\ncomand = \"x\"\n"), HasSubstr("did you mean 'command'?"));
    EXPECT_THAT(job_file_fault("[job]\nwalltime = \"1h\"\n"), HasSubstr("here it is called 'time'"));
    EXPECT_THAT(job_file_fault("[job]\ngpus = \"8\"\n"), AllOf(HasSubstr("job.toml:2:8"), HasSubstr("a whole number")));
    EXPECT_THAT(job_file_fault("[job]\ncommand = 3\n"), HasSubstr("a list of texts"));
    EXPECT_THAT(job_file_fault("[job]\ncommand = []\n"), HasSubstr("'command' is empty"));
    EXPECT_THAT(job_file_fault("[job]\ncommand = \"'x\"\n"), HasSubstr("a quote is open"));
    EXPECT_THAT(job_file_fault("[job]\ncommand = [\"a\\u0000b\"]\n"), HasSubstr("NUL"));
    EXPECT_THAT(job_file_fault("[job.env]\nB = \"1\"\nA = 1\n"),
                AllOf(HasSubstr("job.toml:3:5: job.env: 'A' must be a text"), HasSubstr("\n  A = 1\n      ^")));
    EXPECT_THAT(job_file_fault("[job]\ndry-run = true\n"), HasSubstr("command line only"));
    EXPECT_THAT(job_file_fault("ranks = 2\n"), HasSubstr("no table [job]"));
    EXPECT_THAT(job_file_fault("job = 2\n"), HasSubstr("must be a table"));
    EXPECT_THAT(job_file_fault("x = 2\n[job]\n"), HasSubstr("unknown key 'x'"));
}

TEST(job_file, an_unknown_key_is_answered_in_few_words) {
    struct {
        std::string text, answer;
    } const wrong[]{
        {"[job]\nfrobnicate = 1\n",
         "job: unknown key 'frobnicate'; muster run --help-all and muster script --help-all list all keys\n"},
        {"frobnicate = 1\n[job]\n",
         "unknown key 'frobnicate'; muster run --help-all and muster script --help-all list all keys\n"},
        {"[job]\nGpus_Per_Node = 1\n", "did you mean 'gpus-per-node'?"},
        {"[job]\nnum_proc = 1\n", "here it is called 'ranks'"},
        {"[job]\nmem-per-cpu = \"2G\"\n", "for sbatch's option write sbatch = [\"--mem-per-cpu=…\"]"},
        {"[job]\nexclude = \"a\"\n", "for sbatch's option write sbatch = [\"--exclude=…\"]"},
        {"[job]\nnodes = 2\n", "unknown key 'nodes'; the number of nodes follows from gpus and gpus-per-node, or from ranks and"},
        {"[job]\nno-smt = true\n", "unknown key 'no-smt'; write smt = false"},
        {"[job]\nno_check = true\n", "'no_check' is for the command line only"},
        {"[job]\nrank = 2\n", "unknown key 'rank'; did you mean 'ranks'?"},
        {"[job]\noutput = \"x\"\n", "for sbatch's option write sbatch = [\"--output=…\"]"},
        {"[job]\ntopology = \"x\"\n", "'topology' is for the command line only"},
        {"command = \"x\"\n[job]\n", "it is a key of the table [job]"},
        {"[job]\n" + std::string(300, 'k') + " = 1\n", "an unknown key of 300 bytes, which begins 'kkk"},
    };
    for (auto const& one : wrong) {
        auto const said = job_file_fault(one.text);
        EXPECT_THAT(said, AllOf(HasSubstr(one.answer), HasSubstr("job.toml:"), HasSubstr("\n  ^"))) << one.text;
        EXPECT_LE(std::ranges::count(said, ','), 12) << said;
    }
}

settings_sources sources_of(std::map<std::string, std::string> const& files) {
    settings_sources sources;
    sources.project_file = "muster.toml";
    sources.read_file = [files](std::string const& path) -> std::optional<std::string> {
        auto const found = files.find(path);
        return found == files.end() ? std::nullopt : std::optional(found->second);
    };
    return sources;
}

TEST(job_file, holds_each_option_of_muster_script) {
    for (auto const& row : settings())
        if (is_listed("script", row) && !row.name.starts_with("help")) {
            EXPECT_TRUE(row.is_configurable()) << row.name;
        }
    auto const given = resolve_settings("submit", {}, sources_of({{"muster.toml", R"([job]
site = "x"
ranks = 2
once = true
hold = true
after = "any:12"
muster = "/opt/muster"
)"}}));
    auto const options = make_script_options(given);
    EXPECT_TRUE(options.once && given.flag("hold"));
    EXPECT_THAT(options.after, ElementsAre("12"));
    EXPECT_EQ(options.muster, "/opt/muster");
}

TEST(job_file, a_text_in_place_of_a_list_is_one_entry) {
    auto const given = resolve_settings("submit", {}, sources_of({{"muster.toml", R"([job]
setup = "source /etc/profile"
sbatch = "-p main --exclusive"
qsub = "-m abe"
env = "A=b c"
stage-in = "a b.h5:/tmp/x"
module = "gcc/12 cuda"
)"}}));
    EXPECT_THAT(given.list("setup"), ElementsAre("source /etc/profile"));
    EXPECT_THAT(given.list("sbatch"), ElementsAre("-p main --exclusive"));
    EXPECT_THAT(given.list("qsub"), ElementsAre("-m abe"));
    EXPECT_THAT(given.list("env"), ElementsAre("A=b c"));
    EXPECT_THAT(given.list("stage-in"), ElementsAre("a b.h5:/tmp/x"));
    EXPECT_THAT(given.list("module"), ElementsAre("gcc/12", "cuda"));  // no name holds a blank
    auto const variable = [](char const* name, char const* value) {
        settings_sources sources;
        sources.variables = {{name, value}};
        return resolve_settings("script", {}, sources);
    };
    EXPECT_THAT(variable("MUSTER_SETUP", "ulimit -l unlimited").list("setup"), ElementsAre("ulimit -l unlimited"));
    EXPECT_THAT(variable("MUSTER_SETUP", "echo it's").list("setup"), ElementsAre("echo it's"));
    EXPECT_THAT(variable("MUSTER_ENV", "A=1 B='2 3'").list("env"), ElementsAre("A=1", "B=2 3"));
    EXPECT_THAT(variable("MUSTER_ENV", "A=-x B").list("env"), ElementsAre("A=-x B"));
}

TEST(job_file, what_an_option_of_it_would_be_refused_for_is_said_with_its_place) {
    auto const fault = [](std::string const& line) {
        auto const text = "[job]\nsite = \"x\"\nranks = 2\n" + line + "\n";
        try {
            make_script_options(resolve_settings("submit", {}, sources_of({{"muster.toml", text}})));
        } catch (error const& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    EXPECT_THAT(fault("time = \"5\""), StartsWith("muster.toml:4: --time: '5' has no unit"));
    EXPECT_THAT(fault("env = \"A\""), StartsWith("muster.toml:4: --env A: a job's variable needs its value"));
    EXPECT_THAT(fault("stage-in = \"a\""), StartsWith("muster.toml:4: --stage-in: 'a' has no SRC and DST"));
}

TEST(job_file, settings_of_the_run_may_stand_on_the_command_line) {
    auto const given = resolve_settings(
        "submit", {"--site", "x", "--ranks", "2", "--tag-output", "--bind-to", "none", "--wd", "d", "-x", "A=1"}, {});
    EXPECT_THAT(make_script_options(given).run_words, ElementsAre("--bind-to", "none", "--tag-output", "--wd", "d"));
    EXPECT_THROW(resolve_settings("submit", {"--on-hang", "true"}, {}), error);
}

TEST(job_file, a_sweep_on_the_command_line_overrides_its_number_of_ranks) {
    auto const sources = sources_of({{"muster.toml", "[job]\nsite = \"x\"\nranks = 2\ntime = \"1h\"\n"}});
    EXPECT_EQ(make_script_options(resolve_settings("submit", {"--sweep", "1,2,8"}, sources)).ranks, 8);
    EXPECT_THROW(make_script_options(resolve_settings("submit", {"--sweep", "1,2,8", "--ranks", "4"}, sources)), error);
}

TEST(job_file, is_below_the_command_line_and_above_other_files) {
    auto sources =
        sources_of({{"muster.toml", "gpus = 1\n[job]\ngpus = 2\ntime = \"2h\"\ncommand = [\"a\"]\n"}, {"own.toml", job}});
    auto given = resolve_settings("submit", {}, sources);
    EXPECT_EQ(given.text("gpus"), "2");
    EXPECT_EQ(given.get("gpus").where, "muster.toml:3");
    EXPECT_THAT(given.command, ElementsAre("a"));
    EXPECT_THAT(given.file_notes, testing::Contains("job from muster.toml: gpus, time, command"));
    EXPECT_THAT(resolve_settings("alloc", {}, sources).file_notes, testing::Contains("job from muster.toml: gpus, time"));
    given = resolve_settings("submit", {"--gpus", "4", "--", "b"}, sources);
    EXPECT_EQ(given.text("gpus"), "4");
    EXPECT_THAT(given.command, ElementsAre("b"));
    given = resolve_settings("submit", {"--file", "own.toml"}, sources);
    EXPECT_EQ(given.text("gpus"), "8");
    EXPECT_EQ(given.job_file, "own.toml");
    EXPECT_THAT(run_words(given), testing::IsSupersetOf({"--bind-to", "numa", "--ranks-per-gpu", "2"}));
    EXPECT_EQ(resolve_settings("script", {}, sources).text("gpus"), "1") << "muster script reads no job";
    EXPECT_THROW(resolve_settings("submit", {"--file", "none.toml"}, sources), error);
}

TEST(job_file, gpus_and_ranks_are_one_choice_and_the_stronger_source_makes_it) {
    auto const sources = sources_of({{"gpus.toml", "[job]\ngpus = 8\ngpus-per-node = 4\ntime = \"1h\"\n"},
                                     {"ranks.toml", "[job]\nranks = 8\ntime = \"1h\"\n"}});
    auto given = resolve_settings("submit", {"--site", "x", "--file", "gpus.toml", "--ranks", "3"}, sources);
    EXPECT_THAT(given.file_notes, testing::Contains("job from gpus.toml: time")) << "and no key that does not hold";
    auto options = make_script_options(given);
    EXPECT_EQ(options.ranks, 3);
    EXPECT_EQ(options.gpus, 0);
    EXPECT_EQ(options.gpus_per_node, std::nullopt);
    EXPECT_THAT(given.notes, testing::Contains("ranks (--ranks) are asked for, not gpus (gpus.toml:2)"));
    given = resolve_settings("submit", {"--site", "x", "--file", "ranks.toml", "--gpus", "2"}, sources);
    options = make_script_options(given);
    EXPECT_EQ(options.gpus, 2);
    EXPECT_EQ(options.ranks, 0);
    EXPECT_THROW(make_script_options(resolve_settings("submit", {"--site", "x", "--gpus", "2", "--ranks", "2"}, sources)), error);
    auto const both = sources_of({{"both.toml", "[job]\ngpus = 2\nranks = 2\n"}});
    EXPECT_THROW(make_script_options(resolve_settings("submit", {"--site", "x", "--file", "both.toml"}, both)), error);
    auto with_variable = sources;
    with_variable.variables.set("MUSTER_RANKS", "4");
    given = resolve_settings("submit", {"--site", "x", "--file", "gpus.toml"}, with_variable);
    EXPECT_EQ(make_script_options(given).gpus, 8) << "a variable for runs says nothing of jobs";
}

/// Full nodes leave a restart no room after a lost one.
TEST(job_file, a_run_outlives_its_nodes_with_spares_or_fewer_ranks) {
    auto const outlives = [](std::vector<std::string> const& words) {
        std::vector<std::string> args{"--site", "x", "--gpus", "8"};
        args.insert(args.end(), words.begin(), words.end());
        return make_script_options(resolve_settings("submit", args, sources_of({}))).outlives_nodes;
    };
    EXPECT_FALSE(outlives({}));
    EXPECT_FALSE(outlives({"--max-restarts", "3"}));
    EXPECT_TRUE(outlives({"--max-restarts", "3", "--spares", "1"}));
    EXPECT_TRUE(outlives({"--max-restarts", "3", "--spares", "1", "--requeue"}));
    EXPECT_TRUE(outlives({"--min-np", "4"}));
}

TEST(job_file, of_another_user_is_not_obeyed) {
    auto sources = sources_of({{"muster.toml", "[job]\ngpus = 2\n"}, {"own.toml", "[job]\nsite = \"./evil.toml\"\n"}});
    sources.distrust = [](std::string const& path) { return path == "own.toml" ? "" : "it belongs to the user mallory"; };
    sources.distrust_named = sources.distrust;
    EXPECT_FALSE(resolve_settings("submit", {}, sources).given("gpus"));
    try {
        resolve_settings("submit", {"--file", "muster.toml"}, sources);
        ADD_FAILURE() << "not refused";
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("--file muster.toml: not read: it belongs to the user mallory"));
    }
    try {
        resolve_settings("submit", {"--file", "own.toml"}, sources);
        ADD_FAILURE() << "the site that it names is not refused";
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("own.toml:2: site names ./evil.toml, which is not read"));
    }
}

TEST(starter_job_file, is_one) {
    auto const read = parse_job_file(starter_job_file("generic-slurm", true), "muster.toml", true);
    ASSERT_TRUE(read);
    EXPECT_THAT(read->command, ElementsAre("python3", "train.py"));
    auto const without = parse_job_file(starter_job_file("generic-slurm", false), "muster.toml", true);
    ASSERT_TRUE(without);
    auto const has = [&](std::string_view name) {
        return std::ranges::any_of(without->settings, [&](auto const& one) { return one.name == name; });
    };
    EXPECT_TRUE(has("ranks"));
    EXPECT_FALSE(has("gpus"));
}

}  // namespace
}  // namespace muster
