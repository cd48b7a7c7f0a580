#include "launch/samples/session_samples.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/process/files.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/samples/run_samples.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {

namespace {

constexpr char const* note_name = "samples-folder";
constexpr std::size_t longest_path = 4096;

}  // namespace

std::vector<std::string> session_sample_folders(std::vector<std::string> const& places) {
    std::vector<std::pair<std::time_t, std::string>> found;
    for (auto const& session : session_dirs(places)) {
        struct stat info {};
        auto const note = fmt::format("{}/{}", session, note_name), samples = fmt::format("{}/{}", session, samples_file);
        if (auto folder = read_text_file(note, longest_path); folder.starts_with('/') && ::stat(note.c_str(), &info) == 0)
            found.emplace_back(info.st_mtime, std::move(folder));
        else if (::stat(samples.c_str(), &info) == 0)
            found.emplace_back(info.st_mtime, session);
    }
    std::ranges::sort(found, std::greater());
    std::vector<std::string> folders;
    for (auto& [at, folder] : found)
        if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(std::move(folder));
    return folders;
}

void note_sample_folder(std::string const& session_dir, std::string const& run_folder) noexcept try {
    output_folder(session_dir).replace_file(note_name, run_folder, {}, 0600);
} catch (...) {
    // `muster top` then does not find the run by itself
}

}  // namespace muster
