// Fuzzes the reader of cost files. An accepted file must stay the same when it
// is written and read again.
#include <cstdlib>
#include <string_view>

#include "apps/tagflow/model/cost_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tagflow;  // NOLINT: a test
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto costs = apps::parse_costs(text);
  if (!costs.ok()) {
    if (!costs.status().message().starts_with("[costs] ")) std::abort();
    return 0;
  }
  const auto again = apps::parse_costs(apps::format_costs(*costs));
  if (!again.ok() || again->node_costs() != costs->node_costs() ||
      again->loop_costs() != costs->loop_costs())
    std::abort();
  return 0;
}
