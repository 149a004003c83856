// Cases that the recorded values of state/recorded_test.cpp lack: errors, NaN,
// large variables, and optimizers that TensorFlow does not have.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/devices/state_fixture.h"

namespace tagflow::devices {

namespace {

Tensor real(float value) { return Tensor::scalar<float>(value); }

Tensor row(std::vector<float> values) {
  const auto size = int64_t(values.size());
  return Tensor::of<float>({size}, values);
}

// Of ApplyMomentum: var, accum, lr, grad, momentum.
std::vector<Tensor> momentum(const Tensor& var, const Tensor& accum,
                             const Tensor& grad) {
  return {var, accum, real(0.5), grad, real(0.25)};
}

std::vector<Tensor> sparse_momentum(const Tensor& var, const Tensor& accum,
                                    const Tensor& grad, const Tensor& indices) {
  return {var, accum, real(0.5), grad, indices, real(0.25)};
}

}  // namespace

TEST_CASE("a step names the variable or slot that has no value") {
  const Tensor var = make_variable("var", row({1, 2}));
  const Tensor empty = make_variable("slot", DataType::kFloat, {});
  const Tensor grad = row({1, 1});
  for (const char* op : {"ApplyMomentum", "ResourceApplyMomentum"}) {
    expect_error(run_on_state(op, momentum(var, empty, grad)),
                 Code::kFailedPrecondition, "variable \"slot\"");
    expect_error(run_on_state(op, momentum(empty, var, grad)),
                 Code::kFailedPrecondition, "is not initialized");
  }
  expect_close(value_of(var), row({1, 2}));
}

TEST_CASE("a training step refuses slots of another shape or type") {
  const Tensor var = make_variable("var", row({1, 2}));
  const Tensor accum = make_variable("accum", row({0, 0}));
  const Tensor longer = make_variable("longer", row({1, 2, 3}));
  const char* op = "ApplyMomentum";
  expect_error(run_on_state(op, momentum(var, longer, row({1, 1}))),
               Code::kInvalidArgument,
               "accum: variable \"longer\" of float[3], whose value is of "
               "shape [3], does not fit variable \"var\" of float[2], whose "
               "value is of shape [2]");
  expect_error(run_on_state(op, momentum(var, accum, row({1, 1, 1}))),
               Code::kInvalidArgument,
               "the gradient float[3] does not fit variable \"var\"");
  std::vector<Tensor> inputs = momentum(var, accum, row({1, 1}));
  inputs[2] = row({0.5});
  expect_error(run_on_state(op, inputs), Code::kInvalidArgument,
               "lr must be a scalar, got float[1]");
  const Tensor doubles =
      make_variable("doubles", Tensor::vector<double>({1, 2}));
  expect_error(run_on_state("ResourceApplyMomentum",
                            momentum(var, doubles, row({1, 1}))),
               Code::kInvalidArgument,
               "variable \"doubles\" of double[2] is used as one of float");
  expect_close(value_of(var), row({1, 2}));
}

TEST_CASE("a training step refuses a variable as its own slot") {
  const Tensor var = make_variable("var", row({1, 2}));
  for (const char* op : {"ApplyMomentum", "ResourceApplyMomentum"})
    expect_error(run_on_state(op, momentum(var, var, row({1, 1}))),
                 Code::kInvalidArgument,
                 "var and accum are both variable \"var\" of float[2]");
  expect_close(value_of(var), row({1, 2}));
}

TEST_CASE("a sparse step names what does not fit, and writes nothing") {
  const Tensor table = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor var = make_variable("var", table);
  const Tensor accum = make_variable("accum", table);
  const Tensor grad = Tensor::of<float>({2, 2}, {1, 1, 1, 1});
  for (const char* op :
       {"SparseApplyMomentum", "ResourceSparseApplyMomentum"}) {
    const auto with = [&](const Tensor& gradient, const Tensor& indices) {
      return run_on_state(op, sparse_momentum(var, accum, gradient, indices));
    };
    expect_error(with(grad, Tensor::vector<int32_t>({0, 2})),
                 Code::kInvalidArgument, "indices[1] = 2 is outside [0, 2)");
    expect_error(with(grad, Tensor::vector<int64_t>({-1, 0})),
                 Code::kInvalidArgument, "indices[0] = -1 is outside [0, 2)");
    expect_error(with(grad, Tensor::of<int32_t>({2, 1}, {0, 1})),
                 Code::kInvalidArgument,
                 "indices must be a vector, got int32[2,1]");
    expect_error(with(grad, Tensor::vector<int32_t>({0})),
                 Code::kInvalidArgument,
                 "the gradient float[2,2] should be [1,2] for indices int32[1] "
                 "into variable \"var\"");
    expect_error(with(row({1, 1}), Tensor::vector<int32_t>({0, 1})),
                 Code::kInvalidArgument, "the gradient float[2] should be");
  }
  const Tensor scalar = make_variable("s", real(1));
  expect_error(
      run_on_state("SparseApplyMomentum",
                   sparse_momentum(scalar, make_variable("slot", real(1)),
                                   row({1}), Tensor::vector<int32_t>({0}))),
      Code::kInvalidArgument,
      "variable \"s\" of float[] is a scalar, which has no rows");
  expect_close(value_of(var), table);
  expect_close(value_of(accum), table);
}

TEST_CASE("a dense step works in place unless somebody has the value") {
  std::vector<float> zeros(1000, 0.0f), ones(1000, 1.0f);
  const Tensor var = make_variable("var", row(zeros));
  const Tensor accum = make_variable("accum", row(zeros));
  const void* buffer = value_of(var).raw();
  must_run_on_state("ApplyMomentum", momentum(var, accum, row(ones)));
  CHECK(value_of(var).raw() == buffer);
  {
    const Tensor read = value_of(var);
    must_run_on_state("ApplyMomentum", momentum(var, accum, row(ones)));
    CHECK(value_of(var).raw() != buffer);
    CHECK(read.data<float>()[999] == -0.5f);
  }
  CHECK(value_of(var).data<float>()[999] == -1.125f);
}

TEST_CASE("a sparse step leaves the buffers where they are") {
  const Tensor table = Tensor::of<float>({64, 8}, std::vector<float>(512, 1));
  const Tensor var = make_variable("var", table);
  const Tensor accum = make_variable("accum", table);
  const auto step = [&] {
    must_run_on_state(
        "ResourceSparseApplyMomentum",
        sparse_momentum(var, accum,
                        Tensor::of<float>({1, 8}, std::vector<float>(8, 1)),
                        Tensor::vector<int32_t>({5})));
  };
  step();
  const void* buffers[] = {value_of(var).raw(), value_of(accum).raw()};
  const Tensor read =
      must_run_on_state("ReadVariableOp", {var}, {{"dtype", DataType::kFloat}});
  step();
  CHECK(value_of(var).raw() == buffers[0]);
  CHECK(value_of(accum).raw() == buffers[1]);
  CHECK(read.data<float>()[40] == 0.375f);
  CHECK(read.data<float>()[0] == 1);
}

TEST_CASE("a training step takes a gradient that is NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor var = make_variable("var", row({1, 2}));
  must_run_on_state("ApplyGradientDescent", {var, real(0.5), row({nan, 2})});
  expect_close(value_of(var), row({nan, 1}));
}

TEST_CASE("an empty variable is trained") {
  const Tensor none = Tensor::of<float>({0, 2}, {});
  const Tensor var = make_variable("var", none);
  must_run_on_state("ApplyGradientDescent", {var, real(1), none});
  must_run_on_state("SparseApplyMomentum",
                    sparse_momentum(var, make_variable("slot", none), none,
                                    Tensor::of<int32_t>({0}, {})));
}

TEST_CASE("sparse Adam does to rows what Adam does to all") {
  const std::vector<Tensor> scalars{real(0.75f), real(0.875f), real(0.1f),
                                    real(0.75f), real(0.875f), real(0.01f)};
  for (const bool nesterov : {false, true}) {
    const auto states = [] {
      return std::vector<Tensor>{
          make_variable("var", Tensor::of<float>({2, 2}, {1, 2, 3, 4})),
          make_variable("m", Tensor::of<float>({2, 2}, {.5, 0, -.5, 1})),
          make_variable("v", Tensor::of<float>({2, 2}, {.5, .25, 1, 2}))};
    };
    const AttrMap attrs{{"use_nesterov", nesterov}};
    std::vector<Tensor> dense = states(), sparse = states();
    const std::vector<Tensor> handles = sparse, whole = dense;
    for (const Tensor& scalar : scalars) {
      dense.push_back(scalar);
      sparse.push_back(scalar);
    }
    dense.push_back(Tensor::of<float>({2, 2}, {0, 0, 1, -2}));
    sparse.push_back(Tensor::of<float>({1, 2}, {1, -2}));
    sparse.push_back(Tensor::vector<int32_t>({1}));
    must_run_on_state("ResourceApplyAdam", dense, attrs);
    must_run_on_state("ResourceSparseApplyAdam", sparse, attrs);
    for (size_t i = 0; i < 3; ++i) {
      const float* all = value_of(whole[i]).data<float>();
      const float* rows = value_of(handles[i]).data<float>();
      CHECK(rows[2] == doctest::Approx(all[2]));
      CHECK(rows[3] == doctest::Approx(all[3]));
    }
    CHECK(value_of(handles[0]).data<float>()[0] == 1);
    CHECK(value_of(handles[1]).data<float>()[0] == 0.5f);
  }
}

}  // namespace tagflow::devices
