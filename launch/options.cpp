#include "launch/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace po = boost::program_options;

namespace {

std::vector<std::string> long_names(po::options_description const& known) {
    std::vector<std::string> names;
    for (auto const& option : known.options()) names.push_back("--" + option->long_name());
    return names;
}

bool takes_value(po::options_description const& known, std::string const& word) {
    std::string const name = word.starts_with("--") ? word.substr(2, word.find('=') - 2) : word.substr(0, 2);
    if (word.starts_with("--") && word.find('=') != std::string::npos) return false;
    if (!word.starts_with("--") && word.size() > 2) return false;
    auto const* const option = known.find_nothrow(name, true);
    return option != nullptr && option->semantic()->max_tokens() > 0;
}

/// How many leading words are options and their values.
std::size_t count_option_words(std::vector<std::string> const& args, po::options_description const& known) {
    std::size_t i = 0;
    while (i < args.size() && args[i] != "--" && args[i].size() > 1 && args[i].front() == '-')
        i += takes_value(known, args[i]) ? 2 : 1;
    return std::min(i, args.size());
}

[[noreturn]] void throw_unknown(std::string const& option, po::options_description const& known) {
    auto const names = long_names(known);
    auto const near = nearest(option.starts_with("--") ? option : "-" + option, names);
    throw error(errc::usage, fmt::format("unknown option '{}'{}; --help lists all", option,
                                         near ? fmt::format(", did you mean {}?", *near) : ""));
}

}  // namespace

po::variables_map parse_options(std::vector<std::string> const& args, po::options_description const& known,
                                std::vector<std::string>& command) {
    std::vector<std::string> own(args);
    std::replace(own.begin(), own.end(), std::string("-np"), std::string("-n"));  // as mpirun and horovodrun spell it
    std::size_t const words = count_option_words(own, known);
    std::size_t const first = words < args.size() && args[words] == "--" ? words + 1 : words;
    command.assign(args.begin() + static_cast<std::ptrdiff_t>(first), args.end());
    own.resize(words);
    po::variables_map values;
    try {
        auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(own).options(known).style(style).run(), values);
        po::notify(values);
    } catch (po::unknown_option const& e) {
        throw_unknown(e.get_option_name(), known);
    } catch (po::error const& e) {
        throw error(errc::usage, fmt::format("{}; --help shows how", e.what()));
    }
    return values;
}

}  // namespace muster
