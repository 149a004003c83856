// Sessions on a CPU with a limit: it counts strings and what containers take,
// names what exceeds it, and gets all of it back.
#include <doctest/doctest.h>

#include <fstream>

#include "devices/device.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;  // NOLINT: the builder's vocabulary

namespace {

using Types = std::vector<DataType>;

constexpr int64_t kLimit = 256 * 1024;
const DataType kInt = DataType::kInt32;

// A program of n trips, which takes more memory with each.
struct Growing {
  std::string op;    // in the message of the error
  std::string what;  // in it, too
  // Makes it, and returns what the loop starts with.
  std::function<Output(const Scope&)> start;
  // One trip: its number, and what the trip before returned. An invalid output
  // stands for the number.
  std::function<Output(const Scope&, const Output& i, const Output& v)> trip;
};

// What a trip returns that has run the op.
Output after(const Scope& in, const Outputs& outputs, const Output& value) {
  return ops::identity(in.with_control_dependencies(outputs), value);
}

const std::string kLong(9000, 'x');

Output as_text(const Scope& in, const Output& i) {
  return in.op("AsString", {i})[0];
}

// Programs that use one resource: `use` runs in each trip.
Growing on_resource(const char* op, const char* what,
                    const std::function<Output(const Scope&)>& make,
                    const std::function<Outputs(const Scope&, const Output&,
                                                const Output& i)>& use) {
  const auto made = std::make_shared<Output>();
  return {op, what,
          [=](const Scope& s) {
            *made = make(s);
            return ops::constant(s, 0);
          },
          [=](const Scope& in, const Output& i, const Output& v) {
            return after(in, use(in, *made, i), v);
          }};
}

Growing on_queue(const char* kind) {
  const bool by_priority = std::string(kind) == "PriorityQueueV2";
  return on_resource(
      "QueueEnqueueV2", "queue \"q\" with ",
      [=](const Scope& s) {
        AttrMap attrs = {{"component_types", Types{kInt}},
                         {"shared_name", "q"}};
        if (by_priority) {
          attrs["shapes"] = std::vector<PartialShape>{PartialShape::scalar()};
          attrs["capacity"] = int64_t{1} << 30;
        }
        if (std::string(kind) == "RandomShuffleQueueV2")
          attrs["capacity"] = int64_t{1} << 30;
        return s.op(kind, {}, attrs)[0];
      },
      [=](const Scope& in, const Output& queue, const Output& i) -> Outputs {
        if (!by_priority) return in.op("QueueEnqueueV2", {queue, i});
        return in.op("QueueEnqueueV2",
                     {queue, ops::cast(in, i, DataType::kInt64), i});
      });
}

Growing on_table(const char* kind, DataType type, AttrMap attrs = {}) {
  attrs["key_dtype"] = type;
  attrs["value_dtype"] = type;
  attrs["shared_name"] = "t";
  const bool is_dense = std::string(kind) == "MutableDenseHashTableV2";
  return on_resource(
      "LookupTableInsertV2",
      type == DataType::kString ? "a string needs " : "table \"t\"",
      [=](const Scope& s) {
        if (is_dense)
          return s.op(kind, {ops::constant(s, -1), ops::constant(s, -2)},
                      attrs)[0];
        return s.op(kind, {}, attrs)[0];
      },
      [=](const Scope& in, const Output& table, const Output& i) -> Outputs {
        Output key = i;
        if (type == DataType::kString) key = as_text(in, i);
        key = ops::reshape(in, key, {1});
        Output value = key;
        if (type == DataType::kString)
          value = ops::constant(in, Tensor::of<std::string>({1}, {kLong}));
        if (attrs.contains("value_shape"))
          value = in.op("Fill", {Tensor::vector<int32_t>({1, 2000}), i})[0];
        return in.op("LookupTableInsertV2", {table, key, value});
      });
}

Output doubled(const Scope& in, const char* op, const Output& text) {
  return in.op(op, {text, text})[0];
}

std::vector<Growing> growing() {
  const auto text = [](const Scope& s) {
    return ops::constant(s, Tensor::scalar(std::string(100, 'x')));
  };
  std::vector<Growing> programs = {
      {"StringJoin", "a string needs ", text,
       [](const Scope& in, const Output&, const Output& v) {
         return doubled(in, "StringJoin", v);
       }},
      {"Add", "the joined text needs ", text,
       [](const Scope& in, const Output&, const Output& v) {
         return doubled(in, "Add", v);
       }},
      {"Tile", "a string needs ", text,
       [](const Scope& in, const Output&, const Output& v) {
         const Output four = in.op("Tile", {ops::reshape(in, v, {1}),
                                            Tensor::vector<int32_t>({4})})[0];
         return in.op("ReduceJoin", {four, 0})[0];
       }},
      {"EncodeBase64", "the text of string[] needs ", text,
       [](const Scope& in, const Output&, const Output& v) {
         return in.op("EncodeBase64", {v})[0];
       }},
      {"StaticRegexReplace", "a string needs ", text,
       [](const Scope& in, const Output&, const Output& v) {
         return in.op("StaticRegexReplace", {v},
                      {{"pattern", "x"}, {"rewrite", std::string(8, 'x')}})[0];
       }},
      {"TensorListPushBack", "TensorList[",
       [](const Scope& s) {
         return s.op("EmptyTensorList", {ops::constant(s, -1), -1},
                     {{"element_dtype", kInt}})[0];
       },
       [](const Scope& in, const Output& i, const Output& v) {
         return in.op("TensorListPushBack", {v, i})[0];
       }},
      {"TensorListReserve", "TensorList[",
       [](const Scope& s) { return ops::constant(s, 1); },
       [](const Scope& in, const Output&, const Output& v) {
         const Output list =
             in.op("TensorListReserve", {-1, v}, {{"element_dtype", kInt}})[0];
         return ops::mul(in, in.op("TensorListLength", {list})[0], 2);
       }},
      {"TensorMapInsert", "TensorMap of ",
       [](const Scope& s) { return s.op("EmptyTensorMap", {})[0]; },
       [](const Scope& in, const Output& i, const Output& v) {
         return in.op("TensorMapInsert", {v, i, i})[0];
       }},
      {"OptionalFromValue", " needs ",
       [](const Scope& s) { return s.op("OptionalNone", {})[0]; },
       [](const Scope& in, const Output&, const Output& v) {
         return in.op("OptionalFromValue", {v},
                      {{"Toutput_types", Types{DataType::kVariant}}})[0];
       }},
      {"PersistentStackPush", "PersistentStack[",
       [](const Scope& s) {
         return s.op("PersistentStack", {}, {{"elem_type", kInt}})[0];
       },
       [](const Scope& in, const Output& i, const Output& v) {
         return in.op("PersistentStackPush", {v, i})[0];
       }},
      on_resource(
          "StackPushV2", "stack \"s\" with ",
          [](const Scope& s) {
            return s.op("StackV2", {-1},
                        {{"elem_type", kInt}, {"stack_name", "s"}})[0];
          },
          [](const Scope& in, const Output& stack, const Output& i) -> Outputs {
            return in.op("StackPushV2", {stack, i});
          }),
      on_resource(
          "TensorArrayWriteV3", "tensor array \"a\" with ",
          [](const Scope& s) {
            return s.op("TensorArrayV3", {0},
                        {{"dtype", kInt},
                         {"dynamic_size", true},
                         {"tensor_array_name", "a"}})[0];
          },
          [](const Scope& in, const Output& array, const Output& i) -> Outputs {
            return in.op("TensorArrayWriteV3", {array, i, i, 0.0f});
          }),
      on_resource(
          // The tensor, or the text of its handle.
          "GetSessionHandle", " needs ",
          [](const Scope& s) { return ops::constant(s, 0); },
          [](const Scope& in, const Output&, const Output& i) -> Outputs {
            return in.op("GetSessionHandle", {i});
          }),
      on_queue("FIFOQueueV2"),
      on_queue("RandomShuffleQueueV2"),
      on_queue("PriorityQueueV2"),
      on_table("MutableHashTableV2", kInt),
      on_table("MutableHashTableV2", DataType::kString),
      on_table("MutableHashTableOfTensorsV2", kInt,
               {{"value_shape", PartialShape({2000})}}),
      on_table("MutableDenseHashTableV2", kInt),
      on_resource(
          "Stage", "staging area \"a\" with ",
          [](const Scope& s) { return ops::constant(s, 0); },
          [](const Scope& in, const Output&, const Output& i) -> Outputs {
            return in.op("Stage", {i}, {{"shared_name", "a"}});
          }),
      on_resource(
          "MapStage", "staging area \"a\" with ",
          [](const Scope& s) { return ops::constant(s, 0); },
          [](const Scope& in, const Output&, const Output& i) -> Outputs {
            return in.op("MapStage",
                         {ops::cast(in, i, DataType::kInt64),
                          Tensor::vector<int32_t>({0}), i},
                         {{"shared_name", "a"}, {"dtypes", Types{kInt}}});
          }),
  };
  return programs;
}

// "y" of n trips.
Graph program_of(const Growing& growing) {
  Graph graph;
  const Scope s(graph);
  const Output n = ops::placeholder(s.named("n"), kInt, PartialShape::scalar());
  const Output first = growing.start(s);
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), growing.trip(in, v[0], v[1])};
      },
      {ops::constant(s, 0), first}, {.parallel_iterations = 1});
  ops::identity(s.with_control_dependencies({last[1]}).named("y"), last[0]);
  INFO(growing.op, ": ", s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

devices::MemoryStats memory_of(const Session& session) {
  return session.devices()[0]->memory();
}

}  // namespace

TEST_CASE("memory limit: strings and containers that grow exceed it by name") {
  for (const Growing& program : growing()) {
    CAPTURE(program.op);
    CAPTURE(program.what);
    SessionOptions options;
    options.devices = fmt::format("cpu:1:memory={}", kLimit);
    const auto session = make_session(options, program_of(program));
    // The second time is like the first: a failure leaves nothing.
    for (int i = 0; i < 2; ++i) {
      const Status status = session
                                ->run({{"n", Tensor::scalar(1'000'000)}}, {"y"},
                                      {}, within_a_minute())
                                .status();
      const std::string message(status.message());
      CAPTURE(message);
      CHECK(status.code() == Code::kResourceExhausted);
      CHECK(message.find(program.op) != message.npos);
      CHECK(message.find(program.what) != message.npos);
      CHECK(message.find(" bytes of ") != message.npos);
      CHECK(message.find("/device:CPU:0") != message.npos);
      CHECK(message.find("node \"") != message.npos);
      CHECK(memory_of(*session).peak <= kLimit);
      graph::testing::must(session->reset({""}));
      CHECK(memory_of(*session).in_use == 0);
    }
    const auto out = must_run(*session, {{"n", Tensor::scalar(3)}}, {"y"});
    CHECK(out[0].scalar_value<int32_t>() == 3);
    graph::testing::must(session->reset({""}));
    CHECK(memory_of(*session).in_use == 0);
  }
}

TEST_CASE("memory limit: without one, the same programs run") {
  for (const Growing& program : growing()) {
    CAPTURE(program.op);
    const auto session = make_session({}, program_of(program));
    const auto out = must_run(*session, {{"n", Tensor::scalar(4)}}, {"y"});
    CHECK(out[0].scalar_value<int32_t>() == 4);
  }
}

TEST_CASE("memory limit: a file that is read whole counts before it is read") {
  const auto path_of = [](const char* name) {
    return tagflow::testing::temp_path(fmt::format("counted_{}", name))
        .string();
  };
  std::ofstream(path_of("large")) << std::string(size_t(kLimit), 'x');
  std::ofstream(path_of("small")) << std::string(size_t(kLimit) / 2, 'x');
  Graph graph;
  const Scope s(graph);
  const Output path = ops::placeholder(s.named("path"), DataType::kString,
                                       PartialShape::scalar());
  ops::identity(s.named("y"),
                s.op("StringLength", {s.op("ReadFile", {path})[0]})[0]);
  SessionOptions options;
  options.devices = fmt::format("cpu:1:memory={}", kLimit);
  const auto session = make_session(options, graph);
  const auto read = [&](const char* name) {
    return session->run({{"path", Tensor::scalar(path_of(name))}}, {"y"});
  };
  const Status status = read("large").status();
  CAPTURE(status.to_string());
  CHECK(status.code() == Code::kResourceExhausted);
  // The file's bytes, one to find its end, and the string's last.
  CHECK(status.message().find(fmt::format("[ReadFile] out of memory: a string "
                                          "needs {} bytes of ",
                                          kLimit + 2)) != std::string::npos);
  CHECK(memory_of(*session).peak <= 64);
  const auto length = read("small");
  REQUIRE(length.ok());
  CHECK((*length)[0].scalar_value<int32_t>() == kLimit / 2);
  CHECK(memory_of(*session).peak <= kLimit / 2 + 128);
  CHECK(memory_of(*session).in_use == 0);
  for (const char* name : {"large", "small"})
    std::filesystem::remove(path_of(name));
}

TEST_CASE("memory limit: strings of a checkpoint count before they are read") {
  const std::string folder =
      tagflow::testing::temp_path("counted_strings").string();
  std::filesystem::create_directories(folder);
  Graph graph;
  const Scope s(graph);
  const Output prefix = ops::constant(s, Tensor::scalar(folder + "/c"));
  const Output name = ops::constant(s, Tensor::of<std::string>({1}, {"x"}));
  const Output all = ops::constant(s, Tensor::of<std::string>({1}, {""}));
  const Output text = ops::placeholder(s.named("text"), DataType::kString,
                                       PartialShape::scalar());
  const OpResult saved = s.op("SaveV2", {prefix, name, all, text},
                              {{"dtypes", Types{DataType::kString}}});
  ops::identity(s.with_control_dependencies(saved).named("saved"), text);
  const Output restored = s.op("RestoreV2", {prefix, name, all},
                               {{"dtypes", Types{DataType::kString}}})[0];
  ops::identity(s.named("y"), s.op("StringLength", {restored})[0]);
  REQUIRE(s.status().ok());
  SessionOptions options;
  options.devices = fmt::format("cpu:1:memory={}", kLimit);
  const auto session = make_session(options, graph);
  const auto restore = [&](int64_t bytes) {
    must_run(*session,
             {{"text", Tensor::scalar(std::string(size_t(bytes), 'x'))}},
             {"saved"});
    return session->run({}, {"y"});
  };
  const auto small = restore(kLimit / 3);
  REQUIRE(small.ok());
  CHECK((*small)[0].scalar_value<int32_t>() == kLimit / 3);
  const Status status = restore(kLimit).status();
  CAPTURE(status.to_string());
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message().find("[RestoreV2] ") != std::string::npos);
  CHECK(status.message().find("out of memory: the entry needs ") !=
        std::string::npos);
  CHECK(memory_of(*session).in_use == 0);
  std::filesystem::remove_all(folder);
}
