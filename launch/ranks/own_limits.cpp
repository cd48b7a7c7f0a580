#include "launch/ranks/own_limits.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

namespace muster {

std::vector<soft_limit> read_own_limits() {
    std::vector<soft_limit> limits;
    for (int const which : {RLIMIT_CORE, RLIMIT_STACK, RLIMIT_NOFILE, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_MEMLOCK, RLIMIT_AS,
                            RLIMIT_CPU, RLIMIT_NPROC}) {
        rlimit now{};
        if (::getrlimit(which, &now) == 0) limits.push_back({which, now.rlim_cur});
    }
    return limits;
}

int read_umask() {
    mode_t const mask = ::umask(0);
    ::umask(mask);
    return static_cast<int>(mask);
}

}  // namespace muster
