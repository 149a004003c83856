// Fuzzes the reader of programs, and with it whatever the compiler relies on:
// an accepted program is written with the bytes that it is read from again, and
// can be compiled, or is refused for its kernels.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "actors/plan/plan.h"
#include "devices/kernel_registry.h"
#include "graph/file/program_file.h"
#include "tests/fuzz/graphdef_checks.h"

namespace tagflow {
namespace {

void check_compiled(const graph::Program& program) {
  std::vector<std::unique_ptr<devices::Kernel>> kernels;
  const auto make_kernel =
      [&](const graph::Node& node) -> Result<const devices::Kernel*> {
    TAGFLOW_ASSIGN(auto kernel,
                   devices::KernelRegistry::global().make(node, "CPU"));
    return kernels.emplace_back(std::move(kernel)).get();
  };
  const auto plan = actors::compile_plan(program, {}, make_kernel);
  if (!plan.ok() && plan.status().message().empty()) std::abort();
}

}  // namespace
}  // namespace tagflow

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace tagflow::graph;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto program = read_program(bytes, fuzz_limits());
  if (!program.ok()) {
    if (program.status().message().empty()) std::abort();
    return 0;
  }
  const auto written = write_program(*program);
  if (!written.ok()) std::abort();
  const auto again = read_program(*written);
  if (!again.ok()) std::abort();
  const auto twice = write_program(*again);
  if (!twice.ok() || *twice != *written) std::abort();
  tagflow::check_compiled(*program);
  return 0;
}
