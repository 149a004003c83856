// QueueRunnerDef: what fills a queue, as in the collection "queue_runners" of a
// MetaGraph. actors/session/queue_runners.h starts the runners.
#pragma once

#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::graph {

struct QueueRunnerDef {
  std::string queue;  // the name of its node, for messages
  // Operations that run repeatedly, each on its own thread; names may occur
  // more than once.
  std::vector<std::string> enqueue_ops;
  std::string close_op;   // run at the end; "": none
  std::string cancel_op;  // run instead if it is stopped; "": none
  // Errors of an enqueue operation that mean the end of the input.
  std::vector<Code> closed_codes = {Code::kOutOfRange};
};

}  // namespace tagflow::graph
