// _FusedElementwise: several element-wise ops in one pass over the memory.
//
// Each op has its own kernel, for a node that is internal to this. If each
// operand is of the output's shape or a single element, the rows of these
// kernels run tile by tile, so that intermediate results stay in the
// first-level cache. If an operand is columns of an input, no tile crosses the
// end of a row. Everything else, such as shapes that must be broadcast, runs
// through the kernels one by one, as unfused.
#include <algorithm>
#include <array>
#include <boost/container/static_vector.hpp>
#include <span>

#include "devices/kernels/built_kernel.h"
#include "devices/kernels/elementwise/fused_columns.h"
#include "devices/kernels/elementwise/fused_program.h"
#include "devices/kernels/elementwise/fused_tiles.h"
#include "devices/kernels/elementwise/registration.h"
#include "graph/graph.h"

namespace tagflow::devices {

namespace {

// The maximum number of ops, and of inputs.
constexpr size_t kMaxFused = 64;
// Bytes of all tiles together: with as much of an input they fit in the
// first-level cache.
constexpr size_t kTileBytes = 16 * 1024;
constexpr int64_t kLeastTile = 64;  // elements

// One op. Operands are numbered: the inputs, then the results so far.
struct FusedOp {
  std::unique_ptr<Kernel> kernel;
  graph::Node* node = nullptr;
  const UnaryLoop* unary = nullptr;  // one of the two
  const BinaryLoop* binary = nullptr;
  size_t operands[2] = {0, 0};
  size_t num_operands = 0;
  bool broadcasts = true;             // a single element to many
  bool last_use[2] = {false, false};  // of an operand that is a result
  int output = -1;                    // its result's number among these
  size_t tile = 0;                    // where its result goes otherwise
};

// For each value, whether an operand moves along with the output.
using Moves = std::array<bool, 2 * kMaxFused>;

// The memory that run_tiles() uses, as rows of so many columns.
struct FusedMemory {
  std::span<const FusedRows> inputs;
  std::span<const FusedPlace> outputs;
  int64_t columns = 0;
  bool is_fresh = false;  // no output overlaps an input
};

// One for each value that is an output.
using FusedOutputs = boost::container::static_vector<FusedPlace, kMaxFused>;

class FusedKernel final : public Kernel, public FusedTiles {
 public:
  Status build(const KernelInfo& info) {
    using Strings = std::vector<std::string>;
    TAGFLOW_ASSIGN(const auto program, info.attr<Strings>("program"));
    TAGFLOW_ASSIGN(const auto names, info.attr<Strings>("names"));
    TAGFLOW_ASSIGN(const DataType dtype, info.attr<DataType>("T"));
    num_inputs_ = size_t(info.num_inputs());
    if (program.size() > kMaxFused || num_inputs_ > kMaxFused)
      return invalid_argument("{} ops on {} inputs, the limit is {}",
                              program.size(), num_inputs_, kMaxFused);
    if (names.size() != program.size())
      return invalid_argument("{} names for {} ops", names.size(),
                              program.size());
    element_size_ = dtype_size(dtype);
    TAGFLOW_ASSIGN(columns_, read_fused_columns(info));
    std::vector<graph::Endpoint> values;
    for (size_t i = 0; i < num_inputs_; ++i) {
      TAGFLOW_ASSIGN(graph::Node * input,
                     graph_.add(graph_.unique_name("input"), "Placeholder", {},
                                {{"dtype", dtype}}));
      values.push_back({input, 0});
    }
    for (size_t i = 0; i < program.size(); ++i) {
      Status status = add_op(program[i], names[i], dtype, values);
      if (!status.ok())
        return std::move(status).with_prefix(
            fmt::format("line {} of the program, \"{}\": ", i, program[i]));
    }
    TAGFLOW_RETURN_IF_ERROR(choose_outputs(info));
    assign_tiles();
    may_be_expensive_ = may_take_long(info, cost_);
    return {};
  }

  Status compute(KernelContext& context) const override {
    if (columns_.empty() && !joins() && compute_scalars(context)) return {};
    TAGFLOW_RETURN_IF_ERROR(check_fused_columns(context, columns_));
    int like = 0;
    for (int i = 1; i < context.num_inputs(); ++i)
      if (is_larger(seen(context, i), seen(context, like))) like = i;
    Moves moves;
    if (!fits(context, seen(context, like), moves))
      return compute_one_by_one(context);
    return compute_tiles(context, like, moves);
  }

  double cost(const KernelContext& context) const override {
    int64_t elements = 0;
    for (int i = 0; i < context.num_inputs(); ++i)
      elements = std::max(elements, seen(context, i).num_elements());
    return cost_ * double(elements);
  }
  bool may_be_expensive() const override { return may_be_expensive_; }
  bool may_be_expensive_on_small_inputs() const override { return false; }

  bool can_run_blocks(std::span<const bool> moves) const override {
    if (moves.size() != num_inputs_) return false;
    Moves all;
    std::ranges::copy(moves, all.begin());
    return all_move(all);
  }

  void run_block(const FusedBlock& block) const override {
    run_tiles({.inputs = block.inputs,
               .outputs = block.outputs,
               .columns = block.columns},
              0, block.rows * block.columns);
  }

 private:
  // --- Creation --------------------------------------------------------------

  Status add_op(std::string_view line, const std::string& name, DataType dtype,
                std::vector<graph::Endpoint>& values) {
    TAGFLOW_ASSIGN(const FusedLine parsed,
                   parse_fused_line(line, values.size()));
    FusedOp op;
    std::vector<graph::Endpoint> operands;
    for (const size_t number : parsed.operands) {
      op.operands[op.num_operands++] = number;
      operands.push_back(values[number]);
    }
    TAGFLOW_ASSIGN(op.node,
                   graph_.add(graph_.unique_name(name), parsed.op, operands));
    TAGFLOW_ASSIGN(op.kernel, KernelRegistry::global().make(*op.node, "CPU"));
    if (const auto* one = dynamic_cast<const UnaryBase*>(op.kernel.get()))
      op.unary = &one->loop();
    if (const auto* two = dynamic_cast<const BinaryBase*>(op.kernel.get()))
      if (two->loop().find_refused == nullptr) {
        op.binary = &two->loop();
        op.broadcasts = two->broadcasts();
      }
    if ((op.unary == nullptr && op.binary == nullptr) ||
        op.node->output_dtypes()[0] != dtype)
      return invalid_argument("the op cannot be fused");
    cost_ += op.unary != nullptr ? op.unary->cost : op.binary->cost;
    values.push_back({op.node, 0});
    ops_.push_back(std::move(op));
    return {};
  }

  // Reads the attributes `outputs`, whose numbers count as operands', and
  // `joined`.
  Status choose_outputs(const KernelInfo& info) {
    using Numbers = std::vector<int64_t>;
    TAGFLOW_ASSIGN(Numbers values, info.attr<Numbers>("outputs"));
    TAGFLOW_ASSIGN(Numbers joined, info.attr<Numbers>("joined"));
    if (values.empty()) values = {int64_t(num_inputs_ + ops_.size()) - 1};
    if (!joined.empty() && joined.size() != values.size())
      return invalid_argument("joined has {} elements for {} values",
                              joined.size(), values.size());
    parts_.resize(size_t(info.num_outputs()));
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t op = values[i] - int64_t(num_inputs_);
      if (op < 0 || op >= int64_t(ops_.size()) || ops_[size_t(op)].output >= 0)
        return invalid_argument(
            "output {} is value {}, which is not a result, or is repeated", i,
            values[i]);
      ops_[size_t(op)].output = int(i);
      const int64_t tensor = joined.empty() ? int64_t(i) : joined[i];
      if (tensor < 0 || tensor >= int64_t(parts_.size()))
        return invalid_argument("value {} is part of output {} of {}", i,
                                tensor, parts_.size());
      values_.push_back({int(tensor), parts_[size_t(tensor)]++});
    }
    if (std::ranges::count(parts_, 0) > 0)
      return invalid_argument("{} values for {} outputs", values.size(),
                              parts_.size());
    return {};
  }
  // Whether an output consists of several values, side by side.
  bool joins() const { return values_.size() != parts_.size(); }

  // The tile of a result is free again at its last use, already for the result
  // of the op that uses it. Outputs keep their places.
  void assign_tiles() {
    std::vector<bool> used(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i) used[i] = ops_[i].output >= 0;
    for (size_t i = ops_.size(); i-- > 0;)
      for (size_t k = ops_[i].num_operands; k-- > 0;) {
        if (ops_[i].operands[k] < num_inputs_) {
          last_reads_[ops_[i].operands[k]] =
              std::max(last_reads_[ops_[i].operands[k]], i);
          continue;
        }
        const size_t from = ops_[i].operands[k] - num_inputs_;
        ops_[i].last_use[k] = !used[from];
        used[from] = true;
      }
    size_t num_tiles = 1;
    std::vector<size_t> free = {0};
    for (FusedOp& op : ops_) {
      for (size_t k = 0; k < op.num_operands; ++k)
        if (op.last_use[k])
          free.push_back(ops_[op.operands[k] - num_inputs_].tile);
      if (op.output >= 0 && values_.size() > 1) continue;
      if (free.empty()) free.push_back(num_tiles++);
      op.tile = free.back();
      free.pop_back();
    }
    const auto fitting = int64_t(kTileBytes / (num_tiles * element_size_));
    tile_elements_ = std::max(kLeastTile, fitting / kLeastTile * kLeastTile);
  }

  // --- Running --------------------------------------------------------------

  // Runs as the engine runs an op on scalars; false if an input is not a
  // scalar.
  bool compute_scalars(KernelContext& context) const {
    for (const Tensor& input : context.inputs())
      if (!input.is_inline_scalar()) return false;
    // On the stack: memory that Boost's small_vector takes from the heap is not
    // aligned for a Tensor.
    boost::container::static_vector<Tensor, 2 * kMaxFused> values(
        context.inputs().begin(), context.inputs().end());
    for (const FusedOp& op : ops_) {
      const Tensor operands[2] = {values[op.operands[0]],
                                  values[op.operands[1]]};
      values.emplace_back();
      const ScalarFunction scalar = op.kernel->scalar_function();
      if (scalar == nullptr || !scalar(operands, values.back())) return false;
    }
    for (size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].output >= 0)
        context.set_output(tensor_of(ops_[i]),
                           std::move(values[num_inputs_ + i]));
    return true;
  }

  SeenInput seen(const KernelContext& context, int i) const {
    static constexpr FusedColumns kAll;
    return {context.input(i), columns_.empty() ? kAll : columns_[size_t(i)]};
  }

  static bool is_larger(const SeenInput& a, const SeenInput& b) {
    const int64_t x = a.num_elements(), y = b.num_elements();
    return x > y || (x == y && a.rank() > b.rank());
  }

  // Whether each input is of the shape of `like`, or a single element, and each
  // result is of that shape.
  bool fits(const KernelContext& context, const SeenInput& like,
            Moves& moves) const {
    for (size_t i = 0; i < num_inputs_; ++i) {
      const SeenInput input = seen(context, int(i));
      moves[i] = input.has_dims_of(like);
      if (!moves[i] &&
          (input.num_elements() != 1 || input.rank() > like.rank()))
        return false;
    }
    return all_move(moves);
  }

  // Whether all results move, given which inputs do.
  bool all_move(Moves& moves) const {
    for (size_t i = 0; i < ops_.size(); ++i) {
      const FusedOp& op = ops_[i];
      bool one_moves = false, all_move = true;
      for (size_t k = 0; k < op.num_operands; ++k) {
        one_moves |= moves[op.operands[k]];
        all_move &= moves[op.operands[k]];
      }
      if (op.broadcasts ? !one_moves : !all_move) return false;
      moves[num_inputs_ + i] = true;
    }
    return true;
  }

  Status compute_tiles(KernelContext& context, int like,
                       const Moves& moves) const {
    const Shape shape = seen(context, like).shape();
    std::array<FusedRows, kMaxFused> inputs;
    FusedMemory memory;
    const int64_t total = shape.num_elements();
    // If no columns are selected or joined, all elements are one row.
    memory.columns =
        (columns_.empty() && !joins()) || total == 0 || shape.rank() == 0
            ? std::max<int64_t>(1, total)
            : shape.dim(shape.rank() - 1);
    const int64_t row_bytes = memory.columns * int64_t(element_size_);
    for (size_t i = 0; i < num_inputs_; ++i) {
      const Tensor& input = context.input(int(i));
      const auto* first = static_cast<const std::byte*>(input.raw());
      inputs[i] = {first, row_bytes, moves[i]};
      if (!has_columns(i)) continue;
      inputs[i].first += size_t(columns_[i].first) * element_size_;
      inputs[i].row_bytes =
          input.dim(input.rank() - 1) * int64_t(element_size_);
    }
    FusedOutputs outputs(values_.size());
    TAGFLOW_ASSIGN(memory.is_fresh,
                   add_outputs(context, shape, moves, outputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto& [tensor, part] = values_[i];
      outputs[i].first += part * row_bytes;
      outputs[i].row_bytes = parts_[size_t(tensor)] * row_bytes;
    }
    memory.inputs = {inputs.data(), num_inputs_};
    memory.outputs = {outputs.data(), outputs.size()};
    shard(context, total, 1, cost_,
          [&](int64_t begin, int64_t end) { run_tiles(memory, begin, end); });
    return {};
  }

  bool has_columns(size_t input) const {
    return !columns_.empty() && columns_[input].count != 0;
  }

  // Memory for each output: that of an input that no later op reads and that
  // nobody else holds, or new memory. Returns whether all of it is new.
  Result<bool> add_outputs(KernelContext& context, const Shape& shape,
                           const Moves& moves, FusedOutputs& outputs) const {
    std::array<bool, kMaxFused> is_taken{};
    bool are_fresh = true;
    for (size_t line = 0; line < ops_.size(); ++line) {
      if (ops_[line].output < 0) continue;
      const auto value = size_t(ops_[line].output);
      const int output = values_[value].tensor;
      if (parts_[size_t(output)] > 1) {
        TAGFLOW_ASSIGN(outputs[value].first,
                       joined_output(context, shape, output));
        continue;
      }
      int reused = -1;
      for (size_t i = 0; i < num_inputs_; ++i)
        if (!has_columns(i) && moves[i] && !is_taken[i] &&
            last_reads_[i] <= line &&
            (reused < 0 || context.input(int(i)).unique()))
          reused = int(i);
      TAGFLOW_ASSIGN(Tensor * out,
                     reused < 0
                         ? context.allocate_output(output, shape)
                         : context.forward_or_allocate(reused, output, shape));
      outputs[value].first = static_cast<std::byte*>(out->mutable_raw());
      if (reused < 0 || out->buffer() != context.input(reused).buffer())
        continue;
      is_taken[size_t(reused)] = true;
      are_fresh = false;
    }
    return are_fresh;
  }

  // The memory of an output that joins several values of that shape.
  Result<std::byte*> joined_output(KernelContext& context, const Shape& shape,
                                   int output) const {
    if (shape.rank() == 0)
      return context.fail("scalars cannot be joined into output {}", output);
    Shape whole = shape;
    const int last = shape.rank() - 1;
    int64_t columns = 0;
    if (__builtin_mul_overflow(shape.dim(last), parts_[size_t(output)],
                               &columns))
      return context.fail("{} of {} are too many columns for output {}",
                          parts_[size_t(output)], shape.to_string(), output);
    whole.set_dim(last, columns);
    Tensor& out = context.mutable_outputs()[size_t(output)];
    if (!out.valid())
      TAGFLOW_RETURN_IF_ERROR(context.allocate_output(output, whole).status());
    if (!(out.shape() == whole))
      return context.fail("{} cannot be joined with the rest of {}",
                          shape.to_string(), out.describe());
    return static_cast<std::byte*>(out.mutable_raw());
  }

  // Runs all ops on a tile, then on the next tile. If an output overwrites an
  // input, a tile of it is written after the other ops have read it. If the
  // only output is new memory, it is the tile of the last result: so it is
  // loaded into the cache while there is something to compute.
  void run_tiles(const FusedMemory& memory, int64_t begin, int64_t end) const {
    constexpr size_t kLeastBytes = kMaxFused * kLeastTile * sizeof(double);
    alignas(64) std::byte tiles[std::max(kTileBytes, kLeastBytes)];
    const size_t tile_bytes = size_t(tile_elements_) * element_size_;
    const FusedOp& last = ops_.back();
    const bool has_fresh_tile =
        memory.is_fresh && values_.size() == 1 && last.output == 0;
    int64_t row = begin / memory.columns, column = begin % memory.columns;
    for (int64_t at = begin, n = 0; at < end; at += n, column += n) {
      if (column == memory.columns) {
        ++row;
        column = 0;
      }
      n = std::min({tile_elements_, end - at, memory.columns - column});
      const size_t offset = size_t(column) * element_size_;
      const auto output = [&](int i) {
        const FusedPlace& place = memory.outputs[size_t(i)];
        return place.first + row * place.row_bytes + offset;
      };
      const auto result = [&](const FusedOp& op) {
        if (op.output >= 0) return output(op.output);
        if (has_fresh_tile && op.tile == last.tile) return output(0);
        return tiles + op.tile * tile_bytes;
      };
      const auto moves = [&](size_t number) {
        return number >= num_inputs_ || memory.inputs[number].moves;
      };
      const auto operand = [&](size_t number) -> const std::byte* {
        if (number >= num_inputs_) return result(ops_[number - num_inputs_]);
        const FusedRows& input = memory.inputs[number];
        return input.moves ? input.first + row * input.row_bytes + offset
                           : input.first;
      };
      for (const FusedOp& op : ops_) {
        const std::byte* x = operand(op.operands[0]);
        if (op.unary != nullptr) {
          op.unary->row(x, result(op), n);
        } else {
          op.binary->row(x, moves(op.operands[0]), operand(op.operands[1]),
                         moves(op.operands[1]), result(op), n);
        }
      }
    }
  }

  Status compute_one_by_one(KernelContext& context) const {
    std::vector<Tensor> results(ops_.size());
    std::vector<Tensor> inputs(context.inputs().begin(),
                               context.inputs().end());
    for (size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].count != 0) {
        TAGFLOW_ASSIGN(inputs[i],
                       copy_columns(context, inputs[i], columns_[i]));
      }
    for (size_t i = 0; i < ops_.size(); ++i) {
      const FusedOp& op = ops_[i];
      Tensor operands[2];
      for (size_t k = 0; k < op.num_operands; ++k) {
        if (op.operands[k] < num_inputs_) {
          operands[k] = inputs[op.operands[k]];
          continue;
        }
        Tensor& result = results[op.operands[k] - num_inputs_];
        operands[k] = op.last_use[k] ? std::move(result) : result;
      }
      KernelContext one(op.node, {operands, op.num_operands}, {&results[i], 1},
                        &context.step(), &context.tag(), &context.allocator());
      const Status status = op.kernel->compute(one);
      if (!status.ok())
        return Status(
            status.code(),
            fmt::format("{}, in \"{}\"", status.message(), op.node->name()));
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].output < 0) continue;
      if (parts_[size_t(tensor_of(ops_[i]))] == 1)
        context.set_output(tensor_of(ops_[i]), std::move(results[i]));
      else
        TAGFLOW_RETURN_IF_ERROR(join(context, ops_[i], results[i]));
    }
    return {};
  }

  int tensor_of(const FusedOp& op) const {
    return values_[size_t(op.output)].tensor;
  }

  // Copies the op's result to its place in the output.
  Status join(KernelContext& context, const FusedOp& op,
              const Tensor& result) const {
    const auto& [tensor, part] = values_[size_t(op.output)];
    TAGFLOW_ASSIGN(std::byte * to,
                   joined_output(context, result.shape(), tensor));
    const int64_t parts = parts_[size_t(tensor)];
    if (result.num_elements() == 0) return {};
    const size_t row = size_t(result.dim(result.rank() - 1)) * element_size_;
    const auto* from = static_cast<const std::byte*>(result.raw());
    for (int64_t i = 0;
         i < result.num_elements() * int64_t(element_size_) / int64_t(row); ++i)
      std::copy_n(from + size_t(i) * row, row,
                  to + (size_t(i) * size_t(parts) + size_t(part)) * row);
    return {};
  }

  graph::Graph graph_;  // of the ops
  std::vector<FusedOp> ops_;
  std::vector<FusedColumns> columns_;  // by input; or empty
  // For a value that is an output: the output, and the value's position among
  // those that are joined in it.
  struct Value {
    int tensor = 0;
    int64_t part = 0;
  };
  std::vector<Value> values_;
  std::vector<int64_t> parts_;  // by output: the number of its values
  size_t num_inputs_ = 0;
  std::array<size_t, kMaxFused> last_reads_{};  // by input, the last line
  size_t element_size_ = 0;
  int64_t tile_elements_ = 0;
  double cost_ = 0;  // nanoseconds per element
  bool may_be_expensive_ = true;
};

}  // namespace

void register_fused_kernels(KernelRegistry& registry) {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16})
    add_kernel(registry, "_FusedElementwise", dtype, make_built<FusedKernel>);
}

}  // namespace tagflow::devices
