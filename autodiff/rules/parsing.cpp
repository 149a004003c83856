// Values in strings of bytes.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_parsing_rules(RuleTable& table) {
  no_gradient(table,
              "DecodeCSV DecodeCompressed DecodeJSONExample DecodePaddedRaw "
              "DecodeProtoV2 EncodeProto ParseExample ParseExampleV2 "
              "ParseSequenceExample "
              "ParseSequenceExampleV2 ParseSingleExample "
              "ParseSingleSequenceExample ParseTensor SerializeTensor",
              "it is about strings");
}

}  // namespace tagflow::autodiff
