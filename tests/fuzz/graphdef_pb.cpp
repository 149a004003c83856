// Fuzzes the reader of binary GraphDefs, and with it shape inference,
// validation, pruning and the writer.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/graphdef_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace tagflow::graph;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_file(parse_graphdef(bytes, fuzz_limits()));
  return 0;
}
