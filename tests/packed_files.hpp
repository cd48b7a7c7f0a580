// Several small files kept in one text: "==> NAME <==" above the contents of each, as `head` shows them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/environment.hpp"

namespace muster {

/// The files packed in `path`, by name; fails the test where there are none.
inline std::map<std::string, std::string> read_packed_files(std::string const& path) {
    std::map<std::string, std::string> files;
    std::ifstream text(path);
    std::string* contents = nullptr;
    for (std::string line; std::getline(text, line);) {
        if (line.starts_with("==> ") && line.ends_with(" <=="))
            contents = &files[line.substr(4, line.size() - 8)];
        else if (contents != nullptr)
            *contents += line + "\n";
    }
    EXPECT_FALSE(files.empty()) << path;
    return files;
}

/// The variables that the lines NAME=VALUE of `text` set; lines that begin with # are comments.
inline environment variables_in(std::string const& text) {
    environment variables;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (auto const equals = line.find('='); equals != std::string::npos && !line.starts_with("#"))
            variables.set(line.substr(0, equals), line.substr(equals + 1));
    return variables;
}

}  // namespace muster
