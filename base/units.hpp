// Bytes and durations: reads and writes them as people do.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

/// The duration type of every option and deadline.
using duration = std::chrono::duration<double>;

/// Bytes from "4096", "64MiB", "1.5 GiB", "10kB", "2G": KiB, MiB, GiB, TiB and the bare letters K, M, G, T are powers of 1024;
/// kB, MB, GB, TB powers of 1000. Throws parse_error naming `origin` on anything else, a negative number or more than 2^63-1
/// bytes.
std::uint64_t parse_bytes(std::string_view text, std::string_view origin = "size");

/// "0 B", "1.5 KiB", "64 MiB": at most one decimal, powers of 1024.
std::string format_bytes(std::uint64_t bytes);

/// Seconds from "90", "1.5s", "250ms", "10us", "5min", "2h", "1d", "1:30" (minutes:seconds), "1:30:00" and Slurm's "2-12:00:00",
/// "2-12". A bare number is seconds. Throws parse_error naming `origin` on anything else or on a negative value.
duration parse_duration(std::string_view text, std::string_view origin = "duration");

/// "12 us", "1.5 ms", "2.31 s", "1:30:00": short, for people.
std::string format_duration(duration value);

/// "HH:MM:SS", rounded up to whole seconds; hours may exceed 99: what PBS and Slurm both accept as a walltime.
std::string format_walltime(duration value);

}  // namespace muster
