// Libraries loaded at run time (NVML, NCCL, the CUDA driver), so that one build serves machines with and without them.
#pragma once

#include <span>
#include <string>

namespace muster {

/// An opened library, or the reason why it could not be opened. It stays loaded to the end of the process: threads that a driver's library has started run in it.
class shared_library {
  public:
    /// Tries each name in order (as dlopen does) and keeps the first that opens. Never throws for a missing library: see
    /// `missing()`.
    explicit shared_library(std::span<std::string const> names);

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    std::string const& name() const noexcept { return name_; }        ///< the one that opened
    std::string const& missing() const noexcept { return missing_; }  ///< what was looked for, and what the loader said

    /// The symbol as a function pointer, or nullptr. `Function` is a function type.
    template <typename Function>
    Function* symbol(char const* symbol_name) const noexcept {
        return reinterpret_cast<Function*>(find(symbol_name));
    }

  private:
    void* find(char const* symbol_name) const noexcept;
    void* handle_ = nullptr;
    std::string name_;
    std::string missing_;
};

}  // namespace muster
