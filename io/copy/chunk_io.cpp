#include "io/copy/chunk_io.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/error.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/tree/folder_files.hpp"

namespace muster {

chunk_writer::chunk_writer(copy_target const& target, file_list const& list, chunk_plan const& plan)
    : target_(target), list_(list), plan_(plan), folders_(target.incoming(), folder_cache::links::refused) {}

std::string chunk_writer::full_path() const {
    return target_.path() + "/" + list_.files[piece_.file].path;
}

void chunk_writer::begin(piece const& next) {
    piece_ = next;
    done_ = 0;
    checksum_.reset();
    alone_ = plan_.count_of(next.file) == 1;
    if (!alone_ && file_ && open_file_ == next.file) return;
    open_file_ = next.file;
    std::string const& path = list_.files[next.file].path;
    int const flags = O_WRONLY | O_NOFOLLOW | (alone_ ? O_CREAT | O_EXCL : 0);
    file_ = folders_.open(path, flags, 0600);
    if (!file_ && errno == EEXIST) {  // a copy that was killed began it
        remove_tree(folders_.parent(path), std::string(name_of(path)));
        file_ = folders_.open(path, flags, 0600);
    }
    if (!file_) throw_system("open", full_path(), 0, "free space there, or give another folder");
}

void chunk_writer::write(std::span<std::byte const> bytes) {
    checksum_.add(bytes);
    std::optional<copy_target::turn> turn;
    if (!alone_) turn.emplace(target_, piece_.file);
    while (!bytes.empty()) {
        ssize_t const n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(piece_.offset + done_));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            throw_system("write", full_path(), 0, "free space there, or give another folder, and copy again: it goes on there");
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        done_ += static_cast<std::uint64_t>(n);
    }
}

std::uint64_t chunk_writer::end() {
    if (alone_) {
        listed_file const& file = list_.files[piece_.file];
        timespec const times[2]{{0, UTIME_OMIT}, timespec_of(file.mtime_ns)};
        if ((file.mode != 0600 && ::fchmod(file_.get(), file.mode) != 0) || ::futimens(file_.get(), times) != 0)
            throw_system("set the mode and time of", full_path());
        // Some file systems tell only now that there is no space.
        if (::close(file_.release()) != 0) throw_system("close", full_path(), 0, "free space there, or give another folder");
    }
    return checksum_.value();
}

chunk_reader::chunk_reader(file_list const& list) : list_(list) {
    for (std::string const& source : list.sources) {
        roots_.emplace_back(::open(source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!roots_.back()) throw_system("open", source);
        folders_.emplace_back(roots_.back().get(), folder_cache::links::followed);
    }
}

void chunk_reader::refuse(std::string_view how) const {
    throw source_changed(fmt::format("{} {} while it was copied; copy again when nothing writes to it",
                                     source_path(list_, list_.files[piece_.file]), how));
}

void chunk_reader::begin(piece const& next) {
    piece_ = next;
    done_ = 0;
    if (file_ && open_file_ == next.file) return;
    listed_file const& file = list_.files[next.file];
    open_file_ = next.file;
    // O_NONBLOCK keeps it from waiting for a pipe that has come to this name.
    file_ = folders_[file.source].open(file.path, O_RDONLY | O_NONBLOCK);
    if (file_) return;
    if (errno == ENOENT) refuse("was removed");
    throw_system("open", source_path(list_, file), 0, "make it readable, or give sources without it");
}

std::size_t chunk_reader::read(std::span<std::byte> block) {
    std::size_t const wanted = std::min<std::uint64_t>(block.size(), piece_.length - done_);
    listed_file const& file = list_.files[piece_.file];
    auto const [got, fault] = read_at(file_.get(), piece_.offset + done_, block.first(wanted));
    if (fault != 0)
        throw_system("read", fmt::format("{} at byte {}", source_path(list_, file), piece_.offset + done_ + got), fault,
                     "check the file system that it lies on");
    if (got < wanted) refuse(fmt::format("became shorter than the {} bytes that it had", file.size));
    done_ += got;
    return got;
}

void chunk_reader::end() {
    listed_file const& file = list_.files[piece_.file];
    struct stat found {};
    if (::fstat(file_.get(), &found) != 0) throw_system("fstat", source_path(list_, file));
    if (static_cast<std::uint64_t>(found.st_size) != file.size)
        refuse(fmt::format("changed from {} to {} bytes", file.size, found.st_size));
    if (mtime_ns_of(found) != file.mtime_ns) refuse("was written to");
    if (piece_.length == file.size) file_.reset();
}

}  // namespace muster
