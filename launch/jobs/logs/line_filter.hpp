// A filter of lines by a regular expression.
#pragma once

#include <memory>
#include <string>

namespace muster {

/// Lines in which a POSIX extended regular expression is found; the empty one takes all.
class line_filter {
  public:
    line_filter();
    /// Throws errc::usage for what is none.
    explicit line_filter(std::string const& expression);
    ~line_filter();
    line_filter(line_filter&&) noexcept;
    line_filter& operator=(line_filter&&) noexcept;

    bool takes(std::string const& line) const;

  private:
    struct compiled;
    std::unique_ptr<compiled> compiled_;
};

}  // namespace muster
