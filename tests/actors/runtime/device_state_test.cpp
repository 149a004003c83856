// State on accelerators: handles are on the host, contents stay on the device.
#include <doctest/doctest.h>

#include <functional>

#include "graph/builder/builder.h"
#include "tests/actors/accelerator.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

SessionOptions with_stream(std::vector<std::string>* warnings = nullptr) {
  SessionOptions options;
  options.devices = "cpu:1,stream:1";
  if (warnings != nullptr)
    options.on_warning = [warnings](const std::string& text) {
      warnings->push_back(text);
    };
  return options;
}

;

void run_targets(Session& session, const std::vector<std::string>& targets) {
  must(session.run({}, {}, targets, within_a_minute()));
}

constexpr int64_t kSize = 1 << 18;  // floats: 1 MiB

// "init", and "loop", which adds ones n times, and "first" of the elements.
Graph adding(const std::string& kind) {
  Graph graph;
  const Scope s(graph);
  const Scope on_stream = s.with_device("/device:STREAM:0");
  const Tensor ones = [] {
    Tensor made = Tensor::make(DataType::kFloat, {kSize});
    std::ranges::fill(made.mutable_flat<float>(), 1.0f);
    return made;
  }();
  const Output delta = on_stream.constant(ones);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const auto loop = [&](const std::function<Output(const Scope&)>& add) {
    return while_loop(
        s,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], n);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope then = in.with_control_dependencies({v[0]});
          const Output added = add(then.with_device("/device:STREAM:0"));
          return {ops::add(in.with_control_dependencies({added}), v[0], 1)};
        },
        {0});
  };
  Output read;
  if (kind == "handle") {
    const ops::Variable v = ops::variable(
        on_stream.named("v"), DataType::kFloat, PartialShape({kSize}));
    ops::assign(on_stream.named("init"), v, ops::zeros_like(on_stream, delta));
    ops::identity(s.named("loop"), loop([&](const Scope& in) {
                    return ops::assign_add(in, v, delta);
                  })[0]);
    read = ops::read(on_stream, v);
  } else {
    const Output v = ops::reference_variable(
        on_stream.named("v"), DataType::kFloat, PartialShape({kSize}));
    ops::assign(on_stream.named("init"), v, ops::zeros_like(on_stream, delta));
    ops::identity(s.named("loop"), loop([&](const Scope& in) {
                    return ops::assign_add(in, v, delta);
                  })[0]);
    read = ops::identity(on_stream, v);
  }
  ops::reduce_min(on_stream.named("least"), read, {0});
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

}  // namespace

TEST_CASE("updates on an accelerator copy nothing, and need one buffer") {
  for (const std::string kind : {"handle", "reference"}) {
    INFO(kind);
    const auto session = make_session(with_stream(), adding(kind));
    devices::Device& stream = accelerator_of(*session);
    run_targets(*session, {"init"});
    const auto trips = [&](int n) {
      must(session->run({{"n", Tensor::scalar<int32_t>(n)}}, {}, {"loop"},
                        within_a_minute()));
    };
    trips(2);
    const Copies copies(stream);
    const int64_t count = stream.memory().count;
    trips(1000);
    CHECK(copies.to_device() == 0);
    CHECK(copies.to_host() == 0);
    CHECK(stream.memory().count == count);
    CHECK(must(must_run(*session, {}, {"least"})[0].item<float>()) == 1002);
  }
}

TEST_CASE("a second session reads what lies on the accelerator") {
  const Graph graph = adding("handle");
  auto first = make_session(with_stream(), graph);
  SessionOptions options = with_stream();
  options.state = first->shared_state();
  const auto second = make_session(options, graph);
  run_targets(*first, {"init"});
  must(first->run({{"n", Tensor::scalar<int32_t>(3)}}, {}, {"loop"},
                  within_a_minute()));
  REQUIRE(first->close().ok());
  first.reset();
  CHECK(must(must_run(*second, {}, {"least"})[0].item<float>()) == 3);
}

TEST_CASE("later signatures find a variable where the first one put it") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable v =
      ops::variable(s.named("v"), DataType::kFloat, PartialShape({4}));
  ops::assign(s.named("init"), v, {1.0f, 2.0f, 3.0f, 4.0f});
  ops::read(s.named("read"), v);
  ops::assign_add(s.named("add"), v, {1.0f, 1.0f, 1.0f, 1.0f});
  REQUIRE(s.status().ok());
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SessionOptions options;
    options.devices = "cpu:2,stream:2";
    options.scatter = seed;
    const auto session = make_session(options, graph);
    run_targets(*session, {"init"});
    run_targets(*session, {"add"});
    CHECK(identical(must_run(*session, {}, {"read"})[0],
                    Tensor::vector<float>({2, 3, 4, 5})));
  }
}

TEST_CASE("a variable stays where it was made, whatever a later node says") {
  Graph graph;
  const Scope s(graph);
  const auto variable = [&](const char* name, const char* device) {
    return ops::variable(s.with_device(device).named(name), DataType::kFloat,
                         PartialShape::scalar(), {.shared_name = "v"});
  };
  ops::assign(s.named("init"), variable("here", "/device:CPU:1"), 1.0f);
  ops::read(s.named("there"), variable("elsewhere", "/device:CPU:0"));
  ops::read(s.named("anywhere"), variable("free", ""));
  REQUIRE(s.status().ok());
  SessionOptions options;
  options.devices = "cpu:2";
  const auto session = make_session(options, graph);
  run_targets(*session, {"init"});
  CHECK(must(must_run(*session, {}, {"anywhere"})[0].item<float>()) == 1);
  const Status status =
      session->run({}, {"there"}, {}, within_a_minute()).status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message().find(
            "node \"elsewhere\" requests \"/device:CPU:0\", but \"v\" has been "
            "on /job:localhost/replica:0/task:0/device:CPU:1 since it was "
            "made") != std::string::npos);
  // What was placed by it stays, and so does its home.
  must(session->reset({""}));
  CHECK(session->run({}, {"there"}, {}, within_a_minute()).status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("variables that one op takes together are made on one device") {
  Graph graph;
  const Scope s(graph);
  const auto variable = [&](const char* name) {
    return ops::variable(s.named(name), DataType::kFloat, PartialShape({2}));
  };
  const ops::Variable weights = variable("w");
  const ops::Variable sums = variable("sums");
  ops::assign(s.named("init_weights"), weights, {1.0f, 2.0f});
  ops::assign(s.named("init_sums"), sums, {4.0f, 16.0f});
  s.named("train").op(
      "ResourceApplyAdagrad",
      {weights.handle, sums.handle, s.constant(Tensor::scalar(1.0f)),
       s.constant(Tensor::vector<float>({2, 3}))},
      {{"update_slots", false}});
  ops::read(s.named("read"), weights);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  for (const bool apart : {false, true})
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SessionOptions options;
      options.devices = "cpu:2,stream:2";
      options.scatter = seed;
      const auto session = make_session(options, graph);
      if (apart) {
        run_targets(*session, {"init_weights"});
        run_targets(*session, {"init_sums"});
      } else {
        run_targets(*session, {"init_weights", "init_sums"});
      }
      run_targets(*session, {"train"});
      CHECK(identical(must_run(*session, {}, {"read"})[0],
                      Tensor::vector<float>({0, 1.25f})));
    }
}

namespace {

constexpr const char* kStream = "/device:STREAM:0";

Tensor ones_of_a_mebibyte() {
  Tensor made = Tensor::make(DataType::kFloat, {kSize});
  std::ranges::fill(made.mutable_flat<float>(), 1.0f);
  return made;
}

// How elements of 1 MiB get into a container and out again. One that is a value
// goes around in loops.
struct Container {
  const char* name;
  bool is_value;
  std::function<Output(const Scope&, const Output& n)> make;
  // The container, or what is to be waited for.
  std::function<Output(const Scope&, const Output& container, const Output& i,
                       const Output& element)>
      put;
  // What is left of the container, and the element.
  std::function<Outputs(const Scope&, const Output& container, const Output& i)>
      take;
};

std::vector<Container> containers() {
  const AttrMap floats = {{"element_dtype", DataType::kFloat}};
  const AttrMap elements = {{"elem_type", DataType::kFloat}};
  const AttrMap values = {{"T", DataType::kFloat}};
  const Input shape = Tensor::vector<int32_t>({int32_t(kSize)});
  const auto nothing = [](const Scope& s, const Output&) -> Output {
    return s.op("ZeroVariant", {});
  };
  const auto both = [](const OpResult& result) -> Outputs {
    return {result[0], result[1]};
  };
  return {
      {"list", true,
       [=](const Scope& s, const Output& n) {
         return s.op("TensorListReserve", {shape, n}, floats);
       },
       [](const Scope& s, const Output& list, const Output& i,
          const Output& element) {
         return s.op("TensorListSetItem", {list, i, element});
       },
       [=](const Scope& s, const Output& list, const Output& i) -> Outputs {
         return {list, s.op("TensorListGetItem", {list, i, shape}, floats)};
       }},
      {"stack", false,
       [=](const Scope& s, const Output&) {
         return s.op("StackV2", {-1}, elements);
       },
       [](const Scope& s, const Output& stack, const Output&,
          const Output& element) {
         return s.op("StackPushV2", {stack, element});
       },
       [=](const Scope& s, const Output& stack, const Output& i) -> Outputs {
         return {stack, s.with_control_dependencies({i}).op("StackPopV2",
                                                            {stack}, elements)};
       }},
      {"stack of gradients", true, nothing,
       [](const Scope& s, const Output& stack, const Output&,
          const Output& element) {
         return s.op("PersistentStackPush", {stack, element});
       },
       [=](const Scope& s, const Output& stack, const Output&) {
         return both(
             s.op("PersistentStackPopOrZero", {stack, shape}, elements));
       }},
      {"list of gradients", true, nothing,
       [](const Scope& s, const Output& list, const Output& i,
          const Output& element) {
         // Half of it twice, which is added up there.
         const Output half = ops::mul(s, element, 0.5f);
         const Output more = s.op("GradientListAdd", {list, i, half});
         return s.op("GradientListAdd", {more, i, half});
       },
       [=](const Scope& s, const Output& list, const Output& i) {
         return both(s.op("GradientListTake", {list, i, shape}, values));
       }}};
}

// "sum" is the sum of the first elements of 1, 2, ..., n, vectors of 1 MiB that
// one loop puts into a container and another one takes out of it, all on the
// accelerator.
Graph through_container(const Container& kind) {
  Graph graph;
  const Scope s(graph);
  const Scope on_stream = s.with_device(kStream);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Output one = on_stream.constant(ones_of_a_mebibyte());
  const Output container = kind.make(on_stream, n);
  const auto less = [&](const Scope& in, const Outputs& v) {
    return ops::less(in, v[0], n);
  };
  const auto around = [&](Outputs variables, const Output& value) {
    if (kind.is_value) variables.push_back(value);
    return variables;
  };
  const auto current = [&](const Outputs& v) {
    return kind.is_value ? v[2] : container;
  };
  const Outputs filled = while_loop(
      s, less,
      [&](const Scope& in, const Outputs& v) {
        const Scope there = in.with_device(kStream);
        const Output put = kind.put(there, current(v), v[0], v[1]);
        const Output next = ops::add(
            kind.is_value ? there : there.with_control_dependencies({put}),
            v[1], one);
        return around({ops::add(in, v[0], 1), next}, put);
      },
      around({ops::constant(s, 0), one}, container));
  const Outputs taken = while_loop(
      s, less,
      [&](const Scope& in, const Outputs& v) {
        const Scope there = in.with_device(kStream);
        const Outputs result = kind.take(there, current(v), v[0]);
        const Output known = there.op("EnsureShape", {result[1]},
                                      {{"shape", PartialShape({kSize})}});
        const Output first = ops::reduce_min(there, known, {0});
        return around({ops::add(in, v[0], 1), ops::add(there, v[1], first)},
                      result[0]);
      },
      around({ops::identity(s.with_control_dependencies({filled[1]}),
                            ops::constant(s, 0)),
              ops::constant(s, 0.0f)},
             filled[2]));
  ops::identity(s.named("sum"), taken[1]);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

}  // namespace

TEST_CASE("lists and stacks keep their elements on the accelerator") {
  for (const Container& kind : containers()) {
    INFO(kind.name);
    std::vector<std::string> warnings;
    const auto session =
        make_session(with_stream(&warnings), through_container(kind));
    const auto sum = [&](int n) {
      return must(
          must_run(*session, {{"n", Tensor::scalar<int32_t>(n)}}, {"sum"})[0]
              .item<float>());
    };
    CHECK(sum(2) == 3);
    const Copies copies(accelerator_of(*session));
    CHECK(sum(20) == 210);
    // Counters and predicates are all that goes to and fro.
    CHECK(copies.to_device() < kSize);
    CHECK(copies.to_host() < kSize);
    CHECK(warnings.empty());
  }
}
