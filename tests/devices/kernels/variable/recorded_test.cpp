// Updates of variables, compared with TensorFlow's results that
// record_state_ops.py recorded: of both kinds, in place and not, whole and in
// shards.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "graph/op_registry.h"
#include "tests/devices/recorded_cases.h"
#include "tests/devices/state_fixture.h"

namespace tagflow::devices {

namespace {

const graph::OpDef* find_op(const std::string& name) {
  return graph::OpRegistry::global().find_or_null(name);
}

// The op of references that does the same; empty if there is none.
std::string reference_op(const std::string& op) {
  constexpr std::string_view kPrefix = "Resource";
  if (!op.starts_with(kPrefix)) return "";
  std::string name = op.substr(kPrefix.size());
  const graph::OpDef* def = find_op(name);
  return def != nullptr && def->inputs[0].is_ref ? name : "";
}

// ScatterMin and ScatterMax of references exist for fewer types.
bool takes_type(const std::string& op, DataType type) {
  const graph::AttrDef* attr = find_op(op)->find_attr("T");
  return attr == nullptr || attr->allowed_types.empty() ||
         std::ranges::find(attr->allowed_types, type) !=
             attr->allowed_types.end();
}

// TensorFlow rounds 16-bit floats after every operation, we do at the end.
double tolerance_of(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return 5e-6;
    case DataType::kDouble:
      return 1e-12;
    case DataType::kHalf:
      return 1.0 / 128;
    case DataType::kBFloat16:
      return 1.0 / 16;
    default:
      return 0;
  }
}

struct How {
  bool is_reference = false;
  bool is_shared = false;  // somebody has read the variables, and keeps that
  bool in_shards = false;
};

void check_case(const RecordedCase& recorded, const std::string& op, How how) {
  INFO("line ", recorded.line, ", ", op, ", shared: ", how.is_shared,
       ", in shards: ", how.in_shards);
  const graph::OpDef* def = find_op(recorded.op);
  std::vector<Tensor> inputs = recorded.inputs, kept;
  size_t states = 0;
  for (; states < inputs.size() &&
         def->inputs[states].dtype == DataType::kResource;
       ++states) {
    inputs[states] =
        make_variable(def->inputs[states].name, recorded.inputs[states]);
    if (how.is_shared) kept.push_back(value_of(inputs[states]));
  }
  const Result<Outputs> outputs =
      run_on_state(op, inputs, recorded.attrs, how.in_shards);
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  const double tolerance = tolerance_of(recorded.inputs[0].dtype());
  for (size_t i = 0; i < states; ++i)
    expect_close(value_of(inputs[i]), recorded.outputs[i], tolerance);
  for (size_t i = 0; i < kept.size(); ++i)
    expect_close(kept[i], recorded.inputs[i]);
  if (how.is_reference) {
    CHECK((*outputs)[0].data<ResourceHandle>()->get() ==
          inputs[0].data<ResourceHandle>()->get());
  } else if (!outputs->empty()) {
    expect_close((*outputs)[0], recorded.outputs[states], tolerance);
  }
}

}  // namespace

TEST_CASE("kernels change variables as TensorFlow's do") {
  const auto cases = read_recorded_cases("state.txt");
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  CHECK(cases->size() > 400);
  for (const RecordedCase& recorded : *cases)
    for (const bool is_reference : {false, true}) {
      const std::string op =
          is_reference ? reference_op(recorded.op) : recorded.op;
      if (op.empty() || !takes_type(op, recorded.inputs[0].dtype())) continue;
      check_case(recorded, op, {is_reference});
      check_case(recorded, op, {is_reference, true, false});
      check_case(recorded, op, {is_reference, false, true});
    }
}

TEST_CASE("every op that changes a variable by a gradient is recorded") {
  const auto cases = read_recorded_cases("state.txt");
  REQUIRE(cases.ok());
  std::set<std::string> recorded;
  for (const RecordedCase& one : *cases) {
    recorded.insert(one.op);
    recorded.insert(reference_op(one.op));
  }
  for (const std::string& op : graph::OpRegistry::global().names()) {
    const bool is_scatter =
        op.starts_with("ResourceScatter") ||
        (op.starts_with("Scatter") && find_op(op)->inputs[0].is_ref);
    if (!is_scatter && op.find("Apply") == std::string::npos) continue;
    // TensorFlow has none; and those of accumulators change no variable.
    if (op.ends_with("SparseApplyAdam") ||
        op.find("Accumulator") != std::string::npos)
      continue;
    INFO(op);
    CHECK(recorded.contains(op));
  }
}

}  // namespace tagflow::devices
