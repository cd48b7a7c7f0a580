#include "io/stage/unpack_archive.hpp"

#include <algorithm>

#include "base/throw_error.hpp"
#include "io/tree/file_list.hpp"

#ifdef MUSTER_HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "io/tree/folder_files.hpp"
#endif

namespace muster::stage {

std::string unpacked_name(std::string_view archive) {
    std::string_view const name = name_of(archive);
    for (std::string_view const ending : {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2", ".zip"})
        if (name.size() > ending.size() && name.ends_with(ending))
            return std::string(name.substr(0, name.size() - ending.size()));
    return {};
}

unpack_limits default_limits(std::uint64_t archive_bytes) noexcept {
    return {std::max(std::uint64_t{64} << 20, archive_bytes * 1100), std::max(std::uint64_t{10'000}, archive_bytes / 4)};
}

#ifndef MUSTER_HAVE_LIBARCHIVE

void unpack_archive(std::string const&, int, unpack_limits const&) {
    throw error(errc::unavailable, "--unpack: this build of muster has no libarchive; install libarchive-dev and build it again");
}

#else

namespace {

struct archive_closer {
    void operator()(archive* open) const noexcept { ::archive_read_free(open); }
};

/// The parts of a path below the root, "." left out; refuses what leads out of it at any point.
std::vector<std::string> inside_parts(std::string_view path, std::string_view archive, std::string_view entry) {
    std::vector<std::string> parts;
    for (std::string_view const part : split(path, '/')) {
        if (part.empty() || part == ".") continue;
        if (part != "..") {
            parts.emplace_back(part);
        } else if (parts.empty()) {
            throw_error(errc::invalid_data, "{}: the entry {} leads out of the folder; it is not unpacked", archive, entry);
        } else {
            parts.pop_back();
        }
    }
    return parts;
}

/// Refuses a link that may lead out of the folder: `depth` folders are above it, none of them a link. A name on its way may be a link, now or
/// later in the archive, so that ".." behind one may lead anywhere.
void require_link_inside(std::string_view to, std::size_t depth, std::string_view archive, std::string_view entry) {
    auto const refuse = [&](std::string_view why) {
        throw_error(errc::invalid_data, "{}: the link {} leads to {}, {}; it is not unpacked", archive, entry, to, why);
    };
    if (to.starts_with('/')) refuse("out of the folder");
    std::size_t up = 0;
    bool named = false;
    for (std::string_view const part : split(to, '/')) {
        if (part.empty() || part == ".") continue;
        if (part == ".." && named) refuse("with .. behind a name that may be a link");
        if (part == ".." && ++up > depth) refuse("out of the folder");
        named = part != "..";
    }
}

/// The umask, without setting it for a moment as umask() does: other threads may make files.
mode_t current_umask() {
    constexpr std::string_view name = "\nUmask:\t";
    auto const status = read_text_file("/proc/self/status");
    auto const at = status.find(name);
    return at == std::string::npos ? 022 : static_cast<mode_t>(std::strtoul(status.c_str() + at + name.size(), nullptr, 8));
}

constexpr std::size_t deepest_path = 256;  ///< folders; each is opened for each entry

[[noreturn]] void refuse_archive(archive* open, std::string const& path, std::string_view what) {
    char const* const why = ::archive_error_string(open);
    throw_error(errc::invalid_data, "{} {}: {}; make the archive again", path, what, why != nullptr ? why : "damaged");
}

std::unique_ptr<archive, archive_closer> open_archive(std::string const& path) {
    std::unique_ptr<archive, archive_closer> open(::archive_read_new());
    if (!open) throw std::bad_alloc();
    ::archive_read_support_filter_all(open.get());
    ::archive_read_support_format_tar(open.get());
    ::archive_read_support_format_zip(open.get());
    if (::archive_read_open_filename(open.get(), path.c_str(), std::size_t{1} << 20) != ARCHIVE_OK)
        refuse_archive(open.get(), path, "cannot be opened");
    return open;
}

/// The next entry; null behind the last.
archive_entry* next_entry(archive* open, std::string const& path) {
    archive_entry* entry = nullptr;
    int const got = ::archive_read_next_header(open, &entry);
    if (got == ARCHIVE_EOF) return nullptr;
    if (got != ARCHIVE_OK && got != ARCHIVE_WARN) refuse_archive(open, path, "cannot be read");
    return entry;
}

/// The bytes that an entry says it has in the file system; 0 where it does not say so, and for one with holes.
std::uint64_t told_bytes(archive_entry* entry) {
    if (::archive_entry_size_is_set(entry) == 0 || ::archive_entry_hardlink(entry) != nullptr ||
        ::archive_entry_filetype(entry) != AE_IFREG || ::archive_entry_sparse_count(entry) > 0)
        return 0;
    return static_cast<std::uint64_t>(std::max<la_int64_t>(0, ::archive_entry_size(entry)));
}

/// Holds what an archive has become so far, held against what it may.
class unpack_budget {
  public:
    unpack_budget(std::string const& path, int target, unpack_limits const& limits) : path_(path), limits_(limits) {
        struct statvfs found {};
        if (::fstatvfs(target, &found) != 0) throw_system("statvfs", "the folder to unpack " + path + " to");
        free_ = found.f_bavail * std::max<std::uint64_t>(found.f_frsize, 1);
        names_ = found.f_files == 0 ? UINT64_MAX : found.f_favail;  // some file systems do not count them
    }

    /// Counts what is to come: `entry` names the one that has it, "" the whole archive.
    void take(std::uint64_t entries, std::uint64_t bytes, std::string_view entry) {
        entries_ += entries;
        if (__builtin_add_overflow(bytes_, bytes, &bytes_)) bytes_ = UINT64_MAX;
        std::string const where = entry.empty() ? path_ : fmt::format("{}, at its entry {},", path_, entry);
        if (entries_ > limits_.entries)
            throw_error(errc::invalid_data,
                        "{} has more entries than the {} that are believed of an archive of its size; unpack it by tar or unzip "
                        "if you trust it",
                        where, limits_.entries);
        if (bytes_ > limits_.bytes)
            throw_error(errc::invalid_data,
                        "{} becomes {}, more than the {} that are allowed; give --unpack-limit BYTES if you trust it", where,
                        format_bytes(bytes_), format_bytes(limits_.bytes));
        if (bytes_ > free_)
            throw_error(errc::io, "{} becomes {}, and {} are free; free space there, or give another folder", where,
                        format_bytes(bytes_), format_bytes(free_));
        if (entries_ > names_)
            throw_error(errc::io, "{} has {} entries or more, and {} inodes are free; free some, or give another folder", where,
                        entries_, names_);
    }

  private:
    std::string const& path_;
    unpack_limits limits_;
    std::uint64_t free_ = 0, names_ = 0;
    std::uint64_t entries_ = 0, bytes_ = 0;
};

/// Goes over the entries without unpacking them, which is quick where the archive is not compressed as a whole; else does nothing.
void weigh(std::string const& path, int target, unpack_limits const& limits) {
    auto const open = open_archive(path);
    unpack_budget budget(path, target, limits);
    while (archive_entry* const entry = next_entry(open.get(), path)) {
        if (::archive_filter_code(open.get(), 0) != ARCHIVE_FILTER_NONE) return;
        budget.take(1, told_bytes(entry), "");
    }
}

class unpacker {
  public:
    unpacker(std::string const& path, int target, unpack_limits const& limits)
        : path_(path),
          target_(target),
          folders_(target, folder_cache::links::refused),
          archive_(open_archive(path)),
          budget_(path, target, limits) {}

    void run() {
        while (archive_entry* const entry = next_entry(archive_.get(), path_)) unpack(entry);
        for (auto folder = late_modes_.rbegin(); folder != late_modes_.rend(); ++folder)
            set_folder(folder->first, folder->second);
    }

  private:
    struct folder_state {
        mode_t mode;
        timespec time;
    };

    void unpack(archive_entry* entry) {
        std::string const given = ::archive_entry_pathname(entry) != nullptr ? ::archive_entry_pathname(entry) : "";
        std::uint64_t const told = told_bytes(entry);
        budget_.take(1, told, given);
        if (given.starts_with('/'))
            throw_error(errc::invalid_data, "{}: the entry {} has an absolute path; it is not unpacked", path_, given);
        auto const parts = inside_parts(given, path_, given);
        if (parts.empty()) return;
        if (parts.size() > deepest_path)
            throw_error(errc::invalid_data,
                        "{}: the entry {}… lies in more than {} folders; unpack it by tar or unzip if you trust it", path_,
                        given.substr(0, 80), deepest_path);
        std::string const path = join(parts, "/");
        auto const type = ::archive_entry_filetype(entry);
        if (type == AE_IFDIR) {
            make_folder(path);
            late_modes_.emplace_back(path, folder_state{mode_of(entry), time_of(entry)});
            return;
        }
        int const folder = parent(path);
        std::string const name(name_of(path));
        static_cast<void>(::unlinkat(folder, name.c_str(), 0));
        if (char const* const original = ::archive_entry_hardlink(entry); original != nullptr) {
            link_to(original, folder, name, given);
        } else if (type == AE_IFLNK) {
            std::string const to = ::archive_entry_symlink(entry) != nullptr ? ::archive_entry_symlink(entry) : "";
            require_link_inside(to, parts.size() - 1, path_, given);
            if (::symlinkat(to.c_str(), folder, name.c_str()) != 0) throw_system("symlink", path);
        } else if (type == AE_IFREG) {
            write_file(entry, folder, name, path, told);
        } else {
            throw_error(errc::invalid_data, "{}: the entry {} is a pipe, a socket or a device; it is not unpacked", path_, given);
        }
    }

    static timespec time_of(archive_entry* entry) { return {::archive_entry_mtime(entry), ::archive_entry_mtime_nsec(entry)}; }

    /// Returns the mode that the entry has, without what the umask takes and setuid bits.
    mode_t mode_of(archive_entry* entry) const { return ::archive_entry_perm(entry) & 0777 & ~umask_; }

    void make_folder(std::string const& path) {
        auto at = open_folder_inside(target_, "");
        for (std::string_view const part : split(path, '/')) {
            std::string const name(part);
            if (!at || (::mkdirat(at.get(), name.c_str(), 0700) != 0 && errno != EEXIST)) throw_system("mkdir", path);
            at.reset(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        }
        if (!at) throw_system("open the folder", path);
        folders_.forget();
    }

    int parent(std::string const& path) {
        int folder = folders_.parent(path);
        if (folder < 0 && errno == ENOENT) {
            folders_.forget();
            make_folder(std::string(parent_of(path)));
            folder = folders_.parent(path);
        }
        if (folder < 0) throw_system("open the folder of", path);
        return folder;
    }

    void link_to(std::string const& original, int folder, std::string const& name, std::string const& given) {
        if (original.starts_with('/'))
            throw_error(errc::invalid_data, "{}: the entry {} has an absolute path; it is not unpacked", path_, original);
        std::string const from = join(inside_parts(original, path_, given), "/");
        folder_cache others(target_, folder_cache::links::refused);
        int const there = others.parent(from);
        struct stat found {};
        // A link that is moved by a hard link leads elsewhere than from where it was judged.
        if (there >= 0 && ::fstatat(there, std::string(name_of(from)).c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            !S_ISREG(found.st_mode))
            throw_error(errc::invalid_data, "{}: the entry {} is a hard link to {}, which is no file; it is not unpacked", path_,
                        given, original);
        if (there < 0 || ::linkat(there, std::string(name_of(from)).c_str(), folder, name.c_str(), 0) != 0)
            throw_system("link", given);
    }

    /// `told` bytes are in the budget already.
    void write_file(archive_entry* entry, int folder, std::string const& name, std::string const& path, std::uint64_t told) {
        unique_fd const file(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file) throw_system("open", path);
        void const* data = nullptr;
        std::size_t size = 0;
        la_int64_t offset = 0;
        int got = ARCHIVE_OK;
        while ((got = ::archive_read_data_block(archive_.get(), &data, &size, &offset)) == ARCHIVE_OK) {
            std::uint64_t const more = size - std::min<std::uint64_t>(told, size);
            if (more > 0) budget_.take(0, more, path);
            told -= size - more;
            for (std::size_t done = 0; done < size;) {
                ssize_t const n =
                    ::pwrite(file.get(), static_cast<char const*>(data) + done, size - done, offset + static_cast<off_t>(done));
                if (n < 0 && errno == EINTR) continue;
                if (n < 0) throw_system("write", path, 0, "free space there, or give another folder");
                done += static_cast<std::size_t>(n);
            }
        }
        if (got != ARCHIVE_EOF) refuse_archive(archive_.get(), path_, fmt::format("cannot be read at {}", path));
        timespec const times[2]{{0, UTIME_OMIT}, time_of(entry)};
        // A hole at the end is not told of by a block.
        if ((::archive_entry_size_is_set(entry) != 0 && ::ftruncate(file.get(), ::archive_entry_size(entry)) != 0) ||
            ::fchmod(file.get(), mode_of(entry)) != 0 || ::futimens(file.get(), times) != 0)
            throw_system("set the mode and time of", path);
    }

    void set_folder(std::string const& path, folder_state const& state) {
        unique_fd const folder = open_folder_inside(target_, path);
        timespec const times[2]{{0, UTIME_OMIT}, state.time};
        if (!folder || ::futimens(folder.get(), times) != 0 || ::fchmod(folder.get(), state.mode) != 0)
            throw_system("set the mode of", path);
    }

    std::string const& path_;
    int target_;
    folder_cache folders_;
    std::unique_ptr<archive, archive_closer> archive_;
    unpack_budget budget_;
    mode_t umask_ = current_umask();
    std::vector<std::pair<std::string, folder_state> > late_modes_;  // a folder may lack the right to write in it
};

}  // namespace

void unpack_archive(std::string const& archive, int target, unpack_limits const& limits) {
    weigh(archive, target, limits);
    unpacker(archive, target, limits).run();
}

#endif

}  // namespace muster::stage
