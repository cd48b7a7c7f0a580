#include "launch/system/host_name.hpp"

#include <unistd.h>

#include <array>

namespace muster {

std::string short_host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    return std::string(short_name(name.data()));
}

std::string_view without_user(std::string_view name) noexcept {
    auto const at = name.find('@');
    return at == std::string_view::npos ? name : name.substr(at + 1);
}

std::string_view short_name(std::string_view name) noexcept {
    return name.substr(0, name.find('.'));
}

}  // namespace muster
