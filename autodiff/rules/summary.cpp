// Summaries.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_summary_rules(RuleTable& table) {
  no_gradient(table,
              "AudioSummary AudioSummaryV2 HistogramSummary ImageSummary "
              "MergeSummary ScalarSummary TensorSummary TensorSummaryV2",
              "it is about strings");
  no_gradient(table,
              "CloseSummaryWriter CreateSummaryFileWriter FlushSummaryWriter "
              "ImportEvent SummaryWriter WriteAudioSummary WriteGraphSummary "
              "WriteHistogramSummary WriteImageSummary WriteRawProtoSummary "
              "WriteScalarSummary WriteSummary",
              "it is about files");
}

}  // namespace tagflow::autodiff
