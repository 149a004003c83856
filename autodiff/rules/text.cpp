// Strings.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_text_rules(RuleTable& table) {
  no_gradient(table,
              "AsString DecodeBase64 DecodeRaw EncodeBase64 ReduceJoin "
              "RegexFullMatch RegexReplace StaticRegexFullMatch "
              "StaticRegexReplace StringFormat StringJoin StringLength "
              "StringLower StringNGrams StringSplit StringSplitV2 StringStrip "
              "StringToHashBucket StringToHashBucketFast "
              "StringToHashBucketStrong StringToNumber StringUpper Substr",
              "it is about strings");
}

}  // namespace tagflow::autodiff
