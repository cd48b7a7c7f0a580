#include "base/process/signal_handlers.hpp"

#include <cstdlib>
#include <string>

#include "base/process/text_file.hpp"
#include "base/text.hpp"

namespace muster {

bool catches_signal(pid_t pid, int signal_number) {
    constexpr std::string_view field = "SigCgt:";
    if (signal_number < 1 || signal_number > 64) return false;
    auto const status = read_text_file("/proc/" + std::to_string(pid) + "/status");
    for (auto const line : split(status, '\n'))
        if (line.starts_with(field)) {
            std::string const mask(trim(line.substr(field.size())));
            return (std::strtoull(mask.c_str(), nullptr, 16) >> (signal_number - 1) & 1) != 0;
        }
    return false;
}

}  // namespace muster
