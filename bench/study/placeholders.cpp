#include "bench/study/placeholders.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse(std::string const& word, std::size_t at, std::string const& why) {
    throw parse_error("the program's arguments", word, at, why, errc::usage);
}

std::string value_of(std::string const& name, run_numbers const& numbers, std::string const& word, std::size_t at) {
    if (name == "ranks") return std::to_string(numbers.ranks);
    if (name == "nodes") return std::to_string(numbers.nodes);
    if (name == "repeat") return std::to_string(numbers.repeat);
    if (name == "batch" && numbers.batch) return std::to_string(*numbers.batch);
    if (name == "batch") refuse(word, at, "{batch} has no value; give --batch N, and --strong or --weak");
    std::vector<std::string> const known{"ranks", "nodes", "repeat", "batch"};
    auto const near = nearest(name, known);
    refuse(word, at,
           fmt::format("unknown name '{}'{}; known are {{ranks}}, {{nodes}}, {{repeat}}, {{batch}}; write {{{{ for a brace", name,
                       near ? fmt::format(", did you mean {{{}}}?", *near) : ""));
}

}  // namespace

std::string fill_placeholders(std::string const& word, run_numbers const& numbers) {
    std::string out;
    for (std::size_t at = 0; at < word.size();) {
        if (word[at] != '{') {
            out += word[at++];
        } else if (word.compare(at, 2, "{{") == 0) {
            out += '{';
            at += 2;
        } else {
            auto const end = word.find('}', at);
            if (end == word.npos) refuse(word, at, "a brace that is not closed; write {{ for a brace");
            out += value_of(word.substr(at + 1, end - at - 1), numbers, word, at);
            at = end + 1;
        }
    }
    return out;
}

std::vector<std::string> fill_placeholders(std::vector<std::string> const& words, run_numbers const& numbers) {
    std::vector<std::string> out;
    for (auto const& word : words) out.push_back(fill_placeholders(word, numbers));
    return out;
}

}  // namespace muster
