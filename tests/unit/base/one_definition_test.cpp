// Tests that no type is defined twice: the libraries are linked into one program, where two definitions of one name are undefined behaviour.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

char const* const folders[] = {"base", "pmix", "comm", "io", "jobscripts", "launch", "bench"};

// Where each type of a named namespace is defined: "muster::loader" -> {"io/loader/loader.hpp:55"}. It reads the layout that clang-format gives: namespaces
// and the types in them begin in column one. Members of a class ("class loader::state") are the class's own.
std::map<std::string, std::vector<std::string>> definitions(fs::path const& root) {
    std::map<std::string, std::vector<std::string>> found;
    std::regex const opens(R"(^namespace\s*([\w:]*)\s*\{\s*$)"), closes(R"(^\}\s*// namespace.*)");
    std::regex const type(
        R"(^(?:struct|class|union|enum class|enum)\s+(?:alignas\([^)]*\)\s*)?(\w+)(?:\s+final)?\s*(?:(?::[^:].*)?\{.*|$))");
    for (auto const* folder : folders) {
        if (!fs::exists(root / folder)) continue;
        for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
            auto const extension = entry.path().extension();
            if (extension != ".cpp" && extension != ".hpp" && extension != ".h") continue;
            auto const path = fs::relative(entry.path(), root).string();
            std::vector<std::string> namespaces;
            std::ifstream file(entry.path());
            std::string line, before;
            std::smatch match;
            for (int number = 1; std::getline(file, line); ++number) {
                bool const specialises = before.starts_with("template <>");
                before = line;
                if (std::regex_match(line, match, opens)) {
                    namespaces.push_back(match[1]);
                } else if (std::regex_match(line, closes) && !namespaces.empty()) {
                    namespaces.pop_back();
                } else if (!specialises && std::regex_match(line, match, type)) {
                    std::string name;
                    bool anonymous = false;
                    for (auto const& space : namespaces) {
                        anonymous = anonymous || space.empty();
                        name += space + "::";
                    }
                    if (!anonymous) found[name + match[1].str()].push_back(path + ":" + std::to_string(number));
                }
            }
        }
    }
    return found;
}

TEST(one_definition, no_type_is_defined_twice) {
    auto const all = definitions(MUSTER_SOURCE_DIR);
    EXPECT_GT(all.size(), 300u) << "the types are not found";
    for (auto const& [name, places] : all)
        for (std::size_t i = 1; i < places.size(); ++i)
            ADD_FAILURE() << name << " is defined in " << places[0] << " and in " << places[i];
}

TEST(one_definition, a_second_definition_is_found) {
    fs::path const root = fs::temp_directory_path() / ("muster-definitions-" + std::to_string(::getpid()));
    fs::create_directories(root / "comm");
    fs::create_directories(root / "launch");
    std::ofstream(root / "comm" / "a.hpp")
        << "namespace muster {\n\nstruct request {\n};\nstruct other;\nclass request::part {\n};\n\n}  // namespace muster\n";
    std::ofstream(root / "launch" / "b.hpp")
        << "namespace muster {\nnamespace {\nstruct own {\n};\n}  // namespace\nclass request final : public x {\n};\n"
           "struct own {\n};\n}  // namespace muster\n";
    auto const all = definitions(root);
    EXPECT_EQ(all.at("muster::request").size(), 2u);
    EXPECT_EQ(all.at("muster::own").size(), 1u);
    EXPECT_EQ(all.size(), 2u);
    fs::remove_all(root);
}

}  // namespace
