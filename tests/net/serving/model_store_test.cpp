#include "net/serving/model_store.h"

#include <doctest/doctest.h>

#include <fstream>
#include <future>

#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

namespace fs = std::filesystem;
using State = VersionStatus::State;

// A model in a folder of versions, which tests add and remove.
class Versions {
 public:
  explicit Versions(const char* name) : folder_(name) {}
  std::string path() const { return folder_.path().string(); }
  void add(int version, const std::string& from = "half_plus/1") {
    fs::copy(served(from), folder_.path() / std::to_string(version));
  }
  // One that cannot be loaded.
  void add_broken(int version) {
    fs::create_directory(folder_.path() / std::to_string(version));
    write(version, "meta_graphs {");
  }
  void write(int version, const std::string& text) {
    std::ofstream(folder_.path() / std::to_string(version) /
                  "saved_model.pbtxt")
        << text;
  }
  void remove(int version) {
    fs::remove_all(folder_.path() / std::to_string(version));
  }

 private:
  testing::TempFolder folder_;
};

std::unique_ptr<ModelStore> store_of(const std::vector<ModelConfig>& configs) {
  ModelStore::Options options;
  options.poll_interval = {};
  options.loader = [](const std::string& model, int64_t version,
                      const std::string& folder,
                      const actors::CancelToken& stop) {
    return Servable::load(model, version, folder, {}, stop);
  };
  auto store = ModelStore::create(std::move(options)).value();
  REQUIRE(store->set_configs(configs).ok());
  return store;
}

std::string states(const ModelStore& store) {
  std::string text;
  const auto all = store.statuses({.name = "m"}).value();
  for (const VersionStatus& version : all)
    text += fmt::format("{}:{} ", version.version, state_name(version.state));
  return text;
}

TEST_CASE(
    "the newest version is served, and the old one when it is asked for") {
  Versions files("serving_newest");
  files.add(1);
  const auto store = store_of({{"m", files.path()}});
  CHECK(store->ready().code() == Code::kUnavailable);
  REQUIRE(store->look().ok());
  CHECK(store->ready().ok());
  CHECK(store->find({.name = "m"}).value()->version() == 1);
  files.add(3);
  {
    // A request that runs keeps its version.
    const auto used = store->find({.name = "m"}).value();
    REQUIRE(store->look().ok());
    CHECK(states(*store) == "3:AVAILABLE 1:UNLOADING ");
    CHECK(store->find({.name = "m"}).value()->version() == 3);
    CHECK(used->version() == 1);
  }
  REQUIRE(store->look().ok());
  CHECK(states(*store) == "3:AVAILABLE 1:END ");
  const Status gone = store->find({.name = "m", .version = 1}).status();
  CHECK(gone.code() == Code::kNotFound);
  CHECK(says(gone, "its state is END"));
}

TEST_CASE("a version that cannot be loaded leaves the old one") {
  Versions files("serving_broken");
  files.add(1);
  const auto store = store_of({{"m", files.path()}});
  REQUIRE(store->look().ok());
  files.add_broken(2);
  const Status failed = store->look();
  CHECK_FALSE(failed.ok());
  CHECK(says(failed, "version 2"));
  CHECK(states(*store) == "2:END 1:AVAILABLE ");
  CHECK(store->find({.name = "m"}).value()->version() == 1);
  CHECK_FALSE(
      store->statuses({.name = "m", .version = 2}).value()[0].status.ok());
  // Nothing has changed: it is not tried again.
  CHECK_FALSE(store->look().ok());
  files.remove(2);
  files.add(2);
  CHECK(store->look().ok());
  CHECK(store->find({.name = "m"}).value()->version() == 2);
}

// A model with variables, whose files are cut or vanish.
class Damaged {
 public:
  Damaged() {
    fs::copy(source_path("tests/apps/models/keras_lstm/model"), version(),
             fs::copy_options::recursive);
  }
  fs::path version() const { return folder_.path() / "1"; }
  std::string path() const { return folder_.path().string(); }

  static constexpr const char* kFiles[] = {
      "saved_model.pb", "variables/variables.index",
      "variables/variables.data-00000-of-00001"};

 private:
  testing::TempFolder folder_{"serving_damaged"};
};

TEST_CASE(
    "a model whose files are still being copied is loaded when they are") {
  const Damaged files;
  for (const char* name : Damaged::kFiles) {
    const fs::path file = files.version() / name;
    const fs::path whole = file.string() + ".whole";
    const auto size = fs::file_size(file);
    fs::copy(file, whole);
    // At its end the index has a magic number, and the data what is checked.
    for (const uintmax_t kept : {uintmax_t{0}, size / 3, size - 1}) {
      CAPTURE(name);
      CAPTURE(kept);
      const auto store = store_of({{"m", files.path()}});
      fs::resize_file(file, kept);
      const Status cut = store->look();
      CHECK_FALSE(cut.ok());
      CHECK(says(cut, "model \"m\", version 1: "));
      CHECK(says(cut, files.version().string()));
      CHECK_FALSE(store->look().ok());
      fs::copy(whole, file, fs::copy_options::overwrite_existing);
      const Status loaded = store->look();
      CHECK(loaded.to_string() == "OK");
    }
    fs::remove(whole);
  }
}

TEST_CASE("a model whose files vanish while it is loaded is an error") {
  for (const char* name : Damaged::kFiles) {
    CAPTURE(name);
    const Damaged files;
    ModelStore::Options options;
    options.poll_interval = {};
    options.loader = [&](const std::string& model, int64_t version,
                         const std::string& folder,
                         const actors::CancelToken& stop) {
      fs::remove(fs::path(folder) / name);
      return Servable::load(model, version, folder, {}, stop);
    };
    const auto store = ModelStore::create(std::move(options)).value();
    REQUIRE(store->set_configs({{"m", files.path()}}).ok());
    const Status gone = store->look();
    CHECK_FALSE(gone.ok());
    CHECK(says(gone, files.version().string()));
    CHECK(states(*store) == "1:END ");
  }
}

TEST_CASE("a model whose versions are all removed is still served") {
  Versions files("serving_removed");
  files.add(1);
  const auto store = store_of({{"m", files.path()}});
  REQUIRE(store->look().ok());
  files.remove(1);
  CHECK(store->look().code() == Code::kNotFound);
  CHECK(store->find({.name = "m"}).ok());
}

TEST_CASE("a policy chooses versions, and labels name them") {
  Versions files("serving_policy");
  for (int version : {1, 2, 3}) files.add(version);
  ModelConfig config{"m", files.path()};
  config.policy.kind = VersionPolicy::Kind::kSpecific;
  config.policy.specific = {1, 2};
  config.labels = {{"stable", 1}, {"lost", 3}};
  const auto store = store_of({config});
  REQUIRE(store->look().ok());
  CHECK(states(*store) == "2:AVAILABLE 1:AVAILABLE ");
  CHECK(store->find({.name = "m", .label = "stable"}).value()->version() == 1);
  CHECK(store->find({.name = "m", .label = "lost"}).status().code() ==
        Code::kNotFound);
  CHECK(store->find({.name = "m", .label = "x"}).status().code() ==
        Code::kInvalidArgument);
  CHECK(store->find({.name = "m", .version = 3}).status().code() ==
        Code::kNotFound);
  config.policy = {VersionPolicy::Kind::kLatest, 2, {}};
  REQUIRE(store->set_configs({config}).ok());
  REQUIRE(store->look().ok());
  CHECK(states(*store) == "3:AVAILABLE 2:AVAILABLE 1:END ");
}

TEST_CASE("a model that is no longer configured goes") {
  Versions files("serving_gone");
  files.add(1);
  const auto store = store_of({{"m", files.path()}});
  REQUIRE(store->look().ok());
  REQUIRE(store->set_configs({}).ok());
  REQUIRE(store->look().ok());
  CHECK(store->find({.name = "m"}).status().code() == Code::kNotFound);
  CHECK(store->names().empty());
}

TEST_CASE("a folder that is a model is version 1, and others are no versions") {
  const auto store = store_of({{"m", served("count")}});
  REQUIRE(store->look().ok());
  CHECK(states(*store) == "1:AVAILABLE ");
  Versions files("serving_others");
  files.add(7);
  fs::create_directory(fs::path(files.path()) / "8");  // without a model
  fs::copy(served("count"), fs::path(files.path()) / "new");
  REQUIRE(store->set_configs({{"m", files.path()}}).ok());
  REQUIRE(store->look().ok());
  CHECK(store->find({.name = "m"}).value()->version() == 7);
}

TEST_CASE("a model that uses files is not loaded") {
  const auto store = store_of({{"m", served("reads_file")}});
  const Status refused = store->look();
  CHECK(refused.code() == Code::kPermissionDenied);
  CHECK(says(refused, "node \"contents\" has the op ReadFile"));
  ServableOptions allowed;
  allowed.allows_file_ops = true;
  CHECK(Servable::load("m", 1, served("reads_file"), allowed).ok());
}

TEST_CASE("a load that never ends is given up when the store stops") {
  const std::string loading = served("never_loaded");
  for (const bool has_thread : {false, true}) {
    std::promise<void> begun;
    ModelStore::Options options;
    if (!has_thread) options.poll_interval = {};
    options.loader = [&](const std::string& model, int64_t version,
                         const std::string& folder,
                         const actors::CancelToken& stop) {
      begun.set_value();
      return Servable::load(model, version, folder, {}, stop);
    };
    const auto store = ModelStore::create(std::move(options)).value();
    REQUIRE(store->set_configs({{"m", loading}}).ok());
    std::future<Status> looked;
    if (!has_thread)
      looked = std::async(std::launch::async, [&] { return store->look(); });
    begun.get_future().wait();
    CHECK_FALSE(store->wait_until_idle(std::chrono::milliseconds(1)));
    store->stop();
    CHECK(store->wait_until_idle(std::chrono::seconds(120)));
    CHECK(states(*store) == "1:END ");
    const Status status = store->statuses({.name = "m"}).value().front().status;
    CHECK(status.code() == Code::kCancelled);
    CHECK(says(status, "the server ends"));
    if (looked.valid()) CHECK(looked.get().code() == Code::kCancelled);
    CHECK(store->look().code() == Code::kCancelled);
  }
}

TEST_CASE("a store that stops keeps what is loaded") {
  Versions files("serving_stopped");
  files.add(1);
  const auto store = store_of({{"m", files.path()}});
  REQUIRE(store->look().ok());
  store->stop();
  files.add(2);
  CHECK(store->look().code() == Code::kCancelled);
  CHECK(store->find({.name = "m"}).value()->version() == 1);
}

TEST_CASE("a thread of the store looks at folders by itself") {
  Versions files("serving_thread");
  files.add(1);
  ModelStore::Options options;
  options.poll_interval = std::chrono::milliseconds(1);
  options.loader = [](const std::string& model, int64_t version,
                      const std::string& folder,
                      const actors::CancelToken& stop) {
    return Servable::load(model, version, folder, {}, stop);
  };
  const auto store = ModelStore::create(std::move(options)).value();
  REQUIRE(store->set_configs({{"m", files.path()}}).ok());
  const auto wait_for = [&](int64_t version) {
    while (true) {
      const auto found = store->find({.name = "m"});
      if (found.ok() && (*found)->version() == version) return;
      std::this_thread::yield();
    }
  };
  wait_for(1);
  files.add(2);
  wait_for(2);
  while (states(*store) != "2:AVAILABLE 1:END ") std::this_thread::yield();
}

}  // namespace
}  // namespace tagflow::net::serving
