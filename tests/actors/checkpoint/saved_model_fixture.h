// Shared by tests of saved models: a folder for a model, and models as text.
#pragma once

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <fstream>

#include "actors/checkpoint/restore.h"
#include "actors/checkpoint/saved_model.h"
#include "actors/checkpoint/saver.h"
#include "actors/checkpoint/snapshot.h"
#include "actors/session/session.h"
#include "devices/files/bundle_writer.h"
#include "devices/files/tensor_file.h"
#include "graph/builder/builder.h"
#include "graph/file/object_graph.h"
#include "graph/proto/meta_graph.pb.h"
#include "tests/graph/hand_made.h"
#include "tests/graph/pbtxt.h"
#include "tests/temp_path.h"

namespace tagflow::actors {

namespace fs = std::filesystem;
using checkpoint::BundleWriter;
using checkpoint::TensorSlice;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;
using namespace graph::pbtxt;  // NOLINT: pieces of text

template <class Message>
inline std::string message(const std::string& text) {
  Message proto;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto.SerializeAsString();
}

// A folder of a model, and its files.
class ModelFolder {
 public:
  explicit ModelFolder(const char* name = "saved_model")
      : path_(testing::temp_path(name)) {
    fs::remove_all(path_);
    fs::create_directories(path_ / "variables");
  }
  ~ModelFolder() { fs::remove_all(path_); }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

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

inline std::string variable(const std::string& name, const std::string& dtype) {
  return node(name, "VarHandleOp",
              type("dtype", dtype) + attr("shape", "shape {}") +
                  attr("shared_name", "s: '" + name + "'"));
}

inline std::string assign(const std::string& name, const std::string& inputs,
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
inline Tensor checkpoint_objects(const std::string& key_of_b = "b/value") {
  return Tensor::scalar(message<tensorflow::TrackableObjectGraph>(R"(
      nodes { children { node_id: 2 local_name: 'a' }
              children { node_id: 1 local_name: 'b' } }
      nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'v'
                           checkpoint_key: ')" + key_of_b +
                                                                  R"(' } }
      nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'v'
                           checkpoint_key: 'a/value' } })"));
}

inline std::map<std::string, Tensor> linear_values() {
  return {{std::string(graph::kObjectGraphKey), checkpoint_objects()},
          {"a/value", Tensor::scalar(3.0f)},
          {"b/value", Tensor::scalar(5.0f)}};
}

inline float apply(SavedModel& model, float x) {
  return must(model.run("apply", {{"x", Tensor::scalar(x)}}))
      .at("y")
      .scalar_value<float>();
}

// What a saver restores: "v" of `key`, in the graph of kLinear.
inline std::string saver_nodes(const std::string& key) {
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

inline std::string replaced(std::string text, const std::string& from,
                            const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

inline std::string with_nodes(const std::string& meta_graph,
                              const std::string& nodes) {
  return replaced(meta_graph, "graph_def { ", "graph_def { " + nodes);
}

inline std::string failure(const fs::path& path, Code code) {
  return message_of(SavedModel::load(path).status(), code);
}

}  // namespace tagflow::actors
