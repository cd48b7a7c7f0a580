#include "base/trace/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

namespace {

using nlohmann::json;

/// Tracks of processes that came after the first generation have numbers from here on.
constexpr std::int64_t tracks_of_a_generation = 1'000'000;

/// Returns the event of a line; nothing if it holds none.
std::optional<json> event_of(std::string_view line) {
    line = trim(line);
    if (line.ends_with(',')) line.remove_suffix(1);
    if (line.empty() || line == "[" || line == "]") return std::nullopt;
    auto event = parse_json_as<json>(line, "an event");
    if (!event.is_object()) throw error(errc::invalid_data, "not an event");
    return event;
}

std::string text_of(json const& event) {
    return json_text(event);
}

bool names_track(std::string_view name) {
    return name == "process_name" || name == "process_sort_index";
}

std::string moved(json event, double shift_us, std::int64_t track) {
    if (names_track(event.value("name", ""))) return {};
    if (auto const ts = event.find("ts"); ts != event.end()) *ts = ts->get<double>() + shift_us;
    event["pid"] = track;
    return text_of(event);
}

/// Calls `take` with each event of a file until it returns false. Returns whether the file is complete; one whose rank died may end in half a line.
template <typename Take>
bool for_events(std::string const& path, Take const& take) {
    std::ifstream file(path);
    if (!file) throw_error(errc::not_found, "{}: cannot be read", path);
    bool ended = false;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        bool const whole = !file.eof();
        ended = ended || trim(line) == "]";
        try {
            auto event = event_of(line);
            if (event && !take(std::move(*event))) return ended;
        } catch (std::exception const& problem) {
            if (!whole) break;
            throw_error(errc::invalid_data, "{}:{}: not a line of a timeline: {}; leave this file out", path, number,
                        json_fault(problem));
        }
    }
    return ended;
}

timeline_head read_head(found_rank_file const& file) {
    timeline_head head{.which = file.which};
    for_events(file.path, [&](json const& event) {
        if (event.value("ph", "") != "M") return false;
        if (event.value("name", "") != "muster_clock") return true;
        auto const& args = event.at("args");
        head.host = args.value("host", "");
        head.process = args.value("process", 0L);
        head.offset_us = args.at("offset_us").get<double>();
        head.error_us = args.at("error_us").get<double>();
        return false;
    });
    return head;
}

/// Collects what is written into large pieces.
class merged_file {
  public:
    explicit merged_file(std::string const& path)
        : path_(path), file_(open_output_file(path, "give a file that can be written to")) {}

    void add_event(std::string_view event) {
        waiting_ += events_++ != 0 ? ",\n" : "[\n";
        waiting_ += event;
        if (waiting_.size() >= piece_bytes) flush();
    }
    std::size_t finish() {
        waiting_ += events_ != 0 ? "\n]\n" : "[\n]\n";
        flush();
        return events_;
    }

  private:
    void flush() {
        write_all(file_.get(), waiting_, path_);
        waiting_.clear();
    }

    static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    std::string const& path_;
    unique_fd file_;
    std::string waiting_;
    std::size_t events_ = 0;
};

void name_track(timeline_track const& track, merged_file& out) {
    out.add_event(
        text_of({{"ph", "M"}, {"name", "process_name"}, {"pid", track.number}, {"tid", 0}, {"args", {{"name", track.name}}}}));
    out.add_event(text_of({{"ph", "M"},
                           {"name", "process_sort_index"},
                           {"pid", track.number},
                           {"tid", 0},
                           {"args", {{"sort_index", track.number}}}}));
}

std::string spell(timeline_head const& head) {
    return fmt::format("rank {}{}", head.which.rank, head.host.empty() ? "" : " (" + head.host + ")");
}

/// Files of one process have the same key. A file that does not name its process has none.
using process_key = std::pair<std::string, long>;
std::optional<process_key> key_of(timeline_head const& head) {
    if (head.process == 0) return std::nullopt;
    return process_key{head.host, head.process};
}

std::string describe_change(std::span<timeline_head const> before, std::span<timeline_head const> after) {
    std::set<process_key> present;
    for (auto const& each : after)
        if (auto const key = key_of(each)) present.insert(*key);
    std::vector<std::string> lost;
    for (auto const& each : before)
        if (auto const key = key_of(each); !key || !present.contains(*key)) lost.push_back(spell(each));
    auto const ranks =
        fmt::format("generation {}: {} rank{}", after.front().which.generation, after.size(), after.size() == 1 ? "" : "s");
    if (lost.size() == before.size()) return ranks + "; all were started again";
    if (lost.empty()) return ranks;
    return fmt::format("{}; {} {} gone", ranks, join(lost, ", "), lost.size() == 1 ? "is" : "are");
}

}  // namespace

std::string move_line(std::string_view line, double shift_us, std::int64_t track) {
    auto event = event_of(line);
    return event ? moved(std::move(*event), shift_us, track) : std::string{};
}

merge_plan plan_merge(std::span<timeline_head const> heads) {
    merge_plan plan;
    std::map<process_key, std::size_t> first_of;  // the first file of each process
    std::map<std::string, double> offset_of;  // of the clock of each host that has been seen, to the first generation's rank 0
    std::span<timeline_head const> before;
    for (std::size_t begin = 0; begin < heads.size();) {
        int const generation = heads[begin].which.generation;
        std::size_t end = begin;
        while (end < heads.size() && heads[end].which.generation == generation) ++end;
        auto const now = heads.subspan(begin, end - begin);
        auto const known = std::ranges::find_if(now, [&](auto const& each) { return offset_of.contains(each.host); });
        double const apart = known == now.end() ? 0 : offset_of.at(known->host) - known->offset_us;
        for (std::size_t i = begin; i < end; ++i) {
            auto const& head = heads[i];
            plan.shift_us.push_back(head.offset_us + apart);
            offset_of.try_emplace(head.host, plan.shift_us.back());
            plan.tracks.push_back({generation * tracks_of_a_generation + head.which.rank, spell(head)});
            auto const key = key_of(head);
            if (!key) continue;
            auto const [first, is_new] = first_of.try_emplace(*key, i);
            auto& track = plan.tracks[first->second];
            if (is_new) {
                if (generation > heads.front().which.generation) track.name += fmt::format(" from generation {}", generation);
            } else {
                if (heads[first->second].which.rank != head.which.rank)
                    track.name += fmt::format(", rank {} in generation {}", head.which.rank, generation);
                plan.tracks[i] = track;
            }
        }
        if (begin != 0) plan.marks.push_back({generation, describe_change(before, now)});
        before = now;
        begin = end;
    }
    return plan;
}

merge_summary merge_timelines(std::span<found_rank_file const> files, std::string const& out) {
    std::vector<timeline_head> heads;
    for (auto const& each : files) heads.push_back(read_head(each));
    auto const plan = plan_merge(heads);
    merged_file to(out);
    merge_summary all;
    std::set<std::int64_t> named;
    std::map<int, double> begins;  // the first event of each generation
    for (std::size_t i = 0; i < files.size(); ++i) {
        auto const& track = plan.tracks[i];
        if (named.insert(track.number).second) name_track(track, to);
        double& first = begins.try_emplace(files[i].which.generation, std::numeric_limits<double>::max()).first->second;
        bool const ended = for_events(files[i].path, [&](json event) {
            if (event.value("name", "") == "muster_end") all.dropped += event.at("args").at("dropped").get<std::size_t>();
            if (auto const ts = event.find("ts"); ts != event.end())
                first = std::min(first, ts->get<double>() + plan.shift_us[i]);
            if (auto const text = moved(std::move(event), plan.shift_us[i], track.number); !text.empty()) to.add_event(text);
            return true;
        });
        if (!ended) all.ended.push_back(files[i].path);
        all.worst_error_us = std::max(all.worst_error_us, heads[i].error_us);
        ++all.files;
    }
    for (auto const& [generation, text] : plan.marks) {
        all.losses.push_back(text);
        if (auto const at = begins.at(generation); at != std::numeric_limits<double>::max())
            to.add_event(text_of({{"ph", "i"}, {"s", "g"}, {"name", text}, {"pid", 0}, {"tid", 0}, {"ts", at}}));
    }
    all.events = to.finish();
    return all;
}

std::vector<found_rank_file> find_timelines(std::string const& folder) {
    return find_rank_files("timeline", folder, "give the folder that MUSTER_TIMELINE named");
}

}  // namespace muster
