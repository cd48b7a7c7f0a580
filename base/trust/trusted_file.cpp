#include "base/trust/trusted_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
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

/// Why another user can write to what is called `what`.
std::string writer_fault(struct stat const& found, file_reader const& reader, std::string_view what) {
    if (found.st_uid != reader.user && found.st_uid != 0)
        return fmt::format("{} belongs to {}", what, name_of_user(found.st_uid));
    bool const by_group = (found.st_mode & S_IWGRP) != 0 && found.st_gid != reader.private_group;
    if (by_group || (found.st_mode & S_IWOTH) != 0)
        return fmt::format("others may write to {} (mode {:o})", what, found.st_mode & 07777);
    return {};
}

[[noreturn]] void refuse_to_read(std::string_view what, std::string const& path, std::string_view why) {
    throw error(errc::config, fmt::format("cannot read the {} {}: {}; make it a readable file or move it away", what, path, why));
}

}  // namespace

std::optional<std::string> read_small_file(std::string const& path, std::string_view what) {
    unique_fd const file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    if (!file) refuse_to_read(what, path, std::strerror(errno));
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) refuse_to_read(what, path, std::strerror(errno));
    if (S_ISDIR(found.st_mode)) refuse_to_read(what, path, "it is a folder");
    if (!S_ISREG(found.st_mode)) refuse_to_read(what, path, "it is a pipe, a socket or a device");
    std::string text(longest_settings_bytes + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        auto const count = ::read(file.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) refuse_to_read(what, path, std::strerror(errno));
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
    }
    if (size > longest_settings_bytes)
        refuse_to_read(what, path, fmt::format("it has more than {} KiB", longest_settings_bytes >> 10));
    text.resize(size);
    return text;
}

std::string distrust(struct stat const& file, struct stat const& folder, file_reader const& reader) {
    if (auto fault = writer_fault(file, reader, "it"); !fault.empty()) return fault;
    // In a sticky folder nobody else can move another file to this name.
    return (folder.st_mode & S_ISVTX) != 0 ? std::string() : writer_fault(folder, reader, "its folder");
}

std::string distrust(std::string const& path) {
    std::error_code fault;
    auto const real = std::filesystem::canonical(path, fault);
    struct stat file {
    }, folder{};
    if (fault || ::stat(real.c_str(), &file) != 0 || ::stat(real.parent_path().c_str(), &folder) != 0) return {};
    file_reader reader{::geteuid(), std::nullopt};
    if (((file.st_mode | folder.st_mode) & S_IWGRP) != 0) reader.private_group = private_group_of(reader.user);
    if (auto why = distrust(file, folder, reader); !why.empty()) return why;
    // A link in such a folder can be another user's, too.
    auto const here = std::filesystem::absolute(path, fault).parent_path();
    struct stat link {};
    if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode) || ::stat(here.c_str(), &folder) != 0) return {};
    link.st_mode &= ~mode_t{0777};  // a link has no mode of its own
    return distrust(link, folder, reader);
}

}  // namespace muster
