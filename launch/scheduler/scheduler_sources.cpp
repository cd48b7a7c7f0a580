#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.hpp"
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
            throw error(errc::invalid_data,
                        fmt::format("{} is larger than {} MiB: that is no list of hosts", path, file_limit >> 20));
    }
}

}  // namespace

scheduler_sources real_sources(environment const& variables, std::function<node()> this_node) {
    return {variables, read_whole_file,
            [&variables](std::vector<std::string> const& argv) { return run_captured(argv, variables); }, std::move(this_node)};
}

}  // namespace muster
