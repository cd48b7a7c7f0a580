#include "bench/tools/machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

// Returns the value of the first line "key<separator>value" of a file, without quotes.
std::string lookup(char const* path, std::string_view key, char separator) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        auto const at = line.find(separator);
        if (at == line.npos || trim(std::string_view(line).substr(0, at)) != key) continue;
        auto value = trim(std::string_view(line).substr(at + 1));
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
        return std::string(value);
    }
    return {};
}

// Counts cores, not hardware threads: CPUs with the same siblings are one core.
int count_cores(cpuset const& allowed) {
    std::set<std::string> siblings;
    for (int const cpu : allowed.cpus) {
        std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
        std::string list;
        siblings.insert(std::getline(file, list) ? list : std::to_string(cpu));
    }
    return std::max(1, static_cast<int>(siblings.size()));
}

}  // namespace

machine_facts describe_machine() {
    machine_facts m;
    utsname name{};
    if (::uname(&name) == 0) {
        m.host = name.nodename;
        m.kernel = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
    }
    m.processor = lookup("/proc/cpuinfo", "model name", ':');
    m.clock_mhz = parse_real(lookup("/proc/cpuinfo", "cpu MHz", ':')).value_or(0);
    m.virtualised = fmt::format(" {} ", lookup("/proc/cpuinfo", "flags", ':')).find(" hypervisor ") != std::string::npos;
    m.cores = count_cores(allowed_cpus());
    std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> m.governor;
    long const pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) m.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
    m.system = lookup("/etc/os-release", "PRETTY_NAME", '=');
#ifdef __clang__
    m.compiler = "Clang " __clang_version__;
#else
    m.compiler = "GCC " __VERSION__;
#endif
    m.gpus = "none";
    return m;
}

nlohmann::ordered_json machine_json(machine_facts const& m) {
    return {{"host", m.host},         {"processor", m.processor},       {"cores", m.cores},   {"clock_mhz", m.clock_mhz},
            {"governor", m.governor}, {"memory_bytes", m.memory_bytes}, {"system", m.system}, {"kernel", m.kernel},
            {"compiler", m.compiler}, {"virtualised", m.virtualised}};
}

double load_average() {
    double load = 0;
    return ::getloadavg(&load, 1) == 1 ? load : -1;
}

cpuset allowed_cpus() {
    try {
        return current_affinity();
    } catch (error const&) {
        return {};
    }
}

std::string utc_now() {
    auto const now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace muster
