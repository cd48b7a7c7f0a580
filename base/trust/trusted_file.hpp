// The reading of files that say what to run: only small regular ones, and only where no other user can have written them.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace muster {

inline constexpr std::size_t longest_settings_bytes = std::size_t{1} << 20;  ///< of a settings file, a site file, a template

/// The whole of `path`; nothing if there is no such file. Throws errc::config, `what` ("settings file") first, for one that cannot
/// be read, is no regular file (opening a pipe would wait for ever) or has more bytes than `longest`.
std::optional<std::string> read_small_file(std::string const& path, std::string_view what,
                                           std::size_t longest = longest_settings_bytes);

/// Holds what read_trusted_file() has found.
struct trusted_text {
    std::optional<std::string> text;  ///< nothing: there is no such file, or it is not trusted
    std::string distrust;             ///< why it is not; empty: it is, or there is no file
};

/// Works as read_small_file(), but reads only a file that distrust() finds no fault with. It is opened once, and what was judged is what is read:
/// another file that somebody moves to that name meanwhile is not. Throws as that does, not for a file that is not trusted.
trusted_text read_trusted_file(std::string const& path, std::string_view what);

/// Holds who reads a file: the user, and the group that has no other member, where there is one (as with umask 002).
struct file_reader {
    uid_t user;
    std::optional<gid_t> private_group;
};

/// Returns why a file in a folder, both as stat(2) shows them, may have been written by another user than the reader or root: "" if it
/// cannot. Of folders that others may write to, only a sticky one of the reader's or root's keeps a file its owner's. Pure.
std::string distrust(struct stat const& file, struct stat const& folder, file_reader const& reader);

/// The same of the file at `path`, links followed, of the folder that it lies in, and of each link on the way; "" also if there is no such
/// file. Whoever reads it then must not take a missing one for a trusted one: see read_trusted_file().
std::string distrust(std::string const& path);

}  // namespace muster
