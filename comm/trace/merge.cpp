#include "comm/trace/merge.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

std::string shift_line(std::string_view line, double& offset_us, double& error_us) {
    line = trim(line);
    if (line.ends_with(',')) line.remove_suffix(1);
    if (line.empty() || line == "[" || line == "]") return {};
    auto event = parse_json_as<nlohmann::json>(line, "an event");
    if (!event.is_object()) throw error(errc::invalid_data, "not an event");
    auto const name = event.value("name", "");
    if (name == "muster_clock") {
        offset_us = event.at("args").at("offset_us").get<double>();
        error_us = event.at("args").at("error_us").get<double>();
    }
    if (auto const ts = event.find("ts"); ts != event.end()) *ts = ts->get<double>() + offset_us;
    return event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

std::size_t dropped_in(std::string_view line) {
    if (line.find("\"muster_end\"") == std::string_view::npos) return 0;
    auto const event = parse_json_as<nlohmann::json>(line, "an event");
    return event.at("args").at("dropped").get<std::size_t>();
}

/// What is written, in large pieces.
class merged_file {
  public:
    explicit merged_file(std::string const& path)
        : path_(path), file_(open_output_file(path, "give a file that can be written to")) {}

    void add(std::string_view text) {
        waiting_ += text;
        if (waiting_.size() >= piece_bytes) finish();
    }
    void finish() {
        write_all(file_.get(), waiting_, path_);
        waiting_.clear();
    }

  private:
    static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    std::string const& path_;
    unique_fd file_;
    std::string waiting_;
};

void merge_one(std::string const& path, merged_file& out, merge_summary& all) {
    std::ifstream file(path);
    if (!file) throw error(errc::not_found, fmt::format("{}: cannot be read", path));
    double offset = 0, uncertain = 0;
    bool ended = false;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        bool const whole = !file.eof();  // the last line of a rank that died may be cut
        ended = ended || trim(line) == "]";
        try {
            std::string const moved = shift_line(line, offset, uncertain);
            if (moved.empty()) continue;
            all.dropped += dropped_in(moved);
            out.add(all.events++ != 0 ? ",\n" : "");
            out.add(moved);
        } catch (std::exception const& problem) {
            if (!whole) break;
            throw error(errc::invalid_data, fmt::format("{}:{}: not a line of a timeline: {}; leave this file out", path, number,
                                                        json_fault(problem)));
        }
    }
    if (!ended) all.ended.push_back(path);
    all.worst_error_us = std::max(all.worst_error_us, uncertain);
    ++all.files;
}

}  // namespace

merge_summary merge_timelines(std::span<std::string const> files, std::string const& out) {
    merged_file to(out);
    merge_summary all;
    to.add("[\n");
    for (auto const& each : files) merge_one(each, to, all);
    to.add("\n]\n");
    to.finish();
    return all;
}

std::vector<std::string> find_timelines(std::string const& folder) {
    std::vector<std::pair<std::int64_t, std::string>> found;
    std::error_code problem;
    for (auto const& entry : std::filesystem::directory_iterator(folder, problem)) {
        std::string const name = entry.path().filename();
        std::error_code fault;
        if (!name.starts_with("timeline-") || !name.ends_with(".json") || !entry.is_regular_file(fault)) continue;
        auto const rank = parse_integer(std::string_view(name).substr(9, name.size() - 14));
        if (rank) found.emplace_back(*rank, entry.path());
    }
    if (found.empty())
        throw error(errc::not_found, fmt::format("{}: no files timeline-RANK.json{}; give the folder that MUSTER_TIMELINE named",
                                                 folder, problem ? " (" + problem.message() + ")" : ""));
    std::sort(found.begin(), found.end());
    std::vector<std::string> paths;
    for (auto& [rank, path] : found) paths.push_back(std::move(path));
    return paths;
}

}  // namespace muster
