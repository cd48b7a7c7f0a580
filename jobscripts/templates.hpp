// The script templates that are part of the program.
#pragma once

#include <span>
#include <string_view>

namespace muster {

struct template_text {
    std::string_view name;  ///< file name under jobscripts/templates/ without ".mustache"
    std::string_view text;
};

/// Every template of jobscripts/templates/, as it was when the program was built. Static storage; thread safe.
std::span<template_text const> built_in_templates() noexcept;

}  // namespace muster
