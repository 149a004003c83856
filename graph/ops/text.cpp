// Regular expressions and hashes on tensors of strings.
#include "graph/ops/array_ops.h"
#include "graph/ops/ops.h"

namespace tagflow::graph {

namespace {

// What goes with every string is a scalar.
Status regex_shape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return unchanged_shape(c);
}

}  // namespace

void register_text_ops(OpRegistry& registry) {
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
}

}  // namespace tagflow::graph
