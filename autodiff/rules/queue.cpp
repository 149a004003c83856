// Queues.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_queue_rules(RuleTable& table) {
  no_gradient(
      table,
      "FIFOQueue FIFOQueueV2 FakeQueue PaddingFIFOQueue "
      "PaddingFIFOQueueV2 PriorityQueue PriorityQueueV2 QueueClose "
      "QueueCloseV2 QueueDequeue QueueDequeueMany QueueDequeueManyV2 "
      "QueueDequeueUpTo QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueue "
      "QueueEnqueueMany QueueEnqueueManyV2 QueueEnqueueV2 QueueIsClosed "
      "QueueIsClosedV2 QueueSize QueueSizeV2 RandomShuffleQueue "
      "RandomShuffleQueueV2",
      "a queue may have got its elements in any step");
}

}  // namespace tagflow::autodiff
