// Datasets and iterators.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_dataset_rules(RuleTable& table) {
  no_gradient(
      table,
      "TensorDataset TensorSliceDataset RangeDataset BatchDataset "
      "BatchDatasetV2 ParallelBatchDataset PaddedBatchDataset "
      "PaddedBatchDatasetV2 UnbatchDataset WindowDataset TakeDataset "
      "SkipDataset RepeatDataset ConcatenateDataset ZipDataset "
      "PrefetchDataset CacheDataset CacheDatasetV2 ShuffleDataset "
      "ShuffleDatasetV2 ShuffleDatasetV3 ShuffleAndRepeatDataset "
      "ShuffleAndRepeatDatasetV2 MapDataset ParallelMapDataset "
      "ParallelMapDatasetV2 MapAndBatchDataset FilterDataset "
      "TakeWhileDataset FlatMapDataset InterleaveDataset "
      "ParallelInterleaveDataset ParallelInterleaveDatasetV2 "
      "ParallelInterleaveDatasetV3 ExperimentalParallelInterleaveDataset "
      "LegacyParallelInterleaveDatasetV2 ExperimentalParseExampleDataset "
      "ParallelInterleaveDatasetV4 ScanDataset ParseExampleDataset "
      "ParseExampleDatasetV2 OptionsDataset ModelDataset "
      "RewriteDataset ShardDataset UniqueDataset DirectedInterleaveDataset "
      "GroupByWindowDataset ParallelFilterDataset AssertCardinalityDataset "
      "IgnoreErrorsDataset RandomDataset RandomDatasetV2 "
      "SparseTensorSliceDataset ExperimentalUniqueDataset "
      "ExperimentalDirectedInterleaveDataset ExperimentalGroupByWindowDataset "
      "ExperimentalIgnoreErrorsDataset ExperimentalRandomDataset "
      "ExperimentalMapAndBatchDataset ExperimentalUnbatchDataset "
      "ExperimentalTakeWhileDataset ExperimentalScanDataset "
      "ExperimentalAssertNextDataset ExperimentalPrivateThreadPoolDataset "
      "ExperimentalMaxIntraOpParallelismDataset "
      "ExperimentalNonSerializableDataset ExperimentalDatasetCardinality "
      "OptimizeDataset OptimizeDatasetV2 FinalizeDataset AssertNextDataset "
      "PrivateThreadPoolDataset MaxIntraOpParallelismDataset "
      "NonSerializableDataset TFRecordDataset TFRecordDatasetV2 "
      "TextLineDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2 "
      "Iterator IteratorV2 OneShotIterator "
      "AnonymousIterator AnonymousIteratorV2 AnonymousIteratorV3 "
      "MakeIterator IteratorGetNext IteratorGetNextSync "
      "IteratorGetNextAsOptional IteratorToStringHandle "
      "IteratorFromStringHandle IteratorFromStringHandleV2 DeleteIterator "
      "SerializeIterator DeserializeIterator RecordInput "
      "DummyMemoryCache AnonymousMemoryCache DeleteMemoryCache "
      "DummySeedGenerator AnonymousSeedGenerator "
      "AnonymousRandomSeedGenerator DeleteSeedGenerator "
      "DeleteRandomSeedGenerator ReduceDataset DatasetToSingleElement "
      "DatasetCardinality",
      "the elements of a dataset may have been computed in any step");
}

}  // namespace tagflow::autodiff
