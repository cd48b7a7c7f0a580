#include "base/command/print_note.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <string>

#include "base/text.hpp"

namespace muster {

void print_note(std::string_view text) {
    auto const before = ::signal(SIGPIPE, SIG_IGN);
    std::string lines;
    for (auto const line : split(text, '\n')) lines += without_controls(line) + '\n';
    std::fputs(fmt::format("muster: note: {}", lines).c_str(), stderr);
    ::signal(SIGPIPE, before);
}

}  // namespace muster
