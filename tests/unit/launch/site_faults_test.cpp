#include "launch/site/site.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

auto at(std::string const& place, std::string const& text) {
    return AllOf(StartsWith("x.toml:" + place + ": "), HasSubstr(text), HasSubstr("^"));
}

TEST(site_faults, all_of_them_in_their_order) {
    auto const found = site_faults(R"(name = "x y"
description = "d"
scheduler = "slurn"
[source]
facts = "f"
[nod]
gpus = 4
[node]
gpu = 4
gpus = "4"
gpu_cpus = ["0-3", "4-7"]
[header]
place = "scatter"
gpus_by = "grass"
[[queue]]
max_nodes = 0
[[queue]]
name = "b"
max_walltime = "soon"
[settings]
engin = "srun"
)",
                                   "x.toml");
    EXPECT_THAT(found,
                ElementsAre(at("1:8", "character 2"), at("3:13", "must be one of slurm, pbs"), at("4:1", "'date' is missing"),
                            at("6:2", "unknown key 'nod'; did you mean 'node'?"), at("9:1", "did you mean 'gpus'?"),
                            at("10:8", "must be a whole number"), at("14:11", "must be one of gpus-per-node"),
                            at("15:1", "'name' is missing"), at("16:13", "'max_nodes' is 0"), at("19:16", "no duration"),
                            at("21:1", "did you mean 'engine'?")));
}

TEST(site_faults, nothing_that_only_follows) {
    // gpu_cpus needs gpus, which is wrong itself; place belongs to pbs, which cannot be read.
    auto const found = site_faults(
        "name = \"x\"\ndescription = \"d\"\nscheduler = \"pbss\"\n[source]\nfacts = \"f\"\ndate = 2026-01-01\n"
        "[node]\ngpus = -1\ngpu_cpus = [\"0-3\"]\n[header]\nplace = \"scatter\"\n",
        "x.toml");
    EXPECT_THAT(found, ElementsAre(at("3:13", "must be one of"), at("8:8", "'gpus' is -1")));
}

TEST(site_faults, a_plugin_that_nothing_loads) {
    std::string const text =
        "name = \"x\"\ndescription = \"d\"\nscheduler = \"slurm\"\n[source]\nfacts = \"f\"\ndate = 2026-01-01\n"
        "[environment_multi_node]\nNCCL_NET = \"AWS Libfabric\"\n";
    EXPECT_THAT(site_faults(text, "x.toml"), ElementsAre(at("7:1", "needs a plugin, and nothing here loads it")));
    EXPECT_THAT(site_faults(text + "[script_multi_node]\nmodules = [\"nccl\"]\n", "x.toml"), IsEmpty());
    EXPECT_THAT(site_faults(text + "[script]\nsetup = [\"module load nccl\"]\n", "x.toml"), IsEmpty());
}

TEST(site_faults, of_toml_itself_the_first) {
    EXPECT_THAT(site_faults("name = \n[node\n", "x.toml"), ElementsAre(StartsWith("x.toml:")));
    EXPECT_THAT(site_faults("", "x.toml"), testing::Not(IsEmpty()));
}

TEST(site_faults, shipped_files_have_none) {
    for (auto const& entry : std::filesystem::directory_iterator(MUSTER_SOURCE_DIR "/site-configs")) {
        if (entry.path().extension() != ".toml") continue;
        std::ifstream file(entry.path());
        std::string const text{std::istreambuf_iterator<char>(file), {}};
        EXPECT_THAT(site_faults(text, "x.toml"), IsEmpty()) << entry.path();
        EXPECT_TRUE(looks_like_site(text));
    }
    EXPECT_FALSE(looks_like_site("# of this project\nranks = 2\nscheduler = \"slurm\"\n"));
}

}  // namespace
}  // namespace muster
