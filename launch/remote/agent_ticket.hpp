// The ticket of a host's agent: what its command line says of the key by which it and the starter recognise each other.
#pragma once

#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "launch/wire/run_key.hpp"

namespace muster {

/// "job:…": the key, sealed (libsodium's secretbox) with the secret that PBS gives to all processes of the job (PBS_JOBCOOKIE) and to
/// nobody else, so that it may stand on a command line. Throws errc::unavailable without that variable.
std::string seal_for_job(run_key const& key, environment const& variables);

/// The key that a ticket tells: "stdin" (the first line there), "file:PATH", "munge:…", "job:…". Throws errc::usage for any other, errc::parse,
/// errc::system, and errc::unavailable without the cookie that it was sealed with.
run_key redeem_ticket(std::string const& ticket, environment const& variables);

}  // namespace muster
