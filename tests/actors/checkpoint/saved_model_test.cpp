#include <future>
#include <mutex>
#include <thread>

#include "actors/watch/observer.h"
#include "tests/actors/checkpoint/saved_model_fixture.h"
#include "tests/source_path.h"

namespace tagflow::actors {
namespace {

// Tells once that some loop is in its iteration 3.
struct IterationThree : Observer {
  void on_iteration_start(const Location& at) override {
    if (at.tag.iteration == 3)
      std::call_once(once, [&] { promise.set_value(); });
  }
  std::once_flag once;
  std::promise<void> promise;
};

}  // namespace

TEST_CASE("variables without a saver have the values of their objects") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  const fs::path path = folder.write_model(kLinear + kObjects);
  for (const fs::path& file : {path, path / "saved_model.pb"}) {
    const auto model = must(SavedModel::load(file));
    CHECK(apply(*model, 2) == 11);
    CHECK(apply(*model, 1) == 8);
  }
}

TEST_CASE("a saved model puts variables on the device of their readers") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  SessionOptions options;
  options.devices = "cpu:1,stream:1";
  const std::string pinned = replaced(
      kLinear, "name: 'call'", "device: '/device:STREAM:0' name: 'call'");
  const auto model =
      must(SavedModel::load(folder.write_model(pinned + kObjects), options));
  CHECK(apply(*model, 2) == 11);
}

TEST_CASE("the graph's saver restores, and objects tell what it leaves out") {
  ModelFolder folder;
  auto values = linear_values();
  values.emplace("other", Tensor::scalar(7.0f));
  folder.write_variables(values);
  const std::string model = with_nodes(kLinear, saver_nodes("other")) + kSaver;
  CHECK(apply(*must(SavedModel::load(folder.write_model(model + kObjects))),
              2) == 13);
}

TEST_CASE("the init op runs once, when variables have their values") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  const std::string nodes = scalar("one", "DT_FLOAT", "float_val: 1") +
                            node("add", "AssignAddVariableOp",
                                 in("v one") + type("dtype", "DT_FLOAT")) +
                            node("init", "NoOp", in("^add"));
  const std::string model = with_nodes(kLinear, nodes) + kObjects;
  const std::string collection =
      "collection_def { key: '%' value { node_list { value: 'init' } } } ";
  for (const std::string& how :
       {replaced(collection, "%", "saved_model_main_op"),
        replaced(collection, "%", "legacy_init_op"),
        std::string("signature_def { key: '__saved_model_init_op' value { "
                    "outputs { key: '__saved_model_init_op' value { "
                    "name: 'init' } } } } ")}) {
    CAPTURE(how);
    CHECK(apply(*must(SavedModel::load(folder.write_model(model + how))), 2) ==
          12);
  }
}

TEST_CASE("a load ends when it is cancelled, before it or in its init op") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  const fs::path path = folder.write_model(kLinear + kObjects);
  RunOptions restoring;
  restoring.cancel.emplace();
  CHECK(SavedModel::load(path, {}, restoring).ok());
  restoring.cancel->cancel();
  const Status before = SavedModel::load(path, {}, restoring).status();
  CHECK(before.code() == Code::kCancelled);
  CHECK(before.message().find(path.string()) != std::string::npos);

  // A loop without an end.
  const fs::path endless = source_path("tests/apps/served/never_loaded");
  restoring.cancel.emplace();
  IterationThree begun;
  restoring.observer = &begun;
  std::promise<Status> ended;
  std::thread loading([&] {
    ended.set_value(SavedModel::load(endless, {}, restoring).status());
  });
  begun.promise.get_future().wait();
  restoring.cancel->cancel();
  CHECK(ended.get_future().get().code() == Code::kCancelled);
  loading.join();
}

TEST_CASE("tensors that stand for assets are fed absolute paths") {
  ModelFolder folder;
  folder.write("assets/words.txt", "a\nb\n");
  const std::string model =
      "graph_def { " +
      node("asset", "Placeholder",
           type("dtype", "DT_STRING") + attr("shape", "shape {}")) +
      variable("path", "DT_STRING") +
      assign("init", "path asset", "DT_STRING") +
      node("read", "ReadVariableOp", in("path") + type("dtype", "DT_STRING")) +
      R"(} collection_def { key: 'saved_model_main_op'
            value { node_list { value: 'init' } } }
      signature_def { key: 's' value {
        outputs { key: 'path' value { name: 'read:0' } } } }
      asset_file_def { tensor_info { name: 'asset:0' }
                       filename: 'words.txt' } )";
  // "path" is not a variable of the checkpoint, but of the init op.
  folder.write_variables({{"path", Tensor::scalar("old")}});
  const auto loaded = must(SavedModel::load(folder.write_model(model)));
  CHECK(must(loaded->run("s", {})).at("path").scalar_value<std::string>() ==
        fs::absolute(folder.path() / "assets/words.txt").string());

  fs::remove(folder.path() / "assets/words.txt");
  const std::string missing = failure(folder.path(), Code::kNotFound);
  CHECK(
      contains(missing, "assets/words.txt\", the value of tensor \"asset:0\""));
  const std::string outside = failure(
      folder.write_model(replaced(model, "words.txt", "../saved_model.pb")),
      Code::kInvalidArgument);
  CHECK(contains(outside, "is not in the folder of the assets"));
  // The system would look for "words".
  const std::string cut =
      failure(folder.write_model(replaced(model, "words.txt", "words\\0.txt")),
              Code::kInvalidArgument);
  CHECK(contains(cut, "has a null character"));
}

TEST_CASE("an asset behind a link is fed if the link stays in the model") {
  ModelFolder folder;
  folder.write("assets.extra/words.txt", "a");
  fs::create_directory(folder.path() / "assets");
  const fs::path link = folder.path() / "assets" / "d";
  fs::create_symlink("../assets.extra", link);
  const std::string model =
      "graph_def { " +
      node("asset", "Placeholder",
           type("dtype", "DT_STRING") + attr("shape", "shape {}")) +
      node("contents", "ReadFile", in("asset")) +
      R"(} signature_def { key: 's' value {
        outputs { key: 'path' value { name: 'asset:0' } } } }
      asset_file_def { tensor_info { name: 'asset:0' }
                       filename: 'd/words.txt' } )";
  must(SavedModel::load(folder.write_model(model)));
  // Before it is read: it need not even exist.
  for (const char* target : {"/etc", "../..", "/none"}) {
    fs::remove(link);
    fs::create_symlink(target, link);
    const std::string outside = failure(folder.path(), Code::kPermissionDenied);
    CHECK(contains(outside, "the asset \"d/words.txt\" of tensor \"asset:0\""));
    CHECK(contains(outside, fmt::format("assets/d\" leads to \"{}\"", target)));
  }
}

// A model that TensorFlow 1 wrote: a Const with the path of the file at the
// export, and the file's name in a collection.
TEST_CASE("assets of TensorFlow 1 are read from the folder of the model") {
  ModelFolder folder;
  const fs::path other = folder.write("export/words.txt", "other");
  folder.write("assets/words.txt", "a");
  folder.write_variables({{"text", Tensor::scalar(std::string("saved"))}});
  const std::string model =
      "graph_def { " +
      scalar("asset", "DT_STRING", "string_val: '" + other.string() + "'") +
      node("contents", "ReadFile", in("asset")) +
      variable("text", "DT_STRING") +
      assign("init", "text contents", "DT_STRING") +
      node("y", "ReadVariableOp", in("text") + type("dtype", "DT_STRING")) +
      R"(} collection_def { key: 'saved_model_main_op'
            value { node_list { value: 'init' } } }
      signature_def { key: 's' value {
        outputs { key: 'y' value { name: 'y:0' } } } } )";
  const std::string collection = R"(
      collection_def { key: 'saved_model_assets' value { any_list { value {
        [type.googleapis.com/tensorflow.AssetFileDef] {
          tensor_info { name: 'asset:0' } filename: 'words.txt' } } } } } )";
  const auto text = [&](const std::string& of) {
    const auto loaded = must(SavedModel::load(folder.write_model(of)));
    return must(loaded->run("s", {})).at("y").scalar_value<std::string>();
  };
  CHECK(text(model + collection) == "a");
  // The list of TensorFlow 2 decides.
  folder.write("assets/others.txt", "b");
  CHECK(text(model + collection +
             "asset_file_def { tensor_info { name: 'asset:0' } "
             "filename: 'others.txt' } ") == "b");
  fs::remove(folder.path() / "assets/words.txt");
  CHECK(
      contains(failure(folder.write_model(model + collection), Code::kNotFound),
               "assets/words.txt\", the value of tensor \"asset:0\""));
  const std::string strange =
      replaced(replaced(collection,
                        "tensor_info { name: 'asset:0' } filename: 'words.txt'",
                        "name: 'x'"),
               "AssetFileDef", "TensorInfo");
  CHECK(contains(
      failure(folder.write_model(model + strange), Code::kInvalidArgument),
      "\"saved_model_assets\" has an element of type"));
}

TEST_CASE("a saved model is read from text, with its variables and assets") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  const std::string text =
      "saved_model_schema_version: 1 meta_graphs { meta_info_def { "
      "tensorflow_git_version: 'unknown to us' } " +
      kLinear + kObjects + " }";
  const fs::path file = folder.write("saved_model.pbtxt", text);
  for (const fs::path& path : {folder.path(), file}) {
    CAPTURE(path.string());
    CHECK(apply(*must(SavedModel::load(path)), 2) == 11);
  }
  // The binary file decides if there are both.
  folder.write("saved_model.pbtxt", "nothing");
  folder.write_model(kLinear + kObjects);
  CHECK(apply(*must(SavedModel::load(folder.path())), 2) == 11);
  fs::remove(folder.path() / "saved_model.pb");
  CHECK(contains(failure(folder.path(), Code::kInvalidArgument),
                 "the text is not a SavedModel"));
}

TEST_CASE("a MetaGraph takes the checkpoint beside it, by names") {
  ModelFolder folder;
  const std::string nodes =
      "graph_def { " +
      node("w", "VariableV2",
           type("dtype", "DT_FLOAT") + attr("shape", "shape {}")) +
      node("part", "VarHandleOp",
           type("dtype", "DT_FLOAT") +
               attr("shape", "shape { " + dims("2") + "}") +
               attr("shared_name", "s: 'part'")) +
      node("y", "Identity", in("w") + type("T", "DT_FLOAT")) +
      node("z", "ReadVariableOp", in("part") + type("dtype", "DT_FLOAT")) +
      "} collection_def { key: 'variables' value { bytes_list { value: \"";
  const std::string part = message<tensorflow::VariableDef>(R"(
      variable_name: 'part:0' is_resource: true
      save_slice_info_def { full_name: 'whole' full_shape: 5
                            var_offset: 3 var_shape: 2 })");
  const auto model_of = [&](const std::string& bytes) {
    std::string text;
    for (const char byte : bytes)
      text += fmt::format("\\{:03o}", uint8_t(byte));
    return folder.write("model.meta", message<tensorflow::MetaGraphDef>(
                                          nodes + text + "\" } } } "));
  };
  const fs::path file = model_of(part);
  // Without a checkpoint, variables have no values yet.
  const auto empty = must(SavedModel::load(file));
  CHECK(contains(message_of(empty->session().run({}, {"y"}).status(),
                            Code::kFailedPrecondition),
                 "\"w\""));

  const auto whole = Tensor::vector<float>({0, 1, 2, 3, 4});
  folder.write_variables({{"w", Tensor::scalar(2.0f)}, {"whole", whole}},
                         "model");
  const auto model = must(SavedModel::load(file));
  const auto values = must(model->session().run({}, {"y", "z"}));
  CHECK(values[0].scalar_value<float>() == 2);
  CHECK(values[1].flat<float>()[0] == 3);
  CHECK(values[1].flat<float>()[1] == 4);

  folder.write_variables({{"v", Tensor::scalar(2.0f)}}, "model");
  CHECK(contains(failure(file, Code::kNotFound),
                 "model\" has no value of variable \"part\", nor of any"));
  folder.write_variables({{"w", whole}}, "model");
  CHECK(contains(failure(file, Code::kInvalidArgument),
                 "model\": [snapshot] the snapshot does not fit the graph: "
                 "\"w\" is "));
  CHECK(contains(failure(model_of(part + '\xff'), Code::kDataLoss),
                 "not a VariableDef"));
  const std::string flat = message<tensorflow::VariableDef>(
      "variable_name: 'part' save_slice_info_def { full_name: 'whole' "
      "full_shape: 5 var_offset: 3 }");
  CHECK(contains(failure(model_of(flat), Code::kInvalidArgument),
                 "has 1 dimensions, but its offset has 1 and its shape 0"));
}

TEST_CASE("files that are missing or damaged are named, with the variable") {
  ModelFolder folder;
  const fs::path path = folder.write_model(kLinear + kObjects);
  const std::string prefix = (path / "variables/variables").string();
  CHECK(failure(path, Code::kNotFound) ==
        fmt::format("[saved_model] variable \"v\" and 1 more need values: "
                    "[checkpoint] there is no checkpoint \"{0}\": no file "
                    "\"{0}.index\"",
                    prefix));
  const std::string v1 =
      with_nodes(kLinear, saver_nodes("x")) + replaced(kSaver, "V2", "V1");
  folder.write_model(v1);
  CHECK(contains(failure(path, Code::kUnimplemented), "V1 checkpoint"));

  auto values = linear_values();
  values.erase("b/value");
  folder.write_variables(values);
  folder.write_model(kLinear + kObjects);
  CHECK(contains(failure(path, Code::kNotFound),
                 "variable \"v\": [checkpoint] there is no tensor "
                 "\"b/value\" in \"" +
                     prefix));

  values = linear_values();
  values[std::string(graph::kObjectGraphKey)] = checkpoint_objects("");
  folder.write_variables(values);
  CHECK(contains(failure(path, Code::kNotFound),
                 "have no value of variable \"v\" (node \"v\")"));

  folder.write_variables(linear_values());
  const fs::path data = prefix + ".data-00000-of-00001";
  fs::resize_file(data, fs::file_size(data) - 1);
  CHECK(contains(failure(path, Code::kDataLoss), data.string()));
  fs::remove(data);
  CHECK(contains(failure(path, Code::kNotFound), data.string()));
  folder.write("variables/variables.index", "this is not a table of a bundle");
  CHECK(contains(failure(path, Code::kDataLoss), "variables.index"));
}

TEST_CASE("a saved model is refused if its state is not in its graph") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  const auto load = [&](const std::string& model) {
    folder.write_model(model);
    return SavedModel::load(folder.path()).status();
  };
  const auto lacks = [&](const std::string& model, const char* what) {
    const Status status = load(model);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK_MESSAGE(contains(status.to_string(), what), status.to_string());
  };
  lacks(kLinear + kSaver,
        "the op of its saver is \"restore\", but: [graph] no node \"restore\"");
  lacks(with_nodes(kLinear, node("restore", "NoOp")) + kSaver,
        "the file name of its saver is \"filename:0\", but: ");
  lacks(kLinear + kObjects +
            "collection_def { key: 'legacy_init_op' value { node_list { "
            "value: 'gone' } } } ",
        "its init op is \"gone\", but: ");
  folder.write("assets/words.txt", "a");
  lacks(kLinear + kObjects +
            "asset_file_def { tensor_info { name: 'gone:0' } "
            "filename: 'words.txt' } ",
        "the tensor of the asset \"words.txt\" is \"gone:0\", but: ");
  const std::string model = with_nodes(kLinear, saver_nodes("none")) + kSaver;
  const std::string text = load(model).to_string();
  CHECK(contains(text, "there is no tensor \"none\" in"));
  CHECK(contains(text, "variables/variables"));
}

TEST_CASE("objects that are not those of the graph are refused") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  const auto refused = [&](const std::string& from, const std::string& to) {
    folder.write_model(kLinear + replaced(kObjects, from, to));
    return failure(folder.path(), Code::kInvalidArgument);
  };
  CHECK(contains(refused("[1, 2]", "[1, 7]"),
                 "function \"linear\" captures object 7, of 3 objects"));
  CHECK(contains(refused("[1, 2]", "[1, -1]"), "captures object -1"));
  CHECK(contains(refused("[1, 2]", "[1, 2, 1, 2]"),
                 "captures 4 objects, but its call \"call\" has 3 inputs"));
  CHECK(contains(refused("[1, 2]", "[1, 1, 2]"),
                 "input 0 of \"call\" must be variable \"v\", but it is "
                 "Placeholder \"x\""));
  CHECK(contains(refused("node_id: 2", "node_id: 9"),
                 "object 0 refers to object 9, of 3 objects"));
}

TEST_CASE("a saved model's signature refuses other inputs than its own") {
  ModelFolder folder;
  folder.write_variables(linear_values());
  const auto model =
      must(SavedModel::load(folder.write_model(kLinear + kObjects)));
  CHECK(message_of(model->run("other", {}).status(), Code::kNotFound) ==
        "[saved_model] there is no signature \"other\"; there are \"apply\"");
  CHECK(message_of(model->run("apply", {}).status(), Code::kInvalidArgument) ==
        "[saved_model] signature \"apply\" needs values for its inputs \"x\"");
  CHECK(message_of(model->run("apply", {{"z", Tensor::scalar(1.0f)}}).status(),
                   Code::kInvalidArgument) ==
        "[saved_model] signature \"apply\" has no input \"z\"; its inputs are "
        "\"x\"");
}

}  // namespace tagflow::actors
