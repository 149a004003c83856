// QueueRunnerDef: who fills a queue, as the collection "queue_runners" of a
// MetaGraph has it. actors/session/queue_runners.h starts them.
#pragma once

#include <string>
#include <vector>

#include "graph/status.h"

namespace tagflow::graph {

struct QueueRunnerDef {
  std::string queue;  // the name of its node: for messages
  // Operations that are run again and again, each by a thread of its own; a
  // name may be there more than once.
  std::vector<std::string> enqueue_ops;
  std::string close_op;   // run at the end; "": none
  std::string cancel_op;  // run instead where the end is a stop; "": none
  // Errors of an enqueue operation that mean that there is nothing more.
  std::vector<Code> closed_codes = {Code::kOutOfRange};
};

}  // namespace tagflow::graph
