// Files.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_file_rules(RuleTable& table) {
  no_gradient(
      table,
      "MatchingFiles MergeV2Checkpoints ReadFile Restore RestoreSlice "
      "RestoreV2 Save SaveSlices SaveV2 ShardedFilename ShardedFilespec "
      "WriteFile _HoldShard _ReadShards _WriteShard",
      "it is about files");
}

}  // namespace tagflow::autodiff
