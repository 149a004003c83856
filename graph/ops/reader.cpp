// Readers of records in files whose names are in a queue: those whose handles
// are references to strings, as in TensorFlow 1, and those with resource
// handles, whose ops end in V2.
#include "graph/op_registry.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

namespace {

OpDefBuilder reader(const std::string& name, OpDefBuilder::Texts more,
                    bool is_handle) {
  return OpDefBuilder(is_handle ? name + "V2" : name)
      .output(is_handle ? "reader_handle: resource"
                        : "reader_handle: Ref(string)")
      .attrs(more)
      .attrs({"container: string = ''", "shared_name: string = ''"})
      .stateful()
      .shape(is_handle ? scalar_shape : handle_reference_shape);
}

void add_reader(OpRegistry& registry, const std::string& name,
                OpDefBuilder::Texts more, OpDefBuilder::Texts more_of_v2 = {}) {
  registry.add(reader(name, more, false), always_uses_files);
  registry.add(reader(name, more, true).attrs(more_of_v2), always_uses_files);
}

// All are stateful: those of the first generation, too, which TensorFlow never
// merges since they take a reference.
OpDefBuilder on_reader(const std::string& name, bool is_handle) {
  return OpDefBuilder(is_handle ? name + "V2" : name)
      .input(is_handle ? "reader_handle: resource"
                       : "reader_handle: Ref(string)")
      .stateful();
}

Status read_up_to_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 0).status());
  for (int i = 0; i < 2; ++i) c.set_output(i, {PartialShape::kUnknown});
  return {};
}

Status restore_state_shape(ShapeContext& c) {
  return c.with_rank(1, 0).status();
}

void register_reader_users(OpRegistry& registry, bool is_handle) {
  const auto queue =
      is_handle ? "queue_handle: resource" : "queue_handle: Ref(string)";
  registry.add(on_reader("ReaderRead", is_handle)
                   .input(queue)
                   .outputs({"key: string", "value: string"})
                   .shape(scalar_shape),
               always_uses_files);
  registry.add(on_reader("ReaderReadUpTo", is_handle)
                   .inputs({queue, "num_records: int64"})
                   .outputs({"keys: string", "values: string"})
                   .shape(read_up_to_shape),
               always_uses_files);
  registry.add(on_reader("ReaderNumRecordsProduced", is_handle)
                   .output("records_produced: int64")
                   .shape(scalar_shape));
  registry.add(on_reader("ReaderNumWorkUnitsCompleted", is_handle)
                   .output("units_completed: int64")
                   .shape(scalar_shape));
  registry.add(on_reader("ReaderSerializeState", is_handle)
                   .output("state: string")
                   .shape(scalar_shape));
  registry.add(on_reader("ReaderRestoreState", is_handle)
                   .input("state: string")
                   .shape(restore_state_shape));
  registry.add(on_reader("ReaderReset", is_handle).shape(no_output_shape));
}

}  // namespace

void register_reader_ops(OpRegistry& registry) {
  add_reader(registry, "WholeFileReader", {});
  add_reader(registry, "TextLineReader", {"skip_header_lines: int = 0"});
  add_reader(registry, "FixedLengthRecordReader",
             {"header_bytes: int = 0", "record_bytes: int",
              "footer_bytes: int = 0", "hop_bytes: int = 0"},
             {"encoding: string = ''"});
  add_reader(registry, "TFRecordReader", {"compression_type: string = ''"});
  add_reader(registry, "IdentityReader", {});
  registry.add(reader("LMDBReader", {}, false), always_uses_files);
  for (const bool is_handle : {false, true})
    register_reader_users(registry, is_handle);
}

}  // namespace tagflow::graph
