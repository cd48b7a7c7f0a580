// Reading a subcommand's options.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::stage {

/// An option as a command's table lists it; a flag takes no value.
struct option {
    char const* name;  ///< "output,o"
    bool flag = false;
};

/// What was given.
class options {
  public:
    /// Throws errc::usage naming the nearest known option for an unknown one. `files` is how many words may stand beside the
    /// options.
    options(std::string const& command, std::vector<option> const& known, std::vector<std::string> const& args,
            std::size_t files);

    bool has(char const* name) const { return given_.count(name) != 0; }
    std::optional<std::string> text(char const* name) const;
    std::string needed(char const* name) const;  ///< throws errc::usage if it is not given
    std::uint64_t number(char const* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) const;
    std::vector<std::string> const& files() const noexcept { return files_; }

  private:
    std::string command_;
    boost::program_options::variables_map given_;
    std::vector<std::string> files_;
};

}  // namespace muster::stage
