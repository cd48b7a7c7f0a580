// What a script says, and what bash really makes of it.
#include "jobscripts/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr std::array every_kind{script_kind::slurm, script_kind::pbs, script_kind::cobalt, script_kind::local};

script_request example(script_kind kind) {
    script_request request;
    request.kind = kind;
    request.account = "proj_g";
    request.queue = "debug";
    request.nodes = 2;
    request.ranks_per_node = 4;
    request.cpus_per_rank = 8;
    request.walltime = duration(5400);
    request.command = {"python", "train.py"};
    return request;
}

std::string read_file(fs::path const& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder in which scripts are really run, with a program that writes down its arguments in place of muster.
class in_bash : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "muster-script-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        fs::create_directory(folder_ / "bin dir");
        stub_ = folder_ / "bin dir" / "muster";
        std::ofstream(stub_) << "#!/bin/sh\nprintf '%s\\0' \"$@\" >\"" << (folder_ / "argv").string() << "\"\nexit 17\n";
        fs::permissions(stub_, fs::perms::owner_all);
    }
    void TearDown() override { fs::remove_all(folder_); }

    /// Runs the script; its exit code. What it printed is in `printed_`, the arguments of the stub in `argv_`.
    int run(std::string const& script, std::string const& locale) {
        std::ofstream(folder_ / "job", std::ios::binary) << script;
        fs::remove(folder_ / "argv");
        auto const line = "cd / && env LC_ALL=" + locale + " PBS_O_WORKDIR=" + shell_quote(folder_.string()) + " bash " +
                          shell_quote((folder_ / "job").string()) + " >" + shell_quote((folder_ / "out").string()) + " 2>&1";
        int const status = std::system(line.c_str());
        printed_ = read_file(folder_ / "out");
        argv_.clear();
        auto const bytes = read_file(folder_ / "argv");
        for (auto const piece : split(bytes, '\0')) argv_.emplace_back(piece);
        if (!argv_.empty()) argv_.pop_back();
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    fs::path folder_;
    fs::path stub_;
    std::string printed_;
    std::vector<std::string> argv_;
};

std::vector<std::string> const hostile{"plain",
                                       "",
                                       " ",
                                       "a b",
                                       "it's",
                                       "\"double\"",
                                       "$(touch pwned)",
                                       "`touch pwned`",
                                       "${HOME}",
                                       "$HOME",
                                       "~",
                                       "*",
                                       "?",
                                       "[a-z]*",
                                       "{a,b}",
                                       "a;touch pwned",
                                       "a&touch pwned",
                                       "a|touch pwned",
                                       ">pwned",
                                       "<(touch pwned)",
                                       "#not a comment",
                                       "!history",
                                       "\\",
                                       "\\n",
                                       "a\\",
                                       "'\\''",
                                       "$'x'",
                                       "--",
                                       "-n",
                                       "--help",
                                       "-",
                                       "line\nline",
                                       "\n",
                                       "x\n#SBATCH --account=evil\n#PBS -q evil",
                                       "\r\n",
                                       "tab\there",
                                       "tab\t7",
                                       "\x01\x37",
                                       "\x01\x02\x1b[31m",
                                       "\x7f",
                                       "gr\xc3\xbc\xc3\x9f\x65",
                                       "\xe6\xbc\xa2\xe5\xad\x97",
                                       "\xff\xfe",
                                       "cut\xe3",
                                       "cut\xc3'",
                                       "bad\n\x80\xff\x31",
                                       "{{account}}",
                                       "{{{command}}}",
                                       "{{/command}}",
                                       "{{> body}}",
                                       "/a path/with spaces",
                                       "FOO=bar",
                                       "=",
                                       "%s%n",
                                       "\\012",
                                       "0",
                                       "a\t'\\b",
                                       std::string(5000, 'x')};

TEST_F(in_bash, every_byte_of_the_arguments_arrives) {
    for (auto const kind : every_kind) {
        auto request = example(kind);
        request.muster = stub_.string();
        request.run_options = {"--tag output", "-x\n"};
        request.command = hostile;
        std::vector<std::string> wanted{"run", "-n", "8", "--tag output", "-x\n", "--"};
        wanted.insert(wanted.end(), hostile.begin(), hostile.end());
        auto const script = render(request);
        for (std::string const locale : {"C", "C.UTF-8"}) {
            EXPECT_EQ(run(script, locale), 17) << printed_;
            EXPECT_EQ(argv_, wanted);
            EXPECT_EQ(printed_, "");
        }
        EXPECT_FALSE(fs::exists(folder_ / "pwned"));
        EXPECT_FALSE(fs::exists("/pwned"));
    }
}

TEST_F(in_bash, each_hostile_word_alone_as_the_program) {
    auto request = example(script_kind::slurm);
    request.muster = stub_.string();
    for (auto const& word : hostile) {
        request.command = {word};
        EXPECT_EQ(run(render(request), "C.UTF-8"), 17) << word << '\n' << printed_;
        EXPECT_EQ(argv_, (std::vector<std::string>{"run", "-n", "8", "--", word}));
    }
}

TEST_F(in_bash, exported_values_arrive) {
    auto request = example(script_kind::local);
    request.muster = "/bin/sh";
    request.command = {};
    // "sh run -n 8 -- …" runs the file `run` in the folder.
    std::ofstream(folder_ / "run") << "printf '%s\\0' \"$A\" \"$B\" >argv\nexit 17\n";
    request.environment = {{"A", "AWS Libfabric"}, {"B", "$(touch pwned)\n'"}};
    request.setup = {"cd " + shell_quote(folder_.string())};
    request.command = {"x"};
    EXPECT_EQ(run(render(request), "C"), 17) << printed_;
    EXPECT_EQ(argv_, (std::vector<std::string>{"AWS Libfabric", "$(touch pwned)\n'"}));
}

TEST_F(in_bash, a_pbs_script_runs_where_it_was_submitted) {
    auto request = example(script_kind::pbs);
    request.muster = "/bin/sh";
    std::ofstream(folder_ / "run") << "pwd | tr '\\n' '\\0' >argv\n";
    EXPECT_EQ(run(render(request), "C"), 0) << printed_;
    EXPECT_EQ(argv_, (std::vector<std::string>{fs::canonical(folder_).string()}));
}

TEST(render, no_line_begins_inside_a_word) {
    auto request = example(script_kind::slurm);
    auto const plain = render(request);
    auto const lines = split(plain, '\n').size();
    request.command = hostile;
    auto const script = render(request);
    EXPECT_EQ(split(script, '\n').size(), lines);
    EXPECT_THAT(script, Not(HasSubstr("\r")));
}

TEST(render, a_program_that_runs_once_finds_muster) {
    auto request = example(script_kind::pbs);
    request.once = true;
    EXPECT_THAT(render(request), Not(HasSubstr("export PATH")));
    request.muster = "/opt/my tools/bin/muster";
    EXPECT_THAT(render(request),
                HasSubstr("\nexport PATH='/opt/my tools/bin'\"${PATH:+:$PATH}\"\nexec python train.py </dev/null\n"));
    request.once = false;
    EXPECT_THAT(render(request), Not(HasSubstr("export PATH")));
}

TEST(render, what_is_empty_leaves_no_line) {
    for (auto const kind : every_kind) {
        script_request request;
        request.kind = kind;
        request.walltime = duration(60);
        request.command = {"x"};
        EXPECT_THAT(render(request), Not(HasSubstr("\n\n\n")));
        EXPECT_THAT(render(request), Not(testing::EndsWith("\n\n")));
        EXPECT_THAT(render(request), Not(HasSubstr("{{")));
        EXPECT_THAT(render(request), HasSubstr("exec muster run -n 1 -- x"));
    }
}

TEST(render, hostile_directives_are_refused_in_every_kind) {
    for (auto const kind : every_kind)
        for (std::string const bad : {"a\n#SBATCH --uid=0", "a b", "$(id)", "-a", "a'"}) {
            auto request = example(kind);
            auto const refused = [&](std::string script_request::*member) {
                auto wrong = request;
                wrong.*member = bad;
                EXPECT_THROW(render(wrong), error) << bad;
            };
            refused(&script_request::account);
            refused(&script_request::queue);
            refused(&script_request::job_name);
            refused(&script_request::constraint);
            refused(&script_request::chunk);
            refused(&script_request::place);
            refused(&script_request::filesystems);
            refused(&script_request::attributes);
            request.directives = {"-r y\n" + bad};
            EXPECT_THROW(render(request), error);
        }
}

TEST(render, shapes_that_make_no_sense_are_refused) {
    auto const refused = [](auto&& change) {
        auto request = example(script_kind::slurm);
        change(request);
        EXPECT_THROW(render(request), error);
    };
    refused([](auto& r) { r.nodes = 0; });
    refused([](auto& r) { r.ranks_per_node = -1; });
    refused([](auto& r) { r.cpus_per_rank = -1; });
    refused([](auto& r) { r.walltime = duration(0); });
    refused([](auto& r) { r.walltime = duration(-5); });
    refused([](auto& r) { r.walltime = duration(1e9); });
    refused([](auto& r) { r.walltime = duration(std::nan("")); });
    refused([](auto& r) { r.command.clear(); });
    refused([](auto& r) { r.command = {std::string("a\0b", 3)}; });
    refused([](auto& r) { r.setup = {"a\nb"}; });
    refused([](auto& r) { r.environment = {{"A B", "x"}}; });
    refused([](auto& r) { r.job_name = ""; });
}

TEST(render, a_template_of_the_users) {
    auto const request = example(script_kind::slurm);
    EXPECT_EQ(render(request, "#!/bin/sh\nrun {{{nodes}}} {{#command}}{{.}} {{/command}}", "mine"),
              "#!/bin/sh\nrun 2 python train.py \n");
    try {
        render(request, "{{#open}}", "mine.mustache");
        FAIL();
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("mine.mustache"));
        EXPECT_EQ(exit_code(e.code()), 2);
    }
}

TEST(templates, of_names_that_nothing_sets_are_refused) {
    auto const fault = [](std::string const& text) {
        try {
            render(example(script_kind::slurm), text, "own.mustache");
        } catch (parse_error const& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    EXPECT_THAT(fault("#!/bin/sh\nrun {{nodez}} x\n"), testing::AllOf(HasSubstr("own.mustache:2:7"), HasSubstr("no name 'nodez'"),
                                                                      HasSubstr("did you mean 'nodes'?"), HasSubstr("      ^")));
    for (auto const* text : {"{{{nosuch}}}", "{{#nosuch}}x{{/nosuch}}", "{{^nosuch}}x{{/nosuch}}", "{{& nosuch }}",
                             "{{> nosuch}}", "{{#command}}{{word}}{{/command}}"})
        EXPECT_THAT(fault(text), HasSubstr("own.mustache:1:")) << text;
    EXPECT_EQ(fault("{{! nosuch }}{{nodes}} {{has_queue}} {{queue}} {{array}} {{signal}} "
                    "{{#environment}}{{name}}={{value}}{{/environment}} {{> body}}"),
              "");
}

// With the variable unset an empty part would be left, which is the working folder.
TEST(templates, of_deep_sections_are_refused) {
    std::string text = "#!/bin/bash\n";
    for (int i = 0; i < 40'000; ++i) text += "{{ #once}}";
    EXPECT_THROW(render(example(script_kind::slurm), text, "own.mustache"), parse_error);
}

TEST(templates, join_folders_without_empty_parts) {
    for (std::string const folder : {"jobscripts/templates", "site-configs"})
        for (auto const& entry : fs::directory_iterator(fs::path(MUSTER_SOURCE_DIR) / folder)) {
            auto const text = read_file(entry.path());
            for (std::string const bare : {"PATH=$PATH:", "PATH:", ":$PATH", ":\"$PATH", ":$LD_LIBRARY_PATH",
                                           ":\"$LD_LIBRARY_PATH", ":$PYTHONPATH", ":\"$PYTHONPATH"})
                for (auto at = text.find(bare); at != std::string::npos; at = text.find(bare, at + 1))
                    EXPECT_TRUE(text.substr(at, 7).starts_with("PATH:+:") || text.substr(at - 1, 3) == "+:$")
                        << entry.path() << ": " << text.substr(at, 40);
        }
}

TEST(templates, the_program_holds_the_files) {
    std::size_t files = 0;
    for (auto const& entry : fs::directory_iterator(fs::path(MUSTER_SOURCE_DIR) / "jobscripts" / "templates")) {
        ++files;
        auto const name = entry.path().filename().string();
        auto const rows = script_templates();
        auto const row = std::find_if(rows.begin(), rows.end(), [&](auto const& r) { return r.name == name; });
        ASSERT_NE(row, rows.end()) << name;
        EXPECT_EQ(row->text, read_file(entry.path()));
    }
    EXPECT_EQ(files, script_templates().size());
}

TEST(render, chunks_of_pbs_hold_their_share_of_the_ranks) {
    auto request = example(script_kind::pbs);
    request.chunks = 8;
    EXPECT_THAT(render(request), HasSubstr("select=8:ncpus=8:ngpus=1:mpiprocs=1"));
}

TEST(render, arrays_of_pbs_are_one_range) {
    auto request = example(script_kind::pbs);
    for (auto const* good : {"1-8", "0-9:2", "0-9%2", "0-9:2%2"}) {
        request.array = good;
        EXPECT_THAT(render(request), HasSubstr(std::string("#PBS -J ") + good + "\n"));
    }
    for (auto const* bad : {"1-4,7", "1,2", "5", "1-", "-4", "4-4", "8-1"}) {
        request.array = bad;
        EXPECT_THROW(render(request), error) << bad;
    }
    request.kind = script_kind::slurm;
    request.array = "1-4,7";
    EXPECT_THAT(render(request), HasSubstr("#SBATCH --array=1-4,7\n"));
}

}  // namespace
}  // namespace muster
