// Accumulators, barriers, staging areas and mutexes.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_coordination_rules(RuleTable& table) {
  no_gradient(table,
              "Barrier BarrierClose BarrierIncompleteSize BarrierInsertMany "
              "BarrierReadySize BarrierTakeMany",
              "a queue may have got its elements in any step");
  no_gradient(table,
              "MapClear MapIncompleteSize MapPeek MapSize MapStage MapUnstage "
              "MapUnstageNoKey OrderedMapClear OrderedMapIncompleteSize "
              "OrderedMapPeek OrderedMapSize OrderedMapStage OrderedMapUnstage "
              "OrderedMapUnstageNoKey Stage StageClear StagePeek StageSize "
              "Unstage",
              "what is kept may have come in any step");
  no_gradient(
      table,
      "AccumulatorApplyGradient AccumulatorNumAccumulated "
      "AccumulatorSetGlobalStep AccumulatorTakeGradient "
      "ConditionalAccumulator ResourceAccumulatorApplyGradient "
      "ResourceAccumulatorNumAccumulated ResourceAccumulatorSetGlobalStep "
      "ResourceAccumulatorTakeGradient ResourceConditionalAccumulator "
      "SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient "
      "SparseConditionalAccumulator",
      "an accumulator may have got its gradients in any step");
  no_gradient(table, "ConsumeMutexLock MutexLock MutexV2",
              "it only orders runs");
}

}  // namespace tagflow::autodiff
