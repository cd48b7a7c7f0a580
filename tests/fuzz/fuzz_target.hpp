// A fuzz target by its name, for a program that holds several. The program of a library lists its own.
#pragma once

#include <cstddef>
#include <cstdint>

struct fuzz_target {
    char const* name;  // nullptr: the end of the list
    int (*run)(std::uint8_t const* data, std::size_t size);
};

extern fuzz_target const fuzz_targets[];
