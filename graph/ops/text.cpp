// Regular expressions and hashes on tensors of strings.
#include "graph/op_registry.h"
#include "graph/ops/text_ops.h"
#include "graph/shape_context.h"

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
  registry.add(
      OpDefBuilder("RegexReplace")
          .inputs({"input: string", "pattern: string", "rewrite: string"})
          .output("output: string")
          .attr("replace_global: bool = true")
          .shape(regex_shape));
  registry.add(OpDefBuilder("StaticRegexReplace")
                   .input("input: string")
                   .output("output: string")
                   .attrs({"pattern: string", "rewrite: string",
                           "replace_global: bool = true"})
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("RegexFullMatch")
                   .inputs({"input: string", "pattern: string"})
                   .output("output: bool")
                   .shape(regex_shape));
  registry.add(OpDefBuilder("StaticRegexFullMatch")
                   .input("input: string")
                   .output("output: bool")
                   .attr("pattern: string")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("StringToHashBucketFast")
                   .input("input: string")
                   .output("output: int64")
                   .attr("num_buckets: int >= 1")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("StringToHashBucket")
                   .input("string_tensor: string")
                   .output("output: int64")
                   .attr("num_buckets: int >= 1")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("StringToHashBucketStrong")
                   .input("input: string")
                   .output("output: int64")
                   .attrs({"num_buckets: int >= 1", "key: list(int)"})
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("StringNGrams")
                   .inputs({"data: string", "data_splits: Tsplits"})
                   .outputs({"ngrams: string", "ngrams_splits: Tsplits"})
                   .attrs({"separator: string", "ngram_widths: list(int)",
                           "left_pad: string", "right_pad: string",
                           "pad_width: int", "preserve_short_sequences: bool",
                           "Tsplits: {int32, int64} = int64"})
                   .shape(ngrams_shape));
}

}  // namespace tagflow::graph
