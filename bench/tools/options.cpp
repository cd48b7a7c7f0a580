#include "bench/tools/options.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace po = boost::program_options;

po::variables_map read_options(std::vector<std::string> const& args, po::options_description const& known) {
    po::variables_map values;
    po::positional_options_description const none;
    try {
        auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(args).options(known).positional(none).style(style).run(), values);
        po::notify(values);
    } catch (po::unknown_option const& e) {
        std::vector<std::string> names;
        for (auto const& option : known.options()) names.push_back("--" + option->long_name());
        auto const near = nearest(e.get_option_name(), names);
        throw error(errc::usage, fmt::format("unknown option '{}'{}; --help lists all", e.get_option_name(),
                                             near ? fmt::format(", did you mean {}?", *near) : ""));
    } catch (po::too_many_positional_options_error const&) {
        throw error(errc::usage, fmt::format("unexpected word in: {}; --help shows how", shell_join(args)));
    } catch (po::error const& e) {
        throw error(errc::usage, fmt::format("{}; --help shows how", e.what()));
    }
    return values;
}

std::string required(po::variables_map const& values, std::string const& name, std::string const& example) {
    if (values.count(name) == 0 || values[name].as<std::string>().empty())
        throw error(errc::usage, fmt::format("--{} is missing; for example: {}", name, example));
    return values[name].as<std::string>();
}

std::vector<int> parse_list(std::string const& text, std::string const& origin, int low, int high) {
    std::vector<int> out;
    std::size_t offset = 0;
    for (auto const piece : split(text, ',')) {
        auto const number = parse_integer(trim(piece));
        if (!number || *number < low || *number > high)
            throw parse_error(origin, text, offset,
                              fmt::format("expected whole numbers from {} to {}, separated by commas", low, high), errc::usage);
        out.push_back(static_cast<int>(*number));
        offset += piece.size() + 1;
    }
    return out;
}

}  // namespace muster
