#include "devices/state/state_kind.h"

#include <algorithm>
#include <utility>

#include "devices/state/accumulator.h"
#include "devices/state/barrier.h"
#include "devices/state/queue.h"
#include "devices/state/staging_area.h"
#include "devices/state/table.h"
#include "devices/state/variable.h"

namespace tagflow::devices {
namespace {

// By op, without the suffixes of its versions.
constexpr std::pair<std::string_view, std::string_view> kKindsOfOps[] = {
    {"VarHandleOp", Variable::kKind},
    {"Variable", Variable::kReferenceKind},
    {"FIFOQueue", Queue::kKind},
    {"PaddingFIFOQueue", Queue::kKind},
    {"RandomShuffleQueue", Queue::kKind},
    {"PriorityQueue", Queue::kKind},
    {"Barrier", Barrier::kKind},
    {"HashTable", Table::kKind},
    {"MutableHashTable", Table::kKind},
    {"MutableHashTableOfTensors", Table::kKind},
    {"MutableDenseHashTable", Table::kKind},
    {"ConditionalAccumulator", ConditionalAccumulator::kKind},
    {"SparseConditionalAccumulator", ConditionalAccumulator::kKind},
    {"ResourceConditionalAccumulator", ConditionalAccumulator::kKind},
    {"Mutex", kMutexKind},
    {"SummaryWriter", kSummaryWriterKind},
    {"WholeFileReader", kReaderKind},
    {"TextLineReader", kReaderKind},
    {"FixedLengthRecordReader", kReaderKind},
    {"TFRecordReader", kReaderKind},
    {"IdentityReader", kReaderKind},
    {"LMDBReader", kReaderKind},
    {"Stage", StagingList::kKind},
    {"Unstage", StagingList::kKind},
    {"StagePeek", StagingList::kKind},
    {"StageSize", StagingList::kKind},
    {"StageClear", StagingList::kKind},
    {"MapStage", StagingMap::kKind},
    {"MapPeek", StagingMap::kKind},
    {"MapUnstage", StagingMap::kKind},
    {"MapUnstageNoKey", StagingMap::kKind},
    {"MapSize", StagingMap::kKind},
    {"MapIncompleteSize", StagingMap::kKind},
    {"MapClear", StagingMap::kKind},
    {"AddSparseToTensorsMap", kSparseTensorsMapKind},
    {"AddManySparseToTensorsMap", kSparseTensorsMapKind},
    {"TakeManySparseFromTensorsMap", kSparseTensorsMapKind},
    {"Iterator", kIteratorKind},
    {"OneShotIterator", kIteratorKind},
    {"RecordInput", kIteratorKind},
};

}  // namespace

std::string_view kind_of(std::string_view op) {
  std::string_view name = op;
  for (const std::string_view start : {"Anonymous", "Ordered"})
    if (name.starts_with(start)) name.remove_prefix(start.size());
  if (name.ends_with("V2")) name.remove_suffix(2);
  const auto* it = std::ranges::find(
      kKindsOfOps, name, [](const auto& entry) { return entry.first; });
  return it == std::end(kKindsOfOps) ? op : it->second;
}

bool makes_variable(std::string_view op) {
  const std::string_view kind = kind_of(op);
  return kind == Variable::kKind || kind == Variable::kReferenceKind;
}

}  // namespace tagflow::devices
