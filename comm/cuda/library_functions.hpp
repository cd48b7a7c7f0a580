// The functions of a library that is found at run time. Each is looked up by its name where it is declared.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "base/shared_library.hpp"

namespace muster {

/// Looks functions up, and notes those that the library lacks. As the first member of a struct of pointers to functions:
/// `int (*init)(unsigned) = from["cuInit"];`.
class library_functions {
  public:
    library_functions() = default;  ///< of no library: every function is null, and none is missing
    explicit library_functions(shared_library const& library) : library_(&library) {}

    struct named {
        library_functions& from;
        char const* name;

        template <typename Function>
        operator Function*() const {
            if (from.library_ == nullptr) return nullptr;
            auto* const found = from.library_->symbol<Function>(name);
            if (found == nullptr) from.missing_ += (from.missing_.empty() ? "" : ", ") + std::string(name);
            return found;
        }
    };
    named operator[](char const* name) { return {*this, name}; }

    std::string const& missing() const noexcept { return missing_; }  ///< the names of those that the library lacks, or ""

  private:
    shared_library const* library_ = nullptr;  ///< used only while the struct is made
    std::string missing_;
};

/// Keeps them until the process ends, since a driver's library has threads and handlers that run till then. Thread safe.
template <typename Functions>
Functions const& keep_functions(Functions functions) {
    static std::mutex guard;
    static auto& all = *new std::deque<Functions>;  // reachable, so that no leak is reported
    std::scoped_lock const lock(guard);
    return all.emplace_back(std::move(functions));
}

}  // namespace muster
