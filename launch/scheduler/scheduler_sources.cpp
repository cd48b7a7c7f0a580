#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <utility>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"
#include "launch/scheduler/scheduler_sources.hpp"

namespace muster {

namespace {

constexpr std::size_t file_limit = std::size_t{64} << 20;

std::optional<std::string> read_whole_file(std::string const& path) {
    unique_fd const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!file) {
        if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
        throw_system("open", path);
    }
    std::string text;
    std::array<char, 65536> buffer;
    while (true) {
        auto const got = ::read(file.get(), buffer.data(), buffer.size());
        if (got == 0) return text;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw_system("read", path);
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > file_limit)
            throw_error(errc::invalid_data, "{} is larger than {} MiB: that is no list of hosts", path, file_limit >> 20);
    }
}

}  // namespace

scheduler_sources real_sources(environment const& variables, std::function<node()> this_node) {
    return {variables, read_whole_file,
            [&variables](std::vector<std::string> const& argv) { return run_captured(argv, variables); }, std::move(this_node)};
}

std::string first_line(command_output const& said) {
    for (auto const* text : {&said.err, &said.out})
        for (auto const line : split(*text, '\n'))
            if (auto const words = trim(line); !words.empty()) return std::string(words);
    return "it printed nothing";
}

void tell_of_no_answer(scheduler_sources const& sources, std::vector<std::string> const& argv, std::string_view why) {
    sources.tell(fmt::format("{} failed ({}): what it would have told is guessed, or left open", shell_join(argv), why));
}

scheduler_sources telling_sources(scheduler_sources sources, std::function<void(std::string const&)> tell) {
    auto const said = std::make_shared<std::map<std::vector<std::string>, command_output>>();
    sources.tell = std::move(tell);
    sources.run_command = [said, plain = sources](std::vector<std::string> const& argv) {
        if (auto const known = said->find(argv); known != said->end()) return known->second;
        auto const& answer = said->emplace(argv, plain.run_command(argv)).first->second;
        bool const about_python = argv.size() > 1 && argv[1] == "-c";  // asks whether it has mpi4py
        if (answer.exit_status == 0 || answer.exit_status == 127 || about_python) return answer;
        tell_of_no_answer(plain, argv,
                          answer.wall >= command_limit
                              ? fmt::format("it did not answer within {} s", command_limit.count() / 1000)
                              : fmt::format("code {}: {}", answer.exit_status, first_line(answer)));
        return answer;
    };
    return sources;
}

}  // namespace muster
