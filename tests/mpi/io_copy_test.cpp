// ranks: 1 2 4 16
// Copies by several nodes, each rank standing for one, with a target of its own: every target gets the same tree, each byte is read once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "base/error.hpp"
#include "io/copy/copy_tree.hpp"
#include "io/copy/verify_tree.hpp"
#include "mpi_test.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using test::ranks;
using testing::HasSubstr;

/// A folder that all ranks know, gone at the end.
class shared_folder {
  public:
    shared_folder() {
        char name[] = "/tmp/muster-copy.XXXXXX";
        if (ranks().rank() == 0 && ::mkdtemp(name) == nullptr) ADD_FAILURE() << "mkdtemp";
        ranks().broadcast("folder", {name, sizeof name, dtype::i8, memory_kind::host}, 0).wait();
        path_ = name;
    }
    ~shared_folder() {
        ranks().barrier().wait();
        if (ranks().rank() == 0) fs::remove_all(path_);
    }
    std::string operator/(std::string const& name) const { return path_ + "/" + name; }
    std::string mine() const { return path_ + "/node" + std::to_string(ranks().rank()); }

  private:
    std::string path_;
};

void write(std::string const& path, std::size_t bytes, unsigned seed) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
        seed = seed * 1664525u + 1013904223u;
        std::memcpy(text.data() + i, &seed, 4);
    }
    std::ofstream(path, std::ios::binary) << text;
}

/// A tree of files of many sizes; the same whatever the number of ranks.
void make_source(std::string const& source) {
    if (ranks().rank() == 0) {
        fs::create_directories(source + "/many/empty");
        for (unsigned i = 0; i < 300; ++i) write(source + "/many/" + std::to_string(i), i * 37 % 9000, i);
        write(source + "/large", 300'003, 1);
        write(source + "/exact", 16384 * 3, 2);
        write(source + "/zz", 2'500'000, 3);  // so large that nobody has read its end when the first files arrive
        fs::create_symlink("../nowhere", source + "/many/link");
        fs::permissions(source + "/exact", fs::perms::owner_read | fs::perms::group_exec);
    }
    ranks().barrier().wait();
}

/// Path, kind, mode, time and contents of everything below a folder.
std::map<std::string, std::string> contents_of(std::string const& folder) {
    std::map<std::string, std::string> out;
    for (auto const& entry : fs::recursive_directory_iterator(folder)) {
        std::string const path = fs::relative(entry.path(), folder).string();
        if (path.starts_with(".muster-stage")) continue;
        struct stat found {};
        EXPECT_EQ(::lstat(entry.path().c_str(), &found), 0);
        std::string text = std::to_string(found.st_mode) + " ";
        if (!S_ISLNK(found.st_mode))
            text += std::to_string(found.st_mtim.tv_sec) + "." + std::to_string(found.st_mtim.tv_nsec) + " ";
        if (S_ISLNK(found.st_mode)) text += fs::read_symlink(entry.path()).string();
        if (S_ISREG(found.st_mode)) {
            std::ifstream in(entry.path(), std::ios::binary);
            std::size_t const before = text.size();
            text.resize(before + static_cast<std::size_t>(found.st_size));
            in.read(text.data() + before, found.st_size);
        }
        out[path] = text;
    }
    return out;
}

copy_request request_for(shared_folder const& base) {
    copy_request request;
    request.sources = {base / "src"};
    request.target = base.mine();
    request.chunk_bytes = 16384;
    request.threads = 2;
    return request;
}

std::uint64_t total(std::uint64_t mine) {
    auto value = static_cast<std::int64_t>(mine);
    ranks().allreduce("total", view_of(std::span(&value, 1)), reduction::sum).wait();
    return static_cast<std::uint64_t>(value);
}

TEST(copy, gives_every_node_the_same_tree_and_reads_each_byte_once) {
    shared_folder const base;
    make_source(base / "src");
    copy_request request = request_for(base);
    copy_report report = copy_tree(request, ranks());
    EXPECT_EQ(contents_of(base.mine() + "/src"), contents_of(base / "src"));
    EXPECT_EQ(total(report.bytes_read), report.bytes);
    EXPECT_EQ(report.bytes_written, report.bytes);
    EXPECT_TRUE(verify_tree(base.mine(), 2, {}).faults.empty());
    EXPECT_FALSE(fs::exists(base.mine() + "/.muster-stage/incoming"));

    report = copy_tree(request, ranks());
    EXPECT_EQ(total(report.bytes_read), 0u);
    EXPECT_EQ(report.files_there, report.files);
}

TEST(copy, sends_only_what_a_node_lacks) {
    shared_folder const base;
    make_source(base / "src");
    copy_request request = request_for(base);
    copy_tree(request, ranks());
    if (ranks().rank() == ranks().size() - 1) fs::remove(base.mine() + "/src/large");
    ranks().barrier().wait();
    copy_report const report = copy_tree(request, ranks());
    EXPECT_EQ(total(report.bytes_read), 300'003u);
    EXPECT_EQ(total(report.bytes_written), 300'003u);
    EXPECT_EQ(contents_of(base.mine() + "/src"), contents_of(base / "src"));
}

TEST(copy, a_source_that_changes_ends_all_places_nothing_and_the_next_copy_goes_on) {
    if (ranks().size() == 1) return;  // alone, the callback may come too late
    shared_folder const base;
    make_source(base / "src");
    copy_request request = request_for(base);
    request.threads = 1;
    bool changed = false;
    request.progress = [&](std::uint64_t done, std::uint64_t) {
        if (changed || done < 100'000 || ranks().rank() != 0) return;
        changed = true;
        std::ofstream(base / "src/zz", std::ios::app) << "more";
    };
    try {
        copy_tree(request, ranks());
        ADD_FAILURE() << "no error";
    } catch (error const& e) {
        EXPECT_THAT(e.what(),
                    HasSubstr("src/zz changed from 2500000 to 2500004 bytes while it was copied; copy again when nothing"));
    }
    EXPECT_FALSE(fs::exists(base.mine() + "/src"));
    request.progress = {};
    copy_report const report = copy_tree(request, ranks());
    EXPECT_GT(report.bytes_resumed, 0u);
    EXPECT_EQ(report.bytes_resumed + report.bytes_written, report.bytes);
    EXPECT_EQ(contents_of(base.mine() + "/src"), contents_of(base / "src"));
    EXPECT_TRUE(verify_tree(base.mine(), 2, {}).faults.empty());
}

TEST(copy, a_node_that_cannot_write_ends_all) {
    shared_folder const base;
    make_source(base / "src");
    copy_request request = request_for(base);
    if (ranks().rank() == ranks().size() - 1) std::ofstream(base.mine()) << "a file";
    try {
        copy_tree(request, ranks());
        ADD_FAILURE() << "no error";
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("node" + std::to_string(ranks().size() - 1)));
    }
    EXPECT_FALSE(fs::exists(base.mine() + "/src"));
}

TEST(copy, nodes_that_share_the_target_are_refused) {
    if (ranks().size() == 1) return;
    shared_folder const base;
    make_source(base / "src");
    copy_request request = request_for(base);
    request.target = base / "one";
    try {
        copy_tree(request, ranks());
        ADD_FAILURE() << "no error";
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("another muster-stage works in"));
    }
}

TEST(copy, sharded_nodes_have_each_file_once) {
    shared_folder const base;
    make_source(base / "src");
    copy_request request = request_for(base);
    request.sharded = true;
    copy_report const report = copy_tree(request, ranks());
    EXPECT_EQ(total(report.files), 303u);
    auto const whole = contents_of(base / "src");
    for (auto const& [path, text] : contents_of(base.mine() + "/src")) EXPECT_EQ(text, whole.at(path)) << path;
    EXPECT_TRUE(verify_tree(base.mine(), 2, {}).faults.empty());
}

TEST(copy, a_file_is_not_divided) {
    shared_folder const base;
    make_source(base / "src");
    copy_request request = request_for(base);
    request.sources = {base / "src/large"};
    request.sharded = true;
    if (ranks().size() == 1) GTEST_SKIP() << "one rank divides nothing";
    try {
        copy_tree(request, ranks());
        ADD_FAILURE() << "no error";
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("1 file cannot be divided among"));
        EXPECT_THAT(e.what(), HasSubstr("leave out --shard"));
    }
}

}  // namespace
}  // namespace muster
