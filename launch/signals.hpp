// What was inherited about signals.
#pragma once

namespace muster {

/// Whether whoever started this process wants the signal ignored: nohup SIGHUP, a script's `&` SIGINT and SIGQUIT. Such a signal
/// must stay ignored, although it would be delivered to a signalfd.
bool is_ignored(int signal_number) noexcept;

}  // namespace muster
