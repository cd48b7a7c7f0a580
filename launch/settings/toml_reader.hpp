// Reads TOML against a schema; shows every fault with file, line and caret.
#pragma once

#include <toml++/toml.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"

namespace muster {

/// A parsed file with its text, which errors quote.
struct toml_document {
    std::string origin;
    std::string text;
    toml::table root;

    /// Throws parse_error (errc::config), also for a duplicate key and for text beyond 1 MiB.
    static toml_document parse(std::string_view text, std::string_view origin);
};

/// A fault of a value, with its place in the tables.
class toml_fault : public parse_error {
  public:
    toml_fault(toml_document const& document, std::size_t offset, std::string_view message, toml::table const& table,
               std::string_view key)
        : parse_error(document.origin, document.text, offset, message, errc::config), table_(&table), key_(key) {}

    toml::table const& table() const noexcept { return *table_; }  ///< one of the document's
    std::string const& key() const noexcept { return key_; }       ///< the key there, or the missing one

  private:
    toml::table const* table_;
    std::string key_;
};

inline constexpr std::size_t most_tables = 1000;  ///< in an array: a site's queues, which are compared with each other

/// Reads one table of a document. All reading functions throw toml_fault (errc::config) that shows the place: for a wrong type, a
/// value outside its range, an empty text or one with control characters, and for a missing required key. The document must
/// outlive it.
class toml_reader {
  public:
    /// `path` names the table in errors, as in "queue 'debug'"; empty for the root. Throws for the first key not among `known`,
    /// naming the nearest one, or else all; beyond a dozen keys it names `listed_by` instead.
    toml_reader(toml_document const& document, toml::table const& table, std::string path,
                std::span<std::string_view const> known, std::string_view listed_by = "docs/sites.md lists");
    /// Accepts any key.
    toml_reader(toml_document const& document, toml::table const& table, std::string path)
        : document_(document), table_(table), path_(std::move(path)) {}

    bool has(std::string_view key) const { return table_.contains(key); }
    std::optional<std::string> text(std::string_view key) const;
    std::string required_text(std::string_view key) const;
    std::optional<int> integer(std::string_view key, int least, int most) const;
    bool flag(std::string_view key, bool otherwise) const;
    std::optional<duration> time(std::string_view key) const;     ///< in the form of parse_duration
    std::optional<std::string> date(std::string_view key) const;  ///< a TOML date as YYYY-MM-DD
    std::vector<std::string> texts(std::string_view key) const;
    std::vector<int> integers(std::string_view key, int least, int most) const;
    /// Returns one of `choices`; `choices[0]` if the key is missing.
    std::string choice(std::string_view key, std::span<std::string_view const> choices) const;

    toml::table const* table(std::string_view key) const;                ///< nullptr if it is missing
    std::vector<toml::table const*> tables(std::string_view key) const;  ///< those of an array of at most most_tables tables

    /// Throws toml_fault for the value of `key` (or the table itself if it is missing), or for the key's own name.
    [[noreturn]] void refuse(std::string_view key, std::string_view message) const;
    [[noreturn]] void refuse_key(std::string_view key, std::string_view message) const;

  private:
    [[noreturn]] void refuse_at(toml::source_position where, std::string_view key, std::string_view message) const;
    std::string checked(toml::node const& node, std::string_view key) const;

    toml_document const& document_;
    toml::table const& table_;
    std::string path_;
};

}  // namespace muster
