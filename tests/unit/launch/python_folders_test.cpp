#include "launch/ranks/rank_variables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;

void write(fs::path const& file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "#";
}

/// An installation with empty files, removed at the end.
struct installation {
    fs::path prefix;
    fs::path program = prefix / "bin" / "muster";
    fs::path libraries = prefix / fs::path(MUSTER_LIBRARIES_UNDER_PREFIX) / "muster";

    explicit installation(std::string_view name) : prefix(fs::path(testing::TempDir()) / name) { fs::remove_all(prefix); }
    ~installation() { fs::remove_all(prefix); }

    void add_package() const {
        write(libraries / "python" / "muster" / "__init__.py");
        write(libraries / "python" / "_muster_native.abi3.so");
    }
    void add_horovod() const { write(libraries / "as_horovod" / "horovod" / "__init__.py"); }
    std::string package() const { return (libraries / "python").string(); }
    std::string horovod() const { return (libraries / "as_horovod").string(); }
};

std::string failure(auto const& call) {
    try {
        call();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::not_found);
        return e.what();
    }
    return "nothing was thrown";
}

TEST(python_folders, are_those_of_the_programs_installation) {
    installation const here("python_folders.whole");
    here.add_package();
    here.add_horovod();
    EXPECT_EQ(find_python_folders(here.program, false), (python_folders{here.package(), ""}));
    EXPECT_EQ(find_python_folders(here.program, true), (python_folders{here.package(), here.horovod()}));
}

TEST(python_folders, are_none_where_the_package_or_its_extension_is_missing) {
    installation const here("python_folders.none");
    EXPECT_EQ(find_python_folders(here.program, false), python_folders{});
    write(here.libraries / "python" / "muster" / "__init__.py");
    EXPECT_EQ(find_python_folders(here.program, false), python_folders{}) << "no extension";
    EXPECT_THAT(failure([&] { find_python_folders(here.program, true); }), testing::HasSubstr(here.horovod()));
    here.add_horovod();
    EXPECT_EQ(find_python_folders(here.program, true), (python_folders{"", here.horovod()})) << "a wheel";
}

TEST(python_folders, of_a_wheel_are_those_that_pip_has_put_its_program_into) {
    installation const here("python_folders.wheel");
    auto const site = here.prefix / "site-packages";
    auto const program = site / "muster" / "_installed" / "bin" / "muster";
    EXPECT_EQ(wheel_folder(program), "");
    write(site / "muster" / "__init__.py");
    write(site / "_muster_native.abi3.so");
    EXPECT_EQ(wheel_folder(program), site.string());
    EXPECT_EQ(find_python_folders(program, false), python_folders{}) << "others' packages are there, too";
    EXPECT_EQ(wheel_folder(here.program), "");
}

TEST(python_folders, of_this_build_are_found_from_its_own_program_only) {
    installation const stranger("python_folders.stranger");
    write(stranger.prefix / "python" / "muster" / "__init__.py");
    write(stranger.prefix / "python" / "_muster_native.abi3.so");
    EXPECT_EQ(find_python_folders(stranger.program, false), python_folders{})
        << "beside an installed program, such a folder may be anybody's";
}

TEST(python_folders, with_a_colon_cannot_stand_in_PYTHONPATH) {
    installation const here("python:folders");
    here.add_package();
    here.add_horovod();
    EXPECT_EQ(find_python_folders(here.program, false), python_folders{});
}

TEST(python_folders, that_another_node_does_not_have_are_left_out_there) {
    installation const here("python_folders.remote");
    here.add_package();
    python_folders const both{here.package(), here.horovod()};
    EXPECT_EQ(keep_present({here.package(), ""}, "node2"), (python_folders{here.package(), ""}));
    EXPECT_EQ(keep_present({"/nowhere/python", ""}, "node2"), python_folders{});
    EXPECT_THAT(failure([&] { keep_present(both, "node2"); }),
                testing::AllOf(testing::HasSubstr("node2"), testing::HasSubstr(here.horovod())));
}

TEST(python_folders, package_last_and_horovod_first) {
    environment v{{"PYTHONPATH", "/mine"}, {"PATH", "/usr/bin"}};
    add_python_folders(v, {"/lib/python", "/lib/as_horovod"});
    environment const expected{{"PYTHONPATH", "/lib/as_horovod:/mine:/lib/python"}, {"PATH", "/lib/as_horovod/bin:/usr/bin"}};
    EXPECT_EQ(v, expected);
    add_python_folders(v, {"/lib/python", "/lib/as_horovod"});
    EXPECT_EQ(v, expected) << "as in a run within a run";
}

TEST(python_folders, need_no_PYTHONPATH_before) {
    for (auto const& before : {environment{}, environment{{"PYTHONPATH", ""}}}) {
        auto v = before;
        add_python_folders(v, {"/lib/python", ""});
        EXPECT_EQ(v, (environment{{"PYTHONPATH", "/lib/python"}}));
    }
    environment untouched{{"PATH", "/bin"}};
    add_python_folders(untouched, {});
    EXPECT_EQ(untouched, (environment{{"PATH", "/bin"}}));
}

// An empty part is the working folder: whoever can write there would say what is imported and run.
TEST(python_folders, are_joined_without_empty_parts) {
    for (auto const& [before, after] : {std::pair{"", "/h:/p"},
                                        {":", "/h:/p"},
                                        {"/a:", "/h:/a:/p"},
                                        {":/a", "/h:/a:/p"},
                                        {"/a::/b", "/h:/a:/b:/p"},
                                        {"/p:", "/h:/p"},
                                        {"/h:/a:", "/h:/a:/p"}}) {
        environment variables{{"PYTHONPATH", before}, {"PATH", before}};
        add_python_folders(variables, {.package = "/p", .horovod = "/h"});
        EXPECT_EQ(variables.get_or("PYTHONPATH", ""), after) << before;
        EXPECT_EQ(variables.get_or("PATH", "").find("::"), std::string::npos);
        EXPECT_FALSE(variables.get_or("PATH", "").ends_with(':'));
    }
}

}  // namespace
}  // namespace muster
