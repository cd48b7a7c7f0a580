#include "io/copy/chunk_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace muster {

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
    // Without O_NONBLOCK a pipe that has come to this name would be waited for.
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
