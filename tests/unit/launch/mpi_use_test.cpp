#include "launch/observe/mpi_use.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "launch/system/elf_file.hpp"

namespace muster {
namespace {

TEST(mpi_use, in_maps) {
    EXPECT_EQ(
        mpi_in_maps("7f0-7f1 r-xp 0 08:01 1   /usr/lib/libc.so.6\n7fa0-7fb0 r-xp 0 08:01 2   /opt/my mpi/libmpi.so.40.30.4\n"),
        (mapped_mpi{"/opt/my mpi/libmpi.so.40.30.4", 0x7fa0, false}));
    EXPECT_EQ(mpi_in_maps("7f0 r-xp 0 08:01 1 /usr/lib/libmpich.so.12.1\n"
                          "7f2 r-xp 0 08:01 3 /usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311.so\n"),
              (mapped_mpi{"/usr/lib/libmpich.so.12.1", 0x7f0, true}));
    EXPECT_EQ(mpi_in_maps("7f0 rw-p 0 00:00 0 [heap]\n\n7ff rw-p 0 0 0"), std::nullopt);
    EXPECT_EQ(mpi_in_maps(""), std::nullopt);
}

TEST(mpi_use, verdicts) {
    mpi_sight const nothing{};
    EXPECT_FALSE(nothing.uses_mpi());
    mpi_sight const brought{.library = "libmpi.so.40", .initialised = false};
    EXPECT_FALSE(brought.uses_mpi());
    mpi_sight const alone{.library = "libmpi.so.40", .initialised = true, .has_pmi1 = true};
    EXPECT_TRUE(alone.uses_mpi() && alone.uses_mpi_elsewhere());
    mpi_sight const unseen{.library = "libmpich.so.12"};
    EXPECT_FALSE(unseen.uses_mpi());
    mpi_sight const linked{.library = "libmpich.so.12", .linked = true};
    EXPECT_TRUE(linked.uses_mpi() && linked.uses_mpi_elsewhere());
    mpi_sight const awaited{.library = "libmpich.so.12", .linked = true, .has_pmi1 = true};
    EXPECT_TRUE(awaited.uses_mpi());
    EXPECT_FALSE(awaited.uses_mpi_elsewhere()) << "it would have come";
}

/// A child that calls `prepare`, and stays until the test is over.
class waiting_child {
  public:
    explicit waiting_child(std::function<void()> const& prepare) {
        int ready[2];
        if (pipe(ready) != 0) return;
        pid_ = fork();
        if (pid_ == 0) {
            prepare();
            close(ready[1]);
            pause();
            _exit(0);
        }
        close(ready[1]);
        char byte = 0;
        [[maybe_unused]] auto const end = read(ready[0], &byte, 1);
        close(ready[0]);
    }
    ~waiting_child() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_ = -1;
};

TEST(mpi_use, of_processes_without) {
    EXPECT_EQ(look_for_mpi(getpid()), mpi_sight{});
    EXPECT_EQ(look_for_mpi(-1), mpi_sight{});
    EXPECT_EQ(look_for_mpi(1 << 30), mpi_sight{});
}

/// Only children load the library, so that this process stays without; one writes into its state in the place of MPI_Init.
TEST(mpi_use, open_mpi_shows_whether_it_was_initialised) {
    auto const load = [](bool initialise) {
        void* const library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_LOCAL);
        auto* const state = static_cast<int*>(library != nullptr ? dlsym(library, "ompi_mpi_state") : nullptr);
        if (state != nullptr && initialise) *state = 2;
    };
    waiting_child const brought([&] { load(false); });
    auto const before = look_for_mpi(brought.pid());
    if (before.library.empty()) GTEST_SKIP() << "no Open MPI here: no libmpi.so.40";
    EXPECT_EQ(before.initialised, false);
    EXPECT_FALSE(before.uses_mpi());
    waiting_child const initialised([&] { load(true); });
    EXPECT_EQ(look_for_mpi(initialised.pid()).initialised, true);
}

TEST(elf, objects_of_libraries) {
    Dl_info library{};
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &library), 0);
    std::string const path = library.dli_fname;
    auto const found = find_elf_object(path, "_IO_2_1_stdout_");
    ASSERT_TRUE(found) << path;
    EXPECT_EQ(dlsym(RTLD_DEFAULT, "_IO_2_1_stdout_"), static_cast<char*>(library.dli_fbase) + *found);
    EXPECT_EQ(find_elf_object(path, "printf"), std::nullopt) << "a function";
    EXPECT_EQ(find_elf_object(path, "no_such_object"), std::nullopt);
    EXPECT_EQ(find_elf_object("/dev/null", "stdout"), std::nullopt);
    EXPECT_EQ(find_elf_object("/nonexistent", "stdout"), std::nullopt);
    std::ifstream in(path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    for (std::size_t length = 0; length < bytes.size(); length += 4093)
        EXPECT_NO_THROW((void)find_elf_object(std::as_bytes(std::span(bytes.data(), length)), "no_such_object"));
}

}  // namespace
}  // namespace muster
