#include "base/command/command_set.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/version.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr;
using testing::internal::GetCapturedStdout;
using words = std::vector<std::string>;

constexpr option_row convert_options[]{
    {"output", 'o', "FILE", "the file", ""},
    {"chunk", 'c', "N", "images in a chunk", "64"},
    {"force", 'f', "", "replace the file", ""},
    {"quick", 'q', "", "do less", ""},
    {"level", 'l', "WHICH", "how much", "low", false, "low high"},
};
constexpr command_row convert_row{.name = "convert",
                                  .summary = "make a file",
                                  .synopsis = "FILE [options]",
                                  .examples = "  tool convert a -o b\n",
                                  .options = convert_options,
                                  .most_words = 1};
constexpr command_row check_row{.name = "check-it", .summary = "read a file"};
constexpr command_row inner_row{.name = "inner", .hidden = true};

given_options given(words const& args, bool takes_program = false) {
    return {"tool convert", convert_options, takes_program ? 0u : 1u, args, takes_program};
}

std::string failure(words const& args, bool takes_program = false) {
    try {
        given(args, takes_program);
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::usage);
        return e.what();
    }
    return "none";
}

TEST(given_options, read_every_form) {
    for (auto const& form : std::vector<words>{
             {"-fqo", "x"}, {"-f", "-q", "-ox"}, {"--force", "--quick", "--output=x"}, {"--quick", "--output", "x", "-f"}}) {
        auto const read = given(form);
        EXPECT_EQ(read.text("output"), "x");
        EXPECT_TRUE(read.has("force") && read.has("quick"));
        EXPECT_FALSE(read.has("chunk"));
        EXPECT_EQ(read.integer("chunk", 1, 64), 64);
    }
    EXPECT_THAT(given({"-c", "-5", "a"}).words(), ElementsAre("a"));
    EXPECT_EQ(given({"-c", "-5"}).text("chunk"), "-5");
    EXPECT_THAT(given({"--", "--force"}).words(), ElementsAre("--force"));
    EXPECT_THAT(given({"-"}).words(), ElementsAre("-"));
    EXPECT_TRUE(given({"-h"}).has("help"));
    EXPECT_TRUE(given({"--output=", "a"}).has("output")) << "with an empty value";
    EXPECT_EQ(given({"-o", ""}).text("output"), "");
    EXPECT_EQ(given({"--output==", "a"}).text("output"), "=");
}

TEST(given_options, tell_what_is_wrong) {
    EXPECT_EQ(failure({"--forse"}), "tool convert: unknown option '--forse', did you mean --force?; --help lists all");
    EXPECT_THAT(failure({"-fx"}), HasSubstr("unknown option '-x'"));
    EXPECT_THAT(failure({"--forc=", "--output"}), HasSubstr("unknown option '--forc=', did you mean --force?")) << "the first";
    EXPECT_THAT(failure({"-quik"}), HasSubstr("unknown option '-u'"));
    EXPECT_THAT(failure({"-utput"}), HasSubstr("unknown option '-utput', did you mean --output?"));
    EXPECT_THAT(failure({"--=x"}), HasSubstr("unknown option '--=x'"));
    EXPECT_EQ(failure({"--output"}), "--output has no value; give it one, or see --help");
    for (auto const* next : {"--force", "-f", "-fq", "--chunk=1", "--"})
        EXPECT_EQ(failure({"-o", next}), "-o has no value; give it one, or see --help") << next;
    EXPECT_EQ(failure({"-fo"}), "-o has no value; give it one, or see --help");
    EXPECT_EQ(failure({"--output", "-f"}), "--output has no value; give it one, or see --help");
    EXPECT_EQ(failure({"--force="}), "--force takes no value, but '--force=' gives it one; leave out '='");
    EXPECT_EQ(failure({"--force=1"}), "--force takes no value, but '--force=1' gives it one; leave out '=1'");
    EXPECT_EQ(failure({"-o", "a", "-o", "b"}), "tool convert: --output is given twice; give it once");
    EXPECT_EQ(failure({"a", "b"}), "tool convert: unexpected word 'b'; --help shows what it takes");
    auto const forgotten =
        "tool convert: unexpected word 'a b'; write -- before the program: -- 'a b' …; --help shows the options";
    for (auto const& program : std::vector<words>{{"a b"}, {"-q", "a b", "--forse=2", "x"}, {"a b", "-x"}, {"a b", "-o", "x"}})
        EXPECT_EQ(failure(program, true), forgotten) << program.back();
    EXPECT_THAT(failure({"--forse", "a"}, true), HasSubstr("unknown option '--forse'"));
    EXPECT_EQ(failure({"a", "--", "b"}, true), "tool convert: unexpected word 'a'; --help shows what it takes");
    EXPECT_EQ(failure({"-q", "--", "a", "-x"}, true), "none");
    EXPECT_THAT([] { given({}).needed("output"); },
                testing::ThrowsMessage<error>("tool convert: --output is missing; give --output FILE"));
    EXPECT_THAT(
        [] {
            given({"-c", "many"}).integer("chunk", 1, 9);
        },
        testing::ThrowsMessage<error>("--chunk: 'many' is no whole number from 1 to 9"));
    EXPECT_THROW(given({"-c", "10"}).integer("chunk", 1, 9), error);
    EXPECT_THROW(given({"-c", "x"}).real("chunk"), error);
}

class command_sets : public testing::Test {
  protected:
    command_sets() {
        set.add(convert_row, [&](given_options const& options) {
            seen = options.words();
            return 7;
        });
        set.add_unread(check_row, [&](words const& args) {
            seen = args;
            return 0;
        });
        set.add_unread(inner_row, [](words const&) { return 9; });
    }
    std::string printed(words const& args) {
        CaptureStdout();
        EXPECT_EQ(set.run(args), 0);
        return GetCapturedStdout();
    }
    command_set set{{.name = "tool", .summary = "files", .example = "tool convert a", .closing = "Bye.\n", .version = {}}};
    words seen;
};

TEST_F(command_sets, run_what_is_named) {
    EXPECT_EQ(set.run({"convert", "-f", "a"}), 7);
    EXPECT_THAT(seen, ElementsAre("a"));
    EXPECT_EQ(set.run({"check-it", "--any"}), 0);
    EXPECT_THAT(seen, ElementsAre("--any"));
    EXPECT_EQ(set.run({"inner"}), 9);
    EXPECT_THAT([&] { set.run({"convrt"}); },
                testing::ThrowsMessage<error>("no command 'convrt', did you mean 'convert'?; tool --help lists them"));
}

TEST_F(command_sets, print_help_and_version) {
    auto const overview = fmt::format(
        "tool {}: files\n\n  tool convert a\n\ncommands (each has --help)\n  convert   make a file\n"
        "  check-it  read a file\n\nBye.\n",
        version());
    EXPECT_EQ(printed({"--help"}), overview);
    EXPECT_EQ(printed({"help"}), overview);
    EXPECT_EQ(printed({"version"}), fmt::format("tool {}\n", version()));
    EXPECT_EQ(printed({"--version"}), printed({"-v"}));
    auto const help = printed({"convert", "--help"});
    EXPECT_EQ(
        help,
        "tool convert FILE [options]      make a file\n\n  tool convert a -o b\n\n"
        "  -o, --output FILE  the file\n  -c, --chunk N      images in a chunk [64]\n  -f, --force        replace the file\n"
        "  -q, --quick        do less\n  -l, --level WHICH  how much [low]\n  -h, --help         this text\n");
    EXPECT_EQ(printed({"help", "convert"}), help);
    CaptureStderr();
    EXPECT_EQ(set.run({}), 2);
    EXPECT_EQ(GetCapturedStderr(), overview);
}

TEST_F(command_sets, tell_shells_their_words) {
    EXPECT_THAT(completion_words(set, ""), ElementsAre("convert", "check-it")) << "without the hidden one";
    EXPECT_THAT(completion_words(set, "convert"), ElementsAre("--output", "--chunk", "--force", "--quick", "--level", "--help"));
    EXPECT_THAT(completion_values(set, "convert", "--level"), ElementsAre("low", "high"));
    EXPECT_THAT(completion_values(set, "convert", "-l"), ElementsAre("low", "high"));
    for (auto const* option : {"--output", "--nothing", "level", "-x"})
        EXPECT_TRUE(completion_values(set, "convert", option).empty());
    EXPECT_TRUE(completion_words(set, "nothing").empty());
    add_completion_command(set);
    EXPECT_EQ(printed({"completion"}), "convert\ncheck-it\n");
    EXPECT_EQ(printed({"completion", "convert"}), "--output\n--chunk\n--force\n--quick\n--level\n--help\n");
    EXPECT_THROW(set.run({"completion", "bash"}), error);
}

TEST(run_programs, turn_errors_into_exit_codes) {
    CaptureStderr();
    EXPECT_EQ(run_main("tool", [] { return 5; }), 5);
    EXPECT_EQ(run_main("tool", []() -> int { throw error(errc::usage, "no"); }), 2);
    EXPECT_EQ(run_main("tool", []() -> int { throw std::runtime_error("odd"); }), 125);
    EXPECT_EQ(GetCapturedStderr(), "tool: error: no\ntool: error: odd\n");
}

}  // namespace
}  // namespace muster
