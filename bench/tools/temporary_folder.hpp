// A folder for temporary files, which is removed with its content.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/environment.hpp"
#include "base/error.hpp"

namespace muster {

class temporary_folder {
  public:
    /// Makes TMPDIR/NAME.XXXXXX, in /tmp if TMPDIR is not set. Throws errc::system.
    temporary_folder(std::string const& name, environment const& variables)
        : path_(variables.get_or("TMPDIR", "/tmp") + "/" + name + ".XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr) throw_system("mkdtemp", path_, 0, "set TMPDIR to a folder with room");
    }
    temporary_folder(temporary_folder const&) = delete;
    temporary_folder& operator=(temporary_folder const&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string const& path() const noexcept { return path_; }

  private:
    std::string path_;
};

}  // namespace muster
