// Models of strangers, whose ops may read their own folder only.
#include "tests/actors/checkpoint/saved_model_fixture.h"
#include "tests/source_path.h"

namespace tagflow::actors {
namespace {

using graph::OpPolicy;

SessionOptions for_strangers(const fs::path& folder) {
  SessionOptions options;
  options.policy = OpPolicy::stranger(folder.string());
  return options;
}

// kLinear with a saver, and an init op "init" that runs "first".
std::string with_init(const std::string& nodes) {
  return with_nodes(kLinear, saver_nodes("other") + nodes +
                                 node("init", "NoOp", in("^first"))) +
         kSaver + kObjects +
         R"(collection_def { key: 'saved_model_main_op'
              value { node_list { value: 'init' } } } )";
}

std::string path_node(const std::string& path) {
  return scalar("path", "DT_STRING", "string_val: '" + path + "'");
}

// The folder has a checkpoint for the saver, and an asset.
struct StrangersFolder : ModelFolder {
  explicit StrangersFolder(const char* name) : ModelFolder(name) {
    auto values = linear_values();
    values.emplace("other", Tensor::scalar(7.0f));
    write_variables(values);
    write("assets/words.txt", "a");
  }
};

}  // namespace

TEST_CASE("a stranger's model has its checkpoint and its assets") {
  const StrangersFolder folder("stranger");
  const std::string init =
      node("asset", "Placeholder",
           type("dtype", "DT_STRING") + attr("shape", "shape {}")) +
      node("contents", "ReadFile", in("asset")) + variable("t", "DT_STRING") +
      assign("first", "t contents", "DT_STRING") +
      node("text", "ReadVariableOp", in("t") + type("dtype", "DT_STRING"));
  const fs::path path =
      folder.write_model(with_init(init) +
                         "asset_file_def { tensor_info { name: 'asset:0' } "
                         "filename: 'words.txt' } ");
  for (const fs::path& way :
       {path, fs::relative(path), path / "saved_model.pb"}) {
    const auto model =
        must(SavedModel::load(way, for_strangers(folder.path())));
    CHECK(apply(*model, 2) == 13);
    CHECK(must(model->session().run({}, {"text"}))[0]
              .scalar_value<std::string>() == "a");
  }
}

TEST_CASE("a stranger's init op is refused before it uses other files") {
  const StrangersFolder folder("stranger");
  const ModelFolder others("others");
  const fs::path theirs = others.write("file", "theirs");
  const fs::path made = others.path() / "new/file";
  const std::string read = node("first", "ReadFile", in("path"));
  const std::string write = scalar("c", "DT_STRING", "string_val: 'forged'") +
                            node("first", "WriteFile", in("path c"));
  const auto load = [&](const std::string& init,
                        const SessionOptions& options) {
    const fs::path model = folder.write_model(with_init(init));
    return message_of(SavedModel::load(model, options).status(),
                      Code::kPermissionDenied);
  };
  const SessionOptions options = for_strangers(folder.path());
  CHECK(contains(load(path_node(theirs.string()) + read, options),
                 "\"" + theirs.string() + "\" is not beneath"));
  CHECK(
      contains(load(path_node(made.string()) + write, options), made.string()));
  CHECK(!fs::exists(made.parent_path()));
  // Nor does it write its own folder.
  const fs::path own = folder.path() / "file";
  CHECK(contains(load(path_node(own.string()) + write, options), own.string()));
  CHECK(!fs::exists(own));

  SessionOptions denying;
  denying.policy.denied = {"WriteFile"};
  CHECK(contains(load(path_node(made.string()) + write, denying),
                 "node \"first\" has the op WriteFile"));
  SessionOptions none;
  none.policy.reads = none.policy.writes = graph::FileScope::nowhere();
  CHECK(contains(load(path_node(made.string()) + write, none),
                 "has the op RestoreV2, which uses files"));
  CHECK(!fs::exists(made.parent_path()));
}

TEST_CASE("a stranger's saver is refused before it reads another checkpoint") {
  const StrangersFolder folder("stranger");
  const std::string model = with_init(node("first", "NoOp", ""));
  const fs::path path = folder.write_model(model);
  CHECK(apply(*must(SavedModel::load(path, for_strangers(path))), 2) == 13);
  const ModelFolder others("others");
  CHECK(contains(
      message_of(SavedModel::load(path, for_strangers(others.path())).status(),
                 Code::kPermissionDenied),
      "variables/variables.index\" is not beneath"));
}

TEST_CASE("a stranger's model has no links to files that its ops cannot read") {
  // Without a saver, whose ops would refuse them.
  const std::string model = kLinear + kObjects;
  ModelFolder others("others");
  others.write_variables(linear_values());
  others.write_model(model);
  SessionOptions no_files;
  no_files.policy.reads = no_files.policy.writes = graph::FileScope::nowhere();
  SessionOptions all_models;
  all_models.policy.reads =
      graph::FileScope::beneath(others.path().parent_path().string());
  const std::string data = "variables/variables.data-00000-of-00001";
  for (const std::string& name :
       {std::string("variables/variables.index"), data,
        std::string("variables"), std::string("saved_model.pb")}) {
    CAPTURE(name);
    ModelFolder folder("stranger");
    folder.write_variables(linear_values());
    folder.write_model(model);
    for (const SessionOptions& options :
         {for_strangers(folder.path()), no_files})
      CHECK(apply(*must(SavedModel::load(folder.path(), options)), 2) == 11);

    fs::remove_all(folder.path() / name);
    fs::create_symlink(others.path() / name, folder.path() / name);
    for (const SessionOptions& options :
         {for_strangers(folder.path()), no_files}) {
      const std::string text =
          message_of(SavedModel::load(folder.path(), options).status(),
                     Code::kPermissionDenied);
      CHECK(contains(text, "the link \"" + (folder.path() / name).string()));
      CHECK(
          contains(text, "outside of the folder \"" + folder.path().string()));
    }
    for (const SessionOptions& options : {SessionOptions(), all_models})
      CHECK(apply(*must(SavedModel::load(folder.path(), options)), 2) == 11);
  }
}

TEST_CASE("each file of a model is in its folder or where its ops may read") {
  const std::string model = kLinear + kObjects;
  ModelFolder others("others");
  others.write_variables(linear_values());
  others.write_model(model);
  const std::string data = "variables/variables.data-00000-of-00001";
  for (const std::string& name : {std::string("variables/variables.index"),
                                  data, std::string("saved_model.pb")}) {
    CAPTURE(name);
    ModelFolder folder("stranger");
    folder.write_variables(linear_values());
    folder.write_model(model);
    fs::remove(folder.path() / name);
    fs::create_symlink(others.path() / name, folder.path() / name);
    CHECK(apply(*must(SavedModel::load(folder.path(),
                                       for_strangers(others.path()))),
                2) == 11);
    // A refusal names the folder for what it is.
    const ModelFolder third("third");
    CHECK(contains(
        message_of(SavedModel::load(folder.path(), for_strangers(third.path()))
                       .status(),
                   Code::kPermissionDenied),
        fmt::format("{:?} is not beneath \"{}\", the folder of its model",
                    (folder.path() / name).string(), folder.path().string())));
  }
}

TEST_CASE("a model may be outside of the folder for the files of its ops") {
  ModelFolder folder("stranger");
  const ModelFolder others("others");
  folder.write_variables(linear_values());
  const fs::path path = folder.write_model(kLinear + kObjects);
  CHECK(apply(*must(SavedModel::load(path, for_strangers(others.path()))), 2) ==
        11);
}

TEST_CASE("models that TensorFlow exported load as those of strangers") {
  for (const char* name : {"keras_cnn", "keras_lstm", "module_with_loop"}) {
    CAPTURE(name);
    const fs::path path =
        source_path(fmt::format("tests/apps/models/{}/model", name));
    must(SavedModel::load(path, for_strangers(path)).status());
  }
}

}  // namespace tagflow::actors
