// One step over several processes, whose partitions meet over a network that
// delays and reorders: the engine's side of a cluster, without a socket.
#include "tests/actors/processes.h"

#include <doctest/doctest.h>

#include "tests/actors/process_cases.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

std::shared_ptr<Backend> in_memory(int count, const std::string& devices,
                                   int workers, uint64_t seed) {
  return std::make_shared<Processes>(count, devices, workers, seed);
}

}  // namespace

TEST_CASE("random graphs over several processes agree with the reference") {
  processes::check_random_graphs(in_memory);
}

TEST_CASE("an error in one process ends the parts of all, which run again") {
  processes::check_errors(in_memory);
}

TEST_CASE("a variable of one process keeps its value from step to step") {
  processes::check_variables(in_memory);
}

TEST_CASE("a wait in one process is named by the step, and can be cancelled") {
  processes::check_waits(in_memory);
}
