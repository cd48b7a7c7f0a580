// The opening of output files: creates or truncates files that belong to the user, in folders that other users may write to as well.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace muster {

/// Says what becomes of a file that is there already. `refused`: nothing is opened, and errno is EEXIST. `kept`: it is open for reading, too.
enum class if_there { emptied, kept, refused };

/// Opens `path` for writing: the one way to open an output by its path, as a unit test sees to. What is there already is taken only if it is a
/// regular file of this user with one name: another user's link would lead what is written elsewhere, and another user's pipe would stop this
/// process in open(). A link on the way must be this user's or root's. /dev/null, /dev/stdout, /dev/stderr and /dev/fd/N are what they say.
/// Throws errc::not_found for a folder that is missing, errc::system and errc::io, with `hint` last.
unique_fd open_output_file(std::string const& path, std::string_view hint = {}, if_there found = if_there::emptied,
                           mode_t mode = 0666);

/// The whole of a file, by open_output_file(). Throws as that does, and where the file system does not take it.
void write_output_file(std::string const& path, std::string_view text, std::string_view hint = {});

/// A folder of this user's own, kept open: its files stay in it whatever is moved to its name later.
class output_folder {
  public:
    /// Makes it, with those above it. Throws errc::io, with `hint` last, if the last part of `path` is a link, no folder, or
    /// another user's, or a link on the way is.
    explicit output_folder(std::string path, std::string_view hint = {});

    std::string const& path() const noexcept { return path_; }

    /// Works as open_output_file(). With a `mode` that shuts others out (0600, 0700) nobody else can read the file at any time: it is made so, and one
    /// that was there is emptied and given that mode before it is returned.
    unique_fd open_file(std::string_view name, std::string_view hint = {}, mode_t mode = 0666) const;

    /// Removes the file, if there is one.
    void remove_file(std::string_view name) const noexcept;
    /// Writes the text to NAME.new, as open_file() does, and gives that the name: a reader never finds half of the file. Throws as open_file(), and where the
    /// file system does not take it.
    void replace_file(std::string_view name, std::string_view text, std::string_view hint = {}, mode_t mode = 0666) const;

  private:
    std::string path_;
    unique_fd fd_;
};

}  // namespace muster
