#include "launch/hardware/sysfs_files.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/hardware/pci.hpp"

namespace muster::sysfs_files {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t longest_value = 4096;
}

std::string read_text(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(longest_value, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    return std::string(trim(text));
}

int read_number(std::string const& path, int otherwise) {
    auto const value = parse_integer(read_text(path));
    return value && *value >= -1 && *value < 1 << 20 ? static_cast<int>(*value) : otherwise;
}

std::uint32_t read_hex(std::string const& path) {
    auto const text = read_text(path);
    std::uint32_t value = 0;
    if (text.starts_with("0x")) std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
    return value;
}

cpuset read_cpus(std::string const& path) {
    return list_in(read_text(path));
}

cpuset list_in(std::string_view text) {
    try {
        return cpuset::from_list(text);
    } catch (parse_error const&) {
        return {};
    }
}

std::string link_name(std::string const& path) {
    std::error_code fault;
    auto const target = fs::read_symlink(path, fault);
    return fault ? std::string() : target.filename().string();
}

std::vector<std::string> names_in(std::string const& folder) {
    std::vector<std::string> names;
    std::error_code fault;
    for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault))
        names.push_back(entry->path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> path_steps(std::string const& link) {
    std::vector<std::string> steps;
    std::error_code fault;
    for (auto const& part : fs::canonical(link, fault)) {
        auto const name = part.string();
        if (name.starts_with("pci") && name.find(':') != std::string::npos)
            steps.assign(1, name);
        else if (!steps.empty() && pci_address::parse(name))
            steps.push_back(name);
        else if (!steps.empty())
            break;
    }
    return steps;
}

std::string value_of(std::string_view text, std::string_view key) {
    for (auto const line : split(text, '\n')) {
        if (!line.starts_with(key)) continue;
        auto rest = line.substr(key.size());
        if (rest.empty() || (rest.front() != ':' && rest.front() != ' ')) continue;
        rest.remove_prefix(1);
        return std::string(trim(rest));
    }
    return {};
}

}  // namespace muster::sysfs_files
