#include "launch/ranks/rank_stream.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "launch/ranks/output_writer.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

identity rank_of(int rank, int world_size) {
    identity who;
    who.rank = rank;
    who.world_size = world_size;
    who.host = "node1";
    return who;
}

struct output_dir : testing::Test {
    fs::path const folder = fs::temp_directory_path() / ("muster-output-dir." + std::to_string(::getpid()));
    output_dir() { fs::create_directory(folder); }
    ~output_dir() override { fs::remove_all(folder); }
};

/// As a connection whose socket is full leaves errno.
struct full_socket final : output_sink {
    std::string taken;
    void write(int, std::string block, void const*) override {
        taken += block;
        errno = EAGAIN;
    }
    void note(std::string) override {}
    bool congested() const override { return false; }
};

TEST(rank_stream, all_is_read_whatever_its_sink_meets) {
    rank_stream stream(STDOUT_FILENO, {.tag = "", .raw = true}, {});
    std::string const written(150'000, 'x');  // more than one read takes, less than the pipe holds
    ASSERT_EQ(::write(stream.child_fd(), written.data(), written.size()), static_cast<ssize_t>(written.size()));
    full_socket sink;
    stream.read_all(sink);
    EXPECT_EQ(sink.taken.size(), written.size());
}

TEST_F(output_dir, links_and_pipes_of_others_are_not_written_to) {
    std::ofstream(folder / "precious") << "precious";
    fs::create_directories(folder / "rank.00");
    fs::create_symlink(folder / "precious", folder / "rank.00" / "stdout");
    EXPECT_THROW(make_output_files(folder, rank_of(0, 2)), error);
    EXPECT_EQ(fs::file_size(folder / "precious"), 8U);
    fs::create_directories(folder / "rank.01");
    ASSERT_EQ(::mkfifo((folder / "rank.01" / "stderr").c_str(), 0600), 0);
    EXPECT_THROW(make_output_files(folder, rank_of(1, 2)), error);
}

TEST_F(output_dir, a_full_disk_names_rank_and_file) {
    rank_stream stream(STDOUT_FILENO, {},
                       {unique_fd(::open("/dev/full", O_WRONLY | O_CLOEXEC)), "the output of rank 3 on node1 to F"});
    ASSERT_EQ(::write(stream.child_fd(), "x\n", 2), 2);
    output_writer writer;
    stream.read_some(writer);
    writer.drain(1);
    EXPECT_THAT(stream.file_fault(), testing::StartsWith("cannot write the output of rank 3 on node1 to F: No space left"));
    auto const files = make_output_files(folder, rank_of(0, 2));
    EXPECT_EQ(files.err.name, "the output of rank 0 on node1 to " + (folder / "rank.00/stderr").string());
}

TEST_F(output_dir, ranks_of_a_larger_run_before_are_cleared) {
    for (int rank = 0; rank < 3; ++rank) make_output_files(folder, rank_of(rank, 4));
    make_output_files(folder, rank_of(3, 4));
    std::ofstream(folder / "rank.03" / "notes") << "mine";
    fs::create_directories(folder / "rank.x");
    EXPECT_EQ(make_output_files(folder, rank_of(4, 4), 0).err.name,
              "the output of spare 0 on node1 to " + (folder / "spare.00/stderr").string());
    EXPECT_EQ(clear_former_ranks(folder, 2), 1);
    EXPECT_TRUE(fs::exists(folder / "rank.01"));
    EXPECT_FALSE(fs::exists(folder / "spare.00"));
    EXPECT_FALSE(fs::exists(folder / "rank.02"));
    EXPECT_TRUE(fs::exists(folder / "rank.03" / "stdout")) << "somebody keeps notes there";
    EXPECT_TRUE(fs::exists(folder / "rank.x"));
    EXPECT_EQ(clear_former_ranks(folder / "none", 2), 0);
}

}  // namespace
}  // namespace muster
