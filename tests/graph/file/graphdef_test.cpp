#include "graph/file/graphdef.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "graph/analysis/validate.h"
#include "graph/proto/graph.pb.h"
#include "graph/proto/meta_graph.pb.h"
#include "tests/failing_new.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

namespace fs = std::filesystem;

// A folder that goes with its test.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "graphdef_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }
};

// A loop, a function with its gradient, and attributes of many kinds.
Graph rich_graph() {
  Graph graph;
  graph.set_producer_version(1234);
  FunctionDef f;
  f.signature = OpDefBuilder("SquareOf")
                    .input("x: T")
                    .input("rest: N * float")
                    .output("y: T")
                    .attr("T: {float, int32} = DT_FLOAT")
                    .attr("N: int >= 1 = 2")
                    .attr("mode: {'a', 'b'}")
                    .stateful()
                    .build();
  f.nodes = {def("product", "Mul", {"x", "x"}, {{"T", AttrPlaceholder{"T"}}})};
  f.ret = {{"y", "product:z:0"}};
  f.control_outputs = {"done"};
  f.control_ret = {{"done", "product"}};
  f.attrs = {{"_noinline", true}};
  f.arg_attrs = {{0, {{"_shape", PartialShape({-1})}}}};
  f.resource_arg_unique_ids = {{1, 7}};
  must(graph.library().add(f));
  must(graph.library().add_gradient("SquareOf", "SquareGrad"));
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(9));
  const Counter c = counter(graph, "loop", {start, 0}, {limit, 0});
  graph.set_device(c.exit, "/job:worker/task:1");
  graph.set_attr(c.exit, "_class", std::vector<std::string>{"loc:@start"});
  graph.set_attr(c.exit, "_output_shapes",
                 std::vector<PartialShape>{PartialShape()});
  constant(graph, "big", Tensor::make(DataType::kDouble, {7, 5}));
  constant(graph, "words", Tensor::of<std::string>({2}, {"a", "\xff"}));
  return graph;
}

// The same nodes, whatever their order; loops are cut elsewhere when read.
void check_equal(const Graph& a, const Graph& b) {
  REQUIRE(a.size() == b.size());
  for (const Node* node : a.nodes()) {
    CAPTURE(node->name());
    const Node* twin = b.find(node->name());
    REQUIRE(twin != nullptr);
    CHECK(Graph::to_def(*node) == Graph::to_def(*twin));
  }
  CHECK(a.producer_version() == b.producer_version());
  CHECK(a.library().gradients() == b.library().gradients());
  const auto left = a.library().functions();
  const auto right = b.library().functions();
  REQUIRE(left.size() == right.size());
  for (size_t i = 0; i < left.size(); ++i)
    CHECK(same_definition(*left[i], *right[i]));
}

}  // namespace

TEST_CASE("a graph survives the binary format") {
  const Graph graph = rich_graph();
  const std::string bytes = must(write_graphdef(graph));
  const Graph read = must(read_graphdef(bytes));
  check_equal(graph, read);
  must(validate(read));
  CHECK(must(write_graphdef(graph)) == bytes);
}

TEST_CASE("a graph survives the text format") {
  const Graph graph = rich_graph();
  const std::string text = must(write_graphdef_text(graph));
  CHECK(contains(text, "name: \"loop/merge\""));
  check_equal(graph, must(read_graphdef_text(text)));
}

TEST_CASE("reading or writing a graph without memory is an error, no crash") {
  const std::string bytes = must(write_graphdef(rich_graph()));
  const std::string text = must(write_graphdef_text(rich_graph()));
  for (int64_t k = 1;; k += 1 + k / 20) {
    CAPTURE(k);
    FailAllocation fail(k);
    const Result<Graph> binary = read_graphdef(bytes);
    const Result<Graph> readable = read_graphdef_text(text);
    const Status written =
        binary.ok() ? write_graphdef(*binary).status() : binary.status();
    fail.stop();
    for (const Status& status : {binary.status(), readable.status(), written})
      CHECK((status.ok() || status.code() == Code::kResourceExhausted));
    if (!fail.failed()) break;
  }
}

TEST_CASE("the bytes of a small graph are those of the format") {
  Graph graph;
  graph.set_producer_version(9);
  add(graph, "a", "NoOp");
  add(graph, "b", "NoOp", {}, {}, {graph.find("a")});
  const std::string a =
      "\x0a\x01"
      "a"
      "\x12\x04NoOp";
  const std::string b =
      "\x0a\x01"
      "b"
      "\x12\x04NoOp"
      "\x1a\x02^a";
  CHECK(must(write_graphdef(graph)) ==
        "\x0a\x09" + a + "\x0a\x0d" + b + "\x22\x02\x08\x09");
}

TEST_CASE("a graph file is read if its ops are unknown, but not built") {
  const auto file = must(parse_graphdef_text(
      "node { name: 'x' op: 'MattMul' } versions { producer: 3 }"));
  REQUIRE(file.nodes.size() == 1);
  CHECK(file.nodes[0].op == "MattMul");
  CHECK(file.producer == 3);
  CHECK(build_graph(file).status().to_string() ==
        "Unimplemented: [MattMul] node \"x\": [ops] unknown op \"MattMul\", "
        "did you mean \"MatMul\"?");
}

TEST_CASE("an old file's version is that of its producer") {
  CHECK(must(parse_graphdef_text("version: 12")).producer == 12);
}

TEST_CASE("an old graph file's shape of a scalar is read as unknown") {
  const auto shape = [](const char* producer) {
    const std::string text = fmt::format(
        "node {{ name: 'x' op: 'Placeholder' attr {{ key: 'dtype' value {{ "
        "type: DT_FLOAT }} }} attr {{ key: 'shape' value {{ shape {{ }} }} }} "
        "}} versions {{ producer: {} }}",
        producer);
    const GraphFile file = must(parse_graphdef_text(text));
    return *file.nodes[0].attrs.at("shape").get_if<PartialShape>();
  };
  CHECK(shape("21") == PartialShape());
  CHECK(shape("22") == PartialShape::scalar());
}

TEST_CASE("text of newer versions is read, misspelt text is not") {
  CHECK(must(parse_graphdef_text("node { name: 'x' op: 'NoOp' "
                                 "experimental_type { type_id: TFT_PRODUCT "
                                 "args { type_id: TFT_TENSOR } } }"))
            .nodes.size() == 1);
  CHECK(message_of(parse_graphdef_text("nodes { name: 'x' }").status(),
                   Code::kInvalidArgument) ==
        "[graphdef] the text is not a GraphDef: line 1, column 7: Message type "
        "\"tensorflow.GraphDef\" has no field named \"nodes\".");
}

TEST_CASE("a file's form is chosen by its name") {
  const Folder folder;
  const Graph graph = rich_graph();
  for (const char* name : {"graph.pb", "graph.pbtxt", "graph.txt"}) {
    must(save_graph(graph, folder.path / name));
    check_equal(graph, must(load_graph(folder.path / name)));
  }
  CHECK(std::distance(fs::directory_iterator(folder.path),
                      fs::directory_iterator()) == 3);
  std::ifstream text(folder.path / "graph.txt");
  std::string word;
  text >> word;
  CHECK(word == "node");
}

TEST_CASE("a saved model is read with its entry points") {
  tensorflow::SavedModel model;
  auto* meta = model.add_meta_graphs();
  auto* node = meta->mutable_graph_def()->add_node();
  node->set_name("x");
  node->set_op("NoOp");
  auto& signature = (*meta->mutable_signature_def())["serving_default"];
  (*signature.mutable_inputs())["image"].set_name("x:0");
  (*signature.mutable_outputs())["label"].set_name("y:0");
  const Folder folder;
  folder.write("saved_model.pb", model.SerializeAsString());
  folder.write("model.meta", meta->SerializeAsString());
  for (const fs::path& path : {folder.path, folder.path / "saved_model.pb",
                               folder.path / "model.meta"}) {
    const GraphFile file = must(load_file(path));
    CHECK(file.nodes.size() == 1);
    CHECK(file.signatures.at("serving_default").inputs.at("image") == "x:0");
    CHECK(file.signatures.at("serving_default").outputs.at("label") == "y:0");
  }
}

TEST_CASE("a saved model is read by the graph that is meant for serving") {
  tensorflow::SavedModel model;
  const auto add = [&](const char* node_name, const char* tag) {
    auto* meta = model.add_meta_graphs();
    meta->mutable_meta_info_def()->add_tags(tag);
    auto* node = meta->mutable_graph_def()->add_node();
    node->set_name(node_name);
    node->set_op("NoOp");
    return meta;
  };
  add("a", "train");
  const Folder folder;
  const auto load = [&] {
    return load_file(folder.write("saved_model.pb", model.SerializeAsString()));
  };
  CHECK(must(load()).nodes.at(0).name == "a");
  auto* other = add("b", "eval");
  const std::string text = message_of(load().status(), Code::kInvalidArgument);
  CAPTURE(text);
  CHECK(
      text.ends_with("none of the SavedModel's 2 graphs has the tag "
                     "\"serve\"; their tags are [train], [eval]"));
  other->mutable_meta_info_def()->add_tags("serve");
  CHECK(must(load()).nodes.at(0).name == "b");
}

TEST_CASE("a text graph whose strings are not UTF-8 is refused") {
  const auto refusal = [](const std::string& text) {
    return message_of(parse_graphdef_text(text).status(),
                      Code::kInvalidArgument);
  };
  const std::string bad = "'a\\377'";
  CHECK(refusal("node { name: 'x' op: 'NoOp' device: " + bad + " }") ==
        "[graphdef] node \"x\": tensorflow.NodeDef.device is not UTF-8: "
        "\"a\\xff\"");
  CHECK(contains(refusal("node { name: " + bad + " }"), "NodeDef.name is not"));
  CHECK(contains(refusal("node { name: 'x' op: " + bad + " }"), "NodeDef.op"));
  CHECK(contains(refusal("node { name: 'x' input: 'a' input: " + bad + " }"),
                 "node \"x\": tensorflow.NodeDef.input"));
  CHECK(contains(refusal("node { name: 'x' attr { key: " + bad + " } }"),
                 "node \"x\": tensorflow.NodeDef.AttrEntry.key"));
  CHECK(contains(refusal("node { name: 'x' attr { key: 'f' value { func { "
                         "name: " +
                         bad + " } } } }"),
                 "tensorflow.NameAttrList.name"));
  const auto of_function = [&](const std::string& inside) {
    return refusal("library { function { signature { name: 'f' } " + inside +
                   " } }");
  };
  CHECK(contains(of_function("node_def { name: 'i' input: " + bad + " }"),
                 "node \"i\": tensorflow.NodeDef.input"));
  CHECK(contains(of_function("ret { key: 'r' value: " + bad + " }"),
                 "[graphdef] tensorflow.FunctionDef.RetEntry.value"));
  CHECK(contains(of_function("control_ret { key: " + bad + " value: 'i' }"),
                 "tensorflow.FunctionDef.ControlRetEntry.key"));
  CHECK(contains(
      refusal("library { function { signature { name: " + bad + " } } }"),
      "tensorflow.OpDef.name"));
  CHECK(contains(refusal("library { gradient { function_name: 'f' "
                         "gradient_func: " +
                         bad + " } }"),
                 "tensorflow.GradientDef.gradient_func"));
  // Values are bytes.
  const Graph graph = must(read_graphdef_text(
      "node { name: 'x' op: 'Const' attr { key: 'dtype' value { type: "
      "DT_STRING } } attr { key: 'value' value { tensor { dtype: DT_STRING "
      "tensor_shape { } string_val: " +
      bad + " } } } }"));
  const Tensor value = must(graph.nodes()[0]->attr<Tensor>("value"));
  CHECK(must(value.item<std::string>()) == "a\xff");
}

TEST_CASE("the text of a SavedModel whose strings are not UTF-8 is refused") {
  const Folder folder;
  const fs::path file =
      folder.write("saved_model.pbtxt",
                   "meta_graphs { graph_def { node { name: 'x' op: 'NoOp' } } "
                   "signature_def { key: '\\377' value { } } }");
  CHECK(message_of(load_file(file).status(), Code::kInvalidArgument) ==
        file.string() +
            ": [graphdef] tensorflow.MetaGraphDef.SignatureDefEntry.key is not "
            "UTF-8: \"\\xff\"");
}

TEST_CASE("a binary graph whose strings are not UTF-8 says which one") {
  // Node 1 { device 4: "\xff" }
  CHECK(message_of(parse_graphdef("\x0a\x03\x22\x01\xff").status(),
                   Code::kDataLoss) ==
        "[graphdef] 5 bytes are not a GraphDef: tensorflow.NodeDef.device is "
        "not UTF-8: \"\\xff\"");
}

TEST_CASE("no graph is written that its reader would refuse") {
  const Folder folder;
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(1.0f));
  graph.set_attr(x, "_attr\xff", true);
  CHECK(contains(message_of(write_graphdef(graph).status(), Code::kDataLoss),
                 "[graphdef] nobody could read what would be written: "
                 "[graphdef] "));
  CHECK(contains(
      message_of(write_graphdef(graph).status(), Code::kDataLoss),
      "tensorflow.NodeDef.AttrEntry.key is not UTF-8: \"_attr\\xff\""));
  CHECK(contains(message_of(save_graph(graph, folder.path / "x.pbtxt"),
                            Code::kInvalidArgument),
                 "node \"x\": tensorflow.NodeDef.AttrEntry.key is not UTF-8"));
  CHECK(fs::is_empty(folder.path));

  Graph wide;
  Node* one = constant(wide, "one", Tensor::scalar(1.0f));
  std::vector<Endpoint> inputs(kMaxNodePorts, Endpoint{one, 0});
  const auto sum = [&](const char* name) {
    add(wide, name, "AddN", inputs, {{"N", int64_t(inputs.size())}}, {one});
  };
  sum("sum");
  CHECK(write_graphdef(wide).ok());
  inputs.emplace_back(one, 0);
  sum("more");
  for (const char* name : {"wide.pb", "wide.pbtxt"})
    CHECK(message_of(save_graph(wide, folder.path / name),
                     Code::kResourceExhausted) ==
          "[graphdef] node \"more\" has 65536 inputs, but nodes run with up "
          "to 65535 only");
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("a copied model has no files that its links lead out of it for") {
  tensorflow::SavedModel model;
  auto* node = model.add_meta_graphs()->mutable_graph_def()->add_node();
  node->set_name("x");
  node->set_op("NoOp");
  const Folder folder;
  const fs::path original = folder.path / "model", assets = original / "assets";
  fs::create_directories(original / "more");
  fs::create_directory(assets);
  folder.write("secret", "1");
  folder.write("model/saved_model.pb", model.SerializeAsString());
  folder.write("model/more/words", "2");
  const Graph graph = must(load_graph(original));
  fs::create_symlink("../more", assets / "near");
  fs::create_symlink(original / "more" / "words", assets / "words");
  const fs::path copy = folder.path / "copy";
  must(save_model(graph, original, copy));
  for (const char* name : {"assets/near/words", "assets/words", "more/words"})
    CHECK(fs::symlink_status(copy / name).type() == fs::file_type::regular);
  for (const fs::path& target :
       {fs::path("../../secret"), fs::path("/etc"), folder.path / "secret"}) {
    fs::remove_all(copy);
    fs::create_symlink(target, assets / "out");
    const std::string text =
        message_of(save_model(graph, original, copy), Code::kPermissionDenied);
    CAPTURE(text);
    CHECK(text.find("assets/out\" leads to \"" + target.string()) != text.npos);
    CHECK(!fs::exists(copy));
    fs::remove(assets / "out");
  }
}

TEST_CASE("a file that cannot be read says why") {
  const Folder folder;
  CHECK(message_of(load_file(folder.path / "none.pb").status(),
                   Code::kNotFound) ==
        fmt::format("[graphdef] no file \"{}/none.pb\"", folder.path.string()));
  CHECK(load_file(folder.path).status().code() == Code::kNotFound);
  const fs::path empty = folder.write("saved_model.pb", "");
  CHECK(message_of(load_file(empty).status(), Code::kDataLoss) ==
        fmt::format("[graphdef] \"{}\" is empty", empty.string()));
  // Field 1, the version of the schema, and no more.
  const fs::path hollow = folder.write("saved_model.pb", "\x08\x01");
  CHECK(message_of(load_file(hollow).status(), Code::kInvalidArgument) ==
        hollow.string() + ": the SavedModel has no graph");
  const fs::path bad = folder.write("bad.pb", "\xff\xff");
  CHECK(message_of(load_file(bad).status(), Code::kDataLoss) ==
        bad.string() +
            ": [graphdef] 2 bytes are not a GraphDef: "
            "they are cut off, damaged, or of another kind");
  const fs::path text = folder.write("text.pb", "node { name: \"a\" }");
  CHECK(message_of(load_file(text).status(), Code::kDataLoss)
            .ends_with("they look like text, which is read from .pbtxt files"));
  const fs::path binary = folder.write("binary.pbtxt", "\x0a\x03\x0a\x01x");
  CHECK(message_of(load_file(binary).status(), Code::kInvalidArgument)
            .ends_with("(binary graphs are read from .pb files)"));
  Limits limits;
  limits.max_bytes = 1;
  CHECK(message_of(load_file(bad, limits).status(), Code::kResourceExhausted) ==
        fmt::format("[graphdef] \"{}\" has 2 bytes, the limit is 1",
                    bad.string()));
  CHECK(load_file("/dev/null").status().code() == Code::kInvalidArgument);
  CHECK(save_graph(Graph(), folder.path / "no" / "such" / "folder.pb").code() ==
        Code::kUnknown);
}

TEST_CASE("every prefix of a file is refused or read, never more") {
  const std::string bytes = must(write_graphdef(rich_graph()));
  int read = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto file = parse_graphdef(std::string_view(bytes).substr(0, size));
    if (file.ok()) ++read;
  }
  // Only where a node or the library ends.
  CHECK(read <= 20);
}

TEST_CASE("a graph file is read only within the limits") {
  const std::string bytes = must(write_graphdef(rich_graph()));
  auto refusal = [&](const Limits& limits) {
    return message_of(parse_graphdef(bytes, limits).status(),
                      Code::kResourceExhausted);
  };
  Limits limits;
  limits.max_nodes = 15;
  CHECK(refusal(limits) ==
        "[graphdef] the GraphDef has 16 nodes, the limit is 15");
  limits = {};
  limits.max_bytes = 10;
  CHECK(refusal(limits) ==
        fmt::format("[graphdef] the GraphDef has {} bytes, the limit is 10",
                    bytes.size()));
  limits = {};
  limits.max_name_length = 10;
  CHECK(
      message_of(
          parse_graphdef_text("node { name: 'loop/switch' }", limits).status(),
          Code::kResourceExhausted) ==
      "[graphdef] the node name \"loop/switch\" has 11 bytes, the limit is "
      "10");
  limits = {};
  limits.max_tensor_bytes = 100;
  CHECK(contains(refusal(limits),
                 "[graphdef] node \"big\": attribute \"value\": a tensor of "
                 "double[7,5] is too large"));
}

TEST_CASE("files of other programs are named, with what to do about them") {
  const Folder folder;
  const auto said = [&](const std::string& name, const std::string& bytes) {
    const std::string path = folder.write(name, bytes).string();
    const std::string text =
        message_of(load_file(path).status(), Code::kInvalidArgument);
    const std::string begin = path + ": [graphdef] not a graph, but ";
    REQUIRE(text.starts_with(begin));
    return text.substr(begin.size());
  };
  const std::string zip = "PK\x03\x04";
  CHECK(contains(said("a.keras", zip), "Keras archive"));
  CHECK(contains(said("a", zip + "model.weights.h5"), "model.export("));
  CHECK(contains(said("a.npz", zip), "NumPy archive"));
  CHECK(contains(said("a.pt", zip + "a/data.pkl"), "PyTorch"));
  CHECK(contains(said("a.pb", zip), "unpack it"));
  CHECK(contains(said("a.h5", "\x89HDF\r\n"), "Keras keeps models"));
  CHECK(contains(said("a.tflite", {'\x1c', 0, 0, 0, 'T', 'F', 'L', '3', 0}),
                 "TensorFlow Lite"));
  CHECK(contains(said("a.onnx", "\x08\x07\x12\x07pytorch"), "ONNX"));
  CHECK(contains(said("a.safetensors", {'\x08', 0, 0, 0, 0, 0, 0, 0, '{', '}'}),
                 "--restore"));
  CHECK(contains(said("a.npy", "\x93NUMPY"), "--feed"));
  CHECK(contains(said("a.pb.gz", "\x1f\x8b"), "gzip"));
  CHECK(contains(said("a.pkl", "\x80\x04"), "pickle"));
}

TEST_CASE("deep nesting is refused, not followed") {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "a{";
  CHECK(message_of(parse_graphdef_text(text).status(),
                   Code::kResourceExhausted) ==
        "[graphdef] the GraphDef nests deeper than 100");
  // Functions in attributes, as bytes: AttrValue.func.attr.value ...
  std::string value = "\x18\x01";
  auto wrap = [](const char* tag, const std::string& inner) {
    std::string length;
    for (size_t n = inner.size(); true; n >>= 7) {
      length += char((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
      if (n <= 0x7f) break;
    }
    return tag + length + inner;
  };
  for (int i = 0; i < 1000; ++i)
    value = wrap("\x52", wrap("\x12", "\x0a\x01x" + wrap("\x12", value)));
  const std::string graph =
      wrap("\x0a", wrap("\x2a", "\x0a\x01x" + wrap("\x12", value)));
  CHECK(parse_graphdef(graph).status().code() == Code::kDataLoss);
}

TEST_CASE("a graph that holds handles cannot be written") {
  Graph graph;
  add(graph, "x", "NoOp", {},
      {{"_handle", Tensor::make(DataType::kResource, {})}});
  CHECK(message_of(write_graphdef(graph).status(), Code::kUnimplemented) ==
        "[graphdef] node \"x\": attribute \"_handle\": a tensor of resource "
        "cannot be written: its handles mean nothing outside this process");
}
