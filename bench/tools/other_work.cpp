#include "bench/tools/other_work.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/text.hpp"
#include "bench/tools/machine.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

double worked_now(std::vector<int> const& cpus) {
    std::ifstream file("/proc/stat");
    std::ostringstream text;
    text << file.rdbuf();
    return worked_s(text.str(), cpus, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

double seconds_of(timeval const& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

double own_now() {
    double sum = 0;
    for (auto const who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage used{};
        if (::getrusage(who, &used) == 0) sum += seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    }
    return sum;
}

double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
}

}  // namespace

double worked_s(std::string_view stat, std::span<int const> cpus, double ticks_per_s) {
    double ticks = 0;
    for (auto const line : split(stat, '\n')) {
        std::istringstream words{std::string(line)};
        std::string name;
        words >> name;
        auto const number = name.starts_with("cpu") ? parse_integer(std::string_view(name).substr(3)) : std::nullopt;
        if (!number || std::find(cpus.begin(), cpus.end(), *number) == cpus.end()) continue;
        double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0, stolen = 0;
        words >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >> stolen;
        ticks += user + nice + system + interrupts + soft_interrupts + stolen;
    }
    return ticks / ticks_per_s;
}

other_work::other_work() : cpus_(allowed_cpus().cpus) {
    double const worked = worked_now(cpus_), own = own_now();
    auto const begin = clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    this->begin();
    before_ = (worked_at_start_ - worked - (own_at_start_ - own)) / seconds_since(begin);
}

void other_work::begin() {
    worked_at_start_ = worked_now(cpus_);
    own_at_start_ = own_now();
    start_ = clock::now();
}

double other_work::own_s() const {
    return own_now() - own_at_start_;
}

double other_work::during(double measured_s) const {
    return (worked_now(cpus_) - worked_at_start_ - measured_s) / seconds_since(start_);
}

}  // namespace muster
