// Checked JSON: documents may be damaged, so every error names the file and the place in it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Returns the JSON value in `text`. Throws parse_error (errc::invalid_data) with `origin`, line and caret.
nlohmann::json parse_json(std::string_view text, std::string const& origin);

/// Reads it from a file. Throws errc::not_found or errc::io too, with the caller's `hint` if the file cannot be opened.
nlohmann::json read_json_file(std::string const& path, std::string_view hint = {});

/// Writes the file completely or not at all: under another name first, then renamed. Ends with a line feed. Throws errc::io.
void write_json_file(std::string const& path, nlohmann::json const& value);

/// A value within a document, and its place there. Refers to the document; copy freely while that lives.
class checked_json {
  public:
    checked_json(nlohmann::json const& document, std::string origin) : value_(&document), origin_(std::move(origin)) {}

    /// Returns the member of an object. Throws errc::invalid_data, "FILE: /runs/0: has no 'ranks'", if there is no such member.
    checked_json at(std::string_view name) const;
    bool has(std::string_view name) const;
    /// Returns the elements of an array.
    std::vector<checked_json> items() const;

    std::string text() const;
    double number() const;         ///< finite
    std::int64_t integer() const;  ///< a whole number
    /// Returns a whole number within the bounds.
    std::int64_t integer(std::int64_t low, std::int64_t high) const;
    bool boolean() const;

    nlohmann::json const& value() const noexcept { return *value_; }
    /// Throws errc::invalid_data with file and place.
    [[noreturn]] void fail(std::string const& what) const;

  private:
    checked_json(nlohmann::json const& value, std::string origin, std::string place)
        : value_(&value), origin_(std::move(origin)), place_(std::move(place)) {}
    nlohmann::json const* value_;
    std::string origin_;
    std::string place_;  // a JSON pointer
};

}  // namespace muster
