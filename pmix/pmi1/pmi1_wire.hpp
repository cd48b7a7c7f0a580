// The lines of the PMI-1 wire protocol, parsed and checked: "cmd=put kvsname=job key=a value=b\n".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::pmix {

/// The longest line taken, end included. Clients of the protocol use lines of up to 1024 bytes.
constexpr std::size_t pmi1_longest_line = 4096;

/// One line, taken apart: the words "name=value" in order. Views into the line.
struct pmi1_message {
    std::vector<std::pair<std::string_view, std::string_view>> words;

    /// The first value of that name, or nothing.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    std::string_view get_or(std::string_view name, std::string_view otherwise) const noexcept;
    /// A whole number that fits an int, or nothing.
    std::optional<int> number(std::string_view name) const noexcept;
    bool operator==(pmi1_message const&) const = default;
};

/// Takes apart a line without its end; the value of `message` is all that follows. Nothing on a word without "=" or with an empty name, on a NUL byte, and on a line that is
/// empty or too long. Pure; any bytes may be given.
std::optional<pmi1_message> parse_pmi1(std::string_view line);

/// True for what may stand as one value in a line: 1 to `longest` bytes, no blank, no control character. (A "=" may.)
bool is_pmi1_word(std::string_view word, std::size_t longest) noexcept;

/// Gathers bytes from a socket into lines.
class pmi1_line_buffer {
  public:
    void append(std::string_view bytes) { bytes_ += bytes; }
    /// The next whole line without its end, or nothing until more bytes come.
    std::optional<std::string> next();
    /// True once a line is longer than any may be: the peer does not speak this protocol.
    bool overflown() const noexcept;

  private:
    std::string bytes_;
    std::size_t taken_ = 0;
};

}  // namespace muster::pmix
