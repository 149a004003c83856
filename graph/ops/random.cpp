// Random ops whose numbers differ in each run.
#include "graph/op_registry.h"
#include "graph/ops/file_use.h"
#include "graph/ops/random_ops.h"
#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

Status filled_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(0));
  c.set_output(0, std::move(shape));
  return {};
}

Status scalars_from(const ShapeContext& c, int first) {
  for (int i = first; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  return {};
}

Status multinomial_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape logits, c.with_rank(0, 2));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  const auto samples = constant_index(c, 1);
  if (samples && *samples < 0)
    return c.fail(
        fmt::format("num_samples must not be negative, is {}", *samples));
  c.set_output(0, {logits.dim(0), samples.value_or(PartialShape::kUnknown)});
  return {};
}

namespace {

Status uniform_int_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(scalars_from(c, 1));
  return filled_shape(c);
}

// Each parameter is a scalar, or a vector with one element per output row.
Status truncated_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(filled_shape(c));
  const PartialShape& shape = c.outputs()[0];
  if (shape.has_rank() && shape.rank() == 0)
    return c.fail("shape must have an element at least");
  for (int i = 1; i < c.num_inputs(); ++i) {
    const PartialShape& values = c.input(i);
    if (!values.has_rank() || values.rank() == 0) continue;
    TAGFLOW_ASSIGN(const PartialShape vector, c.with_rank(i, 1));
    if (shape.has_rank() && shape.dim_known(0) && vector.dim_known(0) &&
        vector.dim(0) != 1 && vector.dim(0) != shape.dim(0))
      return c.fail(fmt::format("input {} must be a scalar, or a vector of {}",
                                i, shape.dim(0)));
  }
  return {};
}

// For each element of input 1, the number of samples given by input 0.
Status samples_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(filled_shape(c));
  c.set_output(0, concatenate(c.outputs()[0], c.input(1)));
  return {};
}

OpDefBuilder random_op(const char* name) {
  OpDefBuilder builder(name);
  builder.stateful().attrs({"seed: int = 0", "seed2: int = 0"});
  return builder;
}

// Sampled candidate classes, and their expected counts.
Status candidates_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t count, c.attr<int64_t>("num_sampled"));
  TAGFLOW_ASSIGN(const int64_t per_row, c.attr<int64_t>("num_true"));
  TAGFLOW_ASSIGN(const PartialShape classes, c.with_rank(0, 2));
  c.set_output(0, {count});
  c.set_output(1, {classes.dim(0), per_row});
  c.set_output(2, {count});
  return {};
}

Status accidental_hits_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 2).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  for (int i = 0; i < 3; ++i) c.set_output(i, {PartialShape::kUnknown});
  return {};
}

// A sampler may read the weights of its classes from a file.
bool has_vocab_file(const AttrMap& attrs) {
  return may_say(attrs, "vocab_file",
                 [](std::string_view path) { return !path.empty(); });
}

void register_candidate_ops(OpRegistry& registry) {
  for (const char* name :
       {"UniformCandidateSampler", "LogUniformCandidateSampler",
        "AllCandidateSampler", "FixedUnigramCandidateSampler"}) {
    OpDefBuilder op = random_op(name);
    op.input("true_classes: int64")
        .outputs({"sampled_candidates: int64", "true_expected_count: float",
                  "sampled_expected_count: float"})
        .attrs({"num_true: int >= 1", "num_sampled: int >= 1", "unique: bool"});
    if (name != std::string_view("AllCandidateSampler"))
      op.attr("range_max: int >= 1");
    if (name == std::string_view("FixedUnigramCandidateSampler"))
      op.attrs({"vocab_file: string = ''", "distortion: float = 1.0",
                "num_reserved_ids: int = 0", "num_shards: int >= 1 = 1",
                "shard: int >= 0 = 0", "unigrams: list(float) = []"});
    registry.add(op.shape(candidates_shape), has_vocab_file);
  }
  registry.add(OpDefBuilder("ComputeAccidentalHits")
                   .inputs({"true_classes: int64", "sampled_candidates: int64"})
                   .outputs({"indices: int32", "ids: int64", "weights: float"})
                   .attrs({"num_true: int", "seed: int = 0", "seed2: int = 0"})
                   .shape(accidental_hits_shape));
}

}  // namespace

void register_random_ops(OpRegistry& registry) {
  register_random_stateless_ops(registry);
  register_candidate_ops(registry);
  for (const char* name :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"})
    registry.add(random_op(name)
                     .input("shape: T")
                     .output("output: dtype")
                     .attrs({"dtype: {half, bfloat16, float, double}",
                             "T: {int32, int64}"})
                     .shape(filled_shape));
  registry.add(random_op("RandomUniformInt")
                   .inputs({"shape: T", "minval: Tout", "maxval: Tout"})
                   .output("output: Tout")
                   .attrs({"Tout: {int32, int64}", "T: {int32, int64}"})
                   .shape(uniform_int_shape));
  registry.add(random_op("ParameterizedTruncatedNormal")
                   .inputs({"shape: T", "means: dtype", "stdevs: dtype",
                            "minvals: dtype", "maxvals: dtype"})
                   .output("output: dtype")
                   .attrs({"dtype: {half, bfloat16, float, double}",
                           "T: {int32, int64}"})
                   .shape(truncated_shape));
  // It has no seeds: each run of each session differs.
  registry.add(OpDefBuilder("NonDeterministicInts")
                   .stateful()
                   .input("shape: shape_dtype")
                   .output("output: dtype")
                   .attrs({"dtype: {int32, int64, uint32, uint64} = int64",
                           "shape_dtype: {int32, int64} = int64"})
                   .shape(filled_shape));
  registry.add(random_op("RandomGamma")
                   .inputs({"shape: S", "alpha: T"})
                   .output("output: T")
                   .attrs({"S: {int32, int64}", "T: {half, float, double}"})
                   .shape(samples_shape));
  registry.add(random_op("RandomPoisson")
                   .inputs({"shape: S", "rate: dtype"})
                   .output("output: dtype")
                   .attrs({"S: {int32, int64}", "dtype: {half, float, double}"})
                   .shape(samples_shape));
  registry.add(
      random_op("RandomPoissonV2")
          .inputs({"shape: S", "rate: R"})
          .output("output: dtype")
          .attrs({"S: {int32, int64}",
                  "R: {half, float, double, int32, int64} = double",
                  "dtype: {half, float, double, int32, int64} = int64"})
          .shape(samples_shape));
  registry.add(
      random_op("Multinomial")
          .inputs({"logits: T", "num_samples: int32"})
          .output("output: output_dtype")
          .attrs({"T: realnumbertype", "output_dtype: {int32, int64} = int64"})
          .shape(multinomial_shape));
  registry.add(random_op("RandomShuffle")
                   .input("value: T")
                   .output("output: T")
                   .attr("T: type")
                   .shape(unchanged_shape));
}

}  // namespace tagflow::graph
