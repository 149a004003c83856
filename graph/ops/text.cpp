// Regular expressions and hashes on tensors of strings.
#include "graph/ops/array_ops.h"
#include "graph/ops/ops.h"
#include "graph/ops/text_ops.h"

namespace tagflow::graph {

namespace {

// Everything but the strings is a scalar.
Status regex_shape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return unchanged_shape(c);
}

Status ngrams_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_ASSIGN(PartialShape splits, c.with_rank(1, 1));
  c.set_output(0, {PartialShape::kUnknown});
  c.set_output(1, std::move(splits));
  return {};
}

}  // namespace

void register_text_ops(OpRegistry& registry) {
  register_text_string_ops(registry);
  define(registry, "RegexReplace",
         {"input: string", "pattern: string", "rewrite: string"},
         {"output: string"}, {"replace_global: bool = true"}, regex_shape);
  define(registry, "StaticRegexReplace", {"input: string"}, {"output: string"},
         {"pattern: string", "rewrite: string", "replace_global: bool = true"},
         unchanged_shape);
  define(registry, "RegexFullMatch", {"input: string", "pattern: string"},
         {"output: bool"}, {}, regex_shape);
  define(registry, "StaticRegexFullMatch", {"input: string"}, {"output: bool"},
         {"pattern: string"}, unchanged_shape);
  define(registry, "StringToHashBucketFast", {"input: string"},
         {"output: int64"}, {"num_buckets: int >= 1"}, unchanged_shape);
  define(registry, "StringToHashBucket", {"string_tensor: string"},
         {"output: int64"}, {"num_buckets: int >= 1"}, unchanged_shape);
  define(registry, "StringToHashBucketStrong", {"input: string"},
         {"output: int64"}, {"num_buckets: int >= 1", "key: list(int)"},
         unchanged_shape);
  define(registry, "StringNGrams", {"data: string", "data_splits: Tsplits"},
         {"ngrams: string", "ngrams_splits: Tsplits"},
         {"separator: string", "ngram_widths: list(int)", "left_pad: string",
          "right_pad: string", "pad_width: int",
          "preserve_short_sequences: bool", "Tsplits: {int32, int64} = int64"},
         ngrams_shape);
}

}  // namespace tagflow::graph
