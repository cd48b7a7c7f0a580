#include "launch/settings/setting.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/settings/parts.hpp"
#include "launch/settings/settings_file.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/site.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using words = std::vector<std::string>;

/// Files that are texts.
settings_sources sources_of(environment const& variables, std::map<std::string, std::string> const& files) {
    settings_sources sources;
    sources.variables = variables;
    sources.project_file = "muster.toml";
    sources.user_file = "/home/u/.config/muster/muster.toml";
    sources.read_file = [files](std::string const& path) -> std::optional<std::string> {
        auto const found = files.find(path);
        return found == files.end() ? std::nullopt : std::optional(found->second);
    };
    sources.load_site = [files](std::string const& name) {
        return site_settings{name, parse_settings(files.at(name), "/sites/" + name + ".toml")};
    };
    return sources;
}

std::string failure(std::string const& command, words const& args, settings_sources const& sources = {}) {
    try {
        auto const given = resolve_settings(command, args, sources);
        if (command == "run") make_run_options(given);
    } catch (error const& e) {
        EXPECT_EQ(exit_code(e.code()), 2) << e.what();
        return e.what();
    }
    return "no error";
}

std::string repeated(std::string_view text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

TEST(resolve_settings, of_sites_the_only_own_one_is_taken) {
    auto sources = sources_of({}, {{"mst", ""}, {"other", ""}});
    sources.own_sites = [] { return words{"mst"}; };
    auto const given = resolve_settings("submit", {"--gpus", "4", "--", "x"}, sources);
    EXPECT_EQ(given.text("site"), "mst");
    EXPECT_THAT(given.notes, Contains(HasSubstr("--site mst: the only site file")));
    EXPECT_EQ(resolve_settings("init", {"folder"}, sources).text("site"), "mst");
    EXPECT_EQ(resolve_settings("submit", {"--site", "other", "--", "x"}, sources).text("site"), "other");
    EXPECT_FALSE(resolve_settings("run", {"x"}, sources).given("site"));
    sources.own_sites = [] { return words{"a", "b"}; };
    EXPECT_THAT(failure("script", {"--gpus", "4", "--", "x"}, sources), HasSubstr("you have site files of a, b"));
    sources.own_sites = [] { return words{}; };
    EXPECT_FALSE(resolve_settings("script", {"--gpus", "4", "--", "x"}, sources).given("site"));
}

TEST(settings_text, keys_and_values_that_are_too_deep_are_shown) {
    auto const fault = [](std::string const& text) {
        try {
            parse_settings(text, "muster.toml");
        } catch (parse_error const& e) {
            return std::string(e.what());
        }
        return std::string("read");
    };
    std::string const keys = repeated("a.", 29'999) + "a";
    for (auto const& text :
         {"[" + keys + "]", "[[" + keys + "]]", keys + " = 1", "x = {" + keys + " = 1}", repeated("\"a\" . ", 99) + "'a' = 1"}) {
        EXPECT_THAT(fault("# first\n" + text + "\n"), testing::HasSubstr("muster.toml:2:"));
        EXPECT_THAT(fault("# first\n" + text + "\n"), testing::HasSubstr("more than 32 parts"));
    }
    EXPECT_THAT(fault("x = " + repeated("[", 40'000)), testing::HasSubstr("deeper than 32"));
    EXPECT_THAT(fault("x = " + repeated("{a=", 40'000)), testing::HasSubstr("deeper than 32"));
    EXPECT_THAT(fault("x = " + repeated("[", 33) + repeated("]", 33)), testing::HasSubstr("deeper than 32"));
    EXPECT_THAT(fault("x = " + repeated("[", 32) + repeated("]", 32)), testing::HasSubstr("unknown key 'x'"));
    EXPECT_THAT(fault(repeated("a.", 31) + "a = 1"), testing::HasSubstr("unknown key 'a'"));
    EXPECT_LT(fault(repeated("k", 900'000) + " = 1").size(), 5000u);
    // Dots and brackets of texts and comments are none of keys.
    auto const dots = repeated(".[{", 99);
    for (auto const& text :
         {"# " + dots + "\n", "env = ['" + dots + "', \"\\\"" + dots + "\", \"\"\"\n" + dots + "\"\"\", '''\n" + dots + "''']\n"})
        EXPECT_EQ(fault(text), "read") << text;
}

TEST(project_file, of_another_user_is_not_obeyed) {
    auto sources = sources_of({}, {{"muster.toml", "ranks = 3\nenv = [\"LD_PRELOAD=/evil\"]\n"}});
    sources.distrust = [](std::string const& path) { return path == "muster.toml" ? "it belongs to the user mallory" : ""; };
    auto const given = resolve_settings("run", {"true"}, sources);
    EXPECT_FALSE(given.given("ranks"));
    EXPECT_FALSE(given.given("env"));
    EXPECT_THAT(given.file_notes,
                ElementsAre("./muster.toml is not read: it belongs to the user mallory; copy it to a file of your own"));
}

TEST(project_file, is_named_where_it_can_run_programs) {
    auto const sources = sources_of({}, {{"muster.toml", "ranks = 3\nenv = [\"A=1\"]\nengine-args = \"-v\"\n"}});
    EXPECT_THAT(resolve_settings("run", {"true"}, sources).file_notes,
                ElementsAre("settings from ./muster.toml: engine-args, env"));
    EXPECT_THAT(resolve_settings("run", {"-x", "B=1", "--engine-args=-q", "true"}, sources).file_notes, IsEmpty()) << "overruled";
}

/// A value that such a row takes.
std::string any_value(setting const& row) {
    switch (row.kind) {
        case setting_kind::flag: return "true";
        case setting_kind::integer: return "2";
        case setting_kind::time: return "\"9s\"";
        case setting_kind::file:
        case setting_kind::folder:
        case setting_kind::text:
        case setting_kind::list: break;
    }
    for (std::string const value : {"1", "A=1", "USR1@60", "0-1", "1,2", "1:2", "a=1,2", "40000-41000"})
        if (!row.choices.empty() ? false : !fault_of(row, value)) return '"' + value + '"';
    if (row.choices.empty()) {
        ADD_FAILURE() << "--" << row.name << " takes no value that any_value in " << __FILE__ << " tries: add one there";
        return "\"\"";
    }
    return fmt::format("\"{}\"", words_of(row.choices).front());
}

// Whoever writes a new row must say who may set it: without a word that is the command line alone.
TEST(setting_rows, say_who_may_set_them) {
    static_assert(setting{}.use == setting_use::command_line);
    std::vector<std::string_view> starting;
    for (auto const& row : settings()) {
        if (find_configurable(row.name) != nullptr && !row.is_configurable()) continue;  // another command's option of this name
        auto const line = fmt::format("{} = {}\n", row.name, any_value(row));
        auto const fault = [&](file_owner owner) -> std::string {
            try {
                parse_settings(line, "muster.toml", owner);
                return "read";
            } catch (error const& e) {
                return e.what();
            }
        };
        EXPECT_EQ(fault(file_owner::user) == "read", row.is_configurable()) << line << fault(file_owner::user);
        bool const is_harmless = row.use == setting_use::everywhere || row.use == setting_use::common;
        EXPECT_EQ(fault(file_owner::folder) == "read", is_harmless || row.is_told()) << line << fault(file_owner::folder);
        if (row.is_configurable() && !row.is_for(file_owner::folder)) starting.push_back(row.name);
        if (row.is_configurable() && !row.is_for(file_owner::folder)) {
            EXPECT_THAT(fault(file_owner::folder), AllOf(HasSubstr("muster.toml:1:1"), HasSubstr("^"), HasSubstr(row.name)));
        }
    }
    EXPECT_THAT(starting, ElementsAre("remote-shell", "pass-key", "metrics-dir", "host-discovery-script"));
}

// A file of the folder may have come with a project: what it sets is harmless, or told whatever else the file says.
TEST(setting_rows, are_harmless_or_told_where_the_folder_sets_them) {
    std::vector<std::string_view> texts;
    for (auto const& row : settings()) {
        if (!row.is_for(file_owner::folder) || !has_part(row.part)) continue;
        auto const line = fmt::format("{} = {}\n", row.name, row.name == "site" ? "\"./x.toml\"" : any_value(row));
        auto sources = sources_of({}, {{"muster.toml", line + (row.name == "quiet" ? "" : "quiet = true\n")}, {"./x.toml", ""}});
        bool const told = !resolve_settings("config", {}, sources).file_notes.empty();
        EXPECT_EQ(told, row.is_told()) << line;
        auto of_site = sources_of({}, {{"muster.toml", "site = \"./x.toml\"\n"}, {"./x.toml", line}});
        bool const told_of_site = resolve_settings("config", {}, of_site).file_notes.size() > 1;
        EXPECT_EQ(told_of_site, row.is_told() && row.name != "site") << "in a site file that muster.toml names: " << line;
        bool const any_text = row.choices.empty() && row.check == nullptr && row.kind != setting_kind::flag &&
                              row.kind != setting_kind::integer && row.kind != setting_kind::time;
        if (any_text && !row.is_told()) texts.push_back(row.name);
    }
    // No text may be here that names what runs, where, with whose money, or where something is written.
    EXPECT_THAT(texts, ElementsAre("login-nodes", "must-grow", "time", "queue", "job-name", "constraint", "filesystems", "mem",
                                   "array", "sweep", "after"));
}

// A new row of `run` needs a line in settings_to_options.cpp that fills its field.
TEST(setting_rows, of_run_change_its_options) {
    auto const options = [](words args, words const& more) {
        args.insert(args.end(), more.begin(), more.end());
        return make_run_options(resolve_settings("run", args, {}));
    };
    auto const changes = [&](std::string const& word, words const& needed) {
        try {
            return options(needed, {word, "true"}) != options(needed, {"true"});
        } catch (error const&) {
            return false;  // it needs another setting beside it
        }
    };
    std::vector<std::string_view> unseen;
    for (auto const& row : settings()) {
        if (!takes("run", row) || !has_part(row.part)) continue;
        std::string const name = (row.is_on_by_default() ? "--no-" : "--") + std::string(row.name);
        auto const choices = words_of(row.choices);
        words values(choices.begin(), choices.end());
        if (values.empty()) values = {any_value(row), "6,400"};
        bool seen = false;
        for (auto value : values)
            for (auto const& needed : {words{}, words{"--max-restarts=1"}, words{"--min-np=1", "--spares=1"},
                                       words{"--host-discovery-script=hosts"}}) {
                std::erase(value, '"');
                seen = seen || changes(row.argument.empty() ? name : name + '=' + value, needed);
            }
        if (!seen) unseen.push_back(row.name);
    }
    EXPECT_THAT(unseen, ElementsAre("site", "help-all", "help"));  // obeyed before there are options
}

TEST(project_file, cannot_say_which_program_muster_starts) {
    auto const of = [](std::map<std::string, std::string> files) { return failure("run", {"true"}, sources_of({}, files)); };
    EXPECT_THAT(of({{"muster.toml", "ranks = 2\nhost-discovery-script = \"id\"\n"}}),
                AllOf(HasSubstr("muster.toml:2"), HasSubstr("--host-discovery-script")));
    EXPECT_THAT(of({{"muster.toml", "site = \"./evil.toml\"\n"}, {"./evil.toml", "host-discovery-script = \"id\"\n"}}),
                HasSubstr("a site file that muster.toml:1 names cannot set 'host-discovery-script'"));
    EXPECT_THAT(of({{"muster.toml", "pass-key = \"environment\"\n"}}),
                AllOf(HasSubstr("muster.toml:1"), HasSubstr("--pass-key")));
    EXPECT_EQ(failure("run", {"--site", "./mine.toml", "true"},
                      sources_of({}, {{"./mine.toml", "host-discovery-script = \"hosts\"\n"}})),
              "no error");
}

TEST(project_file, names_no_file_of_another_user) {
    auto sources = sources_of({}, {{"muster.toml", "hostfile = \"hosts\"\n"}});
    sources.distrust_named = [](std::string const& path) { return path == "hosts" ? "it belongs to the user mallory" : ""; };
    EXPECT_THAT(failure("run", {"true"}, sources), AllOf(HasSubstr("muster.toml:1: hostfile names hosts"), HasSubstr("mallory")));
    EXPECT_EQ(failure("run", {"--hostfile", "other", "true"}, sources), "no error") << "overruled";
}

TEST(foreign_options, leave_muster_its_own_letter_and_say_that_jobs_count_gpus) {
    auto const sources = sources_of({}, {});
    EXPECT_EQ(resolve_settings("script", {"--gpus", "8", "-t", "1h", "--", "true"}, sources).text("time"), "1h");
    EXPECT_THAT(failure("run", {"-t", "1", "true"}, sources), HasSubstr("-t is an option of srun and torchrun"));
    for (std::string const word : {"-N", "--nodes", "--nnodes"})
        EXPECT_THAT(failure("script", {word, "2", "--", "true"}, sources),
                    HasSubstr("muster script takes no " + word + ": the number of nodes follows"));
    EXPECT_THAT(failure("run", {"-N", "2", "true"}, sources), HasSubstr("--nnodes"));
}

TEST(setting_table, names_are_unique_and_every_row_is_complete) {
    std::set<std::string> configurable;
    for (auto const& row : settings()) {
        EXPECT_FALSE(row.help.empty() || row.commands.empty()) << row.name;
        EXPECT_EQ(row.kind == setting_kind::flag, row.argument.empty()) << row.name;
        for (auto const command : words_of(row.commands)) {
            EXPECT_TRUE(std::ranges::any_of(commands_of_all_parts(), [&](auto const& each) { return each.name == command; }))
                << row.name << " " << command;
        }
        if (row.is_configurable()) {
            EXPECT_TRUE(configurable.insert(variable_of(row)).second) << row.name;
        }
        if (!row.fallback.empty()) {
            EXPECT_EQ(fault_of(row, std::string(row.fallback)), std::nullopt) << row.name;
        }
    }
    for (auto const& command : commands()) {
        std::set<std::string> spelled;
        for (auto const& row : settings()) {
            if (!takes(command.name, row)) continue;
            words all{"--" + std::string(row.name)};
            if (row.letter != 0) all.push_back(std::string("-") + row.letter);
            for (auto const alias : words_of(row.aliases)) {
                bool const single = alias.front() == '-';
                if (single) all.emplace_back(alias);
                if (auto const longer = "--" + std::string(alias.substr(single)); longer != all.front()) all.push_back(longer);
            }
            for (auto const& word : all) EXPECT_TRUE(spelled.insert(word).second) << command.name << " " << word;
        }
    }
}

TEST(setting_table, what_nobody_sets_is_what_the_structs_hold) {
    run_options untouched;
    untouched.command = {"a"};
    EXPECT_EQ(make_run_options(resolve_settings("run", {"a"}, {})), untouched);
    EXPECT_EQ(make_placement_request(resolve_settings("plan", {}, {})), placement_request{});
}

TEST(setting_table, settings_reach_the_options_of_a_run) {
    auto const given = resolve_settings("run",
                                        {"-n",
                                         "8",
                                         "--nnodes=2",
                                         "--ranks-per-node=4",
                                         "--slots-per-node=5",
                                         "--ranks-per-gpu=2",
                                         "--map-by=node",
                                         "--bind-to=gpu",
                                         "--cpus-per-rank=3",
                                         "--gpu-visibility=own-first",
                                         "--no-smt",
                                         "--cpu-map=0-3,8:4-7",
                                         "--gpu-map=3,2,1,0",
                                         "--reserved-cpus=0,8",
                                         "-H",
                                         "a:4,b:4",
                                         "-f",
                                         "hosts",
                                         "--scheduler=pbs",
                                         "--network-interface=hsn0",
                                         "--ports=40000-41000",
                                         "--login-nodes=login*,front1",
                                         "--engine=mpirun",
                                         "--engine-args=--mca btl 'tcp,self'",
                                         "--engine-args",
                                         "-v",
                                         "--nested",
                                         "--dry-run",
                                         "--print-env=0",
                                         "-x",
                                         "A=1",
                                         "-xB",
                                         "--wd=/tmp",
                                         "--allow-singletons",
                                         "-l",
                                         "--timestamp-output",
                                         "--output-dir=o",
                                         "-qv",
                                         "--timeout=1:30",
                                         "--start-timeout=30",
                                         "--idle-timeout=2min",
                                         "--grace=1s",
                                         "--heartbeat=2.5",
                                         "--sample=500ms",
                                         "--signal-before-end=USR1@2min",
                                         "a",
                                         "-n"},
                                        {});
    run_options wanted;
    wanted.place = {8, 2, 4, map_policy::node, 5, 2, bind_policy::gpu, 3, gpu_visibility::own_first, false};
    wanted.place.cpu_map = {"0-3,8", "4-7"};
    wanted.place.gpu_map = {3, 2, 1, 0};
    wanted.place.reserved_cpus = "0,8";
    wanted.from = {scheduler_kind::pbs, "hosts", "a:4,b:4"};
    wanted.engine = "mpirun";
    wanted.engine_args = {"--mca", "btl", "tcp,self", "-v"};
    wanted.engine_args_typed = true;
    wanted.network_interface = "hsn0";
    wanted.ports = "40000-41000";
    wanted.login_nodes = {"login*", "front1"};
    wanted.nested = wanted.dry_run = wanted.verbose = wanted.quiet = true;
    wanted.print_env = 0;
    wanted.command = {"a", "-n"};
    wanted.exports = {"A=1", "B"};
    wanted.working_dir = "/tmp";
    wanted.output_dir = "o";
    wanted.tag_output = wanted.timestamp_output = wanted.allow_singletons = true;
    wanted.timeout = duration(90);
    wanted.start_timeout = duration(30);
    wanted.idle_timeout = duration(120);
    wanted.grace = duration(1);
    wanted.heartbeat = duration(2.5);
    wanted.sample = duration(0.5);
    wanted.signal_before_end = early_signal{10, duration(120)};
    EXPECT_EQ(make_run_options(given), wanted);
}

TEST(settings_layers, the_stronger_one_holds_and_every_value_tells_its_origin) {
    std::string const user = "/home/u/.config/muster/muster.toml";
    words args{"--np", "1", "a"};
    environment variables{{"MUSTER_RANKS", "2"}};
    std::map<std::string, std::string> files{
        {"muster.toml", "\nranks = 3\nsite = \"s\"\n"}, {user, "ranks = 4"}, {"s", "\n\nranks = 5\n"}};
    auto const ranks = [&] { return resolve_settings("run", args, sources_of(variables, files)).get("ranks"); };
    EXPECT_EQ(ranks(), (setting_value{{"1"}, setting_layer::option, "--np"}));
    args = {"a"};
    EXPECT_EQ(ranks(), (setting_value{{"2"}, setting_layer::variable, "MUSTER_RANKS"}));
    variables.set("MUSTER_RANKS", "");
    EXPECT_EQ(ranks(), (setting_value{{"3"}, setting_layer::project_file, "muster.toml:2"}));
    files["muster.toml"] = "site = \"s\"";
    EXPECT_EQ(ranks(), (setting_value{{"4"}, setting_layer::user_file, user + ":1"}));
    files.erase(user);
    EXPECT_EQ(ranks(), (setting_value{{"5"}, setting_layer::site, "/sites/s.toml:3"}));
    files["s"] = "";
    EXPECT_EQ(ranks(), setting_value{});
    EXPECT_EQ(resolve_settings("run", {"a"}, {}).get("grace"), (setting_value{{"5s"}, setting_layer::built_in, ""}));
}

TEST(settings_layers, the_site_is_itself_a_setting) {
    std::map<std::string, std::string> const files{{"s", "engine = \"srun\""}, {"t", "engine = \"mpirun\""}};
    environment const variables{{"MUSTER_SITE", "s"}};
    EXPECT_EQ(resolve_settings("run", {"a"}, sources_of(variables, files)).text("engine"), "srun");
    EXPECT_EQ(resolve_settings("run", {"--site", "t", "a"}, sources_of(variables, files)).text("engine"), "mpirun");
}

TEST(settings_layers, a_flag_can_be_taken_back_and_a_list_is_replaced) {
    std::map<std::string, std::string> const files{
        {"muster.toml",
         "tag-output = true\nsmt = false\nenv = [\"A=1\", \"B=x y\"]\ntimeout = 90\nengine-args = \"--mca 'a b' c\"\n"
         "gpu-map = [1, 0]\ngrace = 0.5"}};
    auto const options = [&](words args, environment const& variables = {}) {
        args.push_back("a");
        return make_run_options(resolve_settings("run", args, sources_of(variables, files)));
    };
    auto const plain = options({});
    EXPECT_TRUE(plain.tag_output);
    EXPECT_FALSE(plain.place.smt);
    EXPECT_THAT(plain.exports, ElementsAre("A=1", "B=x y"));
    EXPECT_THAT(plain.engine_args, ElementsAre("--mca", "a b", "c"));
    EXPECT_THAT(plain.place.gpu_map, ElementsAre(1, 0));
    EXPECT_EQ(plain.timeout, duration(90));
    EXPECT_EQ(plain.grace, duration(0.5));
    auto const changed = options({"--no-tag-output", "--smt", "-x", "C=3"}, {{"MUSTER_ENV", "D=4"}});
    EXPECT_FALSE(changed.tag_output);
    EXPECT_TRUE(changed.place.smt);
    EXPECT_THAT(changed.exports, ElementsAre("C=3"));
    EXPECT_THAT(options({}, {{"MUSTER_ENV", "D=4 'E=5 6'"}}).exports, ElementsAre("D=4", "E=5 6"));
    EXPECT_FALSE(options({}, {{"MUSTER_TAG_OUTPUT", "0"}}).tag_output);
}

TEST(settings_layers, hosts_on_the_command_line_beat_a_weaker_scheduler_and_host_file) {
    std::map<std::string, std::string> const files{{"muster.toml", "hostfile = \"h\"\nscheduler = \"slurm\""}};
    auto const choice = [&](words const& args) {
        return make_allocation_choice(resolve_settings("plan", args, sources_of({}, files)));
    };
    EXPECT_EQ(choice({}), (allocation_choice{scheduler_kind::slurm, "h", ""}));
    EXPECT_EQ(choice({"-H", "a"}), (allocation_choice{std::nullopt, "", "a"}));
    EXPECT_EQ(choice({"--scheduler", "local"}), (allocation_choice{scheduler_kind::local, "", ""}));
}

TEST(settings_files, what_is_wrong_is_shown_at_its_place) {
    struct {
        std::string text, place, message;
    } const wrong[]{
        {"ranks = 4\nbindto = \"numa\"", "muster.toml:2:1: ", "unknown key 'bindto'; did you mean 'bind-to'?"},
        {"np = 4", "muster.toml:1:1: ", "unknown key 'np'; here it is called 'ranks'"},
        {"dry-run = true", "muster.toml:1:1: ", "'dry-run' is for the command line only"},
        {"ranks = \"4\"", "muster.toml:1:9: ", "'ranks' must be a whole number"},
        {"ranks = 0", "muster.toml:1:9: ", "ranks: '0' is no whole number from 1 to 10000000"},
        {"bind-to = \"nume\"", "muster.toml:1:11: ", "did you mean numa?"},
        {"tag-output = \"yes\"", "muster.toml:1:14: ", "must be true or false"},
        {"timeout = \"soon\"", "muster.toml:1:11: ", "'soon' is no time; write 90"},
        {"timeout = -1", "muster.toml:1:11: ", "'-1' is no time"},
        {"env = [1, [2]]", "muster.toml:1:7: ", "must be a list of texts"},
        {"env = [\"=1\"]", "muster.toml:1:7: ", "'=1' names no variable"},
        {"engine-args = \"'\"", "muster.toml:1:15: ", "a quote is open"},
        {"cpu-map = [\"3-1\"]", "muster.toml:1:11: ", "'3-1' is no list of hardware threads"},
        {"signal-before-end = \"USR9@1\"", "muster.toml:1:21: ", "there is no signal 'USR9'"},
        {"[run]\nranks = 1", "muster.toml:1:", "unknown key 'run'"},
        {"ranks =", "muster.toml:1:", ""},
        {"wd = \"\"", "muster.toml:1:6: ", "the value is empty"},
    };
    for (auto const& one : wrong) {
        auto const message = failure("run", {"a"}, sources_of({}, {{"muster.toml", one.text}}));
        EXPECT_THAT(message, AllOf(HasSubstr(one.place), HasSubstr(one.message), HasSubstr("\n"), HasSubstr("^"))) << one.text;
    }
}

TEST(settings_variables, a_wrong_value_is_an_error_and_a_name_nearly_right_a_note) {
    EXPECT_THAT(failure("run", {"a"}, sources_of({{"MUSTER_RANKS", "4x"}}, {})),
                HasSubstr("MUSTER_RANKS: '4x' is no whole number from 1 to 10000000"));
    EXPECT_THAT(failure("run", {"a"}, sources_of({{"MUSTER_ENGINE_ARGS", "--x \"y"}}, {})),
                AllOf(HasSubstr("MUSTER_ENGINE_ARGS: "), HasSubstr("is not closed")));
    auto const notes = [](char const* name) { return resolve_settings("run", {"a"}, sources_of({{name, "1"}}, {})).notes; };
    EXPECT_THAT(notes("MUSTER_RANK_PER_NODE"),
                ElementsAre("MUSTER_RANK_PER_NODE is no setting of muster; did you mean MUSTER_RANKS_PER_NODE?"));
    for (auto const* known : {"MUSTER_RANK", "MUSTER_HOST", "MUSTER_LOG", "MUSTER_GPU_INDEX", "MUSTER_CPUS", "MUSTER_TOKEN",
                              "MUSTER_SITE_PATH", "MUSTER_LAUNCHER", "MUSTER_LOCAL_RANK", "MUSTER_SOMETHING_ELSE_OF_MINE"})
        EXPECT_THAT(notes(known), IsEmpty()) << known;
}

TEST(command_lines, mistakes_are_named) {
    EXPECT_EQ(failure("run", {"--tag-ouput", "a"}), "unknown option '--tag-ouput', did you mean --tag-output?; --help lists all");
    EXPECT_EQ(failure("run", {"-n", "4", "-np", "8", "a"}), "--ranks is given twice: 4 and 8; give one");
    EXPECT_EQ(failure("run", {"-n", "4", "-np", "4", "a"}), "no error");
    EXPECT_EQ(failure("hosts", {"--timeout", "5"}), "muster hosts takes no --timeout; use it with muster run");
    EXPECT_EQ(failure("run", {"--each", "lr=1,2", "a"}), "muster run takes no --each; use it with muster submit, muster script");
    EXPECT_EQ(failure("plan", {"--tag-output", "--timeout", "5", "--", "python", "train.py"}), "no error");
    EXPECT_EQ(failure("run", {"-np", "x", "a"}), "-np: 'x' is no whole number from 1 to 10000000");
    EXPECT_THAT(failure("run", {"--hosts=", "a"}), HasSubstr("--hosts"));
    EXPECT_THAT(failure("run", {"-H", "", "a"}), HasSubstr("the value is empty"));
    EXPECT_THAT(failure("run", {"--engine-args", "-v 'x", "a"}), AllOf(HasSubstr("this ' is not closed"), HasSubstr("\n     ^")));
    EXPECT_THAT(failure("run", {"--cpu-map", "0-3:4-", "a"}), HasSubstr("--cpu-map: '4-' is no list of hardware threads"));
    EXPECT_THAT(failure("run", {"--gpu-map", "0,x", "a"}), HasSubstr("'x' is no GPU"));
    EXPECT_THAT(failure("run", {"--signal-before-end", "USR1", "a"}), HasSubstr("'USR1' has no time; write SIGNAL@TIME"));
    for (auto const* word : {"--=x", "-=x", "-=", "---", "--no-", "-Y", "--no-ranks"})
        EXPECT_THAT(failure("run", {word, "a"}), HasSubstr("unknown option")) << word;
    EXPECT_THAT(failure("run", {"--print-env", "-1", "a"}), HasSubstr("from 0 to"));
}

TEST(early_signals, by_name_and_number) {
    EXPECT_EQ(parse_early_signal("USR1@120"), (early_signal{10, duration(120)}));
    EXPECT_EQ(parse_early_signal("SIGTERM@5min"), (early_signal{15, duration(300)}));
    EXPECT_EQ(parse_early_signal("12@1:30"), (early_signal{12, duration(90)}));
    for (auto const* wrong : {"", "@", "USR1", "USR1@", "USR1@soon", "0@5", "99@5", "FOO@5", "usr1@5"})
        EXPECT_THROW(parse_early_signal(wrong), error) << wrong;
}

TEST(help, fits_a_screen_with_the_commonest_use_first) {
    for (auto const& command : commands()) {
        if (command.synopsis.empty()) continue;  // programs of their own, and hidden ones
        auto const text = help_text(command.name, false);
        auto const lines = std::count(text.begin(), text.end(), '\n');
        EXPECT_LE(lines, command.name == "run"                                 ? 29
                         : command.name == "submit" || command.name == "alloc" ? 60
                                                                               : 24)
            << command.name;
        EXPECT_THAT(text, HasSubstr("muster " + std::string(command.name)));
    }
    for (auto const& row : settings())
        if (is_listed("run", row)) {
            EXPECT_THAT(help_text("run", true), HasSubstr(synopsis_of(row)));
        }
    EXPECT_THAT(help_text("run", false), Not(HasSubstr("--heartbeat")));
    EXPECT_THAT(help_text("run", false),
                AllOf(HasSubstr("--min-np"), HasSubstr("--spares"), HasSubstr("--host-discovery-script")));
}

TEST(help, is_as_wide_as_the_terminal) {
    for (auto const& command : commands())
        for (std::size_t const width : {60u, 80u, 100u})
            for (bool const all : {false, true}) {
                if (command.synopsis.empty()) continue;
                std::istringstream lines(fold_help(help_text(command.name, all), width));
                for (std::string line; std::getline(lines, line);)
                    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), width)
                        << command.name << ": " << line;
            }
    EXPECT_EQ(resolve_settings("run", {"--help"}, {.variables = {{"COLUMNS", "70"}}}).help_columns, 70u);
}

TEST(man_pages, hold_every_option) {
    EXPECT_THAT(manual_page("run"),
                AllOf(HasSubstr("title: MUSTER-RUN\n"), HasSubstr("**--ranks-per-node** *N*\n: ranks on each node"),
                      HasSubstr("--no-smt"), HasSubstr("-npernode"), HasSubstr("<!-- sections: muster run -->")));
    EXPECT_THROW(manual_page("nothing"), error);
    EXPECT_THROW(manual_page("stage"), error);
}

TEST(config, shows_values_and_origins) {
    auto const given = resolve_settings("config", {"--np", "4"},
                                        sources_of({{"MUSTER_TAG_OUTPUT", "1"}}, {{"muster.toml", "env = [\"A=x y\"]"}}));
    EXPECT_EQ(config_table(given, false),
              "setting     value    from           where\n"
              "ranks       4        command line   --np\n"
              "env         'A=x y'  ./muster.toml  muster.toml:1\n"
              "tag-output  true     environment    MUSTER_TAG_OUTPUT\n");
    EXPECT_THAT(config_table(given, true), HasSubstr("grace "));
    EXPECT_THAT(config_json(given, false),
                AllOf(HasSubstr("\"value\": true"), HasSubstr("\"from\": \"environment\""), Not(HasSubstr("grace"))));
}

TEST(settings, a_variable_that_an_administrator_sets_is_a_default) {
    std::map<std::string, std::string> const files{{"/etc/muster.toml", "env = [\"A=site\", \"B=site\", \"C\"]\n"}};
    auto const entries = [](environment const& variables, std::map<std::string, std::string> const& with) {
        auto sources = sources_of(variables, with);
        sources.system_files = {"/etc/muster.toml"};
        return resolve_settings("run", {"x"}, sources).list("env");
    };
    EXPECT_THAT(entries({}, files), ElementsAre("A=site", "B=site", "C"));
    EXPECT_THAT(entries({{"A", "mine"}, {"C", "mine"}}, files), ElementsAre("A=mine", "B=site", "C"));
    EXPECT_THAT(entries({{"A", "mine"}}, {{"muster.toml", "env = [\"A=file\"]\n"}}), ElementsAre("A=file"));  // of the user's own
    std::map<std::string, std::string> const threads{{"/etc/muster.toml", "env = [\"OMP_NUM_THREADS=8\"]\n"}};
    environment const of_pbs{{"PBS_JOBID", "1.s"}, {"NCPUS", "64"}, {"OMP_NUM_THREADS", "64"}};
    EXPECT_THAT(entries(of_pbs, threads), ElementsAre("OMP_NUM_THREADS=8"));  // PBS sets it, not the user
    EXPECT_THAT(entries({{"OMP_NUM_THREADS", "64"}}, threads), ElementsAre("OMP_NUM_THREADS=64"));
}

}  // namespace
}  // namespace muster
