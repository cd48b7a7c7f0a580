#include "io/convert/source_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/throw_error.hpp"
#include "io/arrays/byte_source.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/dataset/file_ranks.hpp"

namespace muster {

namespace {

constexpr std::size_t digest_piece_bytes = std::size_t{4} << 20;
constexpr std::size_t most_lines = 64;

std::int64_t half_of(std::string_view digits) {
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return static_cast<std::int64_t>(value);
}

}  // namespace

source_files::source_files(std::vector<std::string> files, communicator& ranks) : files_(std::move(files)), ranks_(ranks) {
    std::int64_t sum = 0;
    run_step(ranks_, "looking at the files to convert", [&] {
        states_.resize(files_.size());
        std::uint64_t mine = 0;
        for (std::size_t i = 0; i < files_.size(); ++i) {
            if (!is_mine(i)) continue;
            states_[i] = state_of(files_[i]);
            auto const state = fmt::format("{} {} {} {}", i, files_[i], states_[i].bytes, states_[i].changed_ns);
            mine += xxh3_64(std::as_bytes(std::span(state)));
        }
        sum = static_cast<std::int64_t>(mine);
    });
    ranks_.allreduce("fingerprint", view_of(std::span(&sum, 1)), reduction::sum).wait();
    fingerprint_ = static_cast<std::uint64_t>(sum);
}

bool source_files::is_mine(std::size_t file) const {
    return file % static_cast<std::size_t>(ranks_.size()) == static_cast<std::size_t>(ranks_.rank());
}

source_files::file_state source_files::state_of(std::string const& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw_system("stat", path, 0, "check the path");
    return {static_cast<std::uint64_t>(status.st_size),
            std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
            static_cast<std::uint64_t>(status.st_ino)};
}

void source_files::compute_digests() {
    digests_.assign(files_.size() * 3, 0);
    run_step(ranks_, "reading the files to convert", [&] {
        std::vector<std::uint8_t> piece(digest_piece_bytes);
        for (std::size_t i = 0; i < files_.size(); ++i) {
            if (!is_mine(i)) continue;
            std::uint64_t bytes = 0;
            unique_fd const fd = open_regular(files_[i], bytes);
            xxh3_128_stream stream;
            for (std::uint64_t done = 0; done < bytes;) {
                std::size_t const got = read_fully(fd.get(), files_[i], done,
                                                   std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes - done)));
                if (got == 0) break;  // told by require_unchanged()
                stream.add(std::as_bytes(std::span(piece).first(got)));
                done += got;
            }
            std::string const digits = stream.digits();
            digests_[i * 3] = half_of(std::string_view(digits).substr(0, 16));
            digests_[i * 3 + 1] = half_of(std::string_view(digits).substr(16));
            digests_[i * 3 + 2] = static_cast<std::int64_t>(bytes);
        }
    });
    if (!digests_.empty()) ranks_.allreduce("digests", view_of(std::span(digests_)), reduction::sum).wait();
}

std::vector<std::string> source_files::lines(std::vector<std::string> const& files, std::string const& folder) const {
    std::vector<std::string> all;
    if (digests_.empty()) return all;
    std::string list;
    std::uint64_t bytes = 0;
    auto at = files_.begin();
    for (std::string const& file : files) {
        if (at == files_.end() || *at != file) at = std::find(files_.begin(), files_.end(), file);  // nearly always the next one
        if (at == files_.end()) continue;
        auto const i = static_cast<std::size_t>(at++ - files_.begin());
        std::string const digest = fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(digests_[i * 3]),
                                               static_cast<std::uint64_t>(digests_[i * 3 + 1]));
        bytes += static_cast<std::uint64_t>(digests_[i * 3 + 2]);
        std::string name = std::filesystem::path(file).filename().string();
        if (std::size_t const inside = file.rfind("/" + folder + "/"); inside != std::string::npos)
            name = file.substr(inside + folder.size() + 2);
        if (files.size() <= most_lines) all.push_back(fmt::format("xxh3-128 {}  {}  {}", digest, digests_[i * 3 + 2], name));
        list += fmt::format("{}  {}\n", digest, name);
    }
    if (files.size() > most_lines)
        all.push_back(fmt::format("xxh3-128 {}  {}  {} files of {}", xxh3_128_digits(list), bytes, files.size(), folder));
    return all;
}

void source_files::require_unchanged() const {
    run_step(ranks_, "looking at the files again", [&] {
        for (std::size_t i = 0; i < files_.size(); ++i) {
            if (!is_mine(i)) continue;
            file_state const now = state_of(files_[i]);
            if (now != states_[i])
                throw_error(
                    errc::invalid_data,
                    "{}: changed while it was read: {} bytes before, {} now{}; convert it again when nothing writes to it",
                    files_[i], states_[i].bytes, now.bytes, now.bytes == states_[i].bytes ? ", at another time" : "");
        }
    });
}

}  // namespace muster
