#include "io/copy/chunk_io.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>

#include "base/error.hpp"
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
    int const folder = folders_.parent(path);
    std::string const name(name_of(path));
    int const flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (alone_ ? O_CREAT | O_EXCL : 0);
    auto const open = [&] { file_.reset(folder < 0 ? -1 : ::openat(folder, name.c_str(), flags, 0600)); };
    open();
    if (!file_ && errno == EEXIST) {  // a copy that was killed began it
        remove_tree(folder, name);
        open();
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
        timespec times[2]{{0, UTIME_OMIT}, {file.mtime_ns / 1'000'000'000, file.mtime_ns % 1'000'000'000}};
        if (times[1].tv_nsec < 0) {
            times[1].tv_nsec += 1'000'000'000;
            --times[1].tv_sec;
        }
        if ((file.mode != 0600 && ::fchmod(file_.get(), file.mode) != 0) || ::futimens(file_.get(), times) != 0)
            throw_system("set the mode and time of", full_path());
        // Some file systems tell only now that there is no space.
        if (::close(file_.release()) != 0) throw_system("close", full_path(), 0, "free space there, or give another folder");
    }
    return checksum_.value();
}

void running_checksum_traits::close(type state) noexcept {
    XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

running_checksum::running_checksum() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    reset();
}

void running_checksum::reset() noexcept {
    XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void running_checksum::add(std::span<std::byte const> bytes) noexcept {
    XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t running_checksum::value() const noexcept {
    return XXH3_64bits_digest(static_cast<XXH3_state_t const*>(state_.get()));
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
    int const folder = folders_[file.source].parent(file.path);
    // O_NONBLOCK keeps it from waiting for a pipe that has come to this name.
    file_.reset(folder < 0 ? -1 : ::openat(folder, std::string(name_of(file.path)).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (file_) return;
    if (errno == ENOENT) refuse("was removed");
    throw_system("open", source_path(list_, file), 0, "make it readable, or give sources without it");
}

std::size_t chunk_reader::read(std::span<std::byte> block) {
    std::size_t const wanted = std::min<std::uint64_t>(block.size(), piece_.length - done_);
    std::size_t got = 0;
    while (got < wanted) {
        ssize_t const n = ::pread(file_.get(), block.data() + got, wanted - got, static_cast<off_t>(piece_.offset + done_ + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            throw_system("read",
                         fmt::format("{} at byte {}", source_path(list_, list_.files[piece_.file]), piece_.offset + done_ + got),
                         0, "check the file system that it lies on");
        if (n == 0) refuse(fmt::format("became shorter than the {} bytes that it had", list_.files[piece_.file].size));
        got += static_cast<std::size_t>(n);
    }
    done_ += got;
    return got;
}

void chunk_reader::end() {
    listed_file const& file = list_.files[piece_.file];
    struct stat found {};
    if (::fstat(file_.get(), &found) != 0) throw_system("fstat", source_path(list_, file));
    if (static_cast<std::uint64_t>(found.st_size) != file.size)
        refuse(fmt::format("changed from {} to {} bytes", file.size, found.st_size));
    if (std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec != file.mtime_ns) refuse("was written to");
    if (piece_.length == file.size) file_.reset();
}

}  // namespace muster
