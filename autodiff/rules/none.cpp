// Ops without gradients, with the reason, and ops for which a gradient is an
// error. Each op of the table of ops is here, has a rule, or is control flow,
// which needs none.
#include <algorithm>

#include "autodiff/rule.h"
#include "autodiff/rules/rules.h"

namespace tagflow::autodiff {
namespace {

// Adds several ops, separated by spaces.
void no_gradient(RuleTable& table, std::string_view names,
                 std::string_view reason) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    table.add_none({names.substr(0, end)}, reason);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

void add_discrete(RuleTable& table) {
  no_gradient(table, "Ceil Floor Rint Round Bucketize",
              "its result is constant but for jumps");
  no_gradient(table,
              "ApproximateEqual Equal Greater GreaterEqual InTopK InTopKV2 "
              "IsFinite IsInf "
              "IsNan Less LessEqual NotEqual ToBool",
              "its result is true or false");
  no_gradient(table, "All Any LogicalAnd LogicalNot LogicalOr",
              "it is about true and false");
  no_gradient(
      table,
      "BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift PopulationCount "
      "RightShift",
      "it is about integers");
  no_gradient(table, "Bitcast", "it reinterprets the bits of a number");
  no_gradient(
      table,
      "ArgMax ArgMin ConcatOffset DataFormatDimMap DataFormatVecPermute "
      "HistogramFixedWidth InvertPermutation LowerBound UnravelIndex "
      "UpperBound Where _ForTripCount",
      "its results are indices or counts");
  no_gradient(table,
              "BroadcastArgs BroadcastGradientArgs Rank Shape ShapeN Size "
              "SparseReshape VariableShape",
              "its result depends on shapes alone");
  no_gradient(table, "Empty OnesLike ZerosLike", "its result is constant");
  no_gradient(table, "StopGradient", "it is there to stop gradients");
}

void add_sources(RuleTable& table) {
  no_gradient(
      table,
      "Abort Const ControlTrigger DeviceIndex FakeParam NoOp Placeholder "
      "PlaceholderV2 _Arg",
      "it has no inputs");
  no_gradient(table, "Assert PrintV2 _HostSend _Retval _Send",
              "it has no outputs");
  no_gradient(table, "_HostRecv _Recv", "what it gives comes from elsewhere");
}

void add_random(RuleTable& table) {
  no_gradient(
      table,
      "NonDeterministicInts RandomStandardNormal RandomUniform "
      "RandomUniformInt RngReadAndSkip RngSkip StatefulStandardNormalV2 "
      "StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt "
      "StatefulUniformInt StatelessRandomGetAlg "
      "StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg "
      "StatelessRandomNormal StatelessRandomNormalV2 "
      "StatelessRandomUniform StatelessRandomUniformFullInt "
      "StatelessRandomUniformFullIntV2 StatelessRandomUniformInt "
      "StatelessRandomUniformIntV2 StatelessRandomUniformV2 "
      "StatelessTruncatedNormal StatelessTruncatedNormalV2 "
      "TruncatedNormal",
      "what it draws depends on integers alone");
  no_gradient(
      table,
      "Multinomial RandomPoisson RandomPoissonV2 StatefulRandomBinomial "
      "StatelessMultinomial StatelessRandomBinomial "
      "StatelessRandomPoisson",
      "its samples are whole numbers");
  no_gradient(table,
              "AllCandidateSampler ComputeAccidentalHits "
              "FixedUnigramCandidateSampler LogUniformCandidateSampler "
              "UniformCandidateSampler",
              "what it draws depends on integers alone");
}

// Strings, and values that are kept outside the graph.
void add_outside(RuleTable& table) {
  no_gradient(table,
              "AsString DecodeBase64 DecodeRaw EncodeBase64 MergeSummary "
              "ReduceJoin RegexFullMatch RegexReplace ScalarSummary "
              "StaticRegexFullMatch StaticRegexReplace StringFormat StringJoin "
              "StringLength StringLower StringNGrams StringSplit StringSplitV2 "
              "StringStrip StringToHashBucket StringToHashBucketFast "
              "StringToHashBucketStrong StringToNumber StringUpper Substr",
              "it is about strings");
  no_gradient(
      table,
      "MatchingFiles MergeV2Checkpoints ReadFile Restore RestoreSlice "
      "RestoreV2 Save SaveSlices SaveV2 ShardedFilename ShardedFilespec "
      "WriteFile",
      "it is about files");
  no_gradient(
      table,
      "AnonymousHashTable AnonymousMutableDenseHashTable "
      "AnonymousMutableHashTable AnonymousMutableHashTableOfTensors "
      "HashTable HashTableV2 InitializeTable InitializeTableFromTextFile "
      "InitializeTableFromTextFileV2 InitializeTableV2 LookupTableExport "
      "LookupTableExportV2 LookupTableFind LookupTableFindV2 "
      "LookupTableImport LookupTableImportV2 LookupTableInsert "
      "LookupTableInsertV2 LookupTableRemoveV2 LookupTableSize "
      "LookupTableSizeV2 MutableDenseHashTable MutableDenseHashTableV2 "
      "MutableHashTable MutableHashTableOfTensors "
      "MutableHashTableOfTensorsV2 MutableHashTableV2",
      "a table may have got its values in any step");
  no_gradient(
      table,
      "FIFOQueue FIFOQueueV2 FakeQueue PaddingFIFOQueue "
      "PaddingFIFOQueueV2 PriorityQueue PriorityQueueV2 QueueClose "
      "QueueCloseV2 QueueDequeue QueueDequeueMany QueueDequeueManyV2 "
      "QueueDequeueUpTo QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueue "
      "QueueEnqueueMany QueueEnqueueManyV2 QueueEnqueueV2 QueueIsClosed "
      "QueueIsClosedV2 QueueSize QueueSizeV2 RandomShuffleQueue "
      "RandomShuffleQueueV2 Barrier BarrierClose BarrierIncompleteSize "
      "BarrierInsertMany BarrierReadySize BarrierTakeMany",
      "a queue may have got its elements in any step");
  no_gradient(table,
              "MapClear MapIncompleteSize MapPeek MapSize MapStage MapUnstage "
              "MapUnstageNoKey OrderedMapClear OrderedMapIncompleteSize "
              "OrderedMapPeek OrderedMapSize OrderedMapStage OrderedMapUnstage "
              "OrderedMapUnstageNoKey Stage StageClear StagePeek StageSize "
              "Unstage DeleteSessionTensor GetSessionHandle GetSessionHandleV2 "
              "GetSessionTensor",
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

// Each read of a variable counts with the value that it saw: assigned values
// are constants.
void add_updates(RuleTable& table) {
  no_gradient(table,
              "IsVariableInitialized VarIsInitializedOp TemporaryVariable "
              "VarHandleOp Variable VariableV2 _VarHandlesOp",
              "it is a variable, or says whether there is one");
  no_gradient(
      table,
      "Assign AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp "
      "AssignVariableOp CountUpTo DestroyResourceOp DisableCopyOnRead "
      "ResourceCountUpTo ResourceScatterAdd ResourceScatterDiv "
      "ResourceScatterMax ResourceScatterMin ResourceScatterMul "
      "ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin "
      "ResourceScatterNdSub ResourceScatterNdUpdate ResourceScatterSub "
      "ResourceScatterUpdate ResourceStridedSliceAssign ScatterAdd "
      "ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd "
      "ScatterNdMax ScatterNdMin ScatterNdSub ScatterNdUpdate ScatterSub "
      "ScatterUpdate StridedSliceAssign",
      "it changes a variable");
}

// Updates of variables in training.
void add_training(RuleTable& table) {
  no_gradient(
      table,
      "ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA "
      "ApplyAdagradV2 ApplyAdam ApplyAddSign ApplyCenteredRMSProp "
      "ApplyFtrl ApplyFtrlV2 ApplyGradientDescent ApplyMomentum "
      "ApplyPowerSign ApplyProximalAdagrad ApplyProximalGradientDescent "
      "ApplyRMSProp ResourceApplyAdaMax ResourceApplyAdadelta "
      "ResourceApplyAdagrad ResourceApplyAdagradDA ResourceApplyAdagradV2 "
      "ResourceApplyAdam ResourceApplyAdamWithAmsgrad "
      "ResourceApplyAddSign ResourceApplyCenteredRMSProp "
      "ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent "
      "ResourceApplyKerasMomentum ResourceApplyMomentum "
      "ResourceApplyPowerSign ResourceApplyProximalAdagrad "
      "ResourceApplyProximalGradientDescent ResourceApplyRMSProp "
      "ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad "
      "ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2 "
      "ResourceSparseApplyAdam ResourceSparseApplyCenteredRMSProp "
      "ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2 "
      "ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum "
      "ResourceSparseApplyProximalAdagrad "
      "ResourceSparseApplyProximalGradientDescent "
      "ResourceSparseApplyRMSProp SparseApplyAdadelta SparseApplyAdagrad "
      "SparseApplyAdagradDA SparseApplyAdagradV2 SparseApplyAdam "
      "SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2 "
      "SparseApplyMomentum SparseApplyProximalAdagrad "
      "SparseApplyProximalGradientDescent SparseApplyRMSProp",
      "it changes a variable");
}

// --- Ops that end in an error -----------------------------------------------

// Ops that passes make when a graph runs.
void fused_rule(RuleContext& r) {
  r.fail(
      "it is in a graph that was compiled to run; differentiate the "
      "original graph");
}

}  // namespace

void add_constant_rules(RuleTable& table) {
  add_discrete(table);
  add_sources(table);
  add_random(table);
  add_outside(table);
  add_updates(table);
  add_training(table);
  table.add({"_FusedBatchMatMulV2", "_FusedConv2D",
             "_FusedDepthwiseConv2dNative", "_FusedElementwise", "_FusedMatMul",
             "_PackWeights", "_PackedMatMul", "_ProductSum", "_ProductSumAdd",
             "_ProductSumValue", "_ReadVariablesAhead", "_CheckReadAhead"},
            fused_rule);
}

}  // namespace tagflow::autodiff
