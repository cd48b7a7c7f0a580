// Environment variables as a value: a snapshot, taken once at the start of main and passed down.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class environment {
  public:
    environment() = default;
    environment(std::initializer_list<std::pair<std::string const, std::string>> values) : values_(values) {}

    /// This process' variables. Call before any thread is started.
    static environment capture();

    std::optional<std::string> get(std::string_view name) const;
    std::string get_or(std::string_view name, std::string_view otherwise) const;
    bool has(std::string_view name) const;

    /// The value as a whole number, or nothing if it is not set. Throws parse_error that shows the variable and its value.
    std::optional<int> get_int(std::string_view name) const;

    void set(std::string_view name, std::string_view value);
    void unset(std::string_view name);
    /// Sets only if there is no such variable yet; true if it was set.
    bool set_default(std::string_view name, std::string_view value);
    /// Removes every variable whose name begins so.
    void unset_prefix(std::string_view prefix);

    /// "NAME=value" lines in order of name: what execve takes once the pointers are gathered.
    std::vector<std::string> lines() const;

    /// The same, the values quoted for a shell where needed, each line ended.
    std::string shell_lines() const;

    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }
    std::size_t size() const noexcept { return values_.size(); }
    bool operator==(environment const&) const = default;

  private:
    std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace muster
