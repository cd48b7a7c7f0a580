#include "base/manual/manual_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/embedded_text.hpp"
#include "base/manual/roff.hpp"
#include "base/text.hpp"

namespace muster {

std::span<embedded_text const> manual_documents() noexcept;  // written by CMake: docs/environment.md

namespace {

constexpr std::string_view mark = "<!-- page: ";

/// The lines from `begin` up to the next one that begins with `stop`, or all that are left.
std::string_view part_of(std::string_view text, std::size_t begin, std::string_view stop) {
    auto const end = text.find(fmt::format("\n{}", stop), begin);
    return text.substr(begin, end == text.npos ? end : end + 1 - begin);
}

bool is_for(std::string_view subsection, std::string_view page) {
    auto const at = subsection.find(mark);
    if (at == subsection.npos) return true;
    auto const begin = at + mark.size();
    auto const pages = split(subsection.substr(begin, subsection.find(" -->", begin) - begin), ',');
    return std::any_of(pages.begin(), pages.end(), [&](auto each) {
        return trim(each) == page || (trim(each) == "muster *" && page.starts_with("muster "));
    });
}

std::string_view behind_first_line(std::string_view text) {
    auto const end = text.find('\n');
    return end == text.npos ? std::string_view() : text.substr(end + 1);
}

}  // namespace

std::string manual_section(std::string_view document, std::string_view title, std::string_view page) {
    auto const heading = fmt::format("\n## {}\n", title);
    auto const at = document.find(heading);
    if (at == document.npos) return {};
    auto const section = part_of(document, at + heading.size() - 1, "## ");
    auto const before = part_of(section, 0, "### ");
    std::vector<std::string_view> chosen;
    for (auto next = before.size(); next < section.size();) {
        auto const subsection = part_of(section, next, "### ");
        if (is_for(subsection, page)) chosen.push_back(subsection);
        next += subsection.size();
    }
    std::string text(trim(before));
    if (text.empty() && chosen.size() == 1) return std::string(trim(behind_first_line(chosen.front()))) + "\n";
    for (auto const each : chosen) text += fmt::format("\n\n{}", trim(each));
    return text + "\n";
}

std::string manual_sections(std::string_view page) {
    static constexpr std::array<std::string_view, 5> titles{"Environment", "Standard input and output", "Signals", "Files",
                                                            "Exit status"};
    auto const document = find_text(manual_documents(), "environment.md");
    std::string text;
    for (auto const title : titles) {
        std::string name(title);
        for (char& c : name)
            if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        text += fmt::format(".SH \"{}\"\n{}", name, roff_of_markdown(manual_section(document, title, page)));
    }
    return text;
}

}  // namespace muster
