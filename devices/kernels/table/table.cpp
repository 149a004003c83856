// Tables: creating, filling, reading and changing them. The ops of all versions
// have the same kernels: a reference to a table is its handle.
#include "devices/state/table.h"

#include "devices/kernel_registry.h"
#include "devices/kernels/table/table_file.h"
#include "devices/kernels/variable/state_inputs.h"
#include "devices/state/actor_kernel.h"

namespace tagflow::devices {

namespace {

using Kind = TableSpec::Kind;
using Mode = StateLock::Mode;

// --- Creation ---------------------------------------------------------------

// Strings, and types that can be compared byte by byte: not floating numbers,
// where 0.0 and -0.0 would be two keys, and NaN has many forms.
bool is_key(DataType type) {
  return type == DataType::kBool || type == DataType::kString ||
         is_integer(type);
}

Result<TableSpec> make_spec(const KernelInfo& info, Kind kind) {
  TableSpec spec;
  spec.kind = kind;
  spec.key = attr_of<DataType>(info, "key_dtype");
  spec.value = attr_of<DataType>(info, "value_dtype");
  if (!is_key(spec.key))
    return invalid_argument(
        "a table cannot have keys of {}, only integers, booleans and strings",
        dtype_name(spec.key));
  if (kind == Kind::kFixed || kind == Kind::kScalar) return spec;
  const auto shape = attr_of<PartialShape>(info, "value_shape");
  if (!shape.fully_known())
    return invalid_argument("value_shape must be known, not {}",
                            shape.to_string());
  TAGFLOW_ASSIGN(spec.value_shape, Shape::make(shape.dims()));
  if (kind == Kind::kTensor && spec.value_shape.rank() > 1)
    return invalid_argument("values must be scalars or vectors, not {}",
                            shape.to_string());
  if (kind == Kind::kTensor) return spec;
  const auto buckets = attr_of<int64_t>(info, "initial_num_buckets");
  if (buckets < 4 || (buckets & (buckets - 1)) != 0)
    return invalid_argument(
        "initial_num_buckets must be a power of two of at least 4, not {}",
        buckets);
  const auto load = attr_of<float>(info, "max_load_factor");
  if (!(load > 0 && load < 1))
    return invalid_argument("max_load_factor must be between 0 and 1, not {}",
                            load);
  return spec;
}

template <Kind kKind>
class TableKernel final : public CheapKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    Result<TableSpec> spec = make_spec(info, kKind);
    if (!spec.ok()) return spec.status();
    return std::unique_ptr<Kernel>(new TableKernel(info, *std::move(spec)));
  }

  Status compute(KernelContext& context) const override {
    TableSpec spec = spec_;
    if constexpr (kKind == Kind::kDense) {
      TAGFLOW_RETURN_IF_ERROR(read_reserved(context, spec));
    }
    TAGFLOW_RETURN_IF_ERROR(
        resource_.set_handle(context, [&]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(make_ref_counted<Table>(
              resource_.is_anonymous() ? "" : resource_.key().name, spec));
        }));
    // Another node may have made it.
    const auto* table =
        state_object<Table>(*context.output(0).data<ResourceHandle>());
    return table->spec()
        .check_same(table->describe(), spec)
        .with_prefix(fmt::format("[{}] ", context.node().op()));
  }
  bool is_bookkeeping() const override { return true; }

 private:
  TableKernel(const KernelInfo& info, TableSpec spec)
      : resource_(info), spec_(std::move(spec)) {}

  static Status read_reserved(const KernelContext& context, TableSpec& spec) {
    spec.empty_key = context.input(0);
    spec.key_shape = spec.empty_key.shape();
    if (spec.key_shape.num_elements() == 0)
      return context.fail("empty_key has no elements: {}",
                          spec.empty_key.describe());
    if (context.num_inputs() == 1) return {};
    spec.deleted_key = context.input(1);
    if (spec.deleted_key.shape() != spec.key_shape)
      return context.fail("empty_key and deleted_key differ in shape: {}, {}",
                          spec.empty_key.describe(),
                          spec.deleted_key.describe());
    if (identical(spec.empty_key, spec.deleted_key))
      return context.fail("empty_key and deleted_key must not be equal");
    return {};
  }

  const ResourceOp resource_;
  const TableSpec spec_;
};

// --- Using ------------------------------------------------------------------

constexpr double kNanosecondsPerKey = 40;

// The kernels on a table: `Use` has kMode, and its operation as compute().
template <class Use>
class UseTableKernel final : public StateKernel {
 public:
  explicit UseTableKernel(const KernelInfo& info) : use_(info) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    TAGFLOW_ASSIGN(Table * table, handle_input<Table>(context, 0));
    claim.add(table->lock(), Use::kMode, *table);
    return {};
  }
  Status compute_held(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Table * table, handle_input<Table>(context, 0));
    return use_.compute(context, *table);
  }
  double cost(const KernelContext& context) const override {
    constexpr double kFileNanoseconds = 1e6;
    if constexpr (requires { Use::kReadsFile; }) return kFileNanoseconds;
    if (context.num_inputs() < 2) return 0;
    return kNanosecondsPerKey * double(context.input(1).num_elements());
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const Use use_;
};

template <Mode kMode_>
struct Use {
  static constexpr Mode kMode = kMode_;
  explicit Use(const KernelInfo&) {}
};

struct Find : Use<Mode::kShared> {
  using Use::Use;
  static Status compute(KernelContext& context, const Table& table) {
    return table.find(context, context.input(1), context.input(2));
  }
};

struct Size : Use<Mode::kShared> {
  using Use::Use;
  static Status compute(KernelContext& context, const Table& table) {
    TAGFLOW_RETURN_IF_ERROR(table.ended());
    context.set_output(0, Tensor::scalar(table.size()));
    return {};
  }
};

struct Export : Use<Mode::kShared> {
  using Use::Use;
  static Status compute(KernelContext& context, const Table& table) {
    const auto& types = context.node().output_dtypes();
    if (types[0] != table.spec().key || types[1] != table.spec().value)
      return context.fail("{} is a {}, not one of {} -> {}", table.describe(),
                          table.spec().describe(), dtype_name(types[0]),
                          dtype_name(types[1]));
    return table.export_to(context);
  }
};

// The error for a change of a table that is filled once.
Status fixed(const KernelContext& context, const Table& table) {
  return error(Code::kUnimplemented, "[{}] {} is a {}, which cannot be changed",
               context.node().op(), table.describe(), table.spec().describe());
}

struct Insert : Use<Mode::kExclusive> {
  using Use::Use;
  static Status compute(KernelContext& context, Table& table) {
    if (table.spec().kind == Kind::kFixed) return fixed(context, table);
    return table.insert(context, context.input(1), context.input(2));
  }
};

struct Remove : Use<Mode::kExclusive> {
  using Use::Use;
  static Status compute(KernelContext& context, Table& table) {
    if (table.spec().kind == Kind::kFixed) return fixed(context, table);
    return table.remove(context, context.input(1));
  }
};

struct Import : Use<Mode::kExclusive> {
  using Use::Use;
  static Status compute(KernelContext& context, Table& table) {
    return table.import_all(context, context.input(1), context.input(2));
  }
};

Status check_fixed(const KernelContext& context, const Table& table) {
  if (table.spec().kind == Kind::kFixed) return table.ended();
  return context.fail("{} is a {}, which cannot be initialized, only changed",
                      table.describe(), table.spec().describe());
}

struct Initialize : Use<Mode::kExclusive> {
  using Use::Use;
  static Status compute(KernelContext& context, Table& table) {
    TAGFLOW_RETURN_IF_ERROR(check_fixed(context, table));
    if (context.input(1).rank() != 1)
      return context.fail("keys must be a vector, not {}",
                          context.input(1).describe());
    return table.fill(context, context.input(1), context.input(2));
  }
};

struct InitializeFromFile : Use<Mode::kExclusive> {
  static constexpr bool kReadsFile = true;
  explicit InitializeFromFile(const KernelInfo& info)
      : Use(info), delimiter(attr_of<std::string>(info, "delimiter")) {
    format.key_index = attr_of<int64_t>(info, "key_index");
    format.value_index = attr_of<int64_t>(info, "value_index");
    format.lines = attr_of<int64_t>(info, "vocab_size");
    format.offset = attr_of<int64_t>(info, "offset");
    if (delimiter.size() == 1) format.delimiter = delimiter[0];
  }
  Status compute(KernelContext& context, Table& table) const {
    TAGFLOW_RETURN_IF_ERROR(check_fixed(context, table));
    if (delimiter.size() != 1)
      return context.fail("the delimiter must be one character, not \"{}\"",
                          delimiter);
    const Tensor& path = context.input(1);
    if (path.num_elements() != 1)
      return context.fail("filename must be one string, not {}",
                          path.describe());
    // Another session or node may have filled the table.
    if (table.is_initialized()) return {};
    TAGFLOW_ASSIGN(
        const TableEntries entries,
        read_table_file(context, path.scalar_value<std::string>(), format,
                        table.spec().key, table.spec().value));
    return table.fill(context, entries.keys, entries.values);
  }

  std::string delimiter;
  TableFile format;
};

template <Kind kKind>
void add_table(KernelRegistry& registry, const std::string& op) {
  add_both<TableKernel<kKind>>(registry, op);
  registry.add<TableKernel<kKind>>("Anonymous" + op);
}

}  // namespace

void register_table_op_kernels(KernelRegistry& registry) {
  add_table<Kind::kFixed>(registry, "HashTable");
  add_table<Kind::kScalar>(registry, "MutableHashTable");
  add_table<Kind::kTensor>(registry, "MutableHashTableOfTensors");
  add_table<Kind::kDense>(registry, "MutableDenseHashTable");
  add_both<UseTableKernel<Find>>(registry, "LookupTableFind");
  add_both<UseTableKernel<Insert>>(registry, "LookupTableInsert");
  add_both<UseTableKernel<Import>>(registry, "LookupTableImport");
  add_both<UseTableKernel<Size>>(registry, "LookupTableSize");
  add_both<UseTableKernel<Export>>(registry, "LookupTableExport");
  registry.add<UseTableKernel<Remove>>("LookupTableRemoveV2");
  add_both<UseTableKernel<Initialize>>(registry, "InitializeTable");
  add_both<UseTableKernel<InitializeFromFile>>(registry,
                                               "InitializeTableFromTextFile");
}

}  // namespace tagflow::devices
