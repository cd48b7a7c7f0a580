#include <elf.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "launch/system/elf_file.hpp"
#include "launch/system/mpi_library.hpp"

namespace muster::pmix {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A program of headers, a string table and a dynamic section, and nothing else.
struct tiny_elf {
    Elf64_Ehdr header{};
    Elf64_Phdr segments[2]{};
    Elf64_Dyn dynamic[4]{};
    char strings[64]{};

    tiny_elf() {
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_phoff = offsetof(tiny_elf, segments);
        header.e_phnum = 2;
        header.e_phentsize = sizeof(Elf64_Phdr);
        segments[0].p_type = PT_LOAD;
        segments[0].p_vaddr = 0x400000;
        segments[0].p_filesz = sizeof(tiny_elf);
        segments[1].p_type = PT_DYNAMIC;
        segments[1].p_offset = offsetof(tiny_elf, dynamic);
        segments[1].p_filesz = sizeof dynamic;
        dynamic[0].d_tag = DT_NEEDED;
        dynamic[0].d_un.d_val = 1;
        dynamic[1].d_tag = DT_RUNPATH;
        dynamic[1].d_un.d_val = 15;
        dynamic[2].d_tag = DT_STRTAB;
        dynamic[2].d_un.d_ptr = 0x400000 + offsetof(tiny_elf, strings);
        std::memcpy(strings, "\0libmpi.so.40\0\0/a:$ORIGIN/b", 28);
    }
    std::span<std::byte const> bytes() const { return std::as_bytes(std::span(this, 1)); }
};

TEST(elf, reads_names_and_paths) {
    tiny_elf const file;
    auto const found = read_elf_dynamic(file.bytes());
    ASSERT_TRUE(found);
    EXPECT_THAT(found->needed, ElementsAre("libmpi.so.40"));
    EXPECT_THAT(found->search_path, ElementsAre("/a", "$ORIGIN/b"));
}

TEST(elf, damaged_files_are_no_programs) {
    tiny_elf const good;
    for (std::size_t length = 0; length < sizeof good; ++length)
        EXPECT_NO_THROW((void)read_elf_dynamic(good.bytes().first(length))) << "cut to " << length;
    auto broken = [](auto change) {
        tiny_elf file;
        change(file);
        return read_elf_dynamic(file.bytes());
    };
    EXPECT_FALSE(broken([](auto& f) { f.header.e_ident[EI_CLASS] = ELFCLASS32; }));
    EXPECT_FALSE(broken([](auto& f) { f.header.e_ident[0] = 'x'; }));
    EXPECT_FALSE(broken([](auto& f) { f.header.e_phoff = UINT64_MAX - 3; }));
    EXPECT_FALSE(broken([](auto& f) { f.header.e_phnum = 0xffff; }));
    EXPECT_FALSE(broken([](auto& f) { f.segments[1].p_offset = UINT64_MAX; }));
    EXPECT_FALSE(broken([](auto& f) { f.segments[1].p_filesz = UINT64_MAX; }));
    EXPECT_FALSE(broken([](auto& f) { f.dynamic[2].d_un.d_ptr = 0; }));
    EXPECT_FALSE(broken([](auto& f) { f.dynamic[0].d_un.d_val = UINT64_MAX; }));
    EXPECT_FALSE(broken([](auto& f) { std::memset(f.strings, 'a', sizeof f.strings); })) << "a name without an end";
    EXPECT_FALSE(broken([](auto& f) { f.segments[1].p_type = PT_NOTE; })) << "a static program";
}

TEST(mpi_library, names) {
    for (auto const* name : {"libmpi.so", "libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_cxx.so.40",
                             "libmpi_cray.so.12", "libmpi_gnu_123.so.12", "libmpifort.so.12", "libmpichcxx.so.12"})
        EXPECT_TRUE(is_mpi_library(name)) << name;
    for (auto const* name : {"libmpfr.so.6", "libmpi", "libmpi.a", "libmpix.so", "libpmix.so.2", "libmpi_notes.txt", ""})
        EXPECT_FALSE(is_mpi_library(name)) << name;
}

TEST(mpi_library, of_a_program) {
    EXPECT_EQ(links_mpi("/bin/true"), std::nullopt);
    EXPECT_EQ(links_mpi("/nonexistent"), std::nullopt);
    EXPECT_EQ(links_mpi("/dev/null"), std::nullopt);
    EXPECT_EQ(links_mpi("/"), std::nullopt);
    EXPECT_EQ(links_mpi(MUSTER_SOURCE_DIR "/CMakeLists.txt"), std::nullopt);
#ifdef MUSTER_TEST_BIN
    for (std::string const mpi : {"openmpi", "mpich"}) {
        auto const program = std::string(MUSTER_TEST_BIN) + "/hello_" + mpi;
        if (access(program.c_str(), X_OK) != 0) continue;
        EXPECT_THAT(links_mpi(program).value_or("none"), HasSubstr(mpi == "mpich" ? "libmpich.so" : "libmpi.so"));
    }
#endif
}

TEST(mpi_library, of_a_library_beside_the_program) {
    std::string folder = testing::TempDir() + "mpi_library_test.XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    auto const write = [&folder](char const* name, tiny_elf const& file) {
        std::ofstream(folder + "/" + name, std::ios::binary).write(reinterpret_cast<char const*>(&file), sizeof file);
    };
    tiny_elf program, library;
    std::memcpy(program.strings, "\0libx.so.1\0\0\0\0\0$ORIGIN/.:/b", 28);
    std::memcpy(library.strings, "\0libmpi.so.40\0\0/a:$ORIGIN/b", 28);
    write("program", program);
    write("libx.so.1", library);
    EXPECT_EQ(links_mpi(folder + "/program"), "libmpi.so.40");
    std::memcpy(library.strings, "\0libx.so.1\0\0\0\0\0$ORIGIN/.:/b", 28);  // needs itself
    write("libx.so.1", library);
    EXPECT_EQ(links_mpi(folder + "/program"), std::nullopt);
    for (auto const* name : {"/program", "/libx.so.1"}) unlink((folder + name).c_str());
    rmdir(folder.c_str());
}

}  // namespace
}  // namespace muster::pmix
