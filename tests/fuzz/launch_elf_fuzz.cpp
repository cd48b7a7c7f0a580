// links: muster::launch
// Any bytes as an ELF file, and as the text of /proc/PID/maps.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "launch/observe/mpi_use.hpp"
#include "launch/system/elf_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const found = muster::read_elf_dynamic(std::as_bytes(std::span(data, size)));
    if (found && found->needed.size() > 1024) std::abort();
    (void)muster::find_elf_object(std::as_bytes(std::span(data, size)), "x");
    (void)muster::mpi_in_maps({reinterpret_cast<char const*>(data), size});
    return 0;
}
