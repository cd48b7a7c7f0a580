#include "launch/shell_lines.hpp"

#include "base/text.hpp"

namespace muster {

std::string shell_lines(environment const& variables) {
    std::string text;
    for (auto const& [name, value] : variables) text += name + "=" + shell_quote(value) + "\n";
    return text;
}

std::string shell_line(std::vector<std::string> const& words) {
    std::string line;
    for (auto const& word : words) line += (line.empty() ? "" : " ") + shell_quote(word);
    return line;
}

}  // namespace muster
