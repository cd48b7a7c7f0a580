// A codec turns requests into bytes, as ranks send them to each other, and back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/exchange/request/exchange_request.hpp"

namespace muster {

/// Returns the requests, one after the other, preceded by their number. The format is private to a job whose ranks run the same muster.
std::vector<std::byte> encode(std::span<exchange_request const> requests);

/// Reads such bytes, which padding may follow. Throws errc::invalid_data on anything that encode() does not make: bytes that end
/// early, a number outside its enumeration, a shape of more elements than memory can hold.
std::vector<exchange_request> decode_requests(std::span<std::byte const> bytes);

}  // namespace muster
