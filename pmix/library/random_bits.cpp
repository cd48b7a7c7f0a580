#include "pmix/library/random_bits.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace muster::pmix {

std::uint64_t random_bits() {
    std::uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) == static_cast<ssize_t>(sizeof bits)) return bits;
    int const code = errno;  // ENOSYS: filters of system calls know it as little as kernels before 3.17
    unique_fd const file(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    if (!file || read(file.get(), &bits, sizeof bits) != static_cast<ssize_t>(sizeof bits))
        throw_system("getrandom", "for the job's name and keys, and /dev/urandom cannot be read", code,
                     "make one of them available");
    return bits;
}

std::string make_job_name(std::string const& host) {
    return fmt::format("muster.{}.{}.{:016x}{:016x}", host, getpid(), random_bits(), random_bits());
}

}  // namespace muster::pmix
