// Reads JSON that somebody may have damaged: every complaint names the file and the place in it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The JSON value in `text`. Throws parse_error (errc::invalid_data) with `origin`, line and caret.
nlohmann::json parse_json(std::string_view text, std::string const& origin);

/// The same, from a file. Throws errc::not_found or errc::io too.
nlohmann::json read_json_file(std::string const& path);

/// Writes the file whole or not at all: beside it first, then renamed. Ends with a line feed. Throws errc::io.
void write_json_file(std::string const& path, nlohmann::json const& value);

/// A value within a document, knowing its place. Refers to the document; copy freely while that lives.
class json_reader {
  public:
    json_reader(nlohmann::json const& document, std::string origin) : value_(&document), origin_(std::move(origin)) {}

    /// The member of an object; errc::invalid_data "FILE: /runs/0: has no 'ranks'" if there is none.
    json_reader at(std::string_view name) const;
    bool has(std::string_view name) const;
    /// The elements of an array.
    std::vector<json_reader> items() const;

    std::string text() const;
    double number() const;         ///< finite
    std::int64_t integer() const;  ///< a whole number
    /// A whole number within the bounds.
    std::int64_t integer(std::int64_t low, std::int64_t high) const;
    bool boolean() const;

    nlohmann::json const& value() const noexcept { return *value_; }
    [[noreturn]] void complain(std::string const& what) const;

  private:
    json_reader(nlohmann::json const& value, std::string origin, std::string place)
        : value_(&value), origin_(std::move(origin)), place_(std::move(place)) {}
    nlohmann::json const* value_;
    std::string origin_;
    std::string place_;  // a JSON pointer
};

}  // namespace muster
