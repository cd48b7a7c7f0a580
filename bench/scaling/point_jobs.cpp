#include "bench/scaling/point_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "bench/study/findings.hpp"
#include "bench/tools/checked_json.hpp"
#include "bench/tools/machine.hpp"

namespace muster {

using nlohmann::json;

namespace {

constexpr char const* jobs_schema = "muster.study-jobs/1";
constexpr std::string_view phase_names[]{"waiting", "running", "ended"};

point_phase phase_named(std::string_view name) {
    auto const found = std::find(std::begin(phase_names), std::end(phase_names), name);
    return found == std::end(phase_names) ? point_phase::ended : static_cast<point_phase>(found - std::begin(phase_names));
}

std::string said_by(command_output const& answer) {
    auto const text = trim(answer.err.empty() ? answer.out : answer.err);
    return text.empty() ? fmt::format("exit code {}", answer.exit_status) : without_controls(text);
}

void tell_notes(std::string const& printed, std::vector<std::string>& told) {
    for (auto const line : split(printed, '\n')) {
        std::string const note(line);
        if (note.find("note: ") == note.npos || std::ranges::find(told, note) != told.end()) continue;
        told.push_back(note);
        fmt::print(stderr, "{}\n", without_controls(note));
    }
}

std::string state_of(checked_json const& job) {
    auto out = job.at("state").text();
    auto const exit_code = job.at("exit_code");
    auto const& code = exit_code.value();
    if (code.is_number() && code != 0) out += fmt::format(", exit code {}", code.dump());
    return out;
}

}  // namespace

std::vector<point_job> read_point_jobs(std::filesystem::path const& folder) {
    auto const path = folder / "jobs.json";
    if (std::error_code ignored; !std::filesystem::exists(path, ignored)) return {};
    auto const document = read_json_file(path.string());
    checked_json const from(document, path.string());
    if (auto const schema = from.at("schema").text(); schema != jobs_schema)
        from.at("schema").fail(fmt::format("is '{}', expected '{}'", schema, jobs_schema));
    std::vector<point_job> out;
    for (auto const& job : from.at("jobs").items())
        out.push_back({static_cast<int>(job.at("ranks").integer(1, 10'000'000)), job.at("id").text(), job.at("output").text(),
                       job.at("submitted").text(), phase_named(job.at("phase").text()), job.at("state").text(),
                       job.has("repeats") ? static_cast<int>(job.at("repeats").integer(1, 1000)) : most_repeats});
    return out;
}

void write_point_jobs(std::filesystem::path const& folder, std::vector<point_job> const& jobs) {
    json rows = json::array();
    for (auto const& job : jobs)
        rows.push_back({{"ranks", job.ranks},
                        {"id", job.id},
                        {"output", job.output},
                        {"submitted", job.submitted},
                        {"phase", phase_names[static_cast<std::size_t>(job.phase)]},
                        {"state", job.state},
                        {"repeats", job.repeats}});
    write_json_file((folder / "jobs.json").string(), {{"schema", jobs_schema}, {"jobs", rows}});
}

std::vector<std::string> submit_words(std::string const& muster, int ranks, std::vector<std::string> const& options,
                                      std::vector<std::string> const& command) {
    std::vector<std::string> words{muster, "submit"};
    bool without_gpus = false;
    for (std::size_t at = 0; at < options.size(); ++at) {
        bool const alone = options[at] == "--ranks" || options[at] == "-n";
        if (!alone && !options[at].starts_with("--ranks="))
            words.push_back(options[at]);
        else
            without_gpus = true;
        if (alone && at + 1 < options.size() && parse_integer(options[at + 1])) ++at;
    }
    // Given both numbers, muster submit takes GPUs if the site has them.
    if (!without_gpus) words.insert(words.end(), {"--gpus", std::to_string(ranks)});
    words.insert(words.end(), {"--ranks", std::to_string(ranks), "--once"});
    bool const named = std::ranges::any_of(options, [](auto const& word) { return word.starts_with("--job-name"); });
    if (!named) words.insert(words.end(), {"--job-name", fmt::format("scale-{}", ranks)});
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
}

point_job submit_point(std::vector<std::string> const& words, int ranks, std::vector<std::string>& told,
                       environment const& variables) {
    auto with_json = words;
    with_json.insert(with_json.begin() + 2, "--json");
    auto const answer = run_captured(with_json, variables, answer_limit);
    if (answer.exit_status != 0)
        throw_error(errc::unavailable, "the job of {} was not submitted: {}", ranks_text(ranks), said_by(answer));
    tell_notes(answer.err, told);
    auto const document = parse_json(answer.out, "muster submit --json");
    checked_json const from(document, "muster submit --json");
    return {ranks, from.at("id").text(), from.at("output").text(), utc_now(), point_phase::waiting, "submitted"};
}

void ask_for(point_job& job, std::string const& muster, environment const& variables) {
    auto const answer = run_captured({muster, "show", "--json", job.id}, variables, answer_limit);
    if (answer.exit_status != 0) throw_error(errc::unavailable, "muster show {}: {}", job.id, said_by(answer));
    auto const document = parse_json(answer.out, "muster show --json");
    checked_json const from(document, "muster show --json");
    auto const jobs = from.at("jobs").items();
    job.phase = jobs.empty() ? point_phase::ended : phase_named(jobs.front().at("phase").text());
    job.state = jobs.empty() ? "the scheduler does not know it any more" : state_of(jobs.front());
}

}  // namespace muster
