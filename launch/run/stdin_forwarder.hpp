// Forwards standard input to rank 0.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// A pipe, file or socket is simply handed to rank 0, which reads as much as it wants and leaves the rest. A terminal cannot be:
/// rank 0 is in a process group of its own and would be stopped when it reads. So what is typed is copied to it, and only while
/// muster is in the foreground.
class stdin_forwarder {
  public:
    explicit stdin_forwarder(event_loop& loop);
    ~stdin_forwarder();
    int child_fd() const noexcept { return child_ ? child_.get() : 0; }
    void child_started() noexcept { child_.reset(); }
    void stop() noexcept;

  private:
    void read_terminal();
    void write_pending();
    event_loop& loop_;
    unique_fd child_;
    unique_fd pipe_;
    std::string pending_;
    bool end_seen_ = false;
};

/// From now on standard input is empty, for this process and for those that it starts. Throws errc::system.
void close_input();

/// Whether something waits on standard input that others may want to read: a pipe with data in it, or a file that was read in part.
bool input_is_shared();

}  // namespace muster
