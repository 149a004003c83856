// ParseExampleDataset: the features of batches of serialized Examples.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "devices/kernels/dataset/map.h"
#include "devices/kernels/sparse/variants.h"
#include "devices/state/guard.h"
#include "devices/string_writer.h"
#include "graph/graph.h"

namespace tagflow::devices {

namespace {

using Types = std::vector<DataType>;
using Strings = std::vector<std::string>;

Tensor string_vector(const Strings& texts) {
  return Tensor::of<std::string>({int64_t(texts.size())}, texts);
}

// The features that a node wants, by their keys, and the outputs that have them
// of a node ParseExampleV2: sparse indices, values and shapes, dense values,
// ragged values and splits.
class WantedFeatures {
 public:
  enum class Form : uint8_t { kDense, kSparse, kRagged };
  struct Feature {
    Form form = Form::kDense;
    DataType type = DataType::kVariant;  // of the component
    int values = 0;
    int indices = 0;  // kSparse; kRagged: its splits
    int shape = 0;    // kSparse
  };

  // InvalidArgument if there are not as many keys as types, or one twice.
  static Result<WantedFeatures> make(const DatasetArgs& args) {
    WantedFeatures made;
    TAGFLOW_RETURN_IF_ERROR(
        read(args, "sparse", made.sparse_keys, made.sparse_types));
    TAGFLOW_RETURN_IF_ERROR(
        read(args, "dense", made.dense_keys, made.dense_types));
    TAGFLOW_RETURN_IF_ERROR(
        read(args, "ragged", made.ragged_keys, made.ragged_types));
    TAGFLOW_RETURN_IF_ERROR(made.find_outputs(args));
    return made;
  }

  Strings sparse_keys, dense_keys, ragged_keys;
  Types sparse_types, dense_types, ragged_types;
  std::map<std::string, Feature> by_key;

 private:
  static Status read(const DatasetArgs& args, const std::string& form,
                     Strings& keys, Types& types) {
    const std::string attr = form == "dense"    ? "Tdense"
                             : form == "ragged" ? "ragged_value_types"
                                                : "sparse_types";
    keys = args.attr(form + "_keys", Strings());
    types = args.attr(attr, Types());
    if (keys.size() == types.size()) return {};
    return args.context().fail("{}_keys has {} keys, but {} has {} types", form,
                               keys.size(), attr, types.size());
  }

  Status find_outputs(const DatasetArgs& args) {
    int port = 0;
    const auto add = [&](const std::string& key, Feature feature) -> Status {
      feature.values += port++;
      feature.indices += feature.values;
      feature.shape += feature.values;
      if (by_key.emplace(key, feature).second) return {};
      return args.context().fail("there are two features {:?}", key);
    };
    const int sparse = int(sparse_keys.size());
    port += sparse;
    for (const std::string& key : sparse_keys)
      TAGFLOW_RETURN_IF_ERROR(add(
          key, {.form = Form::kSparse, .indices = -sparse, .shape = sparse}));
    port += sparse;
    for (size_t i = 0; i < dense_keys.size(); ++i)
      TAGFLOW_RETURN_IF_ERROR(add(dense_keys[i], {.type = dense_types[i]}));
    const int ragged = int(ragged_keys.size());
    for (const std::string& key : ragged_keys)
      TAGFLOW_RETURN_IF_ERROR(
          add(key, {.form = Form::kRagged, .indices = ragged}));
    return {};
  }
};

// Parses by the kernel of ParseExampleV2, whose node is in a graph of its own.
// Immutable.
class ExampleParser {
 public:
  static Result<std::shared_ptr<const ExampleParser>> make(
      const DatasetArgs& args);

  // Of the components: the features in the order of their keys.
  Types types() const;
  // The features of all Examples in the components. Thread-safe.
  Result<Element> parse(const Element& examples, Allocator& allocator) const;

 private:
  Status make_kernel(const DatasetArgs& args);

  WantedFeatures features_;
  graph::Graph graph_;
  const graph::Node* node_ = nullptr;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> inputs_;  // of the node; the first one is replaced
};

Status ExampleParser::make_kernel(const DatasetArgs& args) {
  const Tensor none = string_vector({});
  inputs_ = {none, none, string_vector(features_.sparse_keys),
             string_vector(features_.dense_keys),
             string_vector(features_.ragged_keys)};
  const auto defaults =
      args.context().inputs().subspan(2, features_.dense_types.size());
  inputs_.insert(inputs_.end(), defaults.begin(), defaults.end());
  std::vector<graph::Endpoint> endpoints;
  for (const Tensor& input : inputs_) {
    TAGFLOW_ASSIGN(graph::Node * node,
                   graph_.add(graph_.unique_name("input"), "Placeholder", {},
                              {{"dtype", input.dtype()}}));
    endpoints.push_back({node, 0});
  }
  TAGFLOW_ASSIGN(
      node_,
      graph_.add(
          "parse", "ParseExampleV2", endpoints,
          {{"num_sparse", int64_t(features_.sparse_keys.size())},
           {"sparse_types", features_.sparse_types},
           {"Tdense", features_.dense_types},
           {"ragged_value_types", features_.ragged_types},
           {"ragged_split_types", args.attr("ragged_split_types", Types())},
           {"dense_shapes",
            args.attr("dense_shapes", std::vector<PartialShape>())}}));
  TAGFLOW_ASSIGN(kernel_, KernelRegistry::global().make(*node_, "CPU"));
  return {};
}

Result<std::shared_ptr<const ExampleParser>> ExampleParser::make(
    const DatasetArgs& args) {
  auto parser = std::make_shared<ExampleParser>();
  TAGFLOW_ASSIGN(parser->features_, WantedFeatures::make(args));
  TAGFLOW_RETURN_IF_ERROR(parser->make_kernel(args));
  // The kernel checks defaults and shapes, whatever there is to parse.
  TAGFLOW_RETURN_IF_ERROR(
      parser->parse({string_vector({})}, args.context().host_memory())
          .status());
  return std::shared_ptr<const ExampleParser>(std::move(parser));
}

Types ExampleParser::types() const {
  Types types;
  for (const auto& [key, feature] : features_.by_key)
    types.push_back(feature.type);
  return types;
}

// The texts of all components as one vector.
Result<Tensor> all_texts(const Element& element, Allocator& allocator) {
  int64_t count = 0;
  for (const Tensor& part : element) count += part.num_elements();
  if (element.size() == 1) return element[0].reshaped({count});
  TAGFLOW_ASSIGN(Tensor texts,
                 Tensor::allocate(DataType::kString, {count}, allocator));
  const ElementWriter<std::string> writer(texts);
  auto* to = texts.mutable_data<std::string>();
  for (const Tensor& part : element) {
    writer.copy(part.data<std::string>(), part.num_elements(), to);
    to += part.num_elements();
  }
  return texts;
}

Result<Element> ExampleParser::parse(const Element& examples,
                                     Allocator& allocator) const {
  std::vector<Tensor> inputs = inputs_;
  TAGFLOW_ASSIGN(inputs[0], all_texts(examples, allocator));
  std::vector<Tensor> outputs(size_t(node_->num_outputs()));
  const StepInfo step;
  const Tag tag;
  KernelContext context(node_, inputs, outputs, &step, &tag, &allocator);
  TAGFLOW_RETURN_IF_ERROR(run_kernel(*kernel_, context));
  Element element;
  for (const auto& [key, feature] : features_.by_key) {
    const Tensor& values = outputs[size_t(feature.values)];
    const Tensor& indices = outputs[size_t(feature.indices)];
    Tensor& component = element.emplace_back(values);
    if (feature.form == WantedFeatures::Form::kSparse) {
      TAGFLOW_ASSIGN(
          component,
          sparse_variants({indices, values, outputs[size_t(feature.shape)]},
                          allocator));
    } else if (feature.form == WantedFeatures::Form::kRagged) {
      TAGFLOW_ASSIGN(component, ragged_variant({indices}, values, allocator));
    }
  }
  return element;
}

// Calls that parse elements on the workers of the segment's pipeline. They may
// end after the stage that started them.
StartCall parse_calls(Segment& segment, const Dataset& self,
                      std::shared_ptr<const ExampleParser> parser) {
  return [waiting = segment.weak_from_this(), parser = std::move(parser),
          dataset = DatasetRef(&self),
          &pipeline = segment.pipeline()](Element examples) {
    auto call = std::make_shared<OpenCall>();
    pipeline.post([=, examples = std::move(examples)] {
      const auto parse = [&]() -> Result<Element> {
        const auto alive = waiting.lock();
        if (alive == nullptr || alive->is_stopped())
          return error(Code::kCancelled, "the iteration was ended");
        TAGFLOW_ASSIGN(Element element,
                       parser->parse(examples, alive->pipeline().allocator()));
        TAGFLOW_RETURN_IF_ERROR(dataset->spec().check(element));
        return element;
      };
      call->finish(guarded("dataset", parse), waiting);
    });
    return call;
  };
}

Result<DatasetParts> parse_example_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const int64_t wanted, args.parallel_calls(1));
  for (const DataType type : input->spec().types)
    if (type != DataType::kString)
      return args.context().fail(
          "the elements of the input must be serialized Examples, not values "
          "of {}",
          dtype_name(type));
  TAGFLOW_ASSIGN(const auto parser, ExampleParser::make(args));
  return DatasetParts{
      input->cardinality(),
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        // One worker parses a batch, while TensorFlow has several for one: so
        // at least as many are parsed at once as there are workers.
        const int64_t calls =
            std::max<int64_t>(wanted, segment.pipeline().parallelism());
        return parallel_calls(segment, self, std::move(stage),
                              parse_calls(segment, self, parser), calls, true);
      },
      parser->types()};
}

}  // namespace

void register_dataset_parse_example_kernels(KernelRegistry& registry) {
  for (const char* op : {"ParseExampleDataset", "ParseExampleDatasetV2",
                         "ExperimentalParseExampleDataset"})
    add_dataset(registry, op, parse_example_dataset);
}

}  // namespace tagflow::devices
