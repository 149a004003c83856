#include "actors/saved_model.h"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <fstream>

#include "actors/restore.h"
#include "actors/saver.h"
#include "actors/session.h"
#include "actors/snapshot.h"
#include "devices/checkpoint/bundle_writer.h"
#include "devices/checkpoint/tensor_file.h"
#include "graph/builder/builder.h"
#include "graph/object_graph.h"
#include "graph/proto/meta_graph.pb.h"
#include "tests/graph/hand_made.h"
#include "tests/graph/pbtxt.h"
#include "tests/temp_path.h"

namespace tagflow::actors {
namespace {

namespace fs = std::filesystem;
using checkpoint::BundleWriter;
using checkpoint::TensorSlice;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;
using namespace graph::pbtxt;  // NOLINT: pieces of text

template <class Message>
std::string message(const std::string& text) {
  Message proto;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto.SerializeAsString();
}

// A folder of a model, and its files.
class Folder {
 public:
  explicit Folder(const char* name = "saved_model")
      : path_(testing::temp_path(name)) {
    fs::remove_all(path_);
    fs::create_directories(path_ / "variables");
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path write(const std::string& name, const std::string& bytes) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  fs::path write_model(const std::string& meta_graph) const {
    write("saved_model.pb", message<tensorflow::SavedModel>("meta_graphs { " +
                                                            meta_graph + " }"));
    return path_;
  }
  void write_variables(const std::map<std::string, Tensor>& values,
                       const std::string& prefix = "variables/variables") {
    const auto writer =
        must(BundleWriter::create((path_ / prefix).string(), 1, {}));
    for (const auto& [name, value] : values) must(writer->add(name, value));
    must(writer->finish());
    must(writer->publish());
  }
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

std::string variable(const std::string& name, const std::string& dtype) {
  return node(name, "VarHandleOp",
              type("dtype", dtype) + attr("shape", "shape {}") +
                  attr("shared_name", "s: '" + name + "'"));
}

std::string assign(const std::string& name, const std::string& inputs,
                   const std::string& dtype) {
  return node(name, "AssignVariableOp", in(inputs) + type("dtype", dtype));
}

// y = x * a + b, by a function that captures two variables. They have one name
// in the program; in the graph, a is "v_1" and b is "v".
const std::string kLinear =
    "graph_def { " + variable("v", "DT_FLOAT") + variable("v_1", "DT_FLOAT") +
    placeholder("x", "DT_FLOAT", "") +
    node(
        "call", "StatefulPartitionedCall",
        in("x v_1 v") + attr("f", "func { name: 'linear' }") +
            attr("Tin", "list { type: [DT_FLOAT, DT_RESOURCE, DT_RESOURCE] }") +
            attr("Tout", "list { type: DT_FLOAT }")) +
    R"(library { function {
      signature { name: 'linear'
        input_arg { name: 'x' type: DT_FLOAT }
        input_arg { name: 'a' type: DT_RESOURCE }
        input_arg { name: 'b' type: DT_RESOURCE }
        output_arg { name: 'y' type: DT_FLOAT } }
      node_def { name: 'read_a' op: 'ReadVariableOp' input: 'a'
        attr { key: 'dtype' value { type: DT_FLOAT } } }
      node_def { name: 'read_b' op: 'ReadVariableOp' input: 'b'
        attr { key: 'dtype' value { type: DT_FLOAT } } }
      node_def { name: 'ax' op: 'Mul' input: 'x' input: 'read_a:value:0'
        attr { key: 'T' value { type: DT_FLOAT } } }
      node_def { name: 'sum' op: 'AddV2' input: 'ax:z:0'
        input: 'read_b:value:0' attr { key: 'T' value { type: DT_FLOAT } } }
      ret { key: 'y' value: 'sum:z:0' } } } }
    signature_def { key: 'apply' value {
      inputs { key: 'x' value { name: 'x:0' } }
      outputs { key: 'y' value { name: 'call:0' } } } } )";

const std::string kObjects = R"(object_graph_def {
      nodes { children { node_id: 1 local_name: 'a' }
              children { node_id: 2 local_name: 'b' } }
      nodes { variable { dtype: DT_FLOAT name: 'v' } }
      nodes { variable { dtype: DT_FLOAT name: 'v' } }
      concrete_functions { key: 'linear'
        value { bound_inputs: [1, 2] } } } )";

// A checkpoint's objects, in another order.
Tensor checkpoint_objects(const std::string& key_of_b = "b/value") {
  return Tensor::scalar(message<tensorflow::TrackableObjectGraph>(R"(
      nodes { children { node_id: 2 local_name: 'a' }
              children { node_id: 1 local_name: 'b' } }
      nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'v'
                           checkpoint_key: ')" + key_of_b +
                                                                  R"(' } }
      nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'v'
                           checkpoint_key: 'a/value' } })"));
}

std::map<std::string, Tensor> linear_values() {
  return {{std::string(graph::kObjectGraphKey), checkpoint_objects()},
          {"a/value", Tensor::scalar(3.0f)},
          {"b/value", Tensor::scalar(5.0f)}};
}

float apply(SavedModel& model, float x) {
  return must(model.run("apply", {{"x", Tensor::scalar(x)}}))
      .at("y")
      .scalar_value<float>();
}

// What a saver restores: "v" of `key`, in the graph of kLinear.
std::string saver_nodes(const std::string& key) {
  return node("filename", "Placeholder",
              type("dtype", "DT_STRING") + attr("shape", "shape {}")) +
         constant(
             "names", "DT_STRING",
             "tensor_shape { dim { size: 1 } } string_val: '" + key + "'") +
         constant("slices", "DT_STRING",
                  "tensor_shape { dim { size: 1 } } string_val: ''") +
         node("read", "RestoreV2",
              in("filename names slices") +
                  attr("dtypes", "list { type: DT_FLOAT }")) +
         assign("put", "v read", "DT_FLOAT") +
         node("restore", "NoOp", in("^put"));
}

constexpr const char* kSaver = R"(saver_def {
    filename_tensor_name: 'filename:0' restore_op_name: 'restore' version: V2
  } )";

std::string replaced(std::string text, const std::string& from,
                     const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

std::string with_nodes(const std::string& meta_graph,
                       const std::string& nodes) {
  return replaced(meta_graph, "graph_def { ", "graph_def { " + nodes);
}

std::string failure(const fs::path& path, Code code) {
  return message_of(SavedModel::load(path).status(), code);
}

}  // namespace

TEST_CASE("variables without a saver have the values of their objects") {
  Folder folder;
  folder.write_variables(linear_values());
  const fs::path path = folder.write_model(kLinear + kObjects);
  for (const fs::path& file : {path, path / "saved_model.pb"}) {
    const auto model = must(SavedModel::load(file));
    CHECK(apply(*model, 2) == 11);
    CHECK(apply(*model, 1) == 8);
  }
}

TEST_CASE("on two devices variables are where the signatures use them") {
  Folder folder;
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
  Folder folder;
  auto values = linear_values();
  values.emplace("other", Tensor::scalar(7.0f));
  folder.write_variables(values);
  const std::string model = with_nodes(kLinear, saver_nodes("other")) + kSaver;
  CHECK(apply(*must(SavedModel::load(folder.write_model(model + kObjects))),
              2) == 13);
}

TEST_CASE("the init op runs once, when variables have their values") {
  Folder folder;
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

TEST_CASE("tensors that stand for assets are fed absolute paths") {
  Folder folder;
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
  // "path" is no variable of the checkpoint, but of the init op.
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
  CHECK(contains(cut, "is not in the folder of the assets"));
}

TEST_CASE("a MetaGraph takes the checkpoint beside it, by names") {
  Folder folder;
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
                 "model\": [snapshot] it is of another graph: \"w\" is "));
  CHECK(contains(failure(model_of(part + '\xff'), Code::kDataLoss),
                 "no VariableDef"));
  const std::string flat = message<tensorflow::VariableDef>(
      "variable_name: 'part' save_slice_info_def { full_name: 'whole' "
      "full_shape: 5 var_offset: 3 }");
  CHECK(contains(failure(model_of(flat), Code::kInvalidArgument),
                 "has 1 dimensions, but is at 1 numbers, and of 0"));
}

TEST_CASE("files that are missing or damaged are named, with the variable") {
  Folder folder;
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
  folder.write("variables/variables.index", "this is no table of a bundle");
  CHECK(contains(failure(path, Code::kDataLoss), "variables.index"));
}

TEST_CASE("what a model says of its state must be in its graph") {
  Folder folder;
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
  Folder folder;
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
                 "input 0 of \"call\" is to be variable \"v\", but it is "
                 "Placeholder \"x\""));
  CHECK(contains(refused("node_id: 2", "node_id: 9"),
                 "object 0 refers to object 9, of 3 objects"));
}

TEST_CASE("a checkpoint has the objects of its model, by which it is read") {
  Folder folder, other("other_model");
  folder.write_variables(linear_values());
  other.write_variables(
      {{std::string(graph::kObjectGraphKey), checkpoint_objects()},
       {"a/value", Tensor::scalar(100.0f)},
       {"b/value", Tensor::scalar(200.0f)}});
  const auto model =
      must(SavedModel::load(folder.write_model(kLinear + kObjects)));
  const std::string saved = (folder.path() / "saved").string();
  SaverOptions options;
  options.folder = saved;
  options.model = model->state();
  const auto saver = must(Saver::create(model->session(), options));
  must(saver->save(7));
  must(saver->close());

  // What was "v" is called "v_1" here, and the other way round.
  const std::string renamed = replaced(kLinear, in("x v_1 v"), in("x v v_1"));
  const auto restored = [&](const std::string& objects,
                            const std::string& from) -> Result<float> {
    const auto its =
        must(SavedModel::load(other.write_model(renamed + objects)));
    CHECK(apply(*its, 2) == 400);
    TAGFLOW_RETURN_IF_ERROR(
        restore_checkpoint(its->session(), from, its->state()).status());
    return apply(*its, 2);
  };
  CHECK(must(restored(kObjects, saved)) == 11);
  // One that TensorFlow wrote has other keys.
  folder.write_variables(linear_values(), "theirs");
  CHECK(must(restored(kObjects, (folder.path() / "theirs").string())) == 11);

  const auto its =
      must(SavedModel::load(other.write_model(renamed + kObjects)));
  // Without them, it is not even known that there are objects.
  CHECK(contains(message_of(restore_checkpoint(its->session(), saved).status(),
                            Code::kInvalidArgument),
                 "\"v\" (float[]) is not in it"));
  other.write_model(renamed +
                    replaced(kObjects, "local_name: 'a'", "local_name: 'c'"));
  const graph::GraphFile file = must(graph::load_file(other.path()));
  const std::string text =
      message_of(restore_checkpoint(its->session(), saved, file.state).status(),
                 Code::kInvalidArgument);
  CHECK_MESSAGE(
      contains(text,
               "\"v\" (float[]), which is the object \"c\", is not in it"),
      text);
  CHECK(apply(*its, 2) == 400);
}

TEST_CASE("an object without a path has a key that no path leads to") {
  Folder folder;
  folder.write_variables(linear_values());
  // "a", whose variable is "v_1", is at "v"; "b", whose variable is "v", is a
  // slot, and no child.
  const std::string objects = replaced(
      kObjects,
      "local_name: 'a' }\n              children { node_id: 2 local_name: "
      "'b' }",
      "local_name: 'v' } slot_variables { original_variable_node_id: 1 "
      "slot_name: 'm' slot_variable_node_id: 2 }");
  folder.write_model(kLinear + objects);
  const graph::GraphFile file = must(graph::load_file(folder.path()));
  const auto session = must(Session::create({}));
  must(session->extend(must(graph::load_graph(folder.path()))));
  const auto snapshots = must(Snapshots::create(*session));
  must(snapshots->restore({.variables = {{"v", Tensor::scalar(5.0f)},
                                         {"v_1", Tensor::scalar(3.0f)}}}));
  SaverOptions options;
  options.folder = (folder.path() / "saved").string();
  options.model = file.state;
  const auto saver = must(Saver::create(*session, options));
  must(saver->save(1));
  must(saver->wait());
  must(snapshots->restore({.variables = {{"v", Tensor::scalar(0.0f)},
                                         {"v_1", Tensor::scalar(0.0f)}}}));
  CHECK(must(saver->restore()).has_value());
  const Snapshot snapshot = must(snapshots->take());
  CHECK(snapshot.variables.at("v").scalar_value<float>() == 5);
  CHECK(snapshot.variables.at("v_1").scalar_value<float>() == 3);
}

TEST_CASE("a file without objects has variables by paths, keys or names") {
  Folder folder;
  folder.write_variables(linear_values());
  const auto model = must(SavedModel::load(folder.write_model(
      kLinear + replaced(kObjects, "children { node_id: 2 local_name: 'b' }",
                         "children { node_id: 2 local_name: 'b' } "
                         "children { node_id: 2 local_name: 'b/.' }"))));
  const std::string suffix = "/.ATTRIBUTES/VARIABLE_VALUE";
  const auto restored = [&](const std::string& a, const std::string& b) {
    folder.write_variables(
        {{a, Tensor::scalar(30.0f)}, {b, Tensor::scalar(50.0f)}}, "plain");
    must(restore_checkpoint(
        model->session(), (folder.path() / "plain").string(), model->state()));
    return apply(*model, 2);
  };
  CHECK(restored("a" + suffix, "b" + suffix) == 110);
  CHECK(restored("a", "b") == 110);
  CHECK(restored("v_1", "v") == 110);
  CHECK(restored("a" + suffix, "v") == 110);
  // Another path of the object, whose name is escaped.
  CHECK(restored("a" + suffix, "b.S.." + suffix) == 110);
  folder.write_variables({{"a", Tensor::scalar(1.0f)}}, "half");
  CHECK(contains(
      message_of(
          restore_checkpoint(model->session(),
                             (folder.path() / "half").string(), model->state())
              .status(),
          Code::kInvalidArgument),
      "\"v\" (float[]) is not in it"));
}

// As Keras 3 has one for each weight.
TEST_CASE("variables that no function captures are not in checkpoints") {
  Folder folder;
  auto values = linear_values();
  values.emplace("copied", Tensor::scalar(7.0f));
  folder.write_variables(values);
  const std::string nodes =
      variable("copy", "DT_FLOAT") + variable("copy_of", "DT_FLOAT") +
      node("first", "ReadVariableOp",
           in("copy_of") + type("dtype", "DT_FLOAT")) +
      assign("begin", "copy first", "DT_FLOAT") +
      replaced(saver_nodes("copied"), in("v read"), in("copy read"));
  // "c" is an object that no function captures.
  const std::string objects = replaced(
      replaced(kObjects, "local_name: 'b' }",
               "local_name: 'b' } children { node_id: 3 local_name: 'c' }"),
      "concrete_functions",
      "nodes { variable { dtype: DT_FLOAT name: 'w' } } concrete_functions");
  const auto model = must(SavedModel::load(
      folder.write_model(with_nodes(kLinear, nodes) + kSaver + objects)));
  Session& session = model->session();
  // What tf.train.Checkpoint.save() writes has a count of its own.
  auto theirs = linear_values();
  theirs["b/value"] = Tensor::scalar(6.0f);
  theirs.emplace("save_counter/.ATTRIBUTES/VARIABLE_VALUE",
                 Tensor::scalar<int64_t>(1));
  theirs.emplace("c/.ATTRIBUTES/VARIABLE_VALUE", Tensor::scalar(1.0f));
  folder.write_variables(theirs, "theirs/x-1");
  const std::string path = (folder.path() / "theirs").string();
  CHECK(message_of(restore_checkpoint(session, path).status(),
                   Code::kInvalidArgument) != "");
  CHECK(must(restore_checkpoint(session, path, model->state())).unused.empty());
  CHECK(apply(*model, 2) == 12);

  SaverOptions options;
  options.folder = path;
  options.model = model->state();
  {
    const auto saver = must(Saver::create(session, options));
    CHECK(must(saver->restore()).has_value());
    must(saver->save(7));
    must(saver->close());
  }
  const auto saved = must(checkpoint::open_tensor_file(path));
  CHECK(saved->find("a/.ATTRIBUTES/VARIABLE_VALUE") != nullptr);
  for (const checkpoint::TensorInfo& info : saved->tensors())
    CHECK_MESSAGE(!contains(info.name, "copy"), info.name);

  // A checkpoint that has it nevertheless is none of another model.
  theirs.emplace("copy", Tensor::scalar(8.0f));
  folder.write_variables(theirs, "with_copy/x-1");
  options.folder = (folder.path() / "with_copy").string();
  CHECK(must(must(Saver::create(session, options))->restore()).has_value());

  // What the session was extended with is saved.
  graph::Graph more;
  const graph::Scope s(more);
  graph::ops::variable(s.named("more"), DataType::kFloat,
                       PartialShape::scalar());
  must(session.extend(more));
  CHECK(contains(
      message_of(restore_checkpoint(session, path, model->state()).status(),
                 Code::kInvalidArgument),
      "\"more\" (float[]) is not in it"));
}

TEST_CASE("what a signature is called with must be what it has") {
  Folder folder;
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
