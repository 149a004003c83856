// What a saver makes of a save that did not end: of a process that was killed,
// or of a folder that was moved away.
#include "devices/files/state.h"
#include "tests/actors/checkpoint/saver_fixture.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::testing::must;

namespace {

constexpr const char* kData = ".data-00000-of-00001";

std::shared_ptr<Session> initialized() {
  auto session = make_session({}, counting());
  run_target(*session, "init");
  return session;
}

// Saves these steps; false if an operation on files failed.
bool saves(const Session& session, const SaverOptions& options,
           std::initializer_list<int64_t> steps) {
  const auto saver = make_saver(session, options);
  bool all = true;
  for (const int64_t step : steps) {
    must(saver->save(step));
    all = saver->wait().ok() && all;
  }
  return all;
}

std::vector<std::string> files_of(std::initializer_list<const char*> names) {
  std::vector<std::string> files = {"checkpoint"};
  for (const std::string name : names) {
    files.push_back(name + kData);
    files.push_back(name + ".index");
  }
  return files;
}

void copy(const Folder& folder, const std::string& from,
          const std::string& to) {
  for (const std::string end : {".index", kData})
    fs::copy(folder.path(from + end), folder.path(to + end));
}

// The list that a killed save left, with these as newest and others.
void leave_list(const Folder& folder, const std::string& newest,
                std::initializer_list<const char*> others) {
  std::ofstream list(folder.path("checkpoint.tmp-tagflow-0"));
  list << "model_checkpoint_path: \"" << newest << "\"\n";
  for (const char* name : others)
    list << "all_model_checkpoint_paths: \"" << name << "\"\n";
  list << "all_model_checkpoint_paths: \"" << newest << "\"\n";
}

}  // namespace

TEST_CASE("a save that is killed at any moment leaves nothing that stays") {
  const auto session = initialized();
  bool is_killed = true;
  int adopted = 0;
  for (int kill = 0; is_killed; ++kill) {
    CAPTURE(kill);
    const Folder folder("killed");
    CHECK(saves(*session, {.folder = folder.path()}, {1, 2}));
    std::atomic<int> operations = 0;
    checkpoint::HookedFiles files([&]() -> Status {
      if (operations++ < kill) return {};
      return error(Code::kAborted, "the process is dead");
    });
    is_killed = !saves(
        *session,
        {.folder = folder.path(), .keep = 2, .sync = false, .files = &files},
        {3});
    const bool is_left = fs::exists(folder.path("model.ckpt-3.index"));

    const auto saver =
        make_saver(*session, {.folder = folder.path(), .keep = 2});
    const auto restored = must(saver->restore());
    REQUIRE(restored.has_value());
    CHECK(restored->step == (is_left ? 3 : 2));
    CHECK(restored->damaged.empty());
    if (is_killed && is_left) ++adopted;
    // Not the step of the killed save, whose files would be written over.
    for (const int64_t step : {5, 6}) must(saver->save(step));
    must(saver->close());
    CHECK(folder.names() == files_of({"model.ckpt-5", "model.ckpt-6"}));
  }
  // Before the list got its name, and in each operation after it.
  CHECK(adopted > 1);
}

TEST_CASE("what a killed save announced is not what a user has made since") {
  const Folder folder("announced");
  const auto session = initialized();
  CHECK(saves(*session, {.folder = folder.path()}, {1, 2}));
  const auto next = [&](int64_t step) {
    CHECK(saves(*session, {.folder = folder.path(), .keep = 1}, {step}));
    CHECK(!fs::exists(folder.path("checkpoint.tmp-tagflow-0")));
  };
  // A copy of another step, under the name that the save would have used.
  copy(folder, "model.ckpt-2", "model.ckpt-3");
  leave_list(folder, "model.ckpt-3", {"model.ckpt-1", "model.ckpt-2"});
  next(4);
  CHECK(folder.names() == files_of({"model.ckpt-3", "model.ckpt-4"}));

  // Somebody has written the list since.
  fs::rename(folder.path("model.ckpt-4.index"), folder.path("best.index"));
  fs::rename(folder.path(std::string("model.ckpt-4") + kData),
             folder.path(std::string("best") + kData));
  std::ofstream(folder.path("checkpoint"))
      << "model_checkpoint_path: \"best\"\n";
  CHECK(saves(*session, {.folder = folder.path("other")}, {5}));
  for (const std::string end : {".index", kData})
    fs::copy(folder.path("other/model.ckpt-5" + end),
             folder.path("model.ckpt-5" + end));
  fs::remove_all(folder.path("other"));
  leave_list(folder, "model.ckpt-5", {"model.ckpt-4"});
  next(6);
  CHECK(fs::exists(folder.path("model.ckpt-5.index")));

  // Elsewhere, of another program, not complete, cut off.
  const Folder beside("beside");
  fs::copy(folder.path(), beside.path());
  leave_list(folder, beside.path("model.ckpt-5"), {"model.ckpt-6"});
  next(7);
  leave_list(folder, "best", {"model.ckpt-7"});
  next(8);
  std::ofstream(folder.path("checkpoint.tmp-tagflow-0")) << "model_checkp";
  next(9);
  CHECK(fs::exists(beside.path("model.ckpt-5.index")));
  CHECK(folder.names() == [] {
    auto names = files_of({"model.ckpt-3", "model.ckpt-5", "model.ckpt-9"});
    for (const std::string end : {".index", kData})
      names.push_back("best" + end);
    std::ranges::sort(names);
    return names;
  }());
}

TEST_CASE("a saver reads checkpoints in the file system that it is given") {
  const Folder folder("elsewhere");
  const auto session = initialized();
  CHECK(saves(*session, {.folder = folder.path()}, {1, 2}));
  // Instead of the index of checkpoint 1, this saver reads one of another
  // program, as if the folder had another content in its file system.
  write_bundle(folder.path("other"), {{"v", Tensor::scalar(1.0f)}});
  checkpoint::HookedFiles files([] { return Status(); });
  files.read_instead(folder.path("model.ckpt-1.index"),
                     folder.path("other.index"));
  const SaverOptions options = {
      .folder = folder.path(), .keep = 1, .sync = false, .files = &files};
  CHECK(saves(*session, options, {3}));
  CHECK(fs::exists(folder.path("model.ckpt-1.index")));
  CHECK_FALSE(fs::exists(folder.path("model.ckpt-2.index")));

  // It does not become the newest one, though a killed save has announced it.
  leave_list(folder, "model.ckpt-1", {"model.ckpt-3"});
  must(make_saver(*session, options)->close());
  CHECK(must(checkpoint::read_checkpoint_state(folder.path())).newest ==
        folder.path("model.ckpt-3"));
  CHECK(saves(*session, options, {4}));
  CHECK(fs::exists(folder.path("model.ckpt-1.index")));
  CHECK_FALSE(fs::exists(folder.path("model.ckpt-3.index")));

  // Without a list, each index is read. That of checkpoint 4 is missing in this
  // file system, though the local one, where the folder is searched, has it.
  fs::remove(folder.path("checkpoint"));
  files.read_instead(folder.path("model.ckpt-4.index"),
                     folder.path("none.index"));
  const auto newest =
      must(checkpoint::find_newest_checkpoint(folder.path(), {}, files));
  CHECK(newest.prefix != folder.path("model.ckpt-4"));
}

TEST_CASE(
    "a folder that is moved away while it is saved to is not made again") {
  const auto session = initialized();
  bool is_moved = true;
  for (int moment = 0; is_moved; ++moment) {
    CAPTURE(moment);
    const Folder folder("away");
    const std::string a = folder.path("a"), b = folder.path("b");
    CHECK(saves(*session, {.folder = a}, {1}));
    std::atomic<int> operations = 0;
    checkpoint::HookedFiles files([&]() -> Status {
      if (operations++ == moment) fs::rename(a, b);
      return {};
    });
    const auto saver = make_saver(
        *session, {.folder = a, .keep = 1, .sync = false, .files = &files});
    must(saver->save(2));
    const Status status = saver->wait();
    is_moved = fs::exists(b);
    if (!is_moved) continue;
    CHECK_FALSE(fs::exists(a));
    CHECK(status.code() == Code::kFailedPrecondition);
    CHECK(contains(error_of(status), "\"" + a + "\" was moved or removed"));
    must(saver->save(3));
    CHECK(saver->wait().code() == Code::kFailedPrecondition);
    CHECK_FALSE(fs::exists(a));
    static_cast<void>(saver->close());
    // Where it is now, all goes on.
    const auto other = make_saver(*session, {.folder = b, .keep = 1});
    CHECK(must(other->restore()).has_value());
    must(other->save(4));
    must(other->close());
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(b))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    CHECK(names == files_of({"model.ckpt-4"}));
  }
}
