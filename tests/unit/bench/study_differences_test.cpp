#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "tests/unit/bench/sample_study.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using software = std::vector<std::pair<std::string, std::string>>;

study study_of(std::string const& line, software const& versions = {}) {
    auto s = plain_study({1, 2}, {{4, 4, 4}, {2, 2, 2}});
    s.plan.program = shell_split(line, "the test");
    s.software = versions;
    return s;
}

/// "what: value / value" of each row.
std::vector<std::string> differences_of(std::vector<study> const& studies) {
    report_input input;
    for (auto const& each : studies) input.studies.push_back({each, "some/results.json"});
    std::vector<std::string> out;
    for (auto const& row : study_differences(input.studies)) out.push_back(row.what + ": " + join(row.values, " / "));
    return out;
}

std::vector<std::string> differences_of(std::string const& one, std::string const& other) {
    return differences_of({study_of(one), study_of(other)});
}

TEST(study_differences, of_copies_of_a_file_are_none) {
    EXPECT_THAT(differences_of({study_of("python3 v1/train.py --epochs 1", {{"v1/train.py", "sha256 151f"}}),
                                study_of("python3 v2/train.py --epochs 1", {{"v2/train.py", "sha256 151f"}})}),
                IsEmpty());
}

TEST(study_differences, of_a_file_are_one_row_of_both_hashes) {
    EXPECT_THAT(differences_of({study_of("python3 v1/train.py", {{"python", "3.11"}, {"v1/train.py", "sha256 151f"}}),
                                study_of("python3 v2/train.py", {{"python", "3.12"}, {"v2/train.py", "sha256 7a02"}})}),
                ElementsAre("version of python: 3.11 / 3.12", "version of train.py: sha256 151f / sha256 7a02"));
}

TEST(study_differences, a_file_is_no_package_of_its_name) {
    EXPECT_THAT(differences_of({study_of("/a/python t.py", {{"/a/python", "sha256 1"}, {"python", "3.11"}}),
                                study_of("/b/python t.py", {{"/b/python", "sha256 2"}, {"python", "3.11"}})}),
                ElementsAre("version of python: sha256 1 / sha256 2"));
}

TEST(study_differences, files_of_one_name_in_a_study_go_by_their_paths) {
    EXPECT_THAT(differences_of({study_of("a/run.sh b/run.sh", {{"a/run.sh", "sha256 1"}, {"b/run.sh", "sha256 2"}}),
                                study_of("a/run.sh b/run.sh", {{"a/run.sh", "sha256 1"}, {"b/run.sh", "sha256 3"}})}),
                ElementsAre("version of b/run.sh: sha256 2 / sha256 3"));
}

TEST(study_differences, of_options_have_a_row_each) {
    EXPECT_THAT(
        differences_of({study_of("python3 v1/t.py --net mnist --api hvd --epochs 1", {{"v1/t.py", "sha256 1"}}),
                        study_of("python3 v2/t.py --net mnist --api ddp --epochs 1 --backend gloo", {{"v2/t.py", "sha256 1"}})}),
        ElementsAre("--api: hvd / ddp", "--backend:  / gloo"));
    EXPECT_THAT(differences_of("./t --lr -0.1 --amp --x=1 --x=2", "./t --lr 0.1 --x=1 --x 3"),
                ElementsAre("--lr: -0.1 / 0.1", "--amp: given / ", "--x: 1 2 / 1 3"));
    EXPECT_THAT(differences_of({study_of("./t --n 1"), study_of("./t --n 2 --k ''"), study_of("./t --n 1")}),
                ElementsAre("--n: 1 / 2 / 1", "--k:  / '' / "));
    EXPECT_THAT(differences_of("./t --n=1", "./t --n 1"), IsEmpty());
}

TEST(study_differences, of_words_that_are_no_options_are_whole_lines) {
    for (auto const& [one, other] :
         {std::pair{"./t convert --n 1", "./t copy --n 2"}, std::pair{"python3 -u a.py --n 1", "python3 -u b.py --n 1"},
          std::pair{"./t --n 1 --k 2", "./t --k 2 --n 1"}, std::pair{"./t -- --n 1", "./t -- --n 2"},
          std::pair{"./t --amp -- a", "./t -- a b"}, std::pair{"a/t --n 1", "b/t --n 2"}})
        EXPECT_THAT(differences_of(one, other), ElementsAre("program: " + std::string(one) + " / " + other));
}

}  // namespace
}  // namespace muster
