// Readers of records.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_reader_rules(RuleTable& table) {
  no_gradient(
      table,
      "FixedLengthRecordReader FixedLengthRecordReaderV2 IdentityReader "
      "IdentityReaderV2 LMDBReader ReaderNumRecordsProduced "
      "ReaderNumRecordsProducedV2 "
      "ReaderNumWorkUnitsCompleted ReaderNumWorkUnitsCompletedV2 ReaderRead "
      "ReaderReadUpTo ReaderReadUpToV2 ReaderReadV2 ReaderReset ReaderResetV2 "
      "ReaderRestoreState ReaderRestoreStateV2 ReaderSerializeState "
      "ReaderSerializeStateV2 TFRecordReader TFRecordReaderV2 TextLineReader "
      "TextLineReaderV2 WholeFileReader WholeFileReaderV2",
      "it is about files");
}

}  // namespace tagflow::autodiff
