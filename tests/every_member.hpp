// A filler gives every member of a struct, and of structs within it, a value that it does not have by itself: for tests of what must arrive whole.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/codec/members.hpp"
#include "base/environment.hpp"
#include "base/units.hpp"

namespace muster {

/// No two numbers or texts in a row are equal; booleans are all `flag`.
class member_filler {
  public:
    explicit member_filler(bool flag) : flag_(flag) {}

    template <typename T>
    T make() {
        T made{};
        fill(made);
        return made;
    }
    void fill(bool& value) { value = flag_; }
    void fill(std::string& value) { value = "text " + std::to_string(++made_) + "\n\xff"; }
    void fill(std::string_view& value) { value = "view"; }
    void fill(duration& value) { value = duration(100.5 + ++made_); }
    void fill(environment& value) { value.set(make<std::string>(), make<std::string>()); }
    template <typename T>
    void fill(std::vector<T>& value) {
        value = {make<T>(), make<T>()};
    }
    template <typename T, std::size_t N>
    void fill(std::array<T, N>& value) {
        for (T& each : value) fill(each);
    }
    template <typename T>
    void fill(std::optional<T>& value) {
        value = make<T>();
    }
    template <typename T>
    void fill(T& value) {
        if constexpr (std::is_enum_v<T>)
            value = static_cast<T>(1);
        else if constexpr (std::is_arithmetic_v<T>)
            value = static_cast<T>(50 + ++made_ % 70);
        else
            std::apply([this](auto&... member) { (fill(member), ...); }, members_of(value));
    }

  private:
    bool flag_;
    int made_ = 0;
};

}  // namespace muster
