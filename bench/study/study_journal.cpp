#include "bench/study/study_journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

namespace {

std::string line_of(nlohmann::json const& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

constexpr std::size_t longest_journal_bytes = std::size_t{1} << 30;

std::string journal_path(std::string const& folder) {
    return folder + "/runs.jsonl";
}

/// Returns the length of the whole lines: the last one may be incomplete, or was cut off.
std::size_t whole_lines(std::string_view text) {
    auto const last = text.rfind('\n');
    return last == std::string_view::npos ? 0 : last + 1;
}

std::optional<study> read_lines(std::string_view text, std::string const& path) {
    std::optional<study> out;
    int number = 0;
    for (auto const line : split(text, '\n')) {
        ++number;
        if (line.empty()) continue;
        auto const origin = fmt::format("{}, line {}", path, number);
        auto const document = parse_json(line, origin);
        checked_json const from(document, origin);
        if (out)
            out->runs.push_back(read_study_run(from));
        else
            out = read_study_header(from);
    }
    return out;
}

}  // namespace

study_journal::study_journal(std::string const& folder) : path_(journal_path(folder)) {
    file_ = open_output_file(path_, "give a folder of your own with -o", if_there::kept);
    if (::fcntl(file_.get(), F_SETFL, O_APPEND) != 0) throw_system("fcntl", path_);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno == EWOULDBLOCK)
        throw_error(errc::unavailable, "{} is in use: another study runs in this folder; wait for it, or give another with -o",
                    path_);
    // Some shared file systems have no locks: the study then goes on without.
}

std::optional<study> study_journal::read() {
    auto const text = read_text_file(path_, longest_journal_bytes);
    auto const whole = whole_lines(text);
    if (whole < text.size() && ::ftruncate(file_.get(), static_cast<off_t>(whole)) != 0) throw_system("ftruncate", path_);
    return read_lines(std::string_view(text).substr(0, whole), path_);
}

std::optional<study> read_journal(std::string const& folder) {
    auto const path = journal_path(folder);
    if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return {};
    auto const text = read_text_file(path, longest_journal_bytes);
    return read_lines(std::string_view(text).substr(0, whole_lines(text)), path);
}

void study_journal::begin(study const& header) {
    if (::ftruncate(file_.get(), 0) != 0) throw_system("ftruncate", path_);
    auto document = to_json(header);
    document.erase("runs");
    write_line(line_of(document));
}

void study_journal::add(study_run const& run) {
    write_line(line_of(to_json(run)));
}

void study_journal::write_line(std::string const& line) {
    std::string_view left = line;
    while (!left.empty()) {
        auto const put = ::write(file_.get(), left.data(), left.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) throw_system("write", path_, 0, "make room where it is");
        left.remove_prefix(static_cast<std::size_t>(put));
    }
    if (::fsync(file_.get()) != 0 && errno != EINVAL) throw_system("fsync", path_);
}

}  // namespace muster
