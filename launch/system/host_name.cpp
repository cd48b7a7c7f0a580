#include "launch/system/host_name.hpp"

#include <unistd.h>

#include <array>

namespace muster {

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string short_host_name() {
    return std::string(short_name(host_name()));
}

std::string_view without_user(std::string_view name) noexcept {
    auto const at = name.find('@');
    return at == std::string_view::npos ? name : name.substr(at + 1);
}

std::string_view short_name(std::string_view name) noexcept {
    return name.substr(0, name.find('.'));
}

}  // namespace muster
