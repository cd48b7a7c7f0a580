// A finding of muster doctor: one thing that was examined.
#pragma once

#include <string>

namespace muster {

struct finding {
    enum class state { ok, note, missing };
    state how;
    std::string what;
    std::string detail;
    std::string advice;  ///< what to do about it; empty if nothing
    bool operator==(finding const&) const = default;
};

}  // namespace muster
