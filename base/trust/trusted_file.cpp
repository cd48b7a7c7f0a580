#include "base/trust/trusted_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

std::string name_of_user(uid_t user) {
    passwd entry{};
    passwd* found = nullptr;
    std::array<char, 4096> text;
    if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) == 0 && found != nullptr)
        return fmt::format("the user {}", found->pw_name);
    return fmt::format("the user with number {}", user);
}

/// The group that has the user's own name and no other member.
std::optional<gid_t> private_group_of(uid_t user) {
    passwd entry{};
    passwd* who = nullptr;
    std::array<char, 4096> text;
    if (::getpwuid_r(user, &entry, text.data(), text.size(), &who) != 0 || who == nullptr) return std::nullopt;
    group members{};
    group* found = nullptr;
    std::array<char, 4096> more;
    if (::getgrgid_r(who->pw_gid, &members, more.data(), more.size(), &found) != 0 || found == nullptr) return std::nullopt;
    if (std::string_view(found->gr_name) != who->pw_name) return std::nullopt;
    for (char** member = found->gr_mem; *member != nullptr; ++member)
        if (std::string_view(*member) != who->pw_name) return std::nullopt;
    return who->pw_gid;
}

/// Returns why another user can write to what is called `what`.
std::string writer_fault(struct stat const& found, file_reader const& reader, std::string_view what) {
    if (found.st_uid != reader.user && found.st_uid != 0)
        return fmt::format("{} belongs to {}", what, name_of_user(found.st_uid));
    bool const by_group = (found.st_mode & S_IWGRP) != 0 && found.st_gid != reader.private_group;
    if (by_group || (found.st_mode & S_IWOTH) != 0)
        return fmt::format("others may write to {} (mode {:o})", what, found.st_mode & 07777);
    return {};
}

[[noreturn]] void refuse_to_read(std::string_view what, std::string const& path, std::string_view why) {
    throw_error(errc::config, "cannot read the {} {}: {}; make it a readable file or move it away", what, path, why);
}

unique_fd open_to_read(std::string const& path) {
    return unique_fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

/// Returns whether the last open() found nothing.
bool is_missing() {
    return errno == ENOENT || errno == ENOTDIR;
}

struct stat state_of(unique_fd const& file, std::string const& path, std::string_view what) {
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) refuse_to_read(what, path, std::strerror(errno));
    return found;
}

std::string read_whole(unique_fd const& file, struct stat const& found, std::string const& path, std::string_view what,
                       std::size_t longest = longest_settings_bytes) {
    if (S_ISDIR(found.st_mode)) refuse_to_read(what, path, "it is a folder");
    if (!S_ISREG(found.st_mode)) refuse_to_read(what, path, "it is a pipe, a socket or a device");
    std::string text(std::min(longest, static_cast<std::size_t>(found.st_size)) + 1, '\0');  // it may grow meanwhile
    std::size_t size = 0;
    while (size <= longest) {
        if (size == text.size()) text.resize(std::min(longest + 1, 2 * size));
        auto const count = ::read(file.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) refuse_to_read(what, path, std::strerror(errno));
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
    }
    if (size > longest) refuse_to_read(what, path, fmt::format("it has more than {} KiB", longest >> 10));
    text.resize(size);
    return text;
}

constexpr int most_links = 40;  // as the kernel's own limit

/// Returns why a link on the way to `path` may lead to where another user wants; "" if none does.
std::string fault_of_links(std::string const& path, uid_t reader) {
    namespace fs = std::filesystem;
    std::error_code fault;
    auto todo = fs::absolute(path, fault);
    fs::path way;
    int links = 0;
    for (auto part = todo.begin(); part != todo.end();) {
        way /= *part++;
        struct stat found {};
        if (::lstat(way.c_str(), &found) != 0) return {};
        if (!S_ISLNK(found.st_mode)) continue;
        if (found.st_uid != reader && found.st_uid != 0)
            return fmt::format("the link {} belongs to {}", way.string(), name_of_user(found.st_uid));
        if (++links > most_links) return "too many links lead to it";
        auto next = way.parent_path() / fs::read_symlink(way, fault);  // an absolute one takes the place of all before it
        for (; part != todo.end(); ++part) next /= *part;
        todo = next;
        part = todo.begin();
        way.clear();
    }
    return {};
}

}  // namespace

std::optional<std::string> read_small_file(std::string const& path, std::string_view what, std::size_t longest) {
    auto const file = open_to_read(path);
    if (!file && is_missing()) return std::nullopt;
    if (!file) refuse_to_read(what, path, std::strerror(errno));
    return read_whole(file, state_of(file, path, what), path, what, longest);
}

trusted_text read_trusted_file(std::string const& path, std::string_view what) {
    auto const file = open_to_read(path);
    int const problem = file ? 0 : errno;
    if (!file && is_missing()) return {};
    if (auto why = distrust(path); !why.empty()) return {std::nullopt, std::move(why)};
    if (!file) refuse_to_read(what, path, std::strerror(problem));
    auto const opened = state_of(file, path, what);
    struct stat named {};
    if (::stat(path.c_str(), &named) != 0 || named.st_dev != opened.st_dev || named.st_ino != opened.st_ino)
        return {std::nullopt, "another file was moved to its name meanwhile"};
    file_reader reader{::geteuid(), std::nullopt};
    if ((opened.st_mode & S_IWGRP) != 0) reader.private_group = private_group_of(reader.user);
    if (auto why = writer_fault(opened, reader, "it"); !why.empty()) return {std::nullopt, std::move(why)};
    return {read_whole(file, opened, path, what), {}};
}

std::string distrust(struct stat const& file, struct stat const& folder, file_reader const& reader) {
    if (auto fault = writer_fault(file, reader, "it"); !fault.empty()) return fault;
    // Nobody but its owner can move another file to this name in a sticky folder.
    auto owner_alone = folder;
    if ((folder.st_mode & S_ISVTX) != 0) owner_alone.st_mode &= ~mode_t{0022};
    return writer_fault(owner_alone, reader, "its folder");
}

std::string distrust(std::string const& path) {
    if (auto why = fault_of_links(path, ::geteuid()); !why.empty()) return why;
    std::error_code fault;
    auto const real = std::filesystem::canonical(path, fault);
    struct stat file {
    }, folder{};
    if (fault || ::stat(real.c_str(), &file) != 0 || ::stat(real.parent_path().c_str(), &folder) != 0) return {};
    file_reader reader{::geteuid(), std::nullopt};
    if (((file.st_mode | folder.st_mode) & S_IWGRP) != 0) reader.private_group = private_group_of(reader.user);
    if (auto why = distrust(file, folder, reader); !why.empty()) return why;
    // A link that is the user's own can be moved away in a folder that others may write to.
    auto const here = std::filesystem::absolute(path, fault).parent_path();
    struct stat link {};
    if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode) || ::stat(here.c_str(), &folder) != 0) return {};
    link.st_mode &= ~mode_t{0777};  // a link's mode means nothing
    return distrust(link, folder, reader);
}

}  // namespace muster
