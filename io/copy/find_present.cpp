#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "base/throw_error.hpp"
#include "io/copy/copy_target.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/tree/aligned_bytes.hpp"
#include "io/tree/folder_files.hpp"
#include "io/tree/workers.hpp"

namespace muster {

namespace {

using place_of = copy_presence::place;

/// The records of a journal by the path of their file, where that is still what it was.
class past_chunks {
  public:
    past_chunks(std::optional<journal_contents> const& before, std::uint64_t chunk_bytes) {
        if (before) begun_ = before->list.files;
        if (!before || before->chunk_bytes != chunk_bytes) return;
        for (journal_record const& record : before->records) {
            listed_file const& file = before->list.files[record.file];
            auto& known = files_[file.path];
            known.file = &file;
            known.chunks.emplace_back(record.chunk, record.checksum);
        }
    }
    struct known_file {
        listed_file const* file = nullptr;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> chunks;
    };
    known_file const* find(listed_file const& now) const {
        auto const at = files_.find(now.path);
        if (at == files_.end() || at->second.file->size != now.size || at->second.file->mtime_ns != now.mtime_ns) return nullptr;
        return &at->second;
    }
    /// Returns whether it was to be copied then: it may be in its place, not yet in the manifest, and the source may have changed since.
    bool is_begun(std::string_view path) const {
        auto const at = std::ranges::lower_bound(begun_, path, {}, &listed_file::path);
        return at != begun_.end() && at->path == path;
    }

  private:
    std::span<listed_file const> begun_;
    std::unordered_map<std::string_view, known_file> files_;
};

/// Looks at one entry after another; each thread has one.
class finder {
  public:
    finder(int root, int incoming, file_list const& list, chunk_plan const& plan, manifest const& listed, past_chunks const& past,
           copy_check how, bool replaces, std::string const& path, copy_presence& have)
        : placed_(root, folder_cache::links::refused),
          grown_(incoming, folder_cache::links::refused),
          list_(list),
          plan_(plan),
          listed_(listed),
          past_(past),
          how_(how),
          replaces_(replaces),
          path_(path),
          have_(have) {}

    void look_at(std::size_t i) {
        listed_file const& file = list_.files[i];
        auto const found = placed_.find(file.path);
        if (found && file.is_folder() != S_ISDIR(found->st_mode))
            throw_error(errc::usage, "{}/{} is {}, and {} to be copied there; remove it, or give another folder", path_,
                        file.path, file.is_folder() ? "no folder" : "a folder", file.is_folder() ? "a folder is" : "a file is");
        if (found && !file.is_folder() && !replaces_) refuse_foreign(file, *found);
        if (file.is_folder()) {
            if (found) have_.in_place[i] = place_of::known;
        } else if (!file.is_file()) {
            if (found && leads_as(file)) have_.in_place[i] = place_of::known;
        } else {
            look_at_file(i, file, found && is_unchanged(file, *found) && (found->st_mode & 07777) == file.mode);
        }
    }

  private:
    /// Refuses to replace what no copy brought: it is the user's, and clean would remove it. One like the source is no loss.
    void refuse_foreign(listed_file const& file, struct stat const& found) {
        if (listed_.find(file.path) != nullptr || past_.is_begun(file.path)) return;
        if (!(file.is_file() ? is_unchanged(file, found) : leads_as(file)))
            throw_error(
                errc::usage,
                "{}/{} is there and was not brought by muster stage: it would be replaced; move it away, or give another folder",
                path_, file.path);
    }

    /// `same`: what is in its place has its size, time and mode.
    void look_at_file(std::size_t i, listed_file const& file, bool same) {
        manifest_entry const* const entry = same ? listed_.find(file.path) : nullptr;
        if (entry != nullptr && entry->file.size == file.size && entry->file.mtime_ns == file.mtime_ns &&
            (how_ == copy_check::fast || is_intact(file, *entry))) {
            have_.in_place[i] = place_of::known;
            have_.skip(plan_, i);
            return;
        }
        auto const* const past = past_.find(file);
        if (past == nullptr) return;
        if (same && take_chunks(i, file, *past, placed_)) {
            have_.in_place[i] = place_of::finished_before;
            return;
        }
        std::fill_n(have_.needed.begin() + static_cast<std::ptrdiff_t>(plan_.first_of(i)), plan_.count_of(i), std::uint8_t{1});
        take_chunks(i, file, *past, grown_);
    }

    bool is_intact(listed_file const& file, manifest_entry const& entry) {
        unique_fd const open = placed_.open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        if (!open) return false;
        for (std::size_t k = 0; k < entry.checksums.size(); ++k) {
            std::uint64_t const offset = k * entry.chunk_bytes;
            if (!chunk_matches(open.get(), offset, std::min(entry.chunk_bytes, file.size - offset), entry.checksums[k],
                               buffer(entry.chunk_bytes), file.path))
                return false;
        }
        return true;
    }

    /// Takes the chunks that are there as they were written; true if those are all.
    bool take_chunks(std::size_t i, listed_file const& file, past_chunks::known_file const& past, folder_cache& folders) {
        unique_fd const open = folders.open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        struct stat found {};
        if (!open || ::fstat(open.get(), &found) != 0 || static_cast<std::uint64_t>(found.st_size) != file.size) return false;
        for (auto const& [chunk, checksum] : past.chunks) {
            if (chunk >= plan_.count_of(i)) continue;
            std::uint64_t const offset = chunk * plan_.chunk_bytes();
            std::size_t const number = plan_.first_of(i) + chunk;
            if (have_.needed[number] == 0 || !chunk_matches(open.get(), offset, std::min(plan_.chunk_bytes(), file.size - offset),
                                                            checksum, buffer(plan_.chunk_bytes()), file.path))
                continue;
            have_.needed[number] = 0;
            have_.checksums[number] = checksum;
        }
        auto const first = have_.needed.begin() + static_cast<std::ptrdiff_t>(plan_.first_of(i));
        return std::find(first, first + static_cast<std::ptrdiff_t>(plan_.count_of(i)), 1) ==
               first + static_cast<std::ptrdiff_t>(plan_.count_of(i));
    }

    bool leads_as(listed_file const& link) { return placed_.link_target(link.path, link.target.size() + 1) == link.target; }
    std::span<std::byte> buffer(std::uint64_t bytes) {
        buffer_.grow(bytes);
        return buffer_.first(bytes);
    }

    folder_cache placed_, grown_;
    file_list const& list_;
    chunk_plan const& plan_;
    manifest const& listed_;
    past_chunks const& past_;
    copy_check how_;
    bool replaces_;
    std::string const& path_;
    copy_presence& have_;
    aligned_bytes buffer_;
};

}  // namespace

bool chunk_matches(int file, std::uint64_t offset, std::uint64_t length, std::uint64_t checksum, std::span<std::byte> buffer,
                   std::string_view path) {
    auto const [got, fault] = read_at(file, offset, buffer.first(length));
    if (fault != 0) throw_system("read", fmt::format("{} at byte {}", path, offset + got), fault);
    return got == length && xxh3_64(buffer.first(length)) == checksum;
}

void copy_presence::skip(chunk_plan const& plan, std::size_t file) {
    std::fill_n(needed.begin() + static_cast<std::ptrdiff_t>(plan.first_of(file)), plan.count_of(file), std::uint8_t{0});
}

copy_presence copy_target::find(file_list const& list, chunk_plan const& plan, copy_check how, int threads, bool replaces) const {
    copy_presence have;
    have.needed.assign(plan.chunks(), 1);
    have.checksums.assign(plan.chunks(), 0);
    have.in_place.assign(list.files.size(), place_of::missing);
    have.left_out.assign(list.files.size(), 0);
    if (!root_) return have;
    unique_fd const incoming(state_ ? ::openat(state_.get(), "incoming", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1);
    past_chunks const past(before_, plan.chunk_bytes());
    std::vector<std::unique_ptr<finder>> finders(static_cast<std::size_t>(std::max(threads, 1)));
    for (auto& one : finders)
        one = std::make_unique<finder>(root_.get(), incoming.get(), list, plan, manifest_, past, how,
                                       replaces || manifest_damaged_, path_, have);  // what is not known is not refused
    constexpr std::size_t batch = 128;
    in_parallel((list.files.size() + batch - 1) / batch, threads, [&](int thread, std::size_t part) {
        for (std::size_t i = part * batch; i < std::min(list.files.size(), (part + 1) * batch); ++i)
            finders[static_cast<std::size_t>(thread)]->look_at(i);
    });
    return have;
}

}  // namespace muster
