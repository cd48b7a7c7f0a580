// Random bits that nobody can guess, from the kernel.
#pragma once

#include <cstdint>
#include <string>

namespace muster::pmix {

/// 64 of them. Throws errc::system where neither getrandom nor /dev/urandom is there.
std::uint64_t random_bits();

/// The name of a job: "muster.HOST.PID.RANDOM", the last 128 random bits in hexadecimal. Whoever knows it can speak as one of the
/// job's ranks to the PMIx server, so it is a secret of the job's owner, seen only in the environment of the owner's processes.
/// Throws as random_bits.
std::string make_job_name(std::string const& host);

}  // namespace muster::pmix
