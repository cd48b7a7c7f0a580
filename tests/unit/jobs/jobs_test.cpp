#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "launch/jobs/check_program.hpp"
#include "launch/jobs/job_plan.hpp"
#include "launch/jobs/job_record.hpp"
#include "launch/jobs/logs/log_tail.hpp"
#include "launch/jobs/queue/job_poll.hpp"
#include "launch/jobs/recorded_run.hpp"
#include "launch/jobs/script_directives.hpp"
#include "launch/jobs/starter_files.hpp"
#include "launch/record/recorded_words.hpp"
#include "launch/record/run_record.hpp"
#include "launch/settings/settings_to_options.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using words = std::vector<std::string>;

struct scratch_folder {
    fs::path path = fs::temp_directory_path() / ("muster-jobs-" + std::to_string(::getpid()));
    scratch_folder() { fs::remove_all(path), fs::create_directories(path); }
    ~scratch_folder() { fs::remove_all(path); }
    void write(std::string const& name, std::string const& text, std::ios::openmode mode = std::ios::out) const {
        fs::create_directories((path / name).parent_path());
        std::ofstream(path / name, mode) << text;
    }
};

TEST(script_argument, is_the_file_that_an_interpreter_reads) {
    EXPECT_EQ(script_argument({"python3", "train.py", "-c"}), "train.py");
    EXPECT_EQ(script_argument({"/usr/bin/python3.11", "-u", "-O", "-X", "dev", "-W", "ignore", "t.py"}), "t.py");
    EXPECT_EQ(script_argument({"python", "-m", "pkg"}), "");
    EXPECT_EQ(script_argument({"bash", "-c", "x"}), "");
    EXPECT_EQ(script_argument({"bash", "-eu", "run.sh"}), "run.sh");
    EXPECT_EQ(script_argument({"./train", "data.py"}), "");
    EXPECT_EQ(script_argument({"pythonic", "x"}), "");
    EXPECT_EQ(script_argument({"python3"}), "");
    // What is not certain is no file.
    for (words const& other : {words{"bash", "-lc", "x y"}, words{"julia", "-t", "4", "x.jl"}, words{"python3", "-uc", "x"},
                               words{"python3", "-", "x"}, words{"bash", "-eo", "pipefail", "x"}, words{"bash", "--norc", "x"},
                               words{"bash", "+e", "x"}, words{"julia", "+1.10", "x.jl"}, words{"perl", "-ne", "print"}})
        EXPECT_EQ(script_argument(other), "") << other[0] << ' ' << other[1];
}

TEST(script_directives, become_words_without_those_of_batch_jobs) {
    EXPECT_THAT(script_directives("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --output='a b'\n#SBATCH --constraint='a&b'\n#SBATCH "
                                  "-o x\n\necho\n#SBATCH --late\n",
                                  "#SBATCH "),
                ElementsAre("--nodes=2", "--constraint=a&b"));
    EXPECT_THAT(script_directives("#PBS -N a\n#PBS -r y\n#PBS -l walltime=1\n", "#PBS "),
                ElementsAre("-N", "a", "-l", "walltime=1"));
}

TEST(job_record, comes_back_as_it_was) {
    scratch_folder const folder;
    environment const variables{{"XDG_STATE_HOME", folder.path.string()}};
    job_record const record{.id = "12",
                            .scheduler = "slurm",
                            .site = "polaris",
                            .name = "a \"b\"\n",
                            .run_folder = "/w/muster-runs/%j",
                            .command = {"python3", "x y"},
                            .arguments = {"--gpus", "2"}};
    EXPECT_EQ(write_job_record(record, variables), "");
    EXPECT_EQ(find_job_record("12", variables), record);
    EXPECT_EQ(find_job_record("13", variables), std::nullopt);
    EXPECT_EQ(find_job_record("../12", variables), std::nullopt);
    EXPECT_THROW(parse_job_record("{}", "x"), error);
    EXPECT_THROW(parse_job_record("[", "x"), error);
    EXPECT_NE(write_job_record(record, {}), "");
}

TEST(job_record, is_kept_for_each_cluster_that_has_the_number) {
    scratch_folder const folder;
    environment const variables{{"XDG_STATE_HOME", folder.path.string()}};
    auto const keep = [&](std::string const& cluster, std::string const& name) {
        EXPECT_EQ(write_job_record({.id = "12", .scheduler = "slurm", .cluster = cluster, .name = name}, variables), "");
    };
    auto const found = [&](std::string const& id, std::string const& cluster) {
        auto const record = find_job_record(id, variables, [&] { return cluster; });
        return record ? record->name : std::string();
    };
    keep("", "old");  // by an earlier version
    EXPECT_EQ(found("12", "alpha"), "old");
    EXPECT_EQ(found("12", ""), "old");
    keep("alpha", "one");
    EXPECT_EQ(found("12", "alpha"), "one");
    EXPECT_EQ(found("12", "beta"), "old");
    EXPECT_THROW(found("12", ""), error);
    std::filesystem::remove_all(folder.path / "muster");
    keep("alpha", "one"), keep("beta", "two");
    EXPECT_EQ(found("12", "alpha"), "one");
    EXPECT_EQ(found("12_3", "beta"), "two");
    EXPECT_EQ(found("12", "gamma"), "");
    EXPECT_EQ(write_job_record({.id = "67108876", .scheduler = "slurm", .cluster = "alpha", .name = "of all"}, variables), "");
    EXPECT_EQ(found("67108876", "beta"), "of all");  // of a federation
    keep("beta", "three");
    EXPECT_EQ(found("12", "beta"), "three");
    EXPECT_EQ(found("12", "alpha"), "one");
}

TEST(job_record, is_found_by_other_numbers_of_its_job) {
    scratch_folder const folder;
    environment const variables{{"XDG_STATE_HOME", folder.path.string()}};
    auto const keep = [&](std::string const& scheduler, std::string const& id) {
        EXPECT_EQ(write_job_record({.id = id, .scheduler = scheduler}, variables), "");
    };
    keep("slurm", "12");
    keep("pbs", "34.one.example");
    keep("pbs", "56[].one");
    keep("pbs", "78.one"), keep("pbs", "78.two");
    auto const found = [&](std::string const& id) {
        auto const record = find_job_record(id, variables);
        return record ? record->id : std::string();
    };
    EXPECT_EQ(found("12_1"), "12");
    EXPECT_EQ(found("13_1"), "");
    EXPECT_EQ(found("34"), "34.one.example");
    EXPECT_EQ(found("3"), "");
    EXPECT_EQ(found("56[2].one"), "56[].one");
    EXPECT_EQ(found("56[2]"), "56[].one");
    EXPECT_EQ(found("56"), "56[].one");
    EXPECT_EQ(found("56.one"), "56[].one");
    EXPECT_EQ(found("56.two"), "");
    EXPECT_EQ(full_job_number("56", find_job_record("56", variables)), "56[].one");
    EXPECT_EQ(found("78"), "");  // of which server?
    EXPECT_EQ(full_job_number("34", find_job_record("34", variables)), "34.one.example");
    EXPECT_EQ(full_job_number("12_1", find_job_record("12_1", variables)), "12_1");
}

TEST(job_poll, passes_over_questions_that_fail_but_not_for_ever) {
    int asked = 0, told = 0;
    bool fails = true;
    job_poll poll(
        [&](words const& ids) -> std::vector<queued_job> {
            ++asked;
            if (fails) throw error(errc::unavailable, "no answer");
            return {{.id = ids.at(0), .raw_id = ids.at(0)}};
        },
        [&](std::string const&) { ++told; });
    EXPECT_EQ(poll.ask({"1"}), std::nullopt);
    EXPECT_EQ(poll.ask({"1"}), std::nullopt);
    EXPECT_EQ(told, 1);
    fails = false;
    EXPECT_EQ(poll.ask({"1"})->size(), 1u);
    fails = true;
    for (int i = 1; i < job_poll::most_failures; ++i) EXPECT_EQ(poll.ask({"1"}), std::nullopt);
    EXPECT_EQ(told, 2);
    EXPECT_THROW(poll.ask({"1"}), error);
    job_poll misused([](words const&) -> std::vector<queued_job> { throw error(errc::usage, "x"); }, [](std::string const&) {});
    EXPECT_THROW(misused.ask({"1"}), error);
}

TEST(recorded_run, leaves_a_folder_of_its_own_when_repeated) {
    EXPECT_EQ(with_own_folder({"-n", "2", "--output-dir", "out"}, "/w/out/"),
              (words{"-n", "2", "--output-dir", "/w/out.again-%j"}));
    EXPECT_EQ(with_own_folder({"--output-dir", "logs/%j"}, "/w/logs/7"), (words{"--output-dir", "logs/%j"}));
    EXPECT_EQ(with_own_folder({"-n", "2"}, "/w/out"), (words{"-n", "2"}));
    EXPECT_EQ(missing_secrets({"--env", "A=b", "--env", "MY_TOKEN", "--env", "HERE", "-n", "2"}, {{"HERE", "x"}}),
              (words{"MY_TOKEN"}));
}

TEST(words_of_setting, give_the_same_setting_again) {
    auto const again = [](words const& args) {
        words all;
        auto const given = resolve_settings("run", args, {});
        for (auto const& [name, value] : given.values) {
            auto const own = words_of_setting(*find_setting(name, "run"), value.entries);
            all.insert(all.end(), own.begin(), own.end());
        }
        all.push_back("--");
        all.push_back("x");
        auto const second = resolve_settings("run", all, {});
        for (auto const& [name, value] : given.values) EXPECT_EQ(second.get(name).entries, value.entries) << name;
        EXPECT_EQ(second.values.size(), given.values.size());
    };
    again({"-n", "4", "--no-smt", "--tag-output", "-x", "A=b c", "-x", "B", "--cpu-map", "1,2:3", "--engine-args", "a 'b c'",
           "--gpu-map", "1,0", "x"});
}

TEST(run_folder, is_never_that_of_another_run) {
    scratch_folder const folder;
    auto const pattern = (folder.path / "logs/%j").string();
    EXPECT_EQ(claim_run_folder(pattern, "7"), (folder.path / "logs/7").string());
    EXPECT_EQ(claim_run_folder(pattern, "7"), (folder.path / "logs/7.2").string());
    EXPECT_EQ(claim_run_folder(pattern, "8"), (folder.path / "logs/8").string());
    EXPECT_EQ(claim_run_folder("fixed", "7"), "fixed");
    EXPECT_EQ(claim_run_folder(pattern + "/", "7"), (folder.path / "logs/7.3").string());
}

TEST(secret, is_left_out) {
    environment variables{
        {"HF_TOKEN", "x"}, {"AWS_SECRET_ACCESS_KEY", "x"}, {"WANDB_API_KEY", "x"}, {"PROXY", "http://me:word@host/"},
        {"PATH", "/bin"},  {"URL", "http://host/a:b@c"},   {"TOKENIZERS", "1"},    {"KEYBOARD", "de"}};
    EXPECT_THAT(leave_out_secrets(variables), ElementsAre("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PROXY", "WANDB_API_KEY"));
    EXPECT_EQ(variables, (environment{{"PATH", "/bin"}, {"URL", "http://host/a:b@c"}, {"TOKENIZERS", "1"}, {"KEYBOARD", "de"}}));
    EXPECT_EQ(without_secret("MY_TOKEN=abc"), "MY_TOKEN");
    EXPECT_EQ(without_secret("A=b"), "A=b");
    EXPECT_TRUE(may_be_secret("INDEX", "https://glpat-x@gitlab.example/simple"));
    EXPECT_FALSE(may_be_secret("ORIGIN", "ssh://git@host/x"));
    EXPECT_TRUE(may_be_secret("ORIGIN", "ssh://git:word@host/x"));
    EXPECT_FALSE(may_be_secret("URL", "https://@host/ https://host/@x"));
}

TEST(secret, is_known_by_many_names_and_by_what_it_looks_like) {
    for (auto const name : {"GITHUB_PAT",
                            "GH_PAT",
                            "PAT",
                            "SSHPASS",
                            "JWT",
                            "CI_JOB_JWT",
                            "BEARER",
                            "AUTH_HEADER",
                            "DOCKER_AUTH_CONFIG",
                            "AUTH",
                            "BASIC_AUTH",
                            "OAUTH2",
                            "AZURE_STORAGE_CONNECTION_STRING",
                            "SLACK_WEBHOOK_URL",
                            "DB_PASS1",
                            "COMET_KEY1",
                            "MY_PSK",
                            "KEY",
                            "PW",
                            "TOKEN2",
                            "dbPassword",
                            "apiKey",
                            "my-secret",
                            "npm_config__authToken",
                            "SECRET",
                            "COOKIE",
                            "CREDENTIALS",
                            "PASSWORD",
                            "passwd",
                            "CREDS",
                            "SSH_KEY_2",
                            "API_KEYS",
                            "SAS"})
        EXPECT_TRUE(may_be_secret(name, "x")) << name;
    for (auto const value :
         {"https://x.blob.core.windows.net/c?sv=1&sig=abc", "https://h/?access_token=abc", "https://h/a?X-Amz-Signature=1f",
          "Server=h;User=u;Password=p", "AccountKey=abc;", "ghp_0123456789abcdef0123", "eyJhbGciOiJIUzI1NiJ9.e30.x",
          "-----BEGIN RSA PRIVATE KEY-----", "Bearer abcdef", "Basic dTpw"})
        EXPECT_TRUE(may_be_secret("X", value)) << value;
    for (auto const name :
         {"PWD", "OLDPWD", "PATH", "AUTHOR", "XAUTHORITY", "SSH_AUTH_SOCK", "KEYBOARD", "TOKENIZERS_PARALLELISM", "I_MPI_PIN",
          "MONKEY", "BYPASS", "NCCL_IB_PKEY", "PATTERN", "SEED", "XDG_SESSION_ID", "AWS_REGION"})
        EXPECT_FALSE(may_be_secret(name, "1")) << name;
    EXPECT_FALSE(may_be_secret("X", "https://host/?q=design=1"));
}

TEST(records, of_others_may_be_deep_or_damaged) {
    std::string const deep(500'000, '[');
    EXPECT_THROW(parse_job_record(R"({"schema": "muster.job/1", "x": )" + deep, "x.json"), error);
    EXPECT_THROW(parse_job_record(R"({"schema": 1})", "x.json"), error);
    EXPECT_THROW(parse_job_record(R"({"schema": "muster.job/1", "id": 1e999})", "x.json"), error);
}

TEST(records, keep_words_that_are_not_utf8) {
    job_record const record{
        .id = "7", .working_dir = "/w/caf\xe9", .command = {"a", "caf\xe9", "\xff"}, .arguments = {"--", "\xc3\xa9"}};
    auto const text = to_json(record);
    EXPECT_EQ(text.find("arguments_hex"), std::string::npos) << "for what JSON cannot hold alone";
    auto const again = parse_job_record(text, "x.json");
    EXPECT_EQ(again.command, record.command);
    EXPECT_EQ(again.arguments, record.arguments);
    EXPECT_EQ(again.working_dir, record.working_dir);
    EXPECT_THROW(parse_job_record(R"({"schema": "muster.job/1", "command_hex": ["6"]})", "x.json"), error);
    for (auto const* nul : {R"("command_hex": ["00"])", R"("command": ["a\u0000b"])"})
        EXPECT_THROW(parse_job_record(R"({"schema": "muster.job/1", )" + std::string(nul) + "}", "x.json"), error)
            << "no argument holds a NUL";
}

TEST(options_first, leaves_numbers_behind) {
    EXPECT_EQ(options_first("watch", {"12", "--rank", "3", "13", "--grep=x"}),
              (words{"--rank", "3", "--grep=x", "--", "12", "13"}));
    EXPECT_EQ(options_first("logs", {"12", "--follow", "--", "--x"}), (words{"--follow", "--", "12", "--x"}));
    EXPECT_EQ(options_first("jobs", {"--json"}), (words{"--json"}));
}

TEST(line_filter, takes_what_the_expression_finds) {
    EXPECT_TRUE(line_filter().takes("x"));
    line_filter const filter("loss=[0-9]+");
    EXPECT_TRUE(filter.takes("step 3 loss=12"));
    EXPECT_FALSE(filter.takes("step 3"));
    EXPECT_THROW(line_filter("a("), error);
}

struct seen_line {
    std::string who;
    std::string line;
    bool operator==(seen_line const&) const = default;
    friend void PrintTo(seen_line const& seen, std::ostream* out) { *out << '[' << seen.who << "] " << seen.line; }
};

TEST(log_tail, gives_each_line_once) {
    scratch_folder const folder;
    folder.write("7/rank.00/stdout", "a\nb");
    folder.write("7/rank.01/stderr", "e\n");
    folder.write("7.out", "hello\nmuster: error: x\n");
    std::vector<seen_line> seen;
    log_tail tail({}, [&](std::string const&, std::string const& who, std::string const& line) { seen.push_back({who, line}); });
    job_files const files{(folder.path / "7.out").string(), {(folder.path / "7").string()}, ""};
    tail.follow("7", files);
    tail.look();
    EXPECT_THAT(seen, testing::UnorderedElementsAre(seen_line{"", "muster: error: x"}, seen_line{"0", "a"}, seen_line{"1", "e"}));
    seen.clear();
    folder.write("7/rank.00/stdout", "c\nlast", std::ios::app);
    tail.look();
    EXPECT_THAT(seen, ElementsAre(seen_line{"0", "bc"}));
    seen.clear();
    tail.finish();
    EXPECT_THAT(seen, ElementsAre(seen_line{"0", "last"}));
}

// The script goes on behind the run, which has its end in its record before: read between the two, no line of the script is lost.
TEST(log_tail, knows_the_lines_of_the_script_by_the_record_of_the_run) {
    scratch_folder const folder;
    auto const record = [](std::string const& to, std::string const& name = "7.out") {
        return R"({"output": [{"file": "/elsewhere/)" + name + R"(", "from_byte": 7, "to_byte": )" + to + "}]}";
    };
    auto const seen_with = [&](std::string const& run, std::string const& text, std::string const& output = "7.out") {
        std::vector<seen_line> seen;
        log_tail tail({}, [&](std::string const&, std::string const& who, std::string const& line) {
            seen.push_back({who, line});
        });
        folder.write("7/rank.00/stdout", "of 0\n");
        folder.write("7/run.json", run);
        folder.write(output, text);
        tail.follow("7", {(folder.path / output).string(), {(folder.path / "7").string()}, ""});
        tail.finish();
        return seen;
    };
    EXPECT_THAT(seen_with(record("12"), "before\nof 0\nafter"),
                ElementsAre(seen_line{"", "before"}, seen_line{"0", "of 0"}, seen_line{"", "after"}));
    EXPECT_THAT(seen_with(record("null"), "before\nof 0\nmuster: x\n"),
                ElementsAre(seen_line{"", "before"}, seen_line{"0", "of 0"}, seen_line{"", "muster: x"}));
    // The spool of PBS has another name, and standard error a file of its own there.
    EXPECT_THAT(seen_with(record("12", "7.server.OU"), "before\nof 0\n", "name.o7"),
                ElementsAre(seen_line{"", "before"}, seen_line{"0", "of 0"}));
    EXPECT_THAT(seen_with(record("12", "7.server.ER"), "before\nof 0\n", "name.o7"), ElementsAre(seen_line{"0", "of 0"}));
    for (auto const* damaged : {"", "{", "[]", R"({"output": 3})", R"({"output": [{"file": 1}]})"})
        EXPECT_THAT(seen_with(damaged, "before\nof 0\n"), ElementsAre(seen_line{"0", "of 0"})) << damaged;

    std::vector<seen_line> seen;
    log_tail tail({}, [&](std::string const&, std::string const& who, std::string const& line) { seen.push_back({who, line}); });
    job_files const files{(folder.path / "7.out").string(), {(folder.path / "7").string()}, ""};
    folder.write("7/run.json", record("null"));
    folder.write("7.out", "before\nof 0\n");
    tail.follow("7", files);
    tail.look();
    folder.write("7/run.json.new", record("12"));
    fs::rename(folder.path / "7/run.json.new", folder.path / "7/run.json");
    folder.write("7.out", "after\n", std::ios::app);
    tail.look();
    EXPECT_THAT(seen, ElementsAre(seen_line{"", "before"}, seen_line{"0", "of 0"}, seen_line{"", "after"}));
    EXPECT_EQ(tail.why_no_script(), "");
}

// A requeued job begins its file anew, mostly with the same lines: where it does not, the times of the runs tell.
TEST(log_tail, forgets_what_earlier_runs_recorded_of_a_file_that_was_begun_anew) {
    scratch_folder const folder;
    auto const record = [&](std::string const& run, int from, std::string const& to, std::string const& times) {
        folder.write(run + "/rank.00/stdout", "of 0\n");
        folder.write(run + "/run.json", R"({"output": [{"file": "/w/7.out", "from_byte": )" + std::to_string(from) +
                                            R"(, "to_byte": )" + to + "}], " + times + "}");
    };
    folder.write("7.out", "before\nof 0\nafter\n");
    auto const seen = [&](bool ended = true) {
        std::vector<std::string> lines;
        log_tail tail({}, [&](std::string const&, std::string const& who, std::string const& line) {
            if (who.empty()) lines.push_back(line);
        });
        tail.follow("7", {(folder.path / "7.out").string(), {(folder.path / "7").string(), (folder.path / "7.2").string()}, ""});
        tail.finish(ended);
        if (!tail.why_no_script().empty()) lines.push_back("note");
        return lines;
    };
    record("7.2", 7, "12", R"("started_at": "2026-11-25T10:00:09+0100")");
    for (auto const* to : {"100", "null"}) {
        for (int const from : {7, 9}) {
            record("7", from, to, R"("started_at": "2026-11-25T10:00:00+0100")");
            EXPECT_THAT(seen(), ElementsAre("before", "after")) << from << " to " << to;
        }
    }
    record("7", 0, "100", R"("ended_at": "2026-11-25T10:00:09+0100")");
    EXPECT_THAT(seen(), ElementsAre("before", "after"));
    record("7", 0, "100", R"("ended_at": "2026-11-25T10:00:10+0100")");
    EXPECT_THAT(seen(), ElementsAre()) << "two runs at once";
    record("7", 0, "null", R"("started_at": "2026-11-25T10:00:00+0100")");
    EXPECT_THAT(seen(), ElementsAre("after", "note"));
    EXPECT_THAT(seen(false), ElementsAre("after")) << "of a job that goes on";
}

// Which rank a spare became is told by the record of a run that has ended.
TEST(log_tail, has_what_spares_print) {
    scratch_folder const folder;
    folder.write("7/rank.00/stdout", "a\n");
    folder.write("7/spare.00/stdout", "b\n");
    folder.write("7/spare.01/stderr", "c\n");
    auto const seen_with = [&](std::string const& record, std::optional<int> rank = std::nullopt) {
        folder.write("7/run.json", record);
        std::vector<seen_line> seen;
        log_tail tail({rank, {}}, [&](std::string const&, std::string const& who, std::string const& line) {
            seen.push_back({who, line});
        });
        tail.follow("7", {"", {(folder.path / "7").string()}, ""});
        tail.finish();
        return seen;
    };
    std::string const record = R"({"spares": [{"spare": 0, "rank": 0}, {"spare": 1, "rank": null}]})";
    EXPECT_THAT(seen_with(record), ElementsAre(seen_line{"0", "a"}, seen_line{"0", "b"}, seen_line{"spare 1", "c"}));
    EXPECT_THAT(seen_with(record, 0), ElementsAre(seen_line{"0", "a"}, seen_line{"0", "b"}));
    for (auto const* unknown : {"{}", "[]", R"({"spares": 3})", R"({"spares": [3, {"spare": "0", "rank": 0}]})"})
        EXPECT_THAT(seen_with(unknown), ElementsAre(seen_line{"0", "a"}, seen_line{"spare 0", "b"}, seen_line{"spare 1", "c"}))
            << unknown;
}

// Of the job's output only what is not the ranks': theirs is read from their own files.
TEST(log_tail, shows_what_slurm_itself_says_in_the_forms_of_all_versions) {
    scratch_folder const folder;
    folder.write("7/rank.00/stdout", "a\n");
    std::vector<std::string> const slurms{
        "slurmstepd: error: *** JOB 50 ON node1 CANCELLED AT 2026-11-25T03:30:15 ***",
        "[2026-11-25T03:30:15.478] error: *** JOB 50 ON node1 CANCELLED AT 2026-11-25T03:30:15 ***",
        "[2026-11-25T03:30:15] error: Detected 1 oom_kill event in StepId=50.0. Some of the step tasks have been OOM Killed.",
        "[2026-11-25T03:30:15.478+00:00] fatal: x",
        "[2026-11-25T03:30:15Z] error: x",
        "[Nov 25 03:30:15] error: x",
        "[Wed, 25 Nov 2026 03:30:15 +0000] error: x",
        "[6342] error: *** STEP 50.0 ON node1 CANCELLED ***",
        "srun: error: x"};
    std::string text;
    for (auto const& line : slurms) text += line + "\n";
    folder.write("7.out",
                 text + "[0] error: of a rank\n[0] a\n[2026-11-25 03:30:15,478] INFO a\nerror: a\n[a:b:c] a\n[] error: *** a\n");
    std::vector<std::string> seen;
    log_tail tail({}, [&](std::string const&, std::string const& who, std::string const& line) {
        if (who.empty()) seen.push_back(line);
    });
    tail.follow("7", {(folder.path / "7.out").string(), {(folder.path / "7").string()}, ""});
    tail.finish();
    EXPECT_EQ(seen, slurms);
}

TEST(starter_script, is_the_one_of_the_readme) {
    std::ifstream file(std::string(MUSTER_SOURCE_DIR) + "/README.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find("```python\n" + std::string(starter_script()) + "```"), std::string::npos);
}

}  // namespace
}  // namespace muster
