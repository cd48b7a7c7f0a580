#include "base/process/process_starter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace muster {
namespace {

std::string read_to_end(int fd) {
    std::string all;
    char bytes[256];
    for (ssize_t n = 0; (n = ::read(fd, bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<std::size_t>(n));
    return all;
}

int exit_code_of(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> const print_number{"sh", "-c", "echo $NUMBER; exit $NUMBER"};

process_request request_of(environment const& variables, std::vector<std::string> const& arguments, int output = -1) {
    return {.path = "/bin/sh",
            .arguments = &arguments,
            .variables = &variables,
            .working_dir = "",
            .stdout_fd = output,
            .cores = {},
            .open_files = {}};
}

TEST(process_starter, each_of_many_has_its_own_variables_and_output) {
    constexpr int count = 50;  // more than are on their way at once
    process_starter processes(count);
    std::vector<pid_t> pids;
    std::vector<unique_fd> outputs;
    for (int i = 0; i < count; ++i) {
        auto [from, to] = make_pipe();
        environment const variables{{"NUMBER", std::to_string(i)}};
        pids.push_back(processes.begin(request_of(variables, print_number, to.get())));
        outputs.push_back(std::move(from));
    }
    processes.finish();
    for (int i = 0; i < count; ++i) {
        auto const place = static_cast<std::size_t>(i);
        EXPECT_EQ(read_to_end(outputs[place].get()), std::to_string(i) + "\n") << "or its end never came";
        EXPECT_EQ(exit_code_of(pids[place]), i);
    }
}

TEST(process_starter, what_fails_on_the_way_is_told_at_the_end) {
    process_starter processes(4);
    std::vector<pid_t> pids;
    std::string told;
    environment const variables{{"NUMBER", "0"}};
    for (int i = 0; i < 4; ++i) {
        auto request = request_of(variables, print_number);
        if (i == 2) request.working_dir = "/no/such/folder";
        try {
            pids.push_back(processes.begin(request));
        } catch (error const& e) {  // where each is waited for
            told = e.what();
        }
    }
    try {
        processes.finish();
    } catch (error const& e) {
        told = e.what();
    }
    EXPECT_THAT(told, testing::HasSubstr("/no/such/folder"));
    processes.finish();  // told once
    for (std::size_t i = 0; i < pids.size(); ++i) EXPECT_EQ(exit_code_of(pids[i]), pids.size() == 4 && i == 2 ? 127 : 0);
}

TEST(process_starter, what_fails_for_all_is_told_of_the_first) {
    process_starter processes(3);
    environment const variables;
    std::vector<std::string> const arguments{"no-such-program"};
    auto request = request_of(variables, arguments);
    request.path = "/no/such/program";
    EXPECT_THROW(processes.begin(request), program_error);
}

}  // namespace
}  // namespace muster
