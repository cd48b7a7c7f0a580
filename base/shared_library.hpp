// Libraries loaded at run time (NVML, NCCL, the CUDA driver), so that one build serves machines with and without them.
#pragma once

#include <span>
#include <string>

#include "base/unique_handle.hpp"

namespace muster {

struct shared_library_traits {
    using type = void*;
    static type null() noexcept { return nullptr; }
    static void close(type handle) noexcept;
};

/// An opened library, or the reason why it could not be opened.
class shared_library {
  public:
    /// Tries each name in order (as dlopen does) and keeps the first that opens. Never throws for a missing library: see
    /// `missing()`.
    explicit shared_library(std::span<std::string const> names);

    explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
    std::string const& name() const noexcept { return name_; }        ///< the one that opened
    std::string const& missing() const noexcept { return missing_; }  ///< what was looked for, and what the loader said

    /// The symbol as a function pointer, or nullptr. `Function` is a function type.
    template <typename Function>
    Function* symbol(char const* symbol_name) const noexcept {
        return reinterpret_cast<Function*>(find(symbol_name));
    }

  private:
    void* find(char const* symbol_name) const noexcept;
    unique_handle<shared_library_traits> handle_;
    std::string name_;
    std::string missing_;
};

}  // namespace muster
