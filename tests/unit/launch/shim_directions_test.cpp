#include "launch/wire/shim_directions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/process/network.hpp"
#include "tests/thrown_message.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

class shim_directions_test : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "muster-keys.XXXXXX").string();
        home = ::mkdtemp(name.data());
        request.engine = "mpirun";
        request.variables = {{"HOME", home}};
    }
    void TearDown() override { fs::remove_all(home); }
    std::string token_of(shim_directions const& directions) const {
        for (auto const& [name, value] : directions.variables())
            if (name == "MUSTER_TOKEN") return value;
        return "";
    }
    std::string home;
    shim_directions_request request;
    run_key const key = make_run_key();
};

TEST_F(shim_directions_test, an_interface_that_only_the_nodes_have_is_left_to_them) {
    request.interface = "eth-of-nodes";
    shim_directions const directions(key, 4711, request);
    EXPECT_THAT(directions.variables().front().second, testing::HasSubstr(":4711"));
    EXPECT_THAT(directions.notes().front(), testing::HasSubstr("no interface eth-of-nodes here"));
    request.interface = "lo";
    EXPECT_THAT(shim_directions(key, 4711, request).variables().front().second, testing::StartsWith("127.0.0.1:4711"));
}

TEST_F(shim_directions_test, the_environment_carries_the_key_where_no_shared_home_is_known) {
    shim_directions const directions(key, 4711, request);
    EXPECT_EQ(token_of(directions), to_text(key));
    EXPECT_EQ(take_key(token_of(directions)), key);
    for (auto const& note : directions.notes()) EXPECT_EQ(note.find(to_text(key)), std::string::npos) << note;
    EXPECT_NE(directions.notes().back().find("in the environment, by mpirun"), std::string::npos);
    EXPECT_FALSE(fs::exists(home + "/.cache"));
}

TEST_F(shim_directions_test, a_file_carries_the_key_for_as_long_as_shims_may_come) {
    request.pass_key = key_way::file;
    std::string path;
    {
        shim_directions const directions(key, 4711, request);
        auto const token = token_of(directions);
        ASSERT_TRUE(token.starts_with("file:" + home + "/.cache/muster/run-")) << token;
        path = token.substr(5);
        struct stat found {};
        ASSERT_EQ(::stat(path.c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777, 0600u);
        ASSERT_EQ(::stat((home + "/.cache/muster").c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 07777, 0700u);
        EXPECT_EQ(take_key(token), key);
    }
    EXPECT_FALSE(fs::exists(path));
}

TEST_F(shim_directions_test, a_key_file_that_others_can_read_or_replace_is_refused) {
    auto const folder = home + "/keys";
    key_file const file(folder, key);
    ASSERT_EQ(::chmod(file.path().c_str(), 0640), 0);
    EXPECT_THROW(read_key_file(file.path()), error);
    ASSERT_EQ(::chmod(file.path().c_str(), 0600), 0);
    EXPECT_EQ(read_key_file(file.path()), key);
    fs::create_symlink(file.path(), home + "/link");
    EXPECT_THROW(read_key_file(home + "/link"), error);
    EXPECT_THROW(read_key_file(folder), error);
    ASSERT_EQ(::chmod(folder.c_str(), 0770), 0);
    EXPECT_THROW(key_file(folder, key), error);
    if (::geteuid() == 0) {
        ASSERT_EQ(::chown(file.path().c_str(), 12345, 12345), 0);
        EXPECT_THROW(read_key_file(file.path()), error);
    }
}

TEST_F(shim_directions_test, a_key_file_that_is_not_there_says_what_to_do) {
    try {
        read_key_file(home + "/none", duration(0));
        FAIL();
    } catch (error const& e) {
        EXPECT_NE(std::string(e.what()).find("--pass-key environment"), std::string::npos) << e.what();
    }
}

// Without a munged that could be asked: cluster.pass_key has a real one.
TEST_F(shim_directions_test, without_munged_munge_is_refused_if_asked_for_and_told_if_not) {
    request.munge_socket = home + "/no-munged";
    shim_directions const directions(key, 4711, request);
    EXPECT_EQ(token_of(directions), to_text(key));
    bool told = false;
    for (auto const& note : directions.notes()) told = told || note.find("munge cannot seal the key of this run: ") == 0;
    EXPECT_TRUE(told);
    EXPECT_THAT(directions.warning(), testing::EndsWith("; trying another way than munge"));
    request.pass_key = key_way::munge;
    EXPECT_EQ(message_of(errc::unavailable, [&] { shim_directions(key, 4711, request); })
                  .find("munge cannot seal the key of this run: "),
              0u);
    request.pass_key = key_way::automatic;
    request.engine = "remote";
    EXPECT_EQ(shim_directions(key, 4711, request).notes().size(), directions.notes().size() - 1) << "its wire needs no munge";
}

TEST_F(shim_directions_test, tokens_of_other_forms_are_refused) {
    for (auto const* token : {"", "munge:", "munge:MUNGE", "munge::MUNG:x", "mung:MUNGE:x", "4711"})
        EXPECT_THROW(take_key(token), error) << token;
    EXPECT_NE(message_of(errc::unavailable, [&] { take_key("munge:" + home + "/no-munged:MUNGE:AwQ=:"); })
                  .find("munge cannot open the key of this run: "),
              std::string::npos);
}

TEST_F(shim_directions_test, the_folder_of_keys_is_the_users_cache) {
    EXPECT_EQ(key_folder({{"HOME", "/home/a"}}), "/home/a/.cache/muster");
    EXPECT_EQ(key_folder({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/c"}}), "/c/muster");
    EXPECT_EQ(key_folder({{"HOME", "relative"}}), "");
}

TEST_F(shim_directions_test, bridges_without_a_port_are_known_by_sysfs) {
    auto const sys = home + "/net";
    for (auto const* made : {"docker0/bridge", "br0/bridge", "br0/lower_bond0", "bond0/lower_eth0", "eth0/device", "br1/bridge",
                             "br1/lower_veth3", "veth3"})
        fs::create_directories(fs::path(sys) / made);
    EXPECT_NE(why_not_unique("docker0", "172.17.0.1", sys), "");
    EXPECT_NE(why_not_unique("br1", "10.88.0.1", sys), "");
    EXPECT_NE(why_not_unique("eth0", "169.254.3.4", sys), "");
    EXPECT_NE(why_not_unique("virbr0", "192.168.122.1", sys), "");
    EXPECT_EQ(why_not_unique("br0", "10.0.0.1", sys), "");
    EXPECT_EQ(why_not_unique("eth0", "10.0.0.1", sys), "");
    EXPECT_EQ(why_not_unique("veth3", "10.0.0.1", sys), "");
    EXPECT_EQ(why_not_unique("none", "10.0.0.1", sys), "");
}

}  // namespace
}  // namespace muster
