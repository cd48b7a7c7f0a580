#include "bench/tools/machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/text.hpp"

namespace muster {

namespace {

// The value of the first line "key<separator>value" of a file, without quotes.
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

std::optional<cpu_set_t> affinity() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
    return set;
}

// Cores, not hardware threads: those with the same siblings are one.
int count_cores(cpu_set_t const& allowed) {
    std::set<std::string> siblings;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
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
    if (auto const set = affinity()) m.cores = count_cores(*set);
    std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> m.governor;
    long const pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) m.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
    m.system = lookup("/etc/os-release", "PRETTY_NAME", '=');
#ifdef __clang__
    m.compiler = "Clang " __clang_version__;
#else
    m.compiler = "GCC " __VERSION__;
#endif
    m.gpus = "none used: this version trains on CPUs";
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

std::string allowed_cores() {
    auto const set = affinity();
    if (!set) return {};
    std::string out;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
        if (!CPU_ISSET(i, &*set)) continue;
        int last = i;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &*set)) ++last;
        out += fmt::format("{}{}", out.empty() ? "" : ",", i);
        if (last > i) out += fmt::format("-{}", last);
        i = last;
    }
    return out;
}

std::string utc_now() {
    auto const now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace muster
