// Reads the topology of a machine from an hwloc XML file.
#pragma once

#include <string>

#include "launch/hardware/topology.hpp"

namespace muster {

/// The machine of an hwloc XML file (lstopo FILE.xml), with all its cores allowed, and the GPUs and NICs among its PCI devices.
/// A child of this process tries the file first, since hwloc may die of one that is damaged; call from one thread only. Throws
/// errc::not_found, errc::invalid_data.
topology load_topology(std::string const& xml_path);
/// The same of such a file's text, called `name` in errors.
topology read_topology(std::string const& xml, std::string const& name);

}  // namespace muster
