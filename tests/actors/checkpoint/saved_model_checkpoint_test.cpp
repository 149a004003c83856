// Checkpoints of saved models: the names of their variables.
#include "devices/files/safetensors.h"
#include "tests/actors/checkpoint/saved_model_fixture.h"

namespace tagflow::actors {

TEST_CASE("a checkpoint has the objects of its model, by which it is read") {
  ModelFolder folder, other("other_model");
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
  ModelFolder folder;
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
  ModelFolder folder;
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

TEST_CASE("parts of a variable are restored from the whole one") {
  ModelFolder folder;
  const auto part = [](const std::string& name, int offset, int size) {
    return message<tensorflow::VariableDef>(
        "variable_name: '" + name + "' save_slice_info_def { full_name: 'w' " +
        "full_shape: 3 full_shape: 2 var_offset: " + std::to_string(offset) +
        " var_offset: 0 var_shape: " + std::to_string(size) +
        " var_shape: 2 }");
  };
  const auto variable_of = [](const std::string& name, const char* rows) {
    return node(name, "VarHandleOp",
                type("dtype", "DT_FLOAT") +
                    attr("shape", "shape { " + dims(rows) + dims("2") + "}") +
                    attr("shared_name", "s: '" + name + "'")) +
           node(name + "/read", "ReadVariableOp",
                in(name) + type("dtype", "DT_FLOAT"));
  };
  tensorflow::MetaGraphDef meta;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "graph_def { " + variable_of("w/part_0", "2") +
          variable_of("w/part_1", "1") + "}",
      &meta));
  auto& collection =
      *(*meta.mutable_collection_def())["variables"].mutable_bytes_list();
  collection.add_value(part("w/part_0:0", 0, 2));
  collection.add_value(part("w/part_1:0", 2, 1));
  const fs::path file = folder.write("model.meta", meta.SerializeAsString());
  const auto model = must(SavedModel::load(file));
  Session& session = model->session();
  const auto parts = [&] {
    return must(session.run({}, {"w/part_0/read:0", "w/part_1/read:0"}));
  };
  const Tensor whole = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto restore = [&](const std::string& name) {
    return restore_checkpoint(session, (folder.path() / name).string(),
                              model->state());
  };
  folder.write_variables({{"w", whole}}, "whole");
  CHECK(must(restore("whole")).unused.empty());
  CHECK(identical(parts()[0], Tensor::of<float>({2, 2}, {1, 2, 3, 4})));
  CHECK(identical(parts()[1], Tensor::of<float>({1, 2}, {5, 6})));

  // What we save has the parts.
  SaverOptions options;
  options.folder = (folder.path() / "ours").string();
  options.model = model->state();
  {
    const auto saver = must(Saver::create(session, options));
    must(saver->save(1));
    must(saver->close());
  }
  folder.write_variables({{"w", Tensor::of<float>({3, 2}, {9, 9, 9, 9, 9, 9})}},
                         "others");
  must(restore("others"));
  must(restore("ours"));
  CHECK(identical(parts()[1], Tensor::of<float>({1, 2}, {5, 6})));

  must(checkpoint::write_safetensors(
      (folder.path() / "w.safetensors").string(),
      {{"w", DataType::kFloat, Shape{3, 2},
        [] {
          return Result<Tensor>(Tensor::of<float>({3, 2}, {6, 5, 4, 3, 2, 1}));
        }}},
      {}));
  must(restore("w.safetensors"));
  CHECK(identical(parts()[0], Tensor::of<float>({2, 2}, {6, 5, 4, 3})));
  CHECK(identical(parts()[1], Tensor::of<float>({1, 2}, {2, 1})));

  folder.write_variables({{"w", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}},
                         "short");
  CHECK(contains(message_of(restore("short").status(), Code::kInvalidArgument),
                 "\"w\" is float[2,2], but the graph has \"w/part_0\" "
                 "(float[2,2]), a part of [3,2]"));
}

// As Keras 3 has one for each weight.
TEST_CASE("variables that no function captures are not in checkpoints") {
  ModelFolder folder;
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

}  // namespace tagflow::actors
