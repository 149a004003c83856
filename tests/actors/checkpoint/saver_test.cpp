// Saver: checkpoints are of one moment, and complete or missing. A training
// resumes from one as if it had never ended.
#include "tests/actors/checkpoint/saver_fixture.h"
#include "tests/actors/pending.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

TEST_CASE("a saver saves nothing before the variables have values") {
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
  // If there are none, a checkpoint says the step.
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

TEST_CASE("so much time counts from the last save, or from the restore") {
  const Folder folder("due_again");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  std::chrono::steady_clock::time_point now;
  const auto wait_for = [&](int seconds) {
    now += std::chrono::seconds(seconds);
  };
  const auto start = [&] {
    return make_saver(*session, {.folder = folder.path(),
                                 .every = std::chrono::seconds(10),
                                 .clock = [&] { return now; }});
  };
  auto saver = start();
  // Whether that made it the last step that was saved.
  const auto saves = [&](int64_t step) {
    must(saver->save_if_due(step));
    must(saver->wait());
    return saver->saved_step() == step;
  };
  wait_for(9);
  CHECK_FALSE(saves(1));
  wait_for(1);
  CHECK(saves(2));
  CHECK_FALSE(saves(3));
  wait_for(9);
  CHECK_FALSE(saves(4));
  wait_for(1);
  CHECK(saves(5));
  // A save that nobody had to wait for counts, too.
  wait_for(5);
  must(saver->save(6));
  wait_for(9);
  CHECK_FALSE(saves(7));
  wait_for(1);
  CHECK(saves(8));
  must(saver->close());
  saver = start();
  wait_for(9);
  CHECK(must(saver->restore())->step == 8);
  wait_for(9);
  CHECK_FALSE(saves(9));
  wait_for(1);
  CHECK(saves(10));
}

TEST_CASE("steps count from a restore, but not from one that fails") {
  const Folder folder("due_after_restore");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  must(make_saver(*session, {.folder = folder.path()})->save(20));
  std::atomic<bool> fails = false;
  checkpoint::HookedFiles files([&] {
    return fails ? error(Code::kResourceExhausted, "the disk is full")
                 : Status();
  });
  for (int64_t k = 1;; k += 1 + k / 16) {
    CAPTURE(k);
    const auto saver = make_saver(
        *session,
        {.folder = folder.path(), .every_steps = 10, .files = &files});
    FailAllocation fail(k);
    const bool restored = saver->restore().ok();
    fail.stop();
    CHECK(saver->saved_step().has_value() == restored);
    // Whether a save is due, without one that is left behind.
    const auto is_due = [&](int64_t step) {
      fails = true;
      must(saver->save_if_due(step));
      const bool is_tried = !saver->wait().ok();
      fails = false;
      return is_tried;
    };
    CHECK(is_due(12) == !restored);
    if (restored) {
      CHECK(saver->saved_step() == 20);
      CHECK_FALSE(is_due(29));
      CHECK(is_due(30));
    }
    if (!fail.failed()) break;
  }
}

TEST_CASE("a save that fails before its snapshot does not put off the next") {
  const Folder folder("due_after_failure");
  const auto session = make_session({}, counting());
  std::chrono::steady_clock::time_point now;
  const auto saver = make_saver(*session, {.folder = folder.path(),
                                           .every_steps = 10,
                                           .every = std::chrono::seconds(10),
                                           .clock = [&] { return now; }});
  now += std::chrono::seconds(10);
  // No variable has a value.
  CHECK(saver->save_if_due(1).code() == Code::kFailedPrecondition);
  CHECK(saver->save_if_due(10).code() == Code::kFailedPrecondition);
  CHECK(saver->save_if_due(-1).code() == Code::kInvalidArgument);
  run_target(*session, "init");
  must(saver->save_if_due(1));
  must(saver->wait());
  CHECK(saver->saved_step() == 1);
  // Steps count from the save.
  must(saver->save_if_due(10));
  must(saver->wait());
  CHECK(saver->saved_step() == 1);
  must(saver->save_if_due(11));
  must(saver->wait());
  CHECK(saver->saved_step() == 11);
}

TEST_CASE("a write that fails is told once, and the next one is whole") {
  const Folder folder("failed_write");
  const auto session = make_session({}, counting());
  run_target(*session, "init");
  std::atomic<bool> fails = false;
  checkpoint::HookedFiles files([&] {
    return fails ? error(Code::kResourceExhausted, "the disk is full")
                 : Status();
  });
  const auto saver = make_saver(
      *session, {.folder = folder.path(), .every_steps = 1, .files = &files});
  must(saver->save(1));
  must(saver->wait());
  for (const int how : {0, 1, 2}) {
    CAPTURE(how);
    const auto names = folder.names();
    const int64_t last = *saver->saved_step();
    fails = true;
    must(saver->save(100 + how));
    // Whichever call comes next tells it.
    Status told;
    CHECK(comes_true([&] {
      told = how == 0   ? saver->wait()
             : how == 1 ? saver->save(200)
                        : saver->save_if_due(0);
      return !told.ok();
    }));
    CHECK(told.code() == Code::kResourceExhausted);
    fails = false;
    must(saver->wait());
    CHECK(saver->saved_step() == last);
    run_target(*session, "step");
    must(saver->save(last + 1));
    must(saver->wait());
    CHECK(saver->saved_step() == last + 1);
    CHECK(folder.names().size() == names.size() + 2);
  }
  // Closing tells it, too, and leaves the folder to the next.
  fails = true;
  must(saver->save(300));
  CHECK(saver->close().code() == Code::kResourceExhausted);
  fails = false;
  must(Saver::create(*session, {.folder = folder.path()}));
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
  CHECK(
      status.message() ==
      "[checkpoint] \"" + prefix +
          "\" is of another model: \"count\" is int32[], but the graph has "
          "int64[], \"m\" (float[3]) is not in it, \"w\" is float[2], but "
          "the graph has float[3], \"bias\" (float[]) is not a variable of the "
          "graph");
  CHECK(count_of(*session) == 1);

  // Further tensors do no harm to a reader, but they do to a saver.
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

TEST_CASE("a saver's last checkpoint is there wherever the process ends") {
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

TEST_CASE("a saver returns an error if memory is short") {
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
