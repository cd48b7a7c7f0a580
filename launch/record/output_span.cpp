#include "launch/record/output_span.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "launch/record/recorded_words.hpp"

namespace muster {

using nlohmann::ordered_json;

std::vector<output_span> begin_output_spans() {
    std::vector<output_span> spans;
    for (int const fd : {STDOUT_FILENO, STDERR_FILENO}) {
        struct stat found {};
        std::error_code fault;
        if (::fstat(fd, &found) != 0) continue;
        if (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)) return {};
        if (!S_ISREG(found.st_mode)) continue;
        auto const path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), fault).string();
        bool const is_known = std::ranges::any_of(spans, [&](auto const& span) { return span.file == path; });
        if (!fault && !is_known) spans.push_back({path, static_cast<std::uint64_t>(found.st_size), std::nullopt});
    }
    return spans;
}

void end_output_spans(std::vector<output_span>& spans) {
    for (auto const& now : begin_output_spans())
        for (auto& span : spans)
            if (span.file == now.file) span.to_byte = now.from_byte;
}

ordered_json to_json(std::vector<output_span> const& spans) {
    auto rows = ordered_json::array();
    for (auto const& span : spans) {
        ordered_json row;
        put_text(row, "file", span.file);
        row["from_byte"] = span.from_byte;
        row["to_byte"] = span.to_byte ? ordered_json(*span.to_byte) : ordered_json();
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<output_span> output_spans_in(nlohmann::json const& run) try {
    std::vector<output_span> spans;
    for (auto const& row : run.at("output")) {
        auto const& to = row.at("to_byte");
        spans.push_back({text_in(row, "file", "run.json"), row.at("from_byte").get<std::uint64_t>(),
                         to.is_null() ? std::nullopt : std::optional(to.get<std::uint64_t>())});
    }
    return spans;
} catch (nlohmann::json::exception const&) {
    return {};
} catch (error const&) {
    return {};
}

}  // namespace muster
