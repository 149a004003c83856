// Saver: checkpoints of one moment, whole or not there, from which a training
// goes on as if it had never ended.
#include "actors/saver.h"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "actors/shared_state.h"
#include "actors/snapshot.h"
#include "devices/checkpoint/bundle_writer.h"
#include "devices/checkpoint/safetensors.h"
#include "devices/checkpoint/state.h"
#include "devices/checkpoint/tensor_file.h"
#include "devices/device.h"
#include "graph/builder/builder.h"
#include "tests/actors/hooked_files.h"
#include "tests/actors/sessions.h"
#include "tests/failing_new.h"
#include "tests/graph/pbtxt.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

namespace fs = std::filesystem;

// Removed with its end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(tagflow::testing::temp_path("saver_" + name)) {
    fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  const fs::path path_;
};

// "init" and "step", which adds one to all elements of two variables and to
// "count".
Graph counting(int64_t size = 16) {
  Graph graph;
  const Scope s(graph);
  Outputs inits, steps;
  const Output ones =
      ops::fill(s, Tensor::of<int64_t>({1}, {size}), Tensor::scalar(1.0f));
  for (const std::string name : {"w", "m"}) {
    const auto variable =
        ops::variable(s.named(name), DataType::kFloat, PartialShape({size}));
    inits.push_back(ops::assign(s, variable, ops::zeros_like(s, ones)));
    steps.push_back(ops::assign_add(s, variable, ones));
  }
  const Output count = ops::reference_variable(
      s.named("count"), DataType::kInt64, PartialShape::scalar());
  inits.push_back(ops::assign(s, count, Tensor::scalar<int64_t>(0)));
  steps.push_back(ops::assign_add(s, count, Tensor::scalar<int64_t>(1)));
  ops::group(s.named("init"), inits);
  ops::group(s.named("step"), steps);
  // Never has a value.
  ops::variable(s.named("unset"), DataType::kFloat, PartialShape({2}));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

void run_target(Session& session, const std::string& target) {
  must(session.run({}, {}, {target}, within_a_minute()));
}

std::unique_ptr<Saver> make_saver(const Session& session,
                                  SaverOptions options) {
  return must(Saver::create(session, std::move(options)));
}

// Of a session that counts: what it has come to, where all variables agree.
int64_t count_of(Session& session) {
  const auto snapshot = must(must(Snapshots::create(session))->take());
  const auto count = snapshot.variables.at("count").scalar_value<int64_t>();
  for (const std::string name : {"w", "m"})
    for (const float value : snapshot.variables.at(name).flat<float>())
      CHECK(value == float(count));
  return count;
}

std::string error_of(const Status& status) { return status.to_string(); }
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

// One bundle of these.
void write_bundle(const std::string& prefix,
                  const std::map<std::string, Tensor>& tensors) {
  auto writer =
      must(checkpoint::BundleWriter::create(prefix, 1, {nullptr, false}));
  for (const auto& [name, tensor] : tensors) must(writer->add(name, tensor));
  must(writer->finish());
  must(writer->publish());
}

}  // namespace

TEST_CASE("a saver keeps the last checkpoints, and its folder lists them") {
  const Folder folder("keeps");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  const auto saver = make_saver(*session, {.folder = folder.path(), .keep = 2});
  CHECK_FALSE(must(saver->restore()).has_value());
  for (int64_t step = 0; step < 4; ++step) {
    must(saver->save(step));
    run_target(*session, "step");
  }
  must(saver->wait());
  CHECK(folder.names() == std::vector<std::string>{
                              "checkpoint", "model.ckpt-2.data-00000-of-00001",
                              "model.ckpt-2.index",
                              "model.ckpt-3.data-00000-of-00001",
                              "model.ckpt-3.index"});
  std::ifstream file(folder.path("checkpoint"));
  std::string first, second, third;
  std::getline(file, first);
  std::getline(file, second);
  std::getline(file, third);
  CHECK(first == "model_checkpoint_path: \"model.ckpt-3\"");
  CHECK(second == "all_model_checkpoint_paths: \"model.ckpt-2\"");
  CHECK(third == "all_model_checkpoint_paths: \"model.ckpt-3\"");

  // What is on the list is not written over.
  must(saver->save(3));
  must(saver->close());
  CHECK(fs::exists(folder.path("model.ckpt-3.1.index")));
  CHECK(saver->save(9).code() == Code::kFailedPrecondition);
  const auto other = make_session({}, counting());
  const auto restored = must(restore_checkpoint(*other, folder.path()));
  CHECK(restored.path == folder.path("model.ckpt-3.1"));
  CHECK(restored.step == 3);
  CHECK(restored.unused.empty());
  CHECK(count_of(*other) == 4);
  CHECK(must(restore_checkpoint(*other, folder.path("model.ckpt-3"))).step ==
        3);
  CHECK(count_of(*other) == 3);
}

TEST_CASE("no more stay than are to, though they cannot be listed") {
  const Folder folder("unlisted");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  fs::create_directories(folder.path("checkpoint"));
  const auto saver = make_saver(*session, {.folder = folder.path(), .keep = 2});
  for (int64_t step = 1; step <= 5; ++step) {
    must(saver->save(step));
    CHECK(contains(error_of(saver->wait()), "cannot rename a file to"));
  }
  CHECK(folder.names() == std::vector<std::string>{
                              "checkpoint", "model.ckpt-4.data-00000-of-00001",
                              "model.ckpt-4.index",
                              "model.ckpt-5.data-00000-of-00001",
                              "model.ckpt-5.index"});
  CHECK(must(saver->restore())->step == 5);
}

TEST_CASE("one saver at a time has a folder") {
  const Folder folder("lock");
  const auto session = make_session({}, counting());
  auto saver = make_saver(*session, {.folder = folder.path()});
  const Status refused =
      Saver::create(*session, {.folder = folder.path()}).status();
  CHECK(refused.code() == Code::kFailedPrecondition);
  CHECK(contains(error_of(refused), "somebody else is saving to the folder"));
  must(saver->close());
  saver = make_saver(*session, {.folder = folder.path()});
  for (const SaverOptions& wrong :
       {SaverOptions{}, SaverOptions{.folder = "x", .name = "a/b"},
        SaverOptions{.folder = "x", .keep = -1}})
    CHECK(Saver::create(*session, wrong).status().code() ==
          Code::kInvalidArgument);
  for (const int64_t step : {int64_t{-1}, (int64_t{1} << 53) + 1})
    CHECK(saver->save(step).code() == Code::kInvalidArgument);
}

TEST_CASE("a saver whose folder was moved saves nothing to another") {
  const Folder folder("moved");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  const auto saver = make_saver(*session, {.folder = folder.path("a")});
  must(saver->save(1));
  must(saver->wait());
  const auto refused = [&] {
    must(saver->save(2));
    const Status status = saver->wait();
    CHECK(status.code() == Code::kFailedPrecondition);
    return contains(error_of(status), "was moved or removed");
  };
  fs::rename(folder.path("a"), folder.path("b"));
  CHECK(refused());
  CHECK_FALSE(fs::exists(folder.path("a")));
  const auto other = make_saver(*session, {.folder = folder.path("a")});
  CHECK(refused());
  must(other->close());
  fs::remove_all(folder.path("a"));
  fs::rename(folder.path("b"), folder.path("a"));
  must(saver->save(3));
  must(saver->close());
}

TEST_CASE("what is left of earlier processes goes, and nothing else does") {
  const Folder folder("left");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  {
    const auto saver = make_saver(*session, {.folder = folder.path()});
    for (int64_t step = 1; step <= 3; ++step) must(saver->save(step));
    must(saver->close());
  }
  // One that went, but for its data; one that was complete, but not listed.
  fs::remove(folder.path("model.ckpt-2.index"));
  for (const std::string name :
       {"model.ckpt-4.index", "model.ckpt-4.data-00000-of-00001"})
    fs::copy(folder.path("model.ckpt-1" + name.substr(12)), folder.path(name));
  for (const char* name :
       {"model.ckpt-9.data-00000-of-00001.tmp-17-3", "checkpoint.tmp-1-0",
        "notes.tmp-1-0", "model.ckpt-9.tmp-x"})
    std::ofstream(folder.path(name)) << "x";
  const auto saver = make_saver(*session, {.folder = folder.path(), .keep = 3});
  const auto restored = must(saver->restore());
  REQUIRE(restored.has_value());
  CHECK(restored->step == 3);
  run_target(*session, "step");
  must(saver->save(4));
  must(saver->save(5));
  must(saver->wait());
  CHECK(folder.names() ==
        std::vector<std::string>{
            "checkpoint", "model.ckpt-3.data-00000-of-00001",
            "model.ckpt-3.index", "model.ckpt-4.1.data-00000-of-00001",
            "model.ckpt-4.1.index", "model.ckpt-4.data-00000-of-00001",
            "model.ckpt-4.index", "model.ckpt-5.data-00000-of-00001",
            "model.ckpt-5.index", "model.ckpt-9.tmp-x", "notes.tmp-1-0"});
}

TEST_CASE("what other programs have in the folder stays") {
  const Folder folder("others");
  fs::create_directories(folder.path());
  // A checkpoint of version 1 with its MetaGraph; what another saver has left;
  // what we have.
  for (const char* name :
       {"model.ckpt-5", "model.ckpt-5.meta", "model.ckpt-6-00000-of-00001",
        "model.ckpt-6.meta", "other-7.data-00000-of-00001",
        "model.ckpt-8.data-00000-of-00001"})
    std::ofstream(folder.path(name)) << "x";
  std::ofstream list(folder.path("checkpoint"));
  list << "model_checkpoint_path: \"model.ckpt-5\"\n";
  for (const char* name :
       {"model.ckpt-5", "model.ckpt-6", "other-7", "model.ckpt-8"})
    list << "all_model_checkpoint_paths: \"" << name << "\"\n";
  list.close();
  const auto session = make_session({}, counting());
  make_saver(*session, {.folder = folder.path()});
  CHECK(folder.names() == std::vector<std::string>{
                              "checkpoint", "model.ckpt-5", "model.ckpt-5.meta",
                              "model.ckpt-6-00000-of-00001",
                              "model.ckpt-6.meta",
                              "other-7.data-00000-of-00001"});
}

TEST_CASE("a folder whose checkpoints are damaged is not taken for an empty") {
  const Folder folder("damaged");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  {
    const auto saver = make_saver(*session, {.folder = folder.path()});
    must(saver->save(7));
    must(saver->close());
  }
  fs::resize_file(folder.path("model.ckpt-7.data-00000-of-00001"), 10);
  const auto names = folder.names();
  const auto saver = make_saver(*session, {.folder = folder.path()});
  const Status status = saver->restore().status();
  CHECK(status.code() == Code::kDataLoss);
  CHECK(contains(error_of(status), "there is no whole one in"));
  CHECK(contains(error_of(status), "model.ckpt-7"));
  CHECK(restore_checkpoint(*session, folder.path()).status().code() ==
        Code::kDataLoss);
  CHECK(folder.names() == names);
}

TEST_CASE("where a folder cannot be read, nobody saves to it") {
  const Folder folder("unread");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  {
    const auto saver = make_saver(*session, {.folder = folder.path()});
    must(saver->save(7));
    must(saver->close());
  }
  // The newest one is no file that could be damaged.
  fs::remove(folder.path("checkpoint"));
  fs::create_directory(folder.path("model.ckpt-8.index"));
  CHECK(contains(
      error_of(Saver::create(*session, {.folder = folder.path()}).status()),
      "model.ckpt-8.index\" is no regular file"));
  CHECK(restore_checkpoint(*session, folder.path()).status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("no checkpoint is written over, whether it is listed or not") {
  const Folder folder("over");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  fs::create_directories(folder.path());
  std::ofstream(folder.path("model.ckpt-1.index")) << "somebody's";
  const auto saver = make_saver(*session, {.folder = folder.path()});
  must(saver->save(1));
  must(saver->close());
  CHECK(fs::file_size(folder.path("model.ckpt-1.index")) == 10);
  CHECK(must(restore_checkpoint(*session, folder.path())).path ==
        folder.path("model.ckpt-1.1"));
}

TEST_CASE("a checkpoint with a wrong checksum is passed over for an older") {
  const Folder folder("checksum");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  {
    const auto saver = make_saver(*session, {.folder = folder.path()});
    for (const int64_t step : {1, 2}) {
      run_target(*session, "step");
      must(saver->save(step));
    }
    must(saver->close());
  }
  const auto spoil = [&](const std::string& name) {
    std::fstream file(folder.path(name),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3);
    file.put('x');
  };
  spoil("model.ckpt-2.data-00000-of-00001");
  const auto saver = make_saver(*session, {.folder = folder.path()});
  const auto restored = must(saver->restore());
  REQUIRE(restored.has_value());
  CHECK(restored->step == 1);
  CHECK(count_of(*session) == 1);
  REQUIRE(restored->damaged.size() == 1);
  CHECK_MESSAGE(contains(restored->damaged[0], "checksum"),
                restored->damaged[0]);
  CHECK(must(restore_checkpoint(*session, folder.path())).damaged.size() == 1);
  // By its prefix it is asked for alone.
  CHECK(restore_checkpoint(*session, folder.path("model.ckpt-2"))
            .status()
            .code() == Code::kDataLoss);

  spoil("model.ckpt-1.data-00000-of-00001");
  const Status none = saver->restore().status();
  CHECK(none.code() == Code::kDataLoss);
  CHECK_MESSAGE(contains(error_of(none), "to begin anew, take another folder"),
                error_of(none));
}

TEST_CASE("nothing is saved before the variables have values") {
  const Folder folder("before");
  const auto session = make_session({}, counting());
  const auto saver = make_saver(*session, {.folder = folder.path()});
  const Status status = saver->save(0);
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK_MESSAGE(
      contains(error_of(status), "variable \"count\" and all others are not"),
      error_of(status));
  must(saver->wait());
  CHECK_FALSE(must(saver->restore()).has_value());
  run_target(*session, "init");
  must(saver->save(0));
  must(saver->close());
  // Where there are none, a checkpoint says the step.
  const Folder other("no_variables");
  must(make_saver(*make_session({}, Graph()), {.folder = other.path()})
           ->save(1));
}

TEST_CASE("a saver that is closed waits for no moment to save") {
  const Folder folder("closed");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  const auto saver = make_saver(
      *session, {.folder = folder.path(), .every_steps = 1, .patience = {}});
  CHECK(saver->save(1).code() == Code::kDeadlineExceeded);
  must(saver->close());
  for (int i = 0; i < 2; ++i)
    CHECK(saver->save_if_due(1).code() == Code::kFailedPrecondition);
}

TEST_CASE("a save is due after so many steps, or so much time") {
  const Folder folder("due");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  const auto saved = [&](SaverOptions options, int64_t steps) {
    options.folder = folder.path();
    options.keep = 0;
    const auto saver = make_saver(*session, options);
    for (int64_t step = 1; step <= steps; ++step)
      must(saver->save_if_due(step));
    must(saver->close());
    int64_t count = 0;
    for (const std::string& name : folder.names())
      count += name.ends_with(".index");
    fs::remove_all(folder.path());
    return count;
  };
  CHECK(saved({}, 20) == 0);
  CHECK(saved({.every_steps = 7}, 20) == 2);
  CHECK(saved({.every = std::chrono::hours(1)}, 20) == 0);
  CHECK(saved({.every = std::chrono::nanoseconds(1)}, 20) == 20);
}

TEST_CASE("a checkpoint of another model is refused, with what differs") {
  const Folder folder("other");
  const auto session = make_session({}, counting(3));
  run_target(*session, "init");
  run_target(*session, "step");
  const Tensor three = Tensor::vector<float>({5, 5, 5});
  const std::map<std::string, Tensor> all = {
      {"w", three},
      {"m", three},
      {"count", Tensor::scalar<int64_t>(5)},
      {"unset", Tensor::vector<float>({1, 2})}};
  const std::string prefix = folder.path("theirs");

  auto wrong = all;
  wrong["w"] = Tensor::vector<float>({1, 2});
  wrong["count"] = Tensor::scalar<int32_t>(1);
  wrong.erase("m");
  wrong["bias"] = Tensor::scalar(1.0f);
  write_bundle(prefix, wrong);
  const Status status = restore_checkpoint(*session, prefix).status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message() ==
        "[checkpoint] \"" + prefix +
            "\" is of another model: \"count\" is int32[], but the graph has "
            "int64[], \"m\" (float[3]) is not in it, \"w\" is float[2], but "
            "the graph has float[3], \"bias\" (float[]) is no variable of the "
            "graph");
  CHECK(count_of(*session) == 1);

  // What is there besides is no harm to who only reads, but to who saves.
  auto more = all;
  more["bias"] = Tensor::scalar(1.0f);
  write_bundle(prefix, more);
  const auto saver = make_saver(*session, {.folder = folder.path()});
  CHECK(saver->restore().status().code() == Code::kInvalidArgument);
  CHECK(count_of(*session) == 1);
  const auto restored = must(restore_checkpoint(*session, prefix + ".index"));
  CHECK(restored.unused == std::vector<std::string>{"bias"});
  CHECK(restored.step == 0);
  CHECK(count_of(*session) == 5);

  CHECK(restore_checkpoint(*session, folder.path("none")).status().code() ==
        Code::kNotFound);
  const auto broken = [&](const std::map<std::string, Tensor>& tensors) {
    write_bundle(folder.path("broken"), tensors);
    return restore_checkpoint(*make_session({}, Graph()), folder.path("broken"))
        .status();
  };
  CHECK(broken({{"_tagflow/step", three}}).code() == Code::kDataLoss);
  const Tensor bound = Tensor::scalar(int64_t{1} << 53);
  const Tensor beyond = Tensor::scalar((int64_t{1} << 53) + 1);
  const Tensor seed = Tensor::scalar<uint64_t>(UINT64_MAX);
  must(broken({{"_tagflow/step", bound},
               {"_tagflow/seed", seed},
               {"_tagflow/runs/x", bound}}));
  CHECK(broken({{"_tagflow/step", beyond}}).code() == Code::kDataLoss);
  CHECK(broken({{"_tagflow/seed", seed}, {"_tagflow/runs/x", beyond}}).code() ==
        Code::kDataLoss);
}

TEST_CASE("variables of any type are saved, but none by a name of ours") {
  const Folder folder("types");
  Graph graph;
  const Scope s(graph);
  const auto words =
      ops::variable(s.named("words"), DataType::kString, PartialShape());
  const auto half = ops::variable(s.named("half"), DataType::kBFloat16, {2},
                                  {.container = "apart"});
  ops::group(
      s.named("init"),
      {ops::assign(s, words, Tensor::scalar("long enough to be no word")),
       ops::assign(s, half,
                   s.op("Cast", {Tensor::vector<float>({1.5f, -2})},
                        {{"DstT", DataType::kBFloat16}}))});
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  run_target(*session, "init");
  const auto saver = make_saver(*session, {.folder = folder.path()});
  must(saver->save(1));
  must(saver->close());
  const auto other = make_session({}, graph);
  must(restore_checkpoint(*other, folder.path()));
  const auto snapshot = must(must(Snapshots::create(*other))->take());
  CHECK(identical(snapshot.variables.at("words"),
                  Tensor::scalar("long enough to be no word")));
  CHECK(snapshot.variables.at("apart/half").describe() == "bfloat16[2]");

  ops::variable(s.named("v"), DataType::kFloat, {2},
                {.shared_name = "_tagflow/step"});
  const auto wrong = make_session({}, graph);
  run_target(*wrong, "init");
  const auto refused = make_saver(*wrong, {.folder = folder.path()});
  must(refused->save(2));
  const Status status = refused->wait();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(contains(error_of(status), "are the checkpoint's own"));
}

TEST_CASE("a variable whose object has a name of ours is not saved") {
  using namespace graph::pbtxt;
  const Folder folder("object");
  const Graph graph = must(read_graphdef_text(
      node("v", "VarHandleOp",
           type("dtype", "DT_FLOAT") + attr("shape", "shape {}")) +
      constant("one", "DT_FLOAT", "tensor_shape {} float_val: 1") +
      node("init", "AssignVariableOp",
           in("v one") + type("dtype", "DT_FLOAT")) +
      node("call", "StatefulPartitionedCall",
           in("v") + attr("f", "func { name: 'read' }") +
               attr("Tin", "list { type: DT_RESOURCE }") +
               attr("Tout", "list { type: DT_FLOAT }")) +
      R"(library { function {
        signature { name: 'read'
          input_arg { name: 'a' type: DT_RESOURCE }
          output_arg { name: 'y' type: DT_FLOAT } }
        node_def { name: 'it' op: 'ReadVariableOp' input: 'a'
          attr { key: 'dtype' value { type: DT_FLOAT } } }
        ret { key: 'y' value: 'it:value:0' } } })"));
  const auto session = make_session({}, graph);
  run_target(*session, "init");
  SaverOptions options = {.folder = folder.path()};
  graph::ObjectGraph& model = options.model.objects;
  model.objects.resize(4);
  model.captures["read"] = {3};
  int parent = 0;
  for (const std::string name : {"_tagflow", "runs", "x"}) {
    model.objects[size_t(parent)].children = {{name, parent + 1}};
    ++parent;
  }
  model.objects[3].is_variable = true;
  const auto saver = make_saver(*session, options);
  must(saver->save(1));
  CHECK(contains(error_of(saver->wait()),
                 "variable \"v\" cannot be saved as "
                 "\"_tagflow/runs/x/.ATTRIBUTES/VARIABLE_VALUE\""));
}

TEST_CASE("a safetensors file is restored, and leaves random numbers alone") {
  const Folder folder("safetensors");
  fs::create_directories(folder.path());
  const auto session = make_session({}, counting(2));
  const uint64_t seed = session->shared_state()->seed();
  session->shared_state()->run_counts().restore({{"x", 3}});
  std::vector<checkpoint::SafetensorsItem> items;
  const auto add = [&](const std::string& name, Tensor value) {
    items.push_back({name, value.dtype(), value.shape(),
                     [value]() -> Result<Tensor> { return value; }});
  };
  for (const std::string name : {"w", "m", "unset"})
    add(name, Tensor::vector<float>({8, 8}));
  add("count", Tensor::scalar<int64_t>(8));
  const std::string path = folder.path("model.safetensors");
  must(checkpoint::write_safetensors(path, std::move(items), {}));
  CHECK(must(restore_checkpoint(*session, path)).path == path);
  CHECK(count_of(*session) == 8);
  CHECK(session->shared_state()->seed() == seed);
  CHECK(session->shared_state()->run_counts().all().at("x") == 3);
}

TEST_CASE("wherever the process ends, the last checkpoint is there") {
  const Graph graph = counting();
  int ends = 0;
  for (bool survived = false; !survived; ++ends) {
    INFO("it ends before operation ", ends);
    const Folder folder("ends");
    std::atomic<int> left{-1};  // operations; negative: any number
    checkpoint::HookedFiles files([&]() -> Status {
      if (left < 0 || left-- > 0) return {};
      left = 0;
      return error(Code::kUnknown, "the process has ended");
    });
    {
      const auto session = make_session({}, graph);
      run_target(*session, "init");
      const auto saver = make_saver(
          *session, {.folder = folder.path(), .keep = 1, .files = &files});
      for (int64_t step = 1; step <= 2; ++step) {
        run_target(*session, "step");
        must(saver->save(step));
        must(saver->wait());
      }
      run_target(*session, "step");
      left = ends;
      must(saver->save(3));
      survived = saver->wait().ok();
    }
    left = -1;
    const auto session = make_session({}, graph);
    const auto saver = make_saver(
        *session, {.folder = folder.path(), .keep = 1, .files = &files});
    const auto restored = must(saver->restore());
    REQUIRE(restored.has_value());
    CHECK((restored->step == 2 || restored->step == 3));
    CHECK(count_of(*session) == restored->step);
    // Who goes on leaves no more behind than who was never interrupted, but for
    // one that was complete, and not listed: it is not written over.
    const bool is_left =
        restored->step == 2 && fs::exists(folder.path("model.ckpt-3.index"));
    for (int64_t step = restored->step; step < 4;) {
      run_target(*session, "step");
      must(saver->save(++step));
    }
    must(saver->close());
    std::vector<std::string> names = {
        "checkpoint", "model.ckpt-4.data-00000-of-00001", "model.ckpt-4.index"};
    if (is_left)
      names.insert(names.begin() + 1,
                   {"model.ckpt-3.data-00000-of-00001", "model.ckpt-3.index"});
    CHECK(folder.names() == names);
    CHECK(must(restore_checkpoint(*session, folder.path())).step == 4);
    CHECK(count_of(*session) == 4);
  }
  CHECK(ends > 15);
}

TEST_CASE(
    "an error of the writing comes with the next call, and loses nothing") {
  const Graph graph = counting();
  for (int failing = 0;; ++failing) {
    INFO("operation ", failing, " fails");
    const Folder folder("fails");
    std::atomic<int> left{-1};
    checkpoint::HookedFiles files([&]() -> Status {
      if (left < 0 || left-- > 0) return {};
      return error(Code::kResourceExhausted, "the disk is full");
    });
    const auto session = make_session({}, graph);
    run_target(*session, "init");
    const auto saver = make_saver(
        *session, {.folder = folder.path(), .every_steps = 1, .files = &files});
    run_target(*session, "step");
    must(saver->save(1));
    must(saver->wait());
    run_target(*session, "step");
    left = failing;
    must(saver->save(2));
    Status status;
    switch (failing % 3) {
      case 0:
        status = saver->wait();
        break;
      case 1:
        status = saver->save_if_due(3);
        break;
      default:
        status = saver->save(3);
    }
    if (status.ok()) {
      CHECK(failing > 8);
      break;
    }
    CHECK(status.code() == Code::kResourceExhausted);
    CHECK(contains(error_of(status),
                   "[saver] the checkpoint of step 2: the disk is full"));
    // Once.
    must(saver->wait());
    const auto other = make_session({}, graph);
    const auto restored = must(restore_checkpoint(*other, folder.path()));
    CHECK(restored.step >= 1);
    CHECK(count_of(*other) == restored.step);
    run_target(*session, "step");
    must(saver->save(3));
    must(saver->close());
    CHECK(must(restore_checkpoint(*other, folder.path())).step == 3);
    CHECK(count_of(*other) == 3);
  }
}

TEST_CASE("where memory is short, what is asked of a state is an error") {
  const Folder folder("short");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  must(make_saver(*session, {.folder = folder.path()})->save(1));
  const auto snapshots = must(Snapshots::create(*session));
  const auto saver = make_saver(*session, {.folder = folder.path()});
  const std::string prefix = folder.path("model.ckpt-1");
  const std::vector<std::string> containers = {""};
  SaverOptions other;
  const std::vector<std::function<Status()>> calls = {
      [&] { return Snapshots::create(*session).status(); },
      [&] { return snapshots->take().status(); },
      [&] { return Saver::create(*session, std::move(other)).status(); },
      [&] { return restore_checkpoint(*session, prefix).status(); },
      [&] { return saver->restore().status(); },
      [&] { return session->reset(containers); }};
  for (size_t i = 0; i < calls.size(); ++i) {
    INFO("call ", i);
    // Sooner or later each kind of allocation.
    for (int64_t k = 1;; k += 1 + k / 16) {
      other = {.folder = folder.path("other")};
      FailAllocation fail(k);
      const Status status = calls[i]();
      const bool failed = fail.failed();
      fail.stop();
      INFO(k, ": ", status.to_string());
      CHECK((status.ok() || failed));
      if (!failed) break;
    }
  }
  must(saver->restore());
  must(saver->save(2));
  must(saver->close());
}

TEST_CASE("a snapshot takes no more memory than the variables have") {
  constexpr int64_t kSize = int64_t{1} << 20;
  constexpr int64_t kVariables = 2 * kSize * int64_t{sizeof(float)};
  constexpr int64_t kSlack = int64_t{1} << 20;
  const Folder folder("memory");
  std::mutex mutex;
  std::condition_variable changed;
  bool is_held = false;
  int held = 0;
  checkpoint::HookedFiles files([&]() -> Status {
    std::unique_lock lock(mutex);
    if (is_held) ++held;
    changed.notify_all();
    changed.wait(lock, [&] { return !is_held; });
    return {};
  });
  SessionOptions options;
  options.devices = "cpu:1:memory=1GiB";
  const auto session = make_session(options, counting(kSize));
  const auto memory = [&] { return session->devices()[0]->memory(); };
  run_target(*session, "init");
  for (int i = 0; i < 3; ++i) run_target(*session, "step");
  const int64_t without = memory().peak;
  CHECK(without >= kVariables);
  const auto saver =
      make_saver(*session, {.folder = folder.path(), .files = &files});
  for (int64_t step = 0; step < 5; ++step) {
    must(saver->wait());
    {
      std::lock_guard lock(mutex);
      is_held = true;
      held = 0;
    }
    must(saver->save(step));
    {  // The writer is at its first operation, and has all of the snapshot.
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return held > 0; });
    }
    for (int i = 0; i < 3; ++i) run_target(*session, "step");
    {
      std::lock_guard lock(mutex);
      is_held = false;
      changed.notify_all();
    }
  }
  must(saver->close());
  CHECK(memory().peak > without);  // it is counted
  CHECK(memory().peak <= without + kVariables + kSlack);
  CHECK(count_of(*session) == 18);
}
