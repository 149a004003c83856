// The folder of a saver: which checkpoints it keeps and removes, and which one
// is the newest.
#include "devices/files/bundle_writer.h"
#include "devices/files/state.h"
#include "tests/actors/checkpoint/saver_fixture.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

// A session whose variables have values.
std::shared_ptr<Session> initialized() {
  auto session = make_session({}, counting());
  run_target(*session, "init");
  return session;
}

// What an earlier process saved.
void save_steps(const Session& session, const Folder& folder,
                std::initializer_list<int64_t> steps) {
  const auto saver = make_saver(session, {.folder = folder.path()});
  for (const int64_t step : steps) must(saver->save(step));
  must(saver->close());
}

}  // namespace

TEST_CASE("a saver keeps the last checkpoints, and its folder lists them") {
  const Folder folder("keeps");
  const auto session = initialized();
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

TEST_CASE("a saver removes old checkpoints though the list cannot be written") {
  const Folder folder("unlisted");
  const auto session = initialized();
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

TEST_CASE("a saver locks its folder against other savers") {
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
  const auto session = initialized();
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

TEST_CASE("a saver removes only what earlier processes have left") {
  const Folder folder("left");
  const auto session = initialized();
  save_steps(*session, folder, {1, 2, 3});
  // One that went, but for its data; one that was complete, but not listed.
  fs::remove(folder.path("model.ckpt-2.index"));
  for (const std::string name :
       {"model.ckpt-4.index", "model.ckpt-4.data-00000-of-00001"})
    fs::copy(folder.path("model.ckpt-1" + name.substr(12)), folder.path(name));
  for (const char* name : {"model.ckpt-9.data-00000-of-00001.tmp-tagflow-3",
                           "checkpoint.tmp-tagflow-0", "notes.tmp-tagflow-0",
                           "model.ckpt-9.tmp-x"})
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
            "model.ckpt-5.index", "model.ckpt-9.tmp-x", "notes.tmp-tagflow-0"});
}

TEST_CASE("a saver keeps the files of other programs in its folder") {
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

TEST_CASE("checkpoints of other programs stay, and do not count") {
  const Folder folder("foreign");
  const auto session = initialized();
  save_steps(*session, folder, {1});
  // Beside a MetaGraph, it is the model's.
  std::ofstream(folder.path("model.ckpt-1.meta")) << "x";
  // As TensorFlow's are, without a number of steps.
  const auto writer = must(
      checkpoint::BundleWriter::create(folder.path("model.ckpt-2"), 1, {}));
  must(writer->add("count", Tensor::scalar(int64_t(5))));
  must(writer->finish());
  must(writer->publish());
  std::ofstream(folder.path("checkpoint"))
      << "model_checkpoint_path: \"model.ckpt-2\"\n"
         "all_model_checkpoint_paths: \"model.ckpt-1\"\n"
         "all_model_checkpoint_paths: \"model.ckpt-2\"\n";
  const auto theirs = folder.names();
  const auto saver = make_saver(*session, {.folder = folder.path(), .keep = 1});
  for (int64_t step = 3; step <= 5; ++step) must(saver->save(step));
  must(saver->close());
  auto names = folder.names();
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with("model.ckpt-5.");
  });
  CHECK(names == theirs);
  CHECK(fs::exists(folder.path("model.ckpt-5.index")));
  const auto list = must(checkpoint::read_checkpoint_state(folder.path()));
  CHECK(list.all == std::vector<std::string>{folder.path("model.ckpt-1"),
                                             folder.path("model.ckpt-2"),
                                             folder.path("model.ckpt-5")});
}

TEST_CASE("a copy that is taken for a damaged checkpoint stays") {
  const Folder folder("copy");
  const auto session = initialized();
  save_steps(*session, folder, {1});
  for (const std::string end : {".index", ".data-00000-of-00001"})
    fs::rename(folder.path("model.ckpt-1" + end), folder.path("best-1" + end));
  const auto saver = make_saver(*session, {.folder = folder.path(), .keep = 1});
  REQUIRE(must(saver->restore())->step == 1);
  // Nor is a MetaGraph that is there before the checkpoint, or comes after it.
  std::ofstream(folder.path("model.ckpt-2.meta")) << "x";
  for (int64_t step = 2; step <= 3; ++step) must(saver->save(step));
  must(saver->wait());
  std::ofstream(folder.path("model.ckpt-3.meta")) << "x";
  must(saver->save(4));
  must(saver->close());
  CHECK(fs::exists(folder.path("best-1.index")));
  CHECK(fs::exists(folder.path("model.ckpt-2.meta")));
  CHECK(fs::exists(folder.path("model.ckpt-3.meta")));
  CHECK(!fs::exists(folder.path("model.ckpt-2.1.index")));
}

TEST_CASE("a saver removes whole checkpoints in order, the newest one last") {
  const Folder folder("copies");
  const auto session = initialized();
  save_steps(*session, folder, {1, 2, 2, 3});
  fs::resize_file(folder.path("model.ckpt-3.data-00000-of-00001"), 10);
  const auto saver = make_saver(*session, {.folder = folder.path(), .keep = 3});
  // One that is named as the newest, and is not the last.
  std::ofstream(folder.path("checkpoint"))
      << "model_checkpoint_path: \"model.ckpt-1\"\n";
  CHECK(must(restore_checkpoint(*session, folder.path())).path ==
        folder.path("model.ckpt-1"));
  fs::remove(folder.path("checkpoint"));
  CHECK(must(saver->restore())->path == folder.path("model.ckpt-2.1"));
  must(saver->save(4));
  must(saver->close());
  for (const std::string name :
       {"model.ckpt-2", "model.ckpt-2.1", "model.ckpt-4"})
    CHECK_MESSAGE(fs::exists(folder.path(name + ".index")), name);
}

TEST_CASE("damaged checkpoints go before whole ones") {
  const Folder folder("damaged_first");
  const auto session = initialized();
  save_steps(*session, folder, {1, 2, 3, 4});
  for (const char* name : {"model.ckpt-3", "model.ckpt-4"})
    fs::resize_file(folder.path(std::string(name) + ".data-00000-of-00001"),
                    10);
  const auto saver = make_saver(*session, {.folder = folder.path(), .keep = 3});
  REQUIRE(must(saver->restore())->step == 2);
  must(saver->save(5));
  must(saver->close());
  for (const int step : {1, 2, 5})
    CHECK(fs::exists(folder.path(fmt::format("model.ckpt-{}.index", step))));
  for (const int step : {3, 4})
    CHECK(!fs::exists(folder.path(fmt::format("model.ckpt-{}.index", step))));
}

TEST_CASE("a folder whose checkpoints are damaged is not taken for an empty") {
  const Folder folder("damaged");
  const auto session = initialized();
  save_steps(*session, folder, {7});
  fs::resize_file(folder.path("model.ckpt-7.data-00000-of-00001"), 10);
  const auto names = folder.names();
  const auto saver = make_saver(*session, {.folder = folder.path()});
  const Status status = saver->restore().status();
  CHECK(status.code() == Code::kDataLoss);
  CHECK(contains(error_of(status), "there is no complete checkpoint in"));
  CHECK(contains(error_of(status), "model.ckpt-7"));
  CHECK(restore_checkpoint(*session, folder.path()).status().code() ==
        Code::kDataLoss);
  CHECK(folder.names() == names);
}

TEST_CASE("a saver refuses a folder that cannot be read") {
  const Folder folder("unread");
  const auto session = initialized();
  save_steps(*session, folder, {7});
  // The newest one is not a file that could be damaged.
  fs::remove(folder.path("checkpoint"));
  fs::create_directory(folder.path("model.ckpt-8.index"));
  CHECK(contains(
      error_of(Saver::create(*session, {.folder = folder.path()}).status()),
      "model.ckpt-8.index\" is not a regular file"));
  CHECK(restore_checkpoint(*session, folder.path()).status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("no checkpoint is written over, whether it is listed or not") {
  const Folder folder("over");
  const auto session = initialized();
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
  const auto session = initialized();
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
  CHECK_MESSAGE(contains(error_of(none), "to start anew, use another folder"),
                error_of(none));
}

TEST_CASE("a save is an error if its folder cannot be searched") {
  const Folder folder("blind");
  checkpoint::HookedFiles files([] { return Status(); });
  const auto session = initialized();
  const auto saver =
      make_saver(*session, {.folder = folder.path(), .files = &files});
  must(saver->save(1));
  must(saver->wait());
  files.turn_blind();
  must(saver->save(2));
  const Status status = saver->close();
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message().find("or its folder cannot be searched") !=
        std::string::npos);
}

TEST_CASE("a name that is too long for files is refused at once") {
  const Folder folder("long");
  const auto session = initialized();
  const auto create = [&](size_t length) {
    return Saver::create(
        *session, {.folder = folder.path(), .name = std::string(length, 'x')});
  };
  CHECK(create(201).status().code() == Code::kInvalidArgument);
  const auto saver = must(create(200));
  must(saver->save(1));
  must(saver->close());
}
