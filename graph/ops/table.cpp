// Tables: those whose handles are references to strings, as in TensorFlow 1,
// and those with resource handles, whose ops end in V2.
#include "graph/known_value.h"
#include "graph/op_registry.h"
#include "graph/ops/variable_ops.h"

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

// A table in three generations: by reference, by handle, without a name. A
// dense one needs keys that no entry has.
void add_table(OpRegistry& registry, const std::string& name,
               OpDefBuilder::Texts more, bool is_dense = false) {
  enum class Made : uint8_t { kReference, kHandle, kAnonymous };
  for (const Made made : {Made::kReference, Made::kHandle, Made::kAnonymous}) {
    OpDefBuilder op(made == Made::kReference ? name
                    : made == Made::kHandle  ? name + "V2"
                                             : "Anonymous" + name);
    if (is_dense) op.input("empty_key: key_dtype");
    if (is_dense && made != Made::kReference)
      op.input("deleted_key: key_dtype");
    op.output(made == Made::kReference ? "table_handle: Ref(string)"
                                       : "table_handle: resource");
    if (made != Made::kAnonymous)
      op.attrs({"container: string = ''", "shared_name: string = ''",
                "use_node_name_sharing: bool = false"});
    op.attrs({"key_dtype: type", "value_dtype: type"}).attrs(more);
    registry.add(op.stateful().shape(
        made == Made::kReference ? handle_reference_shape : scalar_shape));
  }
}

// An op on a table, by reference or by handle.
OpDefBuilder on_table(const std::string& name, bool is_handle) {
  return OpDefBuilder(is_handle ? name + "V2" : name)
      .input(is_handle ? "table_handle: resource" : "table_handle: Ref(string)")
      .stateful();
}

void register_table_users(OpRegistry& registry, bool is_handle) {
  registry.add(on_table("LookupTableFind", is_handle)
                   .inputs({"keys: Tin", "default_value: Tout"})
                   .output("values: Tout")
                   .attrs({"Tin: type", "Tout: type"})
                   .shape(find_shape));
  for (const char* name : {"LookupTableInsert", "LookupTableImport"})
    registry.add(on_table(name, is_handle)
                     .inputs({"keys: Tin", "values: Tout"})
                     .attrs({"Tin: type", "Tout: type"})
                     .shape(no_output_shape));
  registry.add(on_table("LookupTableSize", is_handle)
                   .output("size: int64")
                   .shape(scalar_shape));
  registry.add(on_table("LookupTableExport", is_handle)
                   .outputs({"keys: Tkeys", "values: Tvalues"})
                   .attrs({"Tkeys: type", "Tvalues: type"})
                   .shape(export_shape));
  registry.add(on_table("InitializeTable", is_handle)
                   .inputs({"keys: Tkey", "values: Tval"})
                   .attrs({"Tkey: type", "Tval: type"})
                   .shape(initialize_shape));
  registry.add(on_table("InitializeTableFromTextFile", is_handle)
                   .input("filename: string")
                   .attrs({"key_index: int >= -2", "value_index: int >= -2",
                           "vocab_size: int >= -1 = -1",
                           "delimiter: string = '\t'", "offset: int = 0"})
                   .shape(text_file_shape),
               always_uses_files);
}

}  // namespace

void register_table_ops(OpRegistry& registry) {
  add_table(registry, "HashTable", {});
  add_table(registry, "MutableHashTable", {});
  add_table(registry, "MutableHashTableOfTensors", {"value_shape: shape = []"});
  add_table(registry, "MutableDenseHashTable",
            {"value_shape: shape = []", "initial_num_buckets: int = 131072",
             kMaxLoad},
            true);
  for (const bool is_handle : {false, true})
    register_table_users(registry, is_handle);
  registry.add(OpDefBuilder("LookupTableRemoveV2")
                   .inputs({"table_handle: resource", "keys: Tin"})
                   .attr("Tin: type")
                   .stateful()
                   .shape(no_output_shape));
}

}  // namespace tagflow::graph
