#include "base/cpuset.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

constexpr int largest_cpu = 65535;

int read_cpu(std::string_view list, std::string_view digits, std::string_view origin) {
    auto const value = parse_integer(digits);
    if (!value || *value < 0 || *value > largest_cpu)
        throw parse_error(origin, list, static_cast<std::size_t>(digits.data() - list.data()),
                          fmt::format("expected the number of a CPU, 0 to {}, as in 0-3,8", largest_cpu));
    return static_cast<int>(*value);
}

}  // namespace

bool cpuset::contains(int cpu) const noexcept {
    return std::binary_search(cpus.begin(), cpus.end(), cpu);
}

void cpuset::add(cpuset const& other) {
    std::vector<int> all;
    all.reserve(cpus.size() + other.cpus.size());
    std::set_union(cpus.begin(), cpus.end(), other.cpus.begin(), other.cpus.end(), std::back_inserter(all));
    cpus = std::move(all);
}

std::string cpuset::to_list() const {
    std::string list;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t j = i;
        while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) ++j;
        if (!list.empty()) list += ',';
        list += i == j ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[j]);
        i = j + 1;
    }
    return list;
}

cpuset cpuset::from_list(std::string_view list, std::string_view origin) {
    cpuset set;
    if (trim(list).empty()) return set;
    for (auto const piece : split(list, ',')) {
        auto const dash = piece.find('-');
        int const first = read_cpu(list, trim(piece.substr(0, dash)), origin);
        int const last = dash == std::string_view::npos ? first : read_cpu(list, trim(piece.substr(dash + 1)), origin);
        if (last < first)
            throw parse_error(origin, list, static_cast<std::size_t>(piece.data() - list.data()),
                              "a range must not run backwards");
        for (int cpu = first; cpu <= last; ++cpu) set.cpus.push_back(cpu);
    }
    std::ranges::sort(set.cpus);
    set.cpus.erase(std::unique(set.cpus.begin(), set.cpus.end()), set.cpus.end());
    return set;
}

cpuset cpuset::from_list_or_none(std::string_view list) try { return from_list(list); } catch (parse_error const&) {
    return {};
}

cpuset intersect(cpuset const& a, cpuset const& b) {
    cpuset both;
    std::set_intersection(a.cpus.begin(), a.cpus.end(), b.cpus.begin(), b.cpus.end(), std::back_inserter(both.cpus));
    return both;
}

cpuset current_affinity() {
    int room = CPU_SETSIZE;  // looking at each place of the largest mask would take 0.1 ms
    std::vector<cpu_set_t> mask(1);
    while (::sched_getaffinity(0, mask.size() * sizeof(cpu_set_t), mask.data()) != 0) {
        if (errno != EINVAL || room > largest_cpu) throw_system("sched_getaffinity", "of this process");
        room *= 2;
        mask.assign(static_cast<std::size_t>(room / CPU_SETSIZE), {});
    }
    std::size_t const bytes = mask.size() * sizeof(cpu_set_t);
    cpuset set;
    for (int cpu = 0; cpu < room; ++cpu)
        if (CPU_ISSET_S(cpu, bytes, mask.data())) set.cpus.push_back(cpu);
    return set;
}

}  // namespace muster
