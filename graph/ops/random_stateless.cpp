// Random ops that are functions of their inputs: a seed, a key and a counter,
// or a variable that contains them.
#include "graph/op_registry.h"
#include "graph/ops/random_ops.h"

namespace tagflow::graph {

namespace {

// Checks that the input is a vector of `size`.
Status vector_of(const ShapeContext& c, int input, int64_t size) {
  TAGFLOW_ASSIGN(const PartialShape shape, c.with_rank(input, 1));
  if (shape.dim_known(0) && shape.dim(0) != size)
    return c.fail(fmt::format("input {} must be of shape [{}], not {}", input,
                              size, shape.to_string()));
  return {};
}

Status seeded_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(vector_of(c, 1, 2));
  return filled_shape(c);
}

Status seeded_int_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(scalars_from(c, 2));
  return seeded_shape(c);
}

Status seeded_multinomial_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(vector_of(c, 2, 2));
  return multinomial_shape(c);
}

// Inputs 1 to 3: a key, a counter, an algorithm.
Status check_key(const ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(vector_of(c, 1, 1));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  return c.with_rank(3, 0).status();
}

Status keyed_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_key(c));
  return filled_shape(c);
}

Status keyed_int_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(scalars_from(c, 4));
  return keyed_shape(c);
}

Status keyed_shuffle_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(check_key(c));
  return unchanged_shape(c);
}

Status key_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(vector_of(c, 0, 2));
  c.set_output(0, {1});
  c.set_output(1, {2});
  if (c.num_outputs() == 3) c.set_output(2, PartialShape::scalar());
  return {};
}

// Input 0: the generator's state; 1: an algorithm; 2: the shape.
Status generator_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 1).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(2));
  c.set_output(0, std::move(shape));
  return {};
}

Status generator_int_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(scalars_from(c, 3));
  return generator_shape(c);
}

OpDefBuilder seeded_op(const char* name, const char* shape_attr) {
  OpDefBuilder builder(name);
  builder.inputs({"shape: T", "seed: Tseed"}).output("output: dtype");
  builder.attrs({shape_attr, "Tseed: {int32, int64} = int64"});
  return builder;
}

OpDefBuilder keyed_op(const char* name) {
  OpDefBuilder builder(name);
  builder.inputs({"shape: Tshape", "key: uint64", "counter: uint64"});
  builder.input("alg: int32").output("output: dtype");
  builder.attr("Tshape: {int32, int64} = int32");
  return builder;
}

void register_seeded_ops(OpRegistry& registry) {
  for (const char* name : {"StatelessRandomUniform", "StatelessRandomNormal",
                           "StatelessTruncatedNormal"})
    registry.add(seeded_op(name, "T: {int32, int64} = int32")
                     .attr("dtype: {half, bfloat16, float, double} = float")
                     .shape(seeded_shape));
  registry.add(seeded_op("StatelessRandomUniformInt", "T: {int32, int64}")
                   .inputs({"minval: dtype", "maxval: dtype"})
                   .attr("dtype: {int32, int64}")
                   .shape(seeded_int_shape));
  registry.add(
      seeded_op("StatelessRandomUniformFullInt", "T: {int32, int64} = int32")
          .attr("dtype: {int32, int64, uint32, uint64} = uint64")
          .shape(seeded_shape));
  registry.add(seeded_op("StatelessRandomGammaV2", "T: {int32, int64}")
                   .input("alpha: dtype")
                   .attr("dtype: {half, float, double}")
                   .shape(seeded_shape));
  registry.add(seeded_op("StatelessRandomPoisson", "T: {int32, int64}")
                   .input("lam: Rtype")
                   .attrs({"Rtype: {half, float, double, int32, int64}",
                           "dtype: {half, float, double, int32, int64}"})
                   .shape(seeded_shape));
  registry.add(
      OpDefBuilder("StatelessRandomBinomial")
          .inputs({"shape: S", "seed: Tseed", "counts: T", "probs: T"})
          .output("output: dtype")
          .attrs({"S: {int32, int64}", "Tseed: {int32, int64} = int64",
                  "T: {half, float, double, int32, int64} = double",
                  "dtype: {half, float, double, int32, int64} = int64"})
          .shape(seeded_shape));
  registry.add(
      OpDefBuilder("StatelessParameterizedTruncatedNormal")
          .inputs({"shape: S", "seed: Tseed"})
          .output("output: dtype")
          .attrs({"S: {int32, int64}", "Tseed: {int32, int64} = int64"})
          .inputs({"means: dtype", "stddevs: dtype", "minvals: dtype",
                   "maxvals: dtype"})
          .attr("dtype: {half, float, double}")
          .shape(seeded_shape));
  registry.add(OpDefBuilder("StatelessMultinomial")
                   .inputs({"logits: T", "num_samples: int32", "seed: Tseed"})
                   .output("output: output_dtype")
                   .attrs({"T: realnumbertype", "Tseed: {int32, int64} = int64",
                           "output_dtype: {int32, int64} = int64"})
                   .shape(seeded_multinomial_shape));
}

void register_keyed_ops(OpRegistry& registry) {
  for (const char* name :
       {"StatelessRandomUniformV2", "StatelessRandomNormalV2",
        "StatelessTruncatedNormalV2"})
    registry.add(keyed_op(name)
                     .attr("dtype: {half, bfloat16, float, double} = float")
                     .shape(keyed_shape));
  registry.add(keyed_op("StatelessRandomUniformIntV2")
                   .inputs({"minval: dtype", "maxval: dtype"})
                   .attr("dtype: {int32, int64, uint32, uint64}")
                   .shape(keyed_int_shape));
  registry.add(keyed_op("StatelessRandomUniformFullIntV2")
                   .attr("dtype: {int32, int64, uint32, uint64} = uint64")
                   .shape(keyed_shape));
  registry.add(OpDefBuilder("StatelessRandomGammaV3")
                   .inputs({"shape: shape_dtype", "key: uint64",
                            "counter: uint64", "alg: int32", "alpha: dtype"})
                   .output("output: dtype")
                   .attrs({"dtype: {half, float, double}",
                           "shape_dtype: {int32, int64} = int32"})
                   .shape(keyed_shape));
  registry.add(
      OpDefBuilder("StatelessShuffle")
          .inputs({"value: T", "key: uint64", "counter: uint64", "alg: int32"})
          .output("output: T")
          .attr("T: type")
          .shape(keyed_shuffle_shape));
}

OpDefBuilder generator_op(const char* name) {
  OpDefBuilder builder(name);
  builder.stateful().inputs({"resource: resource", "algorithm: int64"});
  builder.input("shape: shape_dtype").output("output: dtype");
  builder.attr("shape_dtype: {int32, int64} = int64");
  return builder;
}

void register_generator_ops(OpRegistry& registry) {
  for (const char* name : {"StatefulUniform", "StatefulStandardNormalV2",
                           "StatefulTruncatedNormal"})
    registry.add(generator_op(name)
                     .attr("dtype: {half, bfloat16, float, double} = float")
                     .shape(generator_shape));
  registry.add(generator_op("StatefulUniformInt")
                   .inputs({"minval: dtype", "maxval: dtype"})
                   .attr("dtype: {int32, int64} = int64")
                   .shape(generator_int_shape));
  registry.add(generator_op("StatefulUniformFullInt")
                   .attr("dtype: {int32, int64, uint32, uint64} = uint64")
                   .shape(generator_shape));
  registry.add(
      OpDefBuilder("StatefulRandomBinomial")
          .stateful()
          .inputs({"resource: resource", "algorithm: int64", "shape: S",
                   "counts: T", "probs: T"})
          .output("output: dtype")
          .attrs({"S: {int32, int64}",
                  "T: {half, float, double, int32, int64} = double",
                  "dtype: {half, float, double, int32, int64} = int64"})
          .shape(generator_shape));
  registry.add(
      OpDefBuilder("RngSkip")
          .inputs({"resource: resource", "algorithm: int64", "delta: int64"})
          .stateful()
          .shape(no_output_shape));
  registry.add(
      OpDefBuilder("RngReadAndSkip")
          .inputs({"resource: resource", "alg: int32", "delta: uint64"})
          .output("value: int64")
          .stateful()
          .shape([](ShapeContext& c) {
            c.set_output(0, PartialShape({3}));
            return Status();
          }));
}

void register_key_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("StatelessRandomGetKeyCounter")
                   .input("seed: Tseed")
                   .outputs({"key: uint64", "counter: uint64"})
                   .attr("Tseed: {int32, int64} = int64")
                   .shape(key_shape));
  registry.add(OpDefBuilder("StatelessRandomGetKeyCounterAlg")
                   .input("seed: Tseed")
                   .outputs({"key: uint64", "counter: uint64", "alg: int32"})
                   .attr("Tseed: {int32, int64} = int64")
                   .shape(key_shape));
  // Stateful in TensorFlow, since it depends on the device; constant here.
  registry.add(OpDefBuilder("StatelessRandomGetAlg")
                   .output("alg: int32")
                   .shape(scalar_shape));
}

}  // namespace

void register_random_stateless_ops(OpRegistry& registry) {
  register_seeded_ops(registry);
  register_keyed_ops(registry);
  register_generator_ops(registry);
  register_key_ops(registry);
}

}  // namespace tagflow::graph
