#include "devices/kernels/gradient/list.h"

#include <algorithm>

#include "devices/kernels/gradient/persistent_stack.h"
#include "devices/state/guard.h"
#include "tests/devices/tensor_lists.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

const AttrMap kInts{{"T", kInt}};
const AttrMap kVariants{{"T", DataType::kVariant}};
const Tensor kScalarShape = int_vector({});

Tensor zero() { return OneStep().value("ZeroVariant", {}); }

Result<Outputs> add(const Tensor& list, int index, const Tensor& value) {
  return run_op("GradientListAdd", {list, Tensor::scalar(index), value});
}
Result<Outputs> put(const Tensor& list, int index, const Tensor& value) {
  return run_op("GradientListPut", {list, Tensor::scalar(index), value});
}
Result<Outputs> get(const Tensor& list, int index,
                    const Tensor& shape = kScalarShape, AttrMap type = kInts) {
  return run_op("GradientListGet", {list, Tensor::scalar(index), shape}, type);
}
Result<Outputs> take(const Tensor& list, int index,
                     const Tensor& shape = kScalarShape, AttrMap type = kInts) {
  return run_op("GradientListTake", {list, Tensor::scalar(index), shape}, type);
}
Result<Outputs> drop(const Tensor& list, int begin, int end) {
  return run_op("GradientListDrop",
                {list, Tensor::scalar(begin), Tensor::scalar(end)});
}
Result<Outputs> add_rows(const Tensor& list, const Tensor& indices,
                         const Tensor& values) {
  return run_op("GradientListAddRows", {list, indices, values});
}
Result<Outputs> put_rows(const Tensor& list, const Tensor& indices,
                         const Tensor& values) {
  return run_op("GradientListPutRows", {list, indices, values});
}
Result<Outputs> get_rows(const Tensor& list, const Tensor& indices,
                         const Tensor& shape = kScalarShape) {
  return run_op("GradientListGetRows", {list, indices, shape}, kInts);
}
Result<Outputs> take_rows(const Tensor& list, const Tensor& indices,
                          const Tensor& shape = kScalarShape) {
  return run_op("GradientListTakeRows", {list, indices, shape}, kInts);
}
Result<Outputs> add_split(const Tensor& list, const Tensor& values,
                          std::initializer_list<int64_t> lengths) {
  return run_op("GradientListAddSplit",
                {list, values, Tensor::vector<int64_t>(lengths)});
}
Result<Outputs> get_concat(const Tensor& list,
                           std::initializer_list<int64_t> lengths,
                           const Tensor& shape = kScalarShape) {
  return run_op("GradientListGetConcat",
                {list, Tensor::vector<int64_t>(lengths), shape}, kInts);
}
Result<Outputs> sum(const std::vector<Tensor>& terms) {
  return run_op("AddN", terms, {{"N", int64_t(terms.size())}});
}

Tensor gradients(std::initializer_list<std::pair<int, int>> elements) {
  Tensor list = zero();
  for (const auto& [index, value] : elements)
    list = one_of(add(list, index, Tensor::scalar(value)));
  return list;
}

VariantValue* value_in(const Tensor& tensor) {
  return tensor.data<Variant>()->get();
}

Tensor as_tensor(Ref<VariantValue> value) {
  Tensor tensor = Tensor::make(DataType::kVariant, {});
  *tensor.mutable_data<Variant>() = Variant(std::move(value));
  return tensor;
}

// A value of that depth, each in the next one's element 0.
Tensor nested_lists(int depth) {
  Tensor nested = zero();
  for (int i = 0; i < depth; ++i) {
    auto list = make_ref_counted<GradientList>();
    list->elements.try_emplace(0, std::exchange(nested, Tensor()));
    nested = as_tensor(std::move(list));
  }
  return nested;
}

Tensor nested_stacks(int depth) {
  Tensor nested = zero();
  for (int i = 0; i < depth; ++i) {
    auto stack = make_ref_counted<PersistentStack>(DataType::kVariant);
    stack->push(nested);
    nested = as_tensor(std::move(stack));
  }
  return nested;
}

}  // namespace

TEST_CASE("a gradient list adds up the gradients of each element") {
  const Tensor one = one_of(add(zero(), 3, Tensor::scalar(5)));
  const Tensor two = one_of(add(one, 3, Tensor::scalar(2)));
  const Tensor more = one_of(add(two, 2147483647, Tensor::scalar(9)));
  expect_close(get(more, 3), Tensor::scalar(7));
  expect_close(get(more, 2147483647), Tensor::scalar(9));
  expect_close(get(one, 3), Tensor::scalar(5));
  expect_close(get(more, 0), Tensor::scalar(0));
  expect_close(get(zero(), 0, int_vector({2})), int_vector({0, 0}));
  expect_close(get(zero(), 0, Tensor::vector<int64_t>({2})),
               int_vector({0, 0}));
  const Tensor wide =
      one_of(add(zero(), 0, Tensor::of<Complex64>({1, 2}, {{1, 2}, {3, 4}})));
  expect_close(get(one_of(sum({wide, wide})), 0, int_vector({1, 2}),
                   {{"T", DataType::kComplex64}}),
               Tensor::of<Complex64>({1, 2}, {{2, 4}, {6, 8}}));
  CHECK(value_in(one)->describe() == "GradientList of 1 element");
  CHECK(value_in(more)->describe() == "GradientList of 2 elements");
}

TEST_CASE("a gradient list gives up the element that is taken") {
  const Tensor list = gradients({{1, 5}, {2, 6}});
  auto taken = take(list, 1);
  REQUIRE(taken.ok());
  expect_close((*taken)[1], Tensor::scalar(5));
  expect_close(get((*taken)[0], 1), Tensor::scalar(0));
  expect_close(get((*taken)[0], 2), Tensor::scalar(6));
  expect_close(get(list, 1), Tensor::scalar(5));
  taken = take((*taken)[0], 1);
  REQUIRE(taken.ok());
  expect_close((*taken)[1], Tensor::scalar(0));
  taken = take(zero(), 1, int_vector({1}));
  REQUIRE(taken.ok());
  CHECK(value_in((*taken)[0]) == nullptr);
  expect_close((*taken)[1], int_vector({0}));
}

TEST_CASE("a gradient list replaces an element by the one that is put") {
  const Tensor list = one_of(put(gradients({{1, 5}}), 1, int_vector({1, 2})));
  expect_close(get(list, 1, int_vector({2})), int_vector({1, 2}));
  expect_close(get(one_of(put(zero(), 0, Tensor::scalar(3))), 0),
               Tensor::scalar(3));
  // A zero leaves nothing.
  const Tensor none = one_of(put(list, 1, zero()));
  CHECK(value_in(none)->describe() == "GradientList of 0 elements");
}

namespace {

Tensor vector_of(const std::vector<Tensor>& lists) {
  return one_of(run_op("Pack", lists, {{"N", int64_t(lists.size())}}));
}
Result<Outputs> take_batch(const Tensor& lists, const Tensor& indices) {
  return run_op("GradientListTakeBatch", {lists, indices, kScalarShape}, kInts);
}
Result<Outputs> put_batch(const Tensor& lists, const Tensor& indices,
                          const Tensor& values) {
  return run_op("GradientListPutBatch", {lists, indices, values});
}
Result<Outputs> split_lists(const Tensor& lists, const Tensor& lengths) {
  return run_op("GradientListSplit", {lists, lengths});
}
Result<Outputs> join_lists(const Tensor& first, const Tensor& rest,
                           const Tensor& lengths) {
  return run_op("GradientListJoin", {first, rest, lengths});
}
// List i of a vector of them: what it has at 0 to 4.
void expect_list(const Tensor& lists, int i, std::initializer_list<int> all) {
  const Tensor one =
      one_of(run_op("GatherV2", {lists, Tensor::scalar(i), Tensor::scalar(0)}));
  expect_close(one_of(get_rows(one, int_vector({0, 1, 2, 3, 4}))),
               int_vector(all));
}

}  // namespace

TEST_CASE("gradient lists: an element of each is taken, or put") {
  const Tensor lists =
      vector_of({gradients({{0, 5}, {2, 7}}), zero(), gradients({{1, 9}})});
  const auto taken = take_batch(lists, int_vector({2, 1, 0}));
  REQUIRE_MESSAGE(taken.ok(), taken.status().to_string());
  expect_close((*taken)[1], int_vector({7, 0, 0}));
  expect_list((*taken)[0], 0, {5, 0, 0, 0, 0});
  expect_list((*taken)[0], 2, {0, 9, 0, 0, 0});
  // The lists that came have what they had.
  expect_list(lists, 0, {5, 0, 7, 0, 0});
  const Tensor put =
      one_of(put_batch(lists, int_vector({2, 3, 1}), int_vector({1, 2, 3})));
  expect_list(put, 0, {5, 0, 1, 0, 0});
  expect_list(put, 1, {0, 0, 0, 2, 0});
  expect_list(put, 2, {0, 3, 0, 0, 0});
  // An empty variant stands for as many as there are indices.
  expect_list(one_of(put_batch(zero(), int_vector({1, 0}), int_vector({4, 6}))),
              1, {6, 0, 0, 0, 0});
  expect_close((*take_batch(zero(), int_vector({1, 0})))[1],
               int_vector({0, 0}));
  expect_error(take_batch(lists, int_vector({0, 1})), Code::kInvalidArgument,
               "input 0 must have the shape [2]");
  expect_error(take_batch(lists, int_vector({0, -1, 0})),
               Code::kInvalidArgument, "index -1 is negative");
  expect_error(put_batch(lists, int_vector({0, 1, 2}), int_vector({1, 2})),
               Code::kInvalidArgument, "as many indices as rows");
  expect_error(take_batch(vector_of({one_of(run_op("EmptyTensorMap", {}))}),
                          int_vector({0})),
               Code::kInvalidArgument, "input 0 has no gradient list but");
}

TEST_CASE("gradient lists are split at their lengths, and joined again") {
  const Tensor lists = vector_of(
      {gradients({{0, 5}, {2, 7}, {4, 8}}), zero(), gradients({{1, 9}})});
  const Tensor lengths = int_vector({2, 1, 3});
  const auto parts = split_lists(lists, lengths);
  REQUIRE_MESSAGE(parts.ok(), parts.status().to_string());
  expect_list((*parts)[0], 0, {5, 0, 0, 0, 0});
  expect_list((*parts)[1], 0, {7, 0, 8, 0, 0});
  expect_list((*parts)[0], 2, {0, 9, 0, 0, 0});
  expect_list((*parts)[1], 2, {0, 0, 0, 0, 0});
  const Tensor joined = one_of(join_lists((*parts)[0], (*parts)[1], lengths));
  expect_list(joined, 0, {5, 0, 7, 0, 8});
  expect_list(joined, 1, {0, 0, 0, 0, 0});
  expect_list(joined, 2, {0, 9, 0, 0, 0});
  // A single list is a tensor of them, too.
  const auto single =
      split_lists(gradients({{0, 1}, {1, 2}}), Tensor::scalar(1));
  REQUIRE_MESSAGE(single.ok(), single.status().to_string());
  expect_close(one_of(get((*single)[1], 0)), Tensor::scalar(2));
  expect_error(split_lists(lists, int_vector({0, 1})), Code::kInvalidArgument,
               "input 0 must have the shape [2]");
  expect_error(split_lists(lists, int_vector({0, -2, 1})),
               Code::kInvalidArgument, "length -2 is negative");
  expect_error(join_lists(lists, vector_of({zero()}), lengths),
               Code::kInvalidArgument, "input 1 must have the shape [3]");
}

TEST_CASE("a gradient list drops the elements within a range") {
  const Tensor list = gradients({{0, 1}, {3, 4}, {5, 6}, {9, 10}});
  for (const int end : {6, 2147483647}) {
    const Tensor rest = one_of(drop(list, 3, end));
    expect_close(get_rows(rest, int_vector({0, 3, 5, 9})),
                 int_vector({1, 0, 0, end == 6 ? 10 : 0}));
  }
  CHECK(value_in(one_of(drop(list, 4, 4))) == value_in(list));
  CHECK(value_in(one_of(drop(list, 9, 3))) == value_in(list));
  CHECK(value_in(one_of(drop(zero(), 0, 3))) == nullptr);
  expect_close(get_rows(one_of(drop(list, -2, 1)), int_vector({0, 3})),
               int_vector({0, 4}));
}

TEST_CASE("a gradient list adds and reads rows by their indices") {
  const Tensor pairs = Tensor::of<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor shape = int_vector({2});
  // Those of a repeated index are added.
  const Tensor list = one_of(add_rows(zero(), int_vector({4, 0, 4}), pairs));
  expect_close(get_rows(list, int_vector({0, 4, 1, 4}), shape),
               Tensor::of<int32_t>({4, 2}, {3, 4, 6, 8, 0, 0, 6, 8}));
  expect_close(get_rows(zero(), int_vector({7}), shape),
               Tensor::of<int32_t>({1, 2}, {0, 0}));
  expect_close(get_rows(list, int_vector({}), shape),
               Tensor::make(kInt, {0, 2}));
  // Indices of any shape: a tensor of lists may be read by such.
  expect_close(get_rows(list, Tensor::of<int32_t>({2, 1}, {4, 0}), shape),
               Tensor::of<int32_t>({2, 2}, {6, 8, 3, 4}));
  const Tensor none = Tensor::make(kInt, {0, 2});
  CHECK(value_in(one_of(add_rows(zero(), int_vector({}), none)))->describe() ==
        "GradientList of 0 elements");
}

TEST_CASE("a gradient list keeps the last of the rows put at one index") {
  const Tensor list = one_of(put_rows(
      gradients({{1, 9}}), int_vector({1, 0, 1}), int_vector({1, 2, 3})));
  expect_close(get_rows(list, int_vector({0, 1})), int_vector({2, 3}));
  auto taken = take_rows(list, int_vector({1, 5, 1}));
  REQUIRE(taken.ok());
  expect_close((*taken)[1], int_vector({0, 0, 3}));
  expect_close(get_rows((*taken)[0], int_vector({0, 1})), int_vector({2, 0}));
  taken = take_rows(zero(), int_vector({1}));
  REQUIRE(taken.ok());
  CHECK(value_in((*taken)[0]) == nullptr);
  expect_close((*taken)[1], int_vector({0}));
}

TEST_CASE("a gradient list splits rows into elements, and joins them") {
  const Tensor rows = Tensor::of<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor rest = int_vector({2});
  const Tensor list = one_of(add_split(zero(), rows, {2, 0, 1}));
  expect_close(get_concat(list, {2, 0, 1}, rest), rows);
  expect_close(get(list, 2, int_vector({1, 2})),
               Tensor::of<int32_t>({1, 2}, {5, 6}));
  const Tensor twice = one_of(add_split(list, rows, {2, 0, 1}));
  const Tensor some = take(twice, 0, int_vector({2, 2}))->front();
  expect_close(get_concat(some, {2, 0, 1, 1}, rest),
               Tensor::of<int32_t>({4, 2}, {0, 0, 0, 0, 10, 12, 0, 0}));
  expect_close(get_concat(zero(), {1}, rest),
               Tensor::of<int32_t>({1, 2}, {0, 0}));
  expect_close(get_concat(zero(), {}, rest), Tensor::make(kInt, {0, 2}));
}

TEST_CASE("a gradient list that nobody else holds is changed in place") {
  const auto at = [](int i) { return Tensor::scalar(i); };
  std::vector<Tensor> inputs = {gradients({{1, 5}, {2, 6}}), at(1), at(2)};
  const VariantValue* value = value_in(inputs[0]);
  const int64_t before = GradientList::elements_copied();
  const auto run = [&](const char* op, AttrMap attrs = {}) {
    auto outputs = run_unshared(op, inputs, std::move(attrs));
    INFO(std::string(op), outputs.status().to_string());
    REQUIRE(outputs.ok());
    CHECK(value_in((*outputs)[0]) == value);
    inputs = {std::move((*outputs)[0])};
  };
  run("GradientListAdd");
  inputs.insert(inputs.end(), {at(7), at(9)});
  run("GradientListPut");
  inputs.insert(inputs.end(), {at(7), kScalarShape});
  run("GradientListTake", kInts);
  inputs.insert(inputs.end(), {int_vector({7, 8}), int_vector({1, 2})});
  run("GradientListAddRows");
  inputs.insert(inputs.end(), {int_vector({7, 8}), int_vector({3, 4})});
  run("GradientListPutRows");
  inputs.insert(inputs.end(), {int_vector({8, 9}), kScalarShape});
  run("GradientListTakeRows", kInts);
  inputs.insert(inputs.end(), {at(0), at(9)});
  run("GradientListDrop");
  inputs.insert(inputs.end(),
                {int_vector({1, 2}), Tensor::vector<int64_t>({1, 1})});
  run("GradientListAddSplit");
  CHECK(GradientList::elements_copied() == before);
  CHECK(value->describe() == "GradientList of 2 elements");
}

TEST_CASE("gradient lists are added, the smaller to the larger in place") {
  const Tensor small = gradients({{1, 5}});
  const Tensor large = gradients({{0, 1}, {1, 2}, {7, 3}});
  const Tensor total = one_of(sum({small, large, zero(), small}));
  expect_close(get_rows(total, int_vector({0, 1, 7})), int_vector({1, 12, 3}));
  expect_close(get(small, 1), Tensor::scalar(5));
  expect_close(get(one_of(sum({zero(), small})), 1), Tensor::scalar(5));
  expect_close(get(one_of(sum({small, small})), 1), Tensor::scalar(10));
  CHECK(value_in(one_of(sum({zero(), zero()}))) == nullptr);
  CHECK(value_in(one_of(sum({small}))) == value_in(small));
  CHECK(value_in(one_of(run_op("ZerosLike", {small}))) == nullptr);
  CHECK(value_in(one_of(run_op("ZerosLike", {zero()}))) == nullptr);

  std::vector<Tensor> inputs = {gradients({{1, 5}}),
                                gradients({{0, 1}, {1, 2}})};
  const VariantValue* value = value_in(inputs[1]);
  const int64_t before = GradientList::elements_copied();
  auto outputs = run_unshared("AddN", inputs, {{"N", int64_t{2}}});
  REQUIRE(outputs.ok());
  CHECK(value_in((*outputs)[0]) == value);
  CHECK(GradientList::elements_copied() == before);
  expect_close(get_rows((*outputs)[0], int_vector({0, 1})), int_vector({1, 7}));
}

TEST_CASE("gradient lists of gradient lists are added, level by level") {
  const Tensor a = one_of(add(zero(), 3, gradients({{0, 1}})));
  const Tensor b = one_of(add(a, 3, gradients({{0, 2}, {1, 3}})));
  const auto at_three = [](const Tensor& list) {
    return one_of(get(list, 3, kScalarShape, kVariants));
  };
  expect_close(get_rows(at_three(b), int_vector({0, 1})), int_vector({3, 3}));
  expect_close(get(at_three(a), 0), Tensor::scalar(1));
  expect_close(get(at_three(one_of(sum({a, b, a}))), 0), Tensor::scalar(5));
  // What is missing is an empty variant, whatever the shape.
  CHECK(value_in(one_of(get(b, 0, kScalarShape, kVariants))) == nullptr);
  CHECK(value_in(one_of(get(b, 0, int_vector({-5}), kVariants))) == nullptr);
  CHECK(value_in(one_of(add(zero(), 0, zero()))) == nullptr);
  const auto rows = run_op("GradientListGetRows",
                           {b, int_vector({3, 4}), kScalarShape}, kVariants);
  REQUIRE(rows.ok());
  CHECK((*rows)[0].describe() == "variant[2]");
  const Tensor again = one_of(add_rows(zero(), int_vector({8, 9}), (*rows)[0]));
  CHECK(value_in(again)->describe() == "GradientList of 1 element");
}

TEST_CASE("a gradient list that is held once adds in place") {
  auto list = make_ref_counted<GradientList>();
  Tensor& element =
      *list->elements.try_emplace(4, Tensor::make(DataType::kFloat, {100}))
           .first;
  std::ranges::fill(element.mutable_flat<float>(), 1.0f);
  const void* place = element.raw();
  std::vector<Tensor> inputs = {as_tensor(list), Tensor::scalar(4),
                                element.clone()};
  list = {};
  auto outputs = run_unshared("GradientListAdd", inputs);
  REQUIRE(outputs.ok());
  const Tensor total =
      get((*outputs)[0], 4, int_vector({100}), {{"T", DataType::kFloat}})
          ->front();
  CHECK(total.raw() == place);
  CHECK(total.flat<float>()[99] == 2.0f);
}

TEST_CASE("gradient lists and stacks are freed and added without recursion") {
  constexpr int kDepth = 100'000;
  for (const auto& nested : {nested_lists, nested_stacks}) {
    const Tensor a = nested(kDepth);
    const Tensor b = nested(kDepth);
    Tensor total = one_of(sum({a, b, a}));
    CHECK(value_in(total) != value_in(a));
    CHECK(value_in(one_of(run_op("ZerosLike", {a}))) == nullptr);
  }
}

TEST_CASE("gradient lists are added and freed even if memory is short") {
  graph::Graph graph;
  const AttrMap variant{{"dtype", DataType::kVariant}};
  std::vector<graph::Endpoint> terms;
  for (const char* name : {"a", "b"})
    terms.push_back({*graph.add(name, "Placeholder", {}, variant), 0});
  const graph::Node* node = *graph.add("sum", "AddN", terms, {});
  const auto kernel = *KernelRegistry::global().make(*node, "CPU");
  const StepInfo step;
  const Tag tag;
  for (const bool of_stacks : {false, true})
    for (int64_t k = 1;; ++k) {
      std::vector<Tensor> inputs;
      for (int depth : {3, 4})
        inputs.push_back(of_stacks ? nested_stacks(depth)
                                   : nested_lists(depth));
      std::vector<Tensor> outputs(1);
      KernelContext context(node, inputs, outputs, &step, &tag);
      FailAllocation fail(k);
      const Status status = run_kernel(*kernel, context);
      inputs.clear();
      outputs.clear();
      fail.stop();
      if (!fail.failed()) {
        CHECK(status.ok());
        CHECK(k > 5);
        break;
      }
      // What only lets go of something does without.
      CHECK((status.ok() || status.code() == Code::kResourceExhausted));
    }
}

TEST_CASE("a gradient list refuses operations that it cannot do") {
  const Tensor list = gradients({{1, 5}});
  const Tensor pair = int_vector({1, 2});
  for (const char* op : {"GradientListAdd", "GradientListPut"})
    expect_error(run_op(op, {list, Tensor::scalar(-1), Tensor::scalar(1)}),
                 kInvalid, fmt::format("[{}] index -1 is negative", op));
  expect_error(get(list, -1), kInvalid, "index -1 is negative");
  expect_error(take(list, -1), kInvalid, "index -1 is negative");
  expect_error(add_rows(list, int_vector({1, -2}), pair), kInvalid,
               "index -2 is negative");
  expect_error(get_rows(list, int_vector({-2})), kInvalid,
               "index -2 is negative");
  expect_error(run_op("GradientListAdd", {list, pair, pair}), kInvalid,
               "index must be an int32 scalar, not int32[2]");
  expect_error(run_op("GradientListDrop", {list, pair, Tensor::scalar(1)}),
               kInvalid, "begin must be an int32 scalar, not int32[2]");
  expect_error(run_op("GradientListDrop", {list, Tensor::scalar(1), pair}),
               kInvalid, "end must be an int32 scalar, not int32[2]");

  expect_error(add(list, 1, pair), kInvalid,
               "cannot add int32[2] to element 1, which is int32[]");
  expect_error(add(list, 1, Tensor::scalar(1.0f)), kInvalid,
               "cannot add float[] to element 1, which is int32[]");
  const Tensor text = Tensor::scalar("a");
  expect_error(add(one_of(add(list, 2, text)), 2, text), kInvalid,
               "values of type string cannot be added");
  expect_error(get(list, 1, int_vector({2})), kInvalid,
               "the element is int32[], not int32 of shape");
  expect_error(get(list, 1, kScalarShape, {{"T", DataType::kFloat}}), kInvalid,
               "the element is int32[], not float of shape");
  expect_error(get(list, 0, int_vector({-1})), kInvalid,
               "the shape must be known, not [?]");
  expect_error(get(list, 0, Tensor::scalar(-1)), kInvalid,
               "the shape must be known, not <unknown>");
  expect_error(get(list, 0, Tensor::vector<int64_t>({1ll << 62, 4})), kInvalid,
               "overflow");
  expect_error(get_rows(list, int_vector({1}), int_vector({2})), kInvalid,
               "element 1 is int32[], not int32[2]");
  expect_error(add_rows(list, pair, int_vector({1})), kInvalid,
               "2 indices for the rows of int32[1]");
  expect_error(add_rows(list, int_vector({1}), Tensor::scalar(1)), kInvalid,
               "1 indices for the rows of int32[]");
  expect_error(add_split(list, Tensor::scalar(1), {1}), kInvalid,
               "the values must have rows, not be int32[]");
  expect_error(add_split(list, pair, {-1, 3}), kInvalid,
               "length -1 is negative");
  expect_error(add_split(zero(), pair, {1, 2}), kInvalid,
               "2 rows from row 1 on are beyond the end of int32[2]");
  expect_error(add_split(zero(), pair, {1}), kInvalid,
               "lengths say 1 of the rows of int32[2]");
  expect_error(get_concat(list, {0, 1}), kInvalid,
               "element 1 is int32[], not int32[1]");
  expect_error(get_concat(list, {-1}), kInvalid, "length -1 is negative");
  expect_error(get_concat(zero(), {1ll << 62, 1ll << 62}), kInvalid,
               "the sum of the lengths overflows");
  expect_error(run_op("GradientListGetConcat",
                      {list, Tensor::scalar(int64_t{1}), kScalarShape}, kInts),
               kInvalid, "lengths must be a vector, not int64[]");

  const Tensor other = list_of({1});
  for (const auto& outputs :
       {add(other, 1, pair), put(other, 1, pair), get(other, 1), take(other, 1),
        drop(other, 1, 2), add_rows(other, pair, pair),
        put_rows(other, pair, pair), get_rows(other, pair),
        take_rows(other, pair), add_split(other, pair, {2}),
        get_concat(other, {2})})
    expect_error(
        outputs, kInvalid,
        "input 0 must be one gradient list, not TensorList[1] of int32");
  expect_error(add(Tensor::make(DataType::kVariant, {2}), 1, pair), kInvalid,
               "input 0 must be one gradient list, a variant scalar, not "
               "variant[2]");
  expect_error(sum({list, other}), kInvalid,
               "cannot add GradientList of 1 element and TensorList[1]");
  expect_error(sum({other, list}), kInvalid, "cannot add ");
  const Tensor stack =
      OneStep().value("PersistentStack", {}, {{"elem_type", DataType::kInt32}});
  expect_error(
      sum({list, stack}), kInvalid,
      "cannot add GradientList of 1 element and PersistentStack[0] of int32");
  expect_error(sum({gradients({{1, 5}}), one_of(add(zero(), 1, pair))}),
               kInvalid, "cannot add int32[2] to element 1, which is int32[]");
}
