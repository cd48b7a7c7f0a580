#include "launch/remote/flux_remote.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(flux_remote, the_broker_of_a_host) {
    EXPECT_EQ(broker_on("node[1-4]\n", "node1", "t"), 0);
    EXPECT_EQ(broker_on("node[1-4]\n", "node4", "t"), 3);
    EXPECT_EQ(broker_on("tioga[10,12],tioga3", "tioga3", "t"), 2);
    EXPECT_EQ(broker_on("n1.lab.example,n2.lab.example", "n2", "t"), 1);
    EXPECT_EQ(broker_on("n2.other,n2", "n2", "t"), 1) << "the same name goes before a similar one";
    EXPECT_EQ(broker_on("vm,vm,vm", "vm", "t"), 0) << "flux start -s 3";
    EXPECT_EQ(broker_on("node[1-4]", "node5", "t"), std::nullopt);
    EXPECT_THROW(broker_on("node[1-", "node1", "t"), parse_error);
}

TEST(flux_remote, GPUs_of_this_node_stay_here) {
    auto const words = join(flux_exec_words(3, "exec muster agent 'a b'", {{"CUDA_VISIBLE_DEVICES", "1"}}), "|");
    EXPECT_TRUE(words.starts_with("flux|exec|--quiet|--rank=3|--dir=/|env|-u|CUDA_VISIBLE_DEVICES|")) << words;
    for (auto const* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"})
        EXPECT_THAT(words, HasSubstr(std::string("|-u|") + name + "|"));
    EXPECT_TRUE(words.ends_with("|/bin/bash|-c|exec muster agent 'a b'")) << words;
}

TEST(flux_remote, a_job_without_GPUs_has_none_on_any_host) {
    auto const words = join(flux_exec_words(3, "true", {{"CUDA_VISIBLE_DEVICES", "-1"}}), "|");
    EXPECT_EQ(words.find("CUDA_VISIBLE_DEVICES"), std::string::npos) << words;
    EXPECT_THAT(words, HasSubstr("|-u|ROCR_VISIBLE_DEVICES|"));
}

TEST(flux_remote, both_words_are_needed) {
    EXPECT_THROW(fluxrsh_command({}, {}), error);
    EXPECT_THROW(fluxrsh_command({"node1"}, {}), error);
}

TEST(flux_remote, a_path_with_blanks_is_one_word_of_the_script) {
    EXPECT_EQ(fluxrsh_script("/a b/muster"), "exec '/a b/muster' fluxrsh \"$@\"\n");
    EXPECT_EQ(fluxrsh_words("/a b/muster"), (std::vector<std::string>{"/a b/muster", "fluxrsh"}));
}

std::optional<std::string> unavailable_if(command_output const& said) {
    environment const variables;
    scheduler_sources const sources{variables, [](auto const&) { return std::nullopt; }, [&](auto const&) { return said; },
                                    [] { return node{}; }};
    return flux_exec_unavailable(sources);
}

TEST(flux_remote, brokers_run_commands_for_their_owner) {
    EXPECT_EQ(unavailable_if({0, std::to_string(::geteuid()) + "\n", ""}), std::nullopt);
    EXPECT_THAT(unavailable_if({0, "987654\n", ""}).value_or(""), HasSubstr("user 987654"));
    EXPECT_EQ(unavailable_if({127, "", "not found"}), "there is no flux on PATH");
    EXPECT_THAT(unavailable_if({1, "", "flux_open: No such file or directory\n"}).value_or(""), HasSubstr("No such file"));
}

}  // namespace
}  // namespace muster
