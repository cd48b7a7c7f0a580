#include "launch/site/site.hpp"
#include "launch/site/site_placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

fs::path const shipped_sites = fs::path(MUSTER_SOURCE_DIR) / "site-configs";

std::string const least = R"(name = "x"
description = "d"
scheduler = "slurm"
[source]
facts = "f"
date = 2026-01-31
)";

/// The message of the error that `text` leads to, or nothing.
std::string refusal(std::string const& text) {
    try {
        parse_site(text, "x.toml");
    } catch (parse_error const& e) {
        EXPECT_EQ(exit_code(e.code()), 2);
        return e.what();
    }
    return {};
}

TEST(site_file, every_shipped_one_parses_and_tells_its_source) {
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator(shipped_sites)) {
        if (entry.path().extension() != ".toml") continue;
        auto const read = load_site(entry.path().string(), {});
        EXPECT_FALSE(read.source.empty());
        EXPECT_EQ(read.source_date.size(), 10u);
        names.push_back(read.name);
    }
    EXPECT_THAT(names,
                testing::UnorderedElementsAre("generic-slurm", "generic-pbs", "generic-flux", "tuolumne", "el-capitan", "polaris",
                                              "sophia", "aurora", "thetagpu", "perlmutter", "frontier", "lumi-g", "leonardo",
                                              "delta", "deltaai", "juwels-booster", "workstation"));
}

TEST(site_file, polaris_says_what_its_documentation_says) {
    auto const polaris = load_site("polaris", {shipped_sites});
    EXPECT_EQ(polaris.scheduler, script_kind::pbs);
    EXPECT_EQ(polaris.node.gpus, 4);
    EXPECT_THAT(polaris.node.gpu_cpus, ElementsAre("24-31,56-63", "16-23,48-55", "8-15,40-47", "0-7,32-39"));
    EXPECT_THAT(polaris.node.nearest_gpu, ElementsAre(3, 2, 1, 0));
    EXPECT_EQ(polaris.header.place, "scatter");
    EXPECT_TRUE(polaris.header.login_shell);
    ASSERT_EQ(polaris.queues.size(), 6u);
    EXPECT_EQ(polaris.queues[2].name, "prod");
    EXPECT_EQ(polaris.queues[2].routes.size(), 3u);
    EXPECT_EQ(polaris.queues[0].limits.max_walltime, duration(3600));
    // The network plugin must not be used on one node.
    for (auto const& [name, value] : polaris.environment) EXPECT_THAT(name, testing::Not(HasSubstr("NCCL")));
    EXPECT_THAT(polaris.environment_multi_node,
                testing::Contains(std::pair<std::string, std::string>("NCCL_NET", "AWS Libfabric")));
}

TEST(site_file, the_least_that_must_be_there) {
    EXPECT_EQ(refusal(least), "");
    EXPECT_THAT(refusal(""), HasSubstr("'name' is missing"));
    for (std::string const key : {"name", "description", "scheduler", "facts", "date"}) {
        auto text = least;
        auto const start = text.find(key + " =");
        text.erase(start, text.find('\n', start) - start + 1);
        EXPECT_THAT(refusal(text), HasSubstr("'" + key + "'")) << text;
    }
}

struct wrong_file {
    std::string lines;  ///< added to `least`
    std::string place;  ///< line and column in the whole
    std::string message;
};

TEST(site_file, each_fault_is_shown_at_its_place) {
    std::vector<wrong_file> const wrong{
        {"[nod]\ngpus = 4\n", ":7:", "unknown key 'nod'; did you mean 'node'?"},
        {"[node]\ngpu = 4\n", ":8:1", "unknown key 'gpu'; did you mean 'gpus'?"},
        {"[node]\nwheels = 4\n", ":8:1", "known here: count, gpus, gpu_model"},
        {"[node]\ngpus = \"4\"\n", ":8:8", "'gpus' must be a whole number, not a text"},
        {"[node]\ngpus = 4.0\n", ":8:8", "not a real number"},
        {"[node]\ngpus = -1\n", ":8:8", "'gpus' is -1; it must be from 0 to"},
        {"[header]\nwheels = 4\n", ":8:1", "header: unknown key 'wheels'; docs/sites.md lists all keys\n"},
        {"[wheels]\nx = 4\n", ":7:", "unknown key 'wheels'; docs/sites.md lists all keys\n"},
        {"[node]\ngpus = 99999999999\n", ":8:8", "must be from 0 to"},
        {"[node]\ngpus = 4\ngpus = 4\n", ":9:", "redefine"},
        {"[node]\n[node]\n", ":8:", "redefine"},
        {"[node]\ncores = 8\ncpus = 4\n", ":9:8", "'cpus' is smaller than 'cores'"},
        {"[node]\ngpus = 2\ngpu_cpus = [\"0-3\"]\n", ":9:12", "'gpu_cpus' has 1 entries for 2 GPUs"},
        {"[node]\ngpus = 2\ngpu_cpus = [\"0-3\", \"3-7\"]\n", ":9:12", "hardware thread 3 is named twice"},
        {"[node]\ngpus = 2\ncpus = 8\ngpu_cpus = [\"0-3\", \"4-8\"]\n", ":10:12", "below 8"},
        {"[node]\ngpus = 2\ngpu_cpus = [\"0-3\", \"4-\"]\n", ":9:12", "no list of hardware threads"},
        {"[node]\ngpus = 2\nnearest_gpu = [0, 2]\n", ":9:19", "'nearest_gpu' holds 2"},
        {"[node]\ngpus = 2\nnearest_gpu = [1, 1]\n", ":9:15", "twice"},
        {"[node]\ngpus = 2\ngpu_cpus = [\"0-3\", \"4-7\"]\nnearest_gpu = [1, 0]\n", ":10:15", "does not agree with 'gpu_cpus'"},
        {"[node]\ngpu_numa = [1]\n", ":8:12", "needs the number of GPUs"},
        {"[header]\naccount = \"yes\"\n", ":8:11", "must be one of optional, required"},
        {"[header]\nlogin_shell = \"yes\"\n", ":8:15", "must be true or false, not a text"},
        {"[header]\nplace = \"scatter\"\n", ":8:1", "'place' is for pbs, and this site's scheduler is slurm"},
        {"[header]\nconstraint = \"gpu; id\"\n", ":8:14", "character 4"},
        {"[header]\ndirectives = [\"-r y\", \"x\"]\n", ":8:14", "begins with '-'"},
        {"[header]\ndirectives = [\"-r y\\n#SBATCH -A x\"]\n", ":8:15", "control character"},
        {"[header]\ndefault_queue = \"b\"\n[[queue]]\nname = \"a\"\n", ":7:", "none of the queues"},
        {"[[queue]]\nmax_nodes = 1\n", ":7:", "'name' is missing"},
        {"[[queue]]\nname = \"a\"\n[[queue]]\nname = \"a\"\n", ":10:8", "a second one named 'a'"},
        {"[[queue]]\nname = \"a\"\nmin_nodes = 4\nmax_nodes = 2\n", ":10:13", "below 'min_nodes'"},
        {"[[queue]]\nname = \"a\"\nmax_walltime = \"soon\"\n", ":9:16", "no duration"},
        {"[[queue]]\nname = \"a\"\nmax_walltime = 60\n", ":9:16", "must be a text"},
        {"[[queue]]\nname = \"a b\"\n", ":8:8", "character 2"},
        {"[[queue]]\nname = \"a\"\n[[queue.route]]\nname = \"r\"\nnote = \"n\"\n", ":11:1",
         "route of queue 'a': unknown key 'note'"},
        {"[queue]\nname = \"a\"\n", ":7:", "must be tables, written [[queue]]"},
        {"queue = [1]\n", ":7:9", "source: 'queue' must be a table"},  // within [source]
        {"[environment]\n\"A B\" = \"x\"\n", ":8:1", "a variable's name"},
        {"[environment]\nA = 1\n", ":8:5", "must be a text"},
        {"[script]\nsetup = \"x\"\n", ":8:9", "must be a list of texts"},
        {"[paths]\nnode_local = \"/mnt/$USER\"\n", ":8:14", "without variables"},
        {"[settings]\nengine = \"ssh\"\n", ":8:10", "'ssh' is not one of embedded, srun, mpirun, mpiexec"},
        {"[settings]\nengin = \"srun\"\n", ":8:1", "settings: unknown key 'engin'; did you mean 'engine'?"},
        {"[settings]\nsite = \"other\"\n", ":8:1", "'site' has no meaning here"},
        {"[header]\naccount_hint = \"\"\n", ":8:16", "is empty"},
        {"[header\n", ":7:8", ""},
        {"\"gr\xc3\xbc\xc3\x9f\" = \"x\", \n", ":7:", ""},
        {"x = \"\xff\"\n", "x.toml:", ""},
    };
    for (auto const& one : wrong)
        EXPECT_THAT(refusal(least + one.lines),
                    AllOf(HasSubstr("x.toml"), HasSubstr(one.place), HasSubstr(one.message), HasSubstr("^")))
            << one.lines;
}

TEST(site_file, the_caret_stands_under_the_fault_behind_wide_characters) {
    auto const message = refusal(least + "[environment]\n\"A\" = \"x\"\n[script]\nsetup = [\"\xc3\xbc\xc3\xbc\", 1]\n");
    EXPECT_THAT(message, HasSubstr(":10:18:"));  // bytes, as everywhere
}

/// Folders with site files of their own.
class site_folders : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "muster-sites-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        fs::create_directory(folder_ / "a");
        fs::create_directory(folder_ / "b");
    }
    void TearDown() override { fs::remove_all(folder_); }

    void write(std::string const& path, std::string text) const { std::ofstream(folder_ / path) << text; }
    std::vector<fs::path> folders() const { return {folder_ / "none", folder_ / "a", folder_ / "b"}; }

    fs::path folder_;
};

TEST_F(site_folders, of_whole_nodes_tell_the_gpus_of_the_jobs_queue) {
    write("a/mix.toml",
          "name = \"mix\"\ndescription = \"x\"\nscheduler = \"pbs\"\n[source]\nfacts = \"x\"\ndate = 2026-01-31\n"
          "[node]\ngpus = 4\n[header]\nwhole_nodes = true\n[[queue]]\nname = \"cpu\"\ngpus = 0\n"
          "[[queue]]\nname = \"big\"\ngpus = 8\n[[queue]]\nname = \"main\"\n");
    auto const in_queue = [&](std::string const& now, std::string const& asked) {
        return choice_with_site({}, "mix",
                                {{"MUSTER_SITE_PATH", (folder_ / "a").string()}, {"PBS_QUEUE", now}, {"PBS_O_QUEUE", asked}})
            .gpus_of_each;
    };
    EXPECT_EQ(in_queue("main", "main"), 4);
    EXPECT_EQ(in_queue("cpu", "cpu"), std::nullopt);
    EXPECT_EQ(in_queue("big", "big"), 8);
    EXPECT_EQ(in_queue("behind_big", "big"), 8) << "a routing queue";
    EXPECT_EQ(in_queue("main", "big"), 4) << "moved";
}

TEST_F(site_folders, the_first_folder_wins) {
    write("a/x.toml", least);
    write("b/x.toml", "not read");
    EXPECT_EQ(load_site("x", folders()).description, "d");
    EXPECT_EQ(load_site((folder_ / "a" / "x.toml").string(), {}), load_site("x", folders()));
    auto const entries = list_sites(folders());
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0], (site_entry{"x", folder_ / "a" / "x.toml", "d", load_site("x", folders()), ""}));
}

TEST_F(site_folders, a_file_that_is_not_right_is_listed_with_its_fault) {
    write("a/x.toml", least + "[nod]\n");
    write("b/y.toml", least);
    auto const entries = list_sites(folders());
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_THAT(entries[0].problem, HasSubstr("did you mean 'node'?"));
    EXPECT_THAT(entries[1].problem, HasSubstr("the file must be x.toml"));
}

TEST_F(site_folders, a_name_that_is_not_there) {
    write("a/cluster.toml", least);
    try {
        load_site("clutser", folders());
        FAIL();
    } catch (error const& e) {
        EXPECT_THAT(e.what(), AllOf(HasSubstr("did you mean 'cluster'?"), HasSubstr((folder_ / "none").string() + " (not there)"),
                                    HasSubstr((folder_ / "b").string())));
        EXPECT_EQ(exit_code(e.code()), 2);
    }
    EXPECT_THROW(load_site("", folders()), error);
    EXPECT_THROW(load_site((folder_ / "none.toml").string(), {}), error);
    EXPECT_THROW(load_site(folder_.string(), {}), error);
    EXPECT_THROW(load_site("/dev/zero.toml", {}), error);
}

TEST_F(site_folders, a_file_without_end_is_not_read_to_it) {
    EXPECT_THROW(load_site("/dev/zero", {}), error);
}

TEST(site_search_path, in_order) {
    auto const here = [](environment const& env) {
        auto folders = site_search_path(env);
        EXPECT_EQ(folders.back(), shipped_sites);
        folders.resize(folders.size() - 2);  // installed, source
        EXPECT_EQ(folders.back(), installed_root() / "etc" / "muster" / "sites");
        folders.pop_back();
        EXPECT_EQ(folders.back(), "/etc/muster/sites") << "the administrator's: after the user's";
        folders.pop_back();
        return folders;
    };
    EXPECT_THAT(here({}), ElementsAre());
    EXPECT_THAT(here({{"HOME", "/h"}}), ElementsAre("/h/.config/muster/sites"));
    EXPECT_THAT(here({{"HOME", "/h"}, {"XDG_CONFIG_HOME", "/c"}, {"MUSTER_SITE_PATH", "/p::/q"}}),
                ElementsAre("/p", "/q", "/c/muster/sites"));
}

}  // namespace
}  // namespace muster
