// _FusedElementwise: several element-wise ops in one pass over the memory.
//
// Each op has a kernel of its own, of a node that nobody else sees. Where each
// operand is of the output's shape or a single element, the rows of these
// kernels run tile by tile, so that what one op hands to the next stays in the
// first cache. Where an operand is columns of an input, no tile goes beyond a
// row. Everything else, as shapes that must be broadcast, goes through the
// kernels one by one, as it would unfused.
#include <algorithm>
#include <array>
#include <boost/container/static_vector.hpp>
#include <limits>

#include "devices/cpu/built_kernel.h"
#include "devices/cpu/elementwise_register.h"
#include "devices/cpu/fused_columns.h"
#include "devices/cpu/fused_program.h"
#include "devices/cpu/fused_tiles.h"
#include "graph/graph.h"

namespace tagflow::devices {

namespace {

// Of ops, and of inputs.
constexpr size_t kMaxFused = 64;
// Of all tiles together: with as much of an input they are in the first cache.
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
  bool broadcasts = true;             // a single element with many
  bool last_use[2] = {false, false};  // of an operand that is a result
  size_t tile = 0;                    // where its result goes
};

// By number, whether an operand goes from element to element with the output.
using Moves = std::array<bool, 2 * kMaxFused>;

// Where run_tiles() finds the inputs.
struct FusedInputs {
  std::array<const std::byte*, kMaxFused> at;  // the first element that is seen
  // Of those of which columns are seen, the bytes from row to row; else 0.
  std::array<int64_t, kMaxFused> row_bytes;
  int64_t width = std::numeric_limits<int64_t>::max();  // columns of a row
};

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
    assign_tiles();
    may_be_expensive_ = may_take_long(info, cost_);
    return {};
  }

  Status compute(KernelContext& context) const override {
    if (columns_.empty() && compute_scalars(context)) return {};
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

  bool can_run_in_place(const KernelContext& context) const override {
    Moves moves;
    return columns_.empty() && fits(context, seen(context, 0), moves) &&
           moves[0];
  }

  void run_in_place(const KernelContext& context, void* elements, int64_t begin,
                    int64_t end) const override {
    Moves moves;
    FusedInputs inputs;
    auto* to = static_cast<std::byte*>(elements);
    for (size_t i = 0; i < num_inputs_; ++i) {
      const Tensor& input = context.input(int(i));
      moves[i] = same_dims(input, context.input(0));
      inputs.at[i] = i == 0 ? to : static_cast<const std::byte*>(input.raw());
      inputs.row_bytes[i] = 0;
    }
    std::fill_n(moves.begin() + std::ptrdiff_t(num_inputs_), ops_.size(), true);
    run_tiles(inputs, moves, to, /*is_fresh=*/false, begin, end);
  }

 private:
  // --- Making ---------------------------------------------------------------

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

  // A result's tile is free again after its last use, already for the result
  // of the op that uses it.
  void assign_tiles() {
    std::vector<bool> used(ops_.size());
    for (size_t i = ops_.size(); i-- > 0;)
      for (size_t k = ops_[i].num_operands; k-- > 0;) {
        if (ops_[i].operands[k] < num_inputs_) continue;
        const size_t from = ops_[i].operands[k] - num_inputs_;
        ops_[i].last_use[k] = !used[from];
        used[from] = true;
      }
    size_t num_tiles = 0;
    std::vector<size_t> free;
    for (FusedOp& op : ops_) {
      for (size_t k = 0; k < op.num_operands; ++k)
        if (op.last_use[k])
          free.push_back(ops_[op.operands[k] - num_inputs_].tile);
      if (free.empty()) free.push_back(num_tiles++);
      op.tile = free.back();
      free.pop_back();
    }
    const auto fitting = int64_t(kTileBytes / (num_tiles * element_size_));
    tile_elements_ = std::max(kLeastTile, fitting / kLeastTile * kLeastTile);
  }

  // --- Running --------------------------------------------------------------

  // As the engine runs an op on scalars; false where an input is none.
  bool compute_scalars(KernelContext& context) const {
    for (const Tensor& input : context.inputs())
      if (!input.is_inline_scalar()) return false;
    // In the frame as a whole: what Boost's small_vector takes from the heap is
    // not aligned as a Tensor must be.
    boost::container::static_vector<Tensor, 2 * kMaxFused> values(
        context.inputs().begin(), context.inputs().end());
    for (const FusedOp& op : ops_) {
      const Tensor operands[2] = {values[op.operands[0]],
                                  values[op.operands[1]]};
      values.emplace_back();
      const ScalarFunction scalar = op.kernel->scalar_function();
      if (scalar == nullptr || !scalar(operands, values.back())) return false;
    }
    context.set_output(0, std::move(values.back()));
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

  // Whether each input is of the shape of `like`, or one element that does not
  // move, and each result is of that shape.
  bool fits(const KernelContext& context, const SeenInput& like,
            Moves& moves) const {
    for (size_t i = 0; i < num_inputs_; ++i) {
      const SeenInput input = seen(context, int(i));
      moves[i] = input.has_dims_of(like);
      if (!moves[i] &&
          (input.num_elements() != 1 || input.rank() > like.rank()))
        return false;
    }
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
    int reused = -1;
    FusedInputs inputs;
    for (size_t i = 0; i < num_inputs_; ++i) {
      const Tensor& input = context.input(int(i));
      inputs.at[i] = static_cast<const std::byte*>(input.raw());
      inputs.row_bytes[i] = 0;
      const FusedColumns columns =
          columns_.empty() ? FusedColumns{} : columns_[i];
      if (columns.count != 0) {
        inputs.at[i] += size_t(columns.first) * element_size_;
        inputs.row_bytes[i] =
            input.dim(input.rank() - 1) * int64_t(element_size_);
        if (moves[i]) inputs.width = columns.count;
      } else if (moves[i] && (reused < 0 || input.unique())) {
        reused = int(i);
      }
    }
    const Shape shape = seen(context, like).shape();
    TAGFLOW_ASSIGN(Tensor * out,
                   reused < 0 ? context.allocate_output(0, shape)
                              : context.forward_or_allocate(reused, 0, shape));
    auto* to = static_cast<std::byte*>(out->mutable_raw());
    const bool is_fresh =
        reused < 0 || out->buffer() != context.input(reused).buffer();
    shard(context, shape.num_elements(), 1, cost_,
          [&](int64_t begin, int64_t end) {
            run_tiles(inputs, moves, to, is_fresh, begin, end);
          });
    return {};
  }

  // All ops over a tile, then the next tile. Where the output is one of the
  // inputs, a tile of it is written by the last op, when the others have read.
  // Where it is fresh, it has the tile that the last result would have: so it
  // comes to the cache while there is something to compute.
  void run_tiles(const FusedInputs& inputs, const Moves& moves, std::byte* to,
                 bool is_fresh, int64_t begin, int64_t end) const {
    constexpr size_t kLeastBytes = kMaxFused * kLeastTile * sizeof(double);
    alignas(64) std::byte tiles[std::max(kTileBytes, kLeastBytes)];
    const size_t tile_bytes = size_t(tile_elements_) * element_size_;
    const FusedOp& last = ops_.back();
    for (int64_t at = begin, n = 0; at < end; at += n) {
      const int64_t row = at / inputs.width, column = at % inputs.width;
      n = std::min({tile_elements_, end - at, inputs.width - column});
      const size_t offset = size_t(at) * element_size_;
      const auto result = [&](const FusedOp& op) {
        const bool is_output =
            &op == &last || (is_fresh && op.tile == last.tile);
        return is_output ? to + offset : tiles + op.tile * tile_bytes;
      };
      const auto operand = [&](size_t number) -> const std::byte* {
        if (number >= num_inputs_) return result(ops_[number - num_inputs_]);
        const std::byte* first = inputs.at[number];
        if (!moves[number]) return first;
        if (inputs.row_bytes[number] == 0) return first + offset;
        return first + row * inputs.row_bytes[number] +
               size_t(column) * element_size_;
      };
      for (const FusedOp& op : ops_) {
        const std::byte* x = operand(op.operands[0]);
        if (op.unary != nullptr) {
          op.unary->row(x, result(op), n);
        } else {
          op.binary->row(x, moves[op.operands[0]], operand(op.operands[1]),
                         moves[op.operands[1]], result(op), n);
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
    context.set_output(0, std::move(results.back()));
    return {};
  }

  graph::Graph graph_;  // of the ops
  std::vector<FusedOp> ops_;
  std::vector<FusedColumns> columns_;  // by input; or empty
  size_t num_inputs_ = 0;
  size_t element_size_ = 0;
  int64_t tile_elements_ = 0;
  double cost_ = 0;  // nanoseconds of an element
  bool may_be_expensive_ = true;
};

}  // namespace

void register_fused_kernels(KernelRegistry& registry) {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16})
    add_kernel(registry, "_FusedElementwise", dtype, make_built<FusedKernel>);
}

}  // namespace tagflow::devices
