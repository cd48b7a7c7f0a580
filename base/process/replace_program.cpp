#include "base/process/replace_program.hpp"

#include <unistd.h>

#include <cstdio>

#include "base/error.hpp"

namespace muster {

void replace_program(std::string const& path, std::vector<std::string> const& words, environment const& variables) {
    auto const lines = variables.lines();
    std::vector<char*> argv, envp;
    for (auto const& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    for (auto const& line : lines) envp.push_back(const_cast<char*>(line.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    std::fflush(nullptr);
    ::execve(path.c_str(), argv.data(), envp.data());
    throw_system("execve", path);
}

}  // namespace muster
