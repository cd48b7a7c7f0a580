// Forwards standard input to rank 0.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "launch/system/event_loop.hpp"

namespace muster {

/// A pipe, file or socket is simply passed to rank 0, which reads as much as it wants and leaves the rest. That does not work for
/// a terminal: rank 0 has its own process group and would be stopped when it reads. So this copies what is typed to it, only
/// while muster is in the foreground.
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

/// Makes standard input empty for this process and for those that it starts later. Throws errc::system.
void close_input();

/// Returns whether standard input holds data that others may want to read: a pipe with data, or a partly read file.
bool input_is_shared();

}  // namespace muster
