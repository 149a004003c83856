// Checkpoints have the contents of queues, tables, accumulators, staging areas
// and barriers: what a resumed session takes out is what the first one would
// have.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "graph/node.h"
#include "tests/actors/checkpoint/saver_fixture.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::testing::must;

namespace {

using graph::NodeDef;

struct Run {
  std::vector<Feed> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets = {};
};

struct Contents {
  std::vector<NodeDef> nodes;
  std::vector<Run> before;  // the save
  std::vector<Run> after;
};

NodeDef placeholder(const std::string& name, DataType dtype) {
  return {name, "Placeholder", {}, "", {{"dtype", dtype}}};
}

// A queue "q" of pairs, with "put" of "x" and "y", "get", and "close".
std::vector<NodeDef> queue_nodes(const std::string& op, DataType x, DataType y,
                                 AttrMap more = {}) {
  const std::vector<DataType> types = {x, y};
  AttrMap attrs{{"component_types", types}};
  for (auto& [name, value] : more) attrs.insert_or_assign(name, value);
  if (op == "PriorityQueueV2")  // which has the priority by itself
    attrs.insert_or_assign("component_types", std::vector<DataType>{y});
  return {
      placeholder("x", x),
      placeholder("y", y),
      {"q", op, {}, "", attrs},
      {"put", "QueueEnqueueV2", {"q", "x", "y"}, "", {{"Tcomponents", types}}},
      {"get", "QueueDequeueV2", {"q"}, "", {{"component_types", types}}},
      {"size", "QueueSizeV2", {"q"}, "", {}},
      {"close", "QueueCloseV2", {"q"}, "", {}}};
}

const Run kGet = {{}, {"get:0", "get:1"}};
const Run kClose = {{}, {}, {"close"}};

Run put(Tensor x, Tensor y) {
  return {{{"x", std::move(x)}, {"y", std::move(y)}}, {}, {"put"}};
}

// What the runs give, errors as their text.
std::vector<std::string> results_of(Session& session,
                                    const std::vector<Run>& runs) {
  std::vector<std::string> texts;
  for (const Run& run : runs) {
    const auto results =
        session.run(run.feeds, run.fetches, run.targets, within_a_minute());
    texts.push_back(results.status().to_string());
    if (!results.ok()) continue;
    for (const Tensor& value : *results)
      texts.push_back(value.describe() + value.to_string());
  }
  return texts;
}

std::unique_ptr<Session> session_of(const std::vector<NodeDef>& nodes) {
  auto session = must(create_session({}));
  must(session->extend(nodes));
  return session;
}

// Saves between the runs, and compares what comes after it with what a session
// gives that has restored the checkpoint, and one that has restored another
// checkpoint that this one has written before it used anything.
void check_saved(const Contents& contents) {
  const Folder first("contents"), second("contents_again");
  const auto session = session_of(contents.nodes);
  for (const std::string& text : results_of(*session, contents.before))
    CHECK(!contains(text, "Invalid"));
  {
    const auto saver = make_saver(*session, {.folder = first.path()});
    must(saver->save(1));
    must(saver->close());
    CHECK(saver->left_out().empty());
  }
  const auto expected = results_of(*session, contents.after);
  for (const auto* folders : {&first, &second}) {
    const auto other = session_of(contents.nodes);
    const auto saver = make_saver(*other, {.folder = folders->path()});
    REQUIRE(must(saver->restore()).has_value());
    if (folders == &first) {
      const auto again = make_saver(*other, {.folder = second.path()});
      must(again->save(2));
      must(again->close());
    }
    CHECK(results_of(*other, contents.after) == expected);
    must(saver->close());
  }
}

}  // namespace

TEST_CASE("a checkpoint has the elements of a queue, and that it is closed") {
  const auto text = [](const char* t) {
    return Tensor::scalar(std::string(t));
  };
  check_saved({queue_nodes("FIFOQueueV2", DataType::kFloat, DataType::kString),
               {put(Tensor::scalar(1.0f), text("a")),
                put(Tensor::vector<float>({2, 3}), text("")),
                put(Tensor::scalar(4.0f), text("c")), kGet, kClose},
               {{{}, {"size"}},
                kGet,
                kGet,
                put(Tensor::scalar(5.0f), text("d")),
                kGet}});
}

TEST_CASE("a queue that shuffles goes on with the same random numbers") {
  Contents contents;
  contents.nodes =
      queue_nodes("RandomShuffleQueueV2", DataType::kInt64, DataType::kBool,
                  {{"seed", int64_t(5)}, {"seed2", int64_t(6)}});
  for (int64_t i = 0; i < 40; ++i)
    contents.before.push_back(put(Tensor::scalar(i), Tensor::scalar(i > 3)));
  for (int i = 0; i < 7; ++i) contents.before.push_back(kGet);
  for (int i = 0; i < 33; ++i) contents.after.push_back(kGet);
  check_saved(contents);
}

TEST_CASE("a queue of priorities gives equal ones in the same order") {
  Contents contents;
  contents.nodes = queue_nodes(
      "PriorityQueueV2", DataType::kInt64, DataType::kInt32,
      {{"shapes", std::vector<PartialShape>{PartialShape::scalar()}}});
  for (int i = 0; i < 30; ++i)
    contents.before.push_back(
        put(Tensor::scalar(int64_t(i % 3)), Tensor::scalar(i)));
  for (int i = 0; i < 4; ++i) contents.before.push_back(kGet);
  for (int i = 0; i < 26; ++i) contents.after.push_back(kGet);
  check_saved(contents);
}

TEST_CASE("a checkpoint has the entries of a table in their order") {
  const AttrMap types{{"Tin", DataType::kString}, {"Tout", DataType::kInt64}};
  const Contents contents = {
      {placeholder("k", DataType::kString),
       placeholder("v", DataType::kInt64),
       {"t",
        "MutableHashTableV2",
        {},
        "",
        {{"key_dtype", DataType::kString}, {"value_dtype", DataType::kInt64}}},
       {"insert", "LookupTableInsertV2", {"t", "k", "v"}, "", types},
       {"remove",
        "LookupTableRemoveV2",
        {"t", "k"},
        "",
        {{"Tin", DataType::kString}}},
       {"all",
        "LookupTableExportV2",
        {"t"},
        "",
        {{"Tkeys", DataType::kString}, {"Tvalues", DataType::kInt64}}}},
      {{{{"k", Tensor::vector<std::string>({"a", "b", "c", "d"})},
         {"v", Tensor::vector<int64_t>({1, 2, 3, 4})}},
        {},
        {"insert"}},
       {{{"k", Tensor::vector<std::string>({"a"})}}, {}, {"remove"}}},
      {{{}, {"all:0", "all:1"}}}};
  check_saved(contents);
}

TEST_CASE("a table that is filled once is filled after a restore") {
  const AttrMap types{{"Tin", DataType::kInt64}, {"Tout", DataType::kString}};
  const Run find = {{{"k", Tensor::vector<int64_t>({7, 8, 9})}}, {"found"}};
  const Contents contents = {
      {placeholder("k", DataType::kInt64),
       placeholder("v", DataType::kString),
       {"t",
        "HashTableV2",
        {},
        "",
        {{"key_dtype", DataType::kInt64}, {"value_dtype", DataType::kString}}},
       {"fill",
        "InitializeTableV2",
        {"t", "k", "v"},
        "",
        {{"Tkey", DataType::kInt64}, {"Tval", DataType::kString}}},
       {"none",
        "Const",
        {},
        "",
        {{"dtype", DataType::kString},
         {"value", Tensor::scalar(std::string("?"))}}},
       {"found", "LookupTableFindV2", {"t", "k", "none"}, "", types}},
      {{{{"k", Tensor::vector<int64_t>({7, 8})},
         {"v", Tensor::vector<std::string>({"seven", "eight"})}},
        {},
        {"fill"}}},
      {find}};
  check_saved(contents);
  // One that is not filled still takes its values.
  check_saved(
      {contents.nodes, {{{}, {}, {"t"}}}, {find, contents.before[0], find}});
}

TEST_CASE("a checkpoint has the gradients and the step of accumulators") {
  const AttrMap dtype{{"dtype", DataType::kFloat}};
  AttrMap made = dtype;
  made.emplace("shape", PartialShape({2}));
  AttrMap sparse = dtype;
  sparse.emplace("shape", PartialShape({-1, 2}));
  AttrMap known = dtype;
  known.emplace("has_known_shape", false);
  const auto add = [](int64_t step, float first) {
    return Run{{{"step", Tensor::scalar(step)},
                {"g", Tensor::vector<float>({first, 1})}},
               {},
               {"add"}};
  };
  const auto add_rows = [](int64_t row, float first) {
    return Run{{{"step", Tensor::scalar<int64_t>(0)},
                {"rows", Tensor::vector<int64_t>({row})},
                {"values", Tensor::of<float>({1, 2}, {first, 1})},
                {"shape", Tensor::vector<int64_t>({9, 2})}},
               {},
               {"add_rows"}};
  };
  const Run take = {{{"n", Tensor::scalar(2)}}, {"take"}};
  const Run take_rows = {{{"n", Tensor::scalar(3)}},
                         {"take_rows:0", "take_rows:1", "take_rows:2"}};
  check_saved(
      {{placeholder("step", DataType::kInt64),
        placeholder("g", DataType::kFloat),
        placeholder("n", DataType::kInt32),
        placeholder("rows", DataType::kInt64),
        placeholder("values", DataType::kFloat),
        placeholder("shape", DataType::kInt64),
        {"a", "ResourceConditionalAccumulator", {}, "", made},
        {"add",
         "ResourceAccumulatorApplyGradient",
         {"a", "step", "g"},
         "",
         dtype},
        {"take", "ResourceAccumulatorTakeGradient", {"a", "n"}, "", dtype},
        {"b", "SparseConditionalAccumulator", {}, "", sparse},
        {"add_rows",
         "SparseAccumulatorApplyGradient",
         {"b", "step", "rows", "values", "shape"},
         "",
         known},
        {"take_rows", "SparseAccumulatorTakeGradient", {"b", "n"}, "", dtype}},
       {add(0, 1), add(0, 2), take, add(1, 5), add_rows(4, 1), add_rows(2, 8),
        add_rows(4, 4)},
       // The first one is late.
       {add(0, 100), add(1, 7), take, take_rows}});
}

TEST_CASE("a checkpoint has the tuples of staging areas, and parts of them") {
  const AttrMap two{
      {"dtypes", std::vector<DataType>{DataType::kFloat, DataType::kInt32}}};
  const AttrMap one{{"dtypes", two.at("dtypes")},
                    {"fake_dtypes", std::vector<DataType>{DataType::kInt32}}};
  const auto stage = [](float x, int y) {
    return Run{
        {{"x", Tensor::scalar(x)}, {"y", Tensor::scalar(y)}}, {}, {"stage"}};
  };
  const auto part = [](int64_t key, const char* target) {
    return Run{{{"key", Tensor::scalar(key)},
                {"x", Tensor::scalar(float(key))},
                {"y", Tensor::scalar(int(key))}},
               {},
               {target}};
  };
  NodeDef both = {"map_get", "MapUnstage", {"key", "both"}, "", two};
  NodeDef second = {
      "map_put_second", "MapStage", {"key", "second", "y"}, "", one};
  NodeDef whole = {
      "map_put",
      "MapStage",
      {"key", "both", "x", "y"},
      "",
      {{"dtypes", two.at("dtypes")}, {"fake_dtypes", two.at("dtypes")}}};
  NodeDef first = {"map_put_first",
                   "MapStage",
                   {"key", "first", "x"},
                   "",
                   {{"dtypes", two.at("dtypes")},
                    {"fake_dtypes", std::vector<DataType>{DataType::kFloat}}}};
  NodeDef left = {"left", "MapIncompleteSize", {}, "", two};
  for (NodeDef* const node : {&both, &second, &whole, &first, &left})
    node->attrs.emplace("shared_name", std::string("m"));
  const auto indices = [](const char* name, std::initializer_list<int> values) {
    return NodeDef{
        name,
        "Const",
        {},
        "",
        {{"dtype", DataType::kInt32}, {"value", Tensor::vector<int>(values)}}};
  };
  AttrMap named = two;
  named.emplace("shared_name", std::string("s"));
  const Run get = {{}, {"unstage:0", "unstage:1"}};
  const auto map_get = [](int64_t key) {
    return Run{{{"key", Tensor::scalar(key)}}, {"map_get:0", "map_get:1"}};
  };
  check_saved({{placeholder("x", DataType::kFloat),
                placeholder("y", DataType::kInt32),
                placeholder("key", DataType::kInt64),
                indices("both", {0, 1}),
                indices("first", {0}),
                indices("second", {1}),
                {"stage", "Stage", {"x", "y"}, "", named},
                {"unstage", "Unstage", {}, "", named},
                both,
                first,
                second,
                whole,
                left},
               {stage(1, 2), stage(3, 4), stage(5, 6), get, part(7, "map_put"),
                part(8, "map_put_second")},
               {get,
                get,
                {{}, {"left"}},
                map_get(7),
                part(8, "map_put_first"),
                map_get(8)}});
}

TEST_CASE("a checkpoint has the ready and the incomplete tuples of a barrier") {
  const std::vector<DataType> types = {DataType::kFloat, DataType::kFloat};
  const std::vector<PartialShape> shapes(2, PartialShape::scalar());
  const auto insert = [](const char* name, int64_t index) {
    return NodeDef{name,
                   "BarrierInsertMany",
                   {"b", "keys", "values"},
                   "",
                   {{"T", DataType::kFloat}, {"component_index", index}}};
  };
  const auto run = [](const char* target, std::vector<std::string> keys,
                      float value) {
    const std::vector<float> values(keys.size(), value);
    return Run{{{"keys", Tensor::of<std::string>({int64_t(keys.size())}, keys)},
                {"values", Tensor::of<float>({int64_t(keys.size())}, values)}},
               {},
               {target}};
  };
  const Run take = {{{"n", Tensor::scalar(2)}},
                    {"take:0", "take:1", "take:2", "take:3"}};
  check_saved({{placeholder("keys", DataType::kString),
                placeholder("values", DataType::kFloat),
                placeholder("n", DataType::kInt32),
                {"b",
                 "Barrier",
                 {},
                 "",
                 {{"component_types", types}, {"shapes", shapes}}},
                insert("first", 0),
                insert("second", 1),
                {"take",
                 "BarrierTakeMany",
                 {"b", "n"},
                 "",
                 {{"component_types", types}}},
                {"left", "BarrierIncompleteSize", {"b"}, "", {}}},
               {run("first", {"a", "b", "c"}, 1), run("second", {"c", "a"}, 2)},
               {{{}, {"left"}},
                take,
                run("second", {"b"}, 3),
                run("first", {"d"}, 4),
                run("second", {"d"}, 5),
                take}});
}

TEST_CASE("a save says which queue it has left out, and saves the others") {
  std::vector<NodeDef> nodes =
      queue_nodes("FIFOQueueV2", DataType::kFloat, DataType::kFloat);
  nodes.push_back(
      {"lists",
       "FIFOQueueV2",
       {},
       "",
       {{"component_types", std::vector<DataType>{DataType::kVariant}}}});
  nodes.push_back({"empty",
                   "EmptyTensorList",
                   {"shape", "n"},
                   "",
                   {{"element_dtype", DataType::kFloat},
                    {"shape_type", DataType::kInt32}}});
  nodes.push_back(placeholder("shape", DataType::kInt32));
  nodes.push_back(placeholder("n", DataType::kInt32));
  nodes.push_back(
      {"put_list",
       "QueueEnqueueV2",
       {"lists", "empty"},
       "",
       {{"Tcomponents", std::vector<DataType>{DataType::kVariant}}}});
  const auto session = session_of(nodes);
  must(session->run(
      {{"shape", Tensor::of<int>({0}, {})}, {"n", Tensor::scalar(1)}}, {},
      {"put_list"}));
  results_of(*session, {put(Tensor::scalar(1.0f), Tensor::scalar(2.0f))});
  const auto snapshot = must(must(Snapshots::create(*session))->take());
  REQUIRE(snapshot.left_out.size() == 1);
  CHECK(snapshot.left_out[0] ==
        "queue \"lists\": a tensor of variant cannot be written: its handles "
        "mean nothing outside this process");
  CHECK(snapshot.contents.size() == 1);
}

TEST_CASE("contents of a queue with other settings are an error of its node") {
  const auto session = session_of(
      queue_nodes("FIFOQueueV2", DataType::kFloat, DataType::kFloat));
  results_of(*session, {put(Tensor::scalar(1.0f), Tensor::scalar(2.0f))});
  const auto snapshot = must(must(Snapshots::create(*session))->take());
  const auto other = session_of(
      queue_nodes("FIFOQueueV2", DataType::kFloat, DataType::kInt32));
  must(must(Snapshots::create(*other))->restore(snapshot));
  const Status status = other->run({}, {"size"}).status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(contains(status.to_string(),
                 "component 1 of queue \"q\" takes int32, not float[]"));
}

TEST_CASE("damaged contents in a checkpoint are data loss") {
  const Folder folder("damaged_contents");
  const auto session = session_of(
      queue_nodes("FIFOQueueV2", DataType::kFloat, DataType::kFloat));
  const auto restore = [&](const Tensor& contents) {
    std::filesystem::create_directories(folder.path());
    write_bundle(folder.path("c"),
                 {{"_tagflow/step", Tensor::scalar<int64_t>(1)},
                  {"_tagflow/contents/0", contents}});
    return restore_checkpoint(*session, folder.path("c")).status();
  };
  CHECK(restore(Tensor::scalar(1.0f)).code() == Code::kDataLoss);
  CHECK(restore(Tensor::vector<std::string>({"queue", ""})).code() ==
        Code::kDataLoss);
  for (const char* text : {"", "\xff\xff", "\x08\x01"}) {
    INFO(text);
    must(restore(Tensor::vector<std::string>({"queue", "", "q", text})));
    CHECK(session->run({}, {"size"}).status().code() == Code::kDataLoss);
  }
}
