// Holds the port of the PMIx library's server until the library listens there itself.
#pragma once

#include <sys/socket.h>

#include "base/unique_fd.hpp"

namespace muster::pmix {

/// Listens at a free port of 127.0.0.1. Who connects waits in the kernel until the library, to which the socket is given, accepts. So
/// the library's server starts only for programs that call it: without this a launch of /bin/true takes 42 % more on 8 ranks and 29 % on
/// 32 (medians of 40 pairs on two cores; quartiles 38 to 46 % and 22 to 35 %).
class held_listener {
  public:
    held_listener();  ///< throws errc::system

    int fd() const noexcept { return socket_.get(); }  ///< readable once somebody has connected
    int port() const noexcept { return port_; }

    /// While one lives, the next socket that this thread binds to a free port of 127.0.0.1 becomes the listener: the library can be
    /// told neither a socket nor, where somebody waits at it, a port. The program's own `bind` (own_bind.cpp) does it.
    class giving {
      public:
        explicit giving(int listener) noexcept;
        ~giving();
        giving(giving const&) = delete;
        giving& operator=(giving const&) = delete;
        bool is_taken() const noexcept;
    };

  private:
    unique_fd socket_;
    int port_ = 0;
};

/// Does what a program's `bind` is to do: the kernel's, or the giving. Result and errno are bind's.
int bind_or_give(int fd, sockaddr const* address, socklen_t length) noexcept;

}  // namespace muster::pmix
