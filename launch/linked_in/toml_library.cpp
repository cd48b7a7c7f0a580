// The parts of toml++ that its shared library holds, within the program muster.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
