#include "launch/jobs/logs/line_filter.hpp"

#include <fmt/format.h>
#include <regex.h>

#include <array>

#include "base/error.hpp"

namespace muster {

struct line_filter::compiled {
    regex_t expression{};
    bool made = false;
    compiled() = default;
    compiled(compiled const&) = delete;
    compiled& operator=(compiled const&) = delete;
    ~compiled() {
        if (made) ::regfree(&expression);
    }
};

line_filter::line_filter(std::string const& expression) {
    if (expression.empty()) return;
    compiled_ = std::make_unique<compiled>();
    int const fault = ::regcomp(&compiled_->expression, expression.c_str(), REG_EXTENDED | REG_NOSUB);
    if (fault != 0) {
        std::array<char, 256> text{};
        ::regerror(fault, &compiled_->expression, text.data(), text.size());
        throw error(errc::usage, fmt::format("--grep: '{}' is no regular expression: {}; put \\ before what is meant as it is",
                                             expression, text.data()));
    }
    compiled_->made = true;
}

line_filter::line_filter() = default;
line_filter::~line_filter() = default;
line_filter::line_filter(line_filter&&) noexcept = default;
line_filter& line_filter::operator=(line_filter&&) noexcept = default;

bool line_filter::takes(std::string const& line) const {
    return !compiled_ || ::regexec(&compiled_->expression, line.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace muster
