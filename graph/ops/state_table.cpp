// Tables: those whose handles are references to strings, as in TensorFlow 1,
// and those with resource handles, whose ops end in V2.
#include "graph/known_value.h"
#include "graph/ops/state_ops.h"

namespace tagflow::graph {

namespace {

constexpr const char* kMaxLoad = "max_load_factor: float = 0.8";

// The op that made the table of input 0; empty if it is not known.
std::string_view maker_of(const ShapeContext& c) {
  const Node* maker = known_maker(c.node().inputs()[0]);
  return maker == nullptr ? std::string_view() : maker->op();
}

bool is_of_scalars(std::string_view op) {
  for (const std::string_view start : {"Anonymous", "Mutable"})
    if (op.starts_with(start)) op.remove_prefix(start.size());
  return op == "HashTable" || op == "HashTableV2";
}

Status find_shape(ShapeContext& c) {
  if (is_of_scalars(maker_of(c))) c.set_output(0, c.input(1));
  return {};
}

Status export_shape(ShapeContext& c) {
  if (is_of_scalars(maker_of(c)))
    for (int i = 0; i < 2; ++i) c.set_output(i, {-1});
  return {};
}

Status initialize_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape keys, c.with_rank(1, 1));
  if (!keys.compatible(c.input(2)))
    return c.fail(fmt::format("there are keys of shape {}, but values of {}",
                              keys.to_string(), c.input(2).to_string()));
  return {};
}

Status text_file_shape(ShapeContext& c) { return c.with_rank(1, 0).status(); }

// A table in three generations: by reference, by handle, without a name.
struct TableOp {
  std::string name;
  std::vector<const char*> attrs;
  bool is_dense = false;
};

void define_table(OpRegistry& registry, const TableOp& def) {
  enum class Made { kReference, kHandle, kAnonymous };
  for (const Made made : {Made::kReference, Made::kHandle, Made::kAnonymous}) {
    OpDefBuilder op(made == Made::kReference ? def.name
                    : made == Made::kHandle  ? def.name + "V2"
                                             : "Anonymous" + def.name);
    if (def.is_dense) op.input("empty_key: key_dtype");
    if (def.is_dense && made != Made::kReference)
      op.input("deleted_key: key_dtype");
    op.output(made == Made::kReference ? "table_handle: Ref(string)"
                                       : "table_handle: resource");
    if (made != Made::kAnonymous)
      op.attr("container: string = ''")
          .attr("shared_name: string = ''")
          .attr("use_node_name_sharing: bool = false");
    op.attr("key_dtype: type").attr("value_dtype: type");
    for (const char* attr : def.attrs) op.attr(attr);
    registry.add(op.stateful().shape(
        made == Made::kReference ? handle_reference_shape : scalar_shape));
  }
}

struct OpOnTable {
  std::string name;
  std::vector<const char*> inputs, outputs, attrs;
  ShapeFn shape;
};

void define_on_table(OpRegistry& registry, const OpOnTable& def) {
  for (const bool is_handle : {false, true}) {
    OpDefBuilder op(is_handle ? def.name + "V2" : def.name);
    op.input(is_handle ? "table_handle: resource"
                       : "table_handle: Ref(string)");
    for (const char* input : def.inputs) op.input(input);
    for (const char* output : def.outputs) op.output(output);
    for (const char* attr : def.attrs) op.attr(attr);
    registry.add(op.stateful().shape(def.shape));
  }
}

}  // namespace

void register_table_ops(OpRegistry& registry) {
  define_table(registry, {"HashTable", {}});
  define_table(registry, {"MutableHashTable", {}});
  define_table(registry,
               {"MutableHashTableOfTensors", {"value_shape: shape = []"}});
  define_table(registry, {"MutableDenseHashTable",
                          {"value_shape: shape = []",
                           "initial_num_buckets: int = 131072", kMaxLoad},
                          true});

  const std::vector<const char*> entries = {"keys: Tin", "values: Tout"};
  const std::vector<const char*> types = {"Tin: type", "Tout: type"};
  define_on_table(registry, {"LookupTableFind",
                             {"keys: Tin", "default_value: Tout"},
                             {"values: Tout"},
                             types,
                             find_shape});
  for (const char* name : {"LookupTableInsert", "LookupTableImport"})
    define_on_table(registry, {name, entries, {}, types, no_output_shape});
  define_on_table(registry,
                  {"LookupTableSize", {}, {"size: int64"}, {}, scalar_shape});
  define_on_table(registry, {"LookupTableExport",
                             {},
                             {"keys: Tkeys", "values: Tvalues"},
                             {"Tkeys: type", "Tvalues: type"},
                             export_shape});
  define_stateful(registry, "LookupTableRemoveV2",
                  {"table_handle: resource", "keys: Tin"}, {}, {"Tin: type"},
                  no_output_shape);
  define_on_table(registry, {"InitializeTable",
                             {"keys: Tkey", "values: Tval"},
                             {},
                             {"Tkey: type", "Tval: type"},
                             initialize_shape});
  define_on_table(registry, {"InitializeTableFromTextFile",
                             {"filename: string"},
                             {},
                             {"key_index: int >= -2", "value_index: int >= -2",
                              "vocab_size: int >= -1 = -1",
                              "delimiter: string = '\t'", "offset: int = 0"},
                             text_file_shape});
}

}  // namespace tagflow::graph
