// Fuzzes the reader of GraphDefs as text; mutations of text keep more of a
// graph's structure than those of bytes.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/graphdef_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace tagflow::graph;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_file(parse_graphdef_text(text, fuzz_limits()));
  return 0;
}
