#include "net/tensorflow/client_words.h"

#include <re2/re2.h>

#include <memory>
#include <string_view>
#include <vector>

namespace tagflow::net {
namespace {

struct Rule {
  Code code;
  const char* ours;    // what a message has, as a regular expression
  const char* theirs;  // the words; \1 is the first group
};

constexpr Rule kRules[] = {
    // Feeds, variables and graphs.
    {Code::kInvalidArgument,
     R"re(placeholder "([^"]*)" was not fed.* of type (\w+))re",
     R"(You must feed a value for placeholder tensor '\1' with dtype \2)"},
    {Code::kFailedPrecondition,
     R"re(variable "([^"]*)" of \S+ is not initialized)re",
     R"(Attempting to use uninitialized value \1)"},
    {Code::kInvalidArgument, R"(is in frame .* neither is inside the other)",
     "The node has inputs from different frames"},
    {Code::kInvalidArgument,
     R"(\[Reshape\] \S+ has (\d+) elements, the shape \S+ has (\d+))",
     R"(Input to reshape is a tensor with \1 values, )"
     R"(but the requested shape has \2)"},
    {Code::kInvalidArgument,
     R"((\S+) = (-?\d+) is outside \[(-?\d+), (-?\d+)\))",
     R"(\1 = \2 is not in [\3, \4))"},
    // Functions.
    {Code::kInvalidArgument, R"(of rank \d+; rank 0 is wanted)",
     "the input must be a scalar"},
    {Code::kInvalidArgument, R"(has (\d+) results, a condition one)",
     R"(Expected a single scalar, got \1 tensors.)"},
    {Code::kInvalidArgument,
     R"(\[While\] .* has (\d+) results, the node (\d+))",
     R"(While loop body returned \1 arguments. Expected: \2)"},
    {Code::kInvalidArgument, R"(\[For\] .* has (\d+) results, the node (\d+))",
     R"(For loop body returned \1 arguments. Expected: \2)"},
    {Code::kOutOfRange, R"(has reached the limit of (-?\d+))",
     R"(Reached limit of \1)"},
    {Code::kCancelled, R"(the session (was|is) closed)",
     "The run was cancelled"},
    // Queues.
    {Code::kCancelled, R"(^\[Queue(Enqueue|Dequeue))",
     R"(\1 operation was cancelled)"},
    {Code::kInvalidArgument,
     R"(component (\d+) of queue .* takes rows of \w+\[([^\]]*)\], )"
     R"(but those of \w+\[(\d+),([^\]]*)\])",
     R"(Shape mismatch in tuple component \1. Expected [\3,\2], got [\3,\4])"},
    {Code::kInvalidArgument,
     R"(component (\d+) of queue .* takes \w+(\[[^\]]*\]), )"
     R"(not \w+(\[[^\]]*\]))",
     R"(Shape mismatch in tuple component \1. Expected \2, got \3)"},
    {Code::kInvalidArgument, R"(exists with seeds)", "The random seeds differ"},
    {Code::kInvalidArgument, R"(does not specify the shapes of its components)",
     "Queues require the components to have specified shapes"},
    {Code::kInvalidArgument, R"(exists with components? of any shapes?)",
     "The component shapes differ"},
    {Code::kInvalidArgument, R"(exists with components? of shapes?)",
     "The component shapes differ"},
    {Code::kInvalidArgument, R"(exists with components? of (types?|\w+))",
     "The component types differ"},
    // Barriers.
    {Code::kInvalidArgument,
     R"(component \d+ of barrier .* must have elements, not be \w+(\S+))",
     R"(Tensors with no elements are not supported: received shape \1)"},
    // Sequences without alignment.
    {Code::kInvalidArgument, R"(\[CTCLoss\w*\] the batch is empty)",
     "batch_size must not be 0"},
    {Code::kInvalidArgument, R"(row (\d+) of the batch has no labels)",
     R"(Labels length is zero in batch \1)"},
    {Code::kInvalidArgument,
     R"(row (\d+) of the batch has (\d+) labels, but (\d+) steps)",
     R"(Not enough time for target transition sequence (required: \2, )"
     R"(available: \3) \1)"},
    {Code::kInvalidArgument, R"(paths are more than a beam of width)",
     "requested more paths than the beam width."},
    {Code::kInvalidArgument, R"(row \d+ of the batch has \d+ paths, not)",
     "Less leaves in the beam search than requested."},
    // Accumulators.
    {Code::kInvalidArgument,
     R"(\[SparseAccumulatorApplyGradient\] .*input 2 .*has shape (\S+), of rank)",
     R"(Input indices should be vector but received shape: \1)"},
    {Code::kInvalidArgument,
     R"(\[SparseAccumulatorApplyGradient\] .*input 3 .*has shape \[\], of rank)",
     "Values cannot be 0-dimensional."},
    {Code::kInvalidArgument, R"(indices must be a vector, not \w+(\[[^\]]*\]))",
     R"(Input indices should be vector but received shape: \1)"},
    {Code::kInvalidArgument, R"(\] values must have rows, not be)",
     "Values cannot be 0-dimensional."},
    {Code::kInvalidArgument,
     R"(there are (\d+) indices for (\d+) rows of values)",
     R"(Expected \1 non-empty input values, got \2)"},
    {Code::kInvalidArgument,
     R"(gradients of rank (\d+) do not fit: at least (\d+) is wanted)",
     R"(Shape mismatch: expected shape rank at least \2, got \1)"},
    {Code::kInvalidArgument,
     R"(values of rank (\d+) do not fit: at least (\d+) is wanted)",
     R"(Shape mismatch: expected values rank at least \2, got \1)"},
    {Code::kInvalidArgument,
     R"(values of rank (\d+) do not fit .*, whose rank is (\d+))",
     R"(Shape mismatch: expected values rank \2, got \1)"},
    {Code::kInvalidArgument,
     R"(dimension (\d+) of gradients is (\d+), and (\d+) is wanted)",
     R"(Shape mismatch: expected shape dim \1 to be \3, got \2)"},
    {Code::kInvalidArgument,
     R"(dimension (\d+) of values is (\d+), and (\d+) is wanted)",
     R"(Shape mismatch: expected values dim \1 to be \3, got \2)"},
    {Code::kInvalidArgument,
     R"(slice (\d+) has index (\d+), beyond the (\d+) rows)",
     R"(Shape mismatch: index of slice \1 exceeded limits of shape; index is )"
     R"(\2 exceeded \3)"},
    // Lists of tensors.
    {Code::kInvalidArgument,
     R"(cannot add TensorList\[(\d+)\] of \w+ and TensorList\[(\d+)\])",
     R"(Trying to add two lists of tensors with different lengths: \1 vs. \2)"},
    {Code::kInvalidArgument, R"(cannot add lists of elements of shapes)",
     "Trying to add two lists of tensors with incompatible element shapes"},
    {Code::kInvalidArgument,
     R"(all dimensions of elements but the first must be known)",
     "All except the first dimension must be fully defined when concating an "
     "empty tensor list, or: Trying to concat list with only uninitialized "
     "tensors but element_shape_except_first_dim is not fully defined"},
    {Code::kInvalidArgument, R"(scalar elements cannot be joined)",
     "Concat requires elements to be at least vectors, found scalars instead"},
    {Code::kInvalidArgument,
     R"(element (\d+) was not set, and there are (\d+) leading_dims)",
     R"(List contains uninitialized tensor at index \1 but leading_dims has )"
     R"(only \2 elements.)"},
    {Code::kInvalidArgument,
     R"(\[TensorListGather\] no element was set, and the shape (\S+) does)",
     R"(Tried to gather uninitialized tensors from a list with )"
     R"(non-fully-defined element_shape: \1)"},
    {Code::kInvalidArgument,
     R"(\[TensorListStack\] no element was set, and the shape (\S+) does)",
     R"(Tried to stack elements of an empty list with non-fully-defined )"
     R"(element_shape, or: Tried to stack list which only contains )"
     R"(uninitialized tensors and has a non-fully-defined element_shape: \1)"},
    {Code::kInvalidArgument, R"(the element was not set, and the shape)",
     "Trying to read an uninitialized tensor but element_shape is not fully "
     "defined"},
    {Code::kInvalidArgument,
     R"(element \d+ is \w+\[\d+\], others have the shape \[\])",
     "Incompatible ranks during merge: 0 vs. 1"},
    {Code::kInvalidArgument,
     R"(element \d+ is \w+(\[[^\]]*\]), others have the shape (\[[^\]]*\]))",
     R"(Incompatible shapes during merge: \2 vs. \1)"},
    {Code::kInvalidArgument,
     R"(\[TensorListPopBack\] elements have the shape (\S+), not (\S+))",
     R"(Incompatible shapes during merge: \2 vs. \1)"},
    {Code::kInvalidArgument,
     R"((\d+) rows from row (\d+) on are beyond the end of \w+\[(\d+))",
     R"(Attempting to slice [\2, \1] from tensor with length \3)"},
    {Code::kInvalidArgument, R"(\[TensorListPopBack\] the list is empty)",
     "Trying to pop from an empty list"},
    {Code::kInvalidArgument,
     R"(list (\d+): (\S+) does not fit a list of elements of shape (\S+))",
     R"(Tried to append a tensor with incompatible shape to a list at index \1)"},
    {Code::kInvalidArgument,
     R"((\S+) does not fit a list of elements of shape (\S+))",
     R"(Tried to set a tensor with incompatible shape in a list: \1, \2)"},
    {Code::kInvalidArgument,
     R"(the list is full: its max_num_elements is (\d+))",
     R"(Tried to push item into a full list: \1 elements)"},
    {Code::kInvalidArgument,
     R"(\[TensorListResize\] the size is negative: (\S+))",
     R"(TensorListSlice expects size to be non-negative. Got: \1)"},
    {Code::kInvalidArgument, R"(index (\d+) is outside of a list of (\d+))",
     R"(TensorListScatter: Trying to scatter at index \1 in list with size \2)"},
    {Code::kInvalidArgument, R"(num_elements is less than -1: (-\d+))",
     R"(TensorListScatter expects num_elements >= -1, found: \1)"},
    {Code::kInvalidArgument,
     R"(\[TensorListScatter\w*\] (\d+) indices for the rows of \w+\[(\d+))",
     R"(Invalid number of rows in input tensor. Expected: \1 Actual: \2)"},
    {Code::kInvalidArgument,
     R"(\[TensorListScatter\w*\] index -\d+ is negative)",
     "Indices in TensorListScatter must all be non-negative."},
    {Code::kInvalidArgument, R"(\[TensorListSplit\] length (-\d+) is negative)",
     R"(Invalid value in lengths: \1)"},
    {Code::kInvalidArgument,
     R"(\[TensorListSplit\] lengths say (\d+) of the rows of \w+\[(\d+))",
     R"(Unused values in tensor. Length of tensor: \2 Values used: \1)"},
    {Code::kInvalidArgument,
     R"(\[TensorListSplit\] the tensor must have rows, not be \w+(\[\]))",
     R"(Tensor must be at least a vector, but saw shape: \1)"},
    {Code::kInvalidArgument, R"(rows cannot be split into scalar elements)",
     "TensorListSplit requires element_shape to be at least of rank 1, but "
     "saw: []"},
    // Staging areas.
    {Code::kInvalidArgument, R"(the key must be a scalar, not)",
     "key must be an int64 scalar"},
    {Code::kInvalidArgument, R"(tensor (\d+) of key (-?\d+) has been taken)",
     R"(Tensor at index '\1' for key '\2' has already been removed.)"},
    // Sparse tensors.
    {Code::kInvalidArgument,
     R"(\[SparseFillEmptyRows\] indices\[(\d+)\] = .* is in none of the)",
     R"(indices(\1, 0) is invalid)"},
    {Code::kInvalidArgument, R"(cannot be broadcast to the sparse shape)",
     "SparseDenseBinaryOpShared broadcasts dense to sparse only; got "
     "incompatible shapes"},
    {Code::kInvalidArgument, R"(\[SparseSparse.* the ranks of both: )",
     "Operands do not have the same ranks"},
    {Code::kInvalidArgument,
     R"(\[(?:Sparse|)(?:Reduce|Sum|Max|Min|Mean|Prod)\w*\] .*axis (-?\d+) is outside)",
     R"(Invalid reduction dimension \1)"},
    // Times.
    {Code::kDeadlineExceeded, R"(the run took longer than its time-out)",
     "Timed out waiting for notification"},
    // Batches of sparse tensors.
    {Code::kInvalidArgument, R"(bytes are not a TensorProto)",
     "Could not parse serialized proto"},
    {Code::kInvalidArgument,
     R"((SparseTensor\[\d+\]) has values of (\w+), not of (\w+))",
     R"(Requested SparseTensor of type \3 but \1.values.dtype() == \2)"},
    {Code::kInvalidArgument,
     R"(\[Deserialize.*(SparseTensor\[\d+\]) is of rank (\d+), )"
     R"(.*, and those before it of (\d+),)",
     R"(Inconsistent shape across SparseTensors: rank prior to \1 was: \3 but )"
     R"(rank of \1 is: \2)"},
    {Code::kInvalidArgument,
     R"((SparseTensor\[\d+\]) is of rank \d+, (\d+) in the batch, )"
     R"(and those before it of \d+, (\d+))",
     R"(Inconsistent rank across SparseTensors: rank prior to \1 was: \3 but )"
     R"(rank of \1 is: \2)"},
    {Code::kInvalidArgument, R"(has no sparse tensor of number (-?\d+))",
     R"(Unable to find SparseTensor: \1)"},
    // Tensor arrays and lists.
    {Code::kInvalidArgument,
     R"re(tensor array "([^"]*)": cannot write to index (\d+) a second time)re",
     R"(TensorArray \1_: Could not write to TensorArray index \2 because )"
     R"(it has already been written to.)"},
    {Code::kInvalidArgument,
     R"(cannot add \w+(\[[^\]]*\]) to index (\d+), which has the shape (\S+))",
     R"(Could not aggregate to TensorArray index \2 because the existing shape )"
     R"(is \3 but the new input shape is \1)"},
    {Code::kInvalidArgument,
     R"(\[TensorArraySplitV3\] lengths say (\d+) of the rows of \w+(\[\S+\]))",
     R"(Expected sum of lengths to be equal to values.shape[0], but sum of )"
     R"(lengths is \1 and value's shape is: \2)"},
    {Code::kInvalidArgument,
     R"(\[TensorArraySplitV3\] .*input 1 .*has shape (\S+), of rank)",
     R"(Expected value to be at least a vector, but received shape: \1)"},
    {Code::kInvalidArgument,
     R"(\[TensorArraySplitV3\] the value must have rows, not be \w+(\[\]))",
     R"(Expected value to be at least a vector, but received shape: \1)"},
    {Code::kInvalidArgument,
     R"((\d+) elements are wanted, the size is (\d+) and cannot grow)",
     R"(TensorArray's size is not equal to the size of lengths (\2 vs. \1), )"
     R"(and the TensorArray is not marked as dynamically resizeable)"},
    {Code::kUnimplemented,
     R"(without elements the shape must be known, not (\S+))",
     R"(TensorArray has size zero, but element shape \1 is not fully defined. )"
     R"(Currently only static shapes are supported when packing zero-size )"
     R"(TensorArrays.)"},
    {Code::kInvalidArgument,
     R"(\[TensorArrayConcat\w*\] elements differ beyond their first dimension)",
     "The elements have inconsistent shapes"},
    {Code::kInvalidArgument,
     R"(element \d+ is \w+\[\d+,(\d+)\], beyond the first dimension \[(\d+)\])",
     R"(Incompatible shapes during merge: [\2] vs. [\1])"},
    {Code::kInvalidArgument,
     R"(\[TensorListConcat\w*\] element \d+ is .* beyond the first dimension)",
     "Incompatible ranks or shapes during merge"},
    {Code::kInvalidArgument,
     R"(tensor array .*cannot write \S+ to index (\d+), )"
     R"(elements have the shape)",
     R"(Could not write to TensorArray index \1: the shapes differ)"},
    {Code::kInvalidArgument,
     R"(cannot write (\w+)\S* to index \d+, elements are of type (\w+))",
     R"(TensorArray dtype is \2 but Op is trying to write dtype \1)"},
    {Code::kInvalidArgument,
     R"(cannot write to index (-?\d+), the size is (\d+) and cannot grow)",
     R"(Tried to write to index \1 but array is not resizeable )"
     R"(and size is: \2)"},
    {Code::kInvalidArgument,
     R"(cannot write to index (-\d+), which is negative)",
     R"(Tried to write to index \1)"},
    {Code::kInvalidArgument,
     R"(cannot read index (\d+) a second time, the first read cleared it)",
     R"(Could not read index \1 twice because it was cleared after a )"
     R"(previous read (perhaps try setting clear_after_read = false?))"},
    {Code::kInvalidArgument,
     R"(cannot read a (\w+) from tensor array "[^"]*" of (\w+))",
     R"(TensorArray dtype is \2 but Op requested dtype \1.)"},
    {Code::kInvalidArgument, R"(cannot read index (-?\d+), the size is (\d+))",
     R"(Tried to read from index \1 but array size is: \2)"},
    {Code::kInvalidArgument, R"(element (\d+) is a scalar, which cannot)",
     R"(Concat saw a scalar shape at index \1 but requires at least vectors)"},
    {Code::kInvalidArgument, R"(lengths must be a vector, not \w+(\[[^\]]*\]))",
     R"(Expected lengths to be a vector, received shape: \1)"},
    {Code::kInvalidArgument,
     R"(cannot get element (-?\d+) of TensorList\[(\d+)\])",
     R"(Trying to access element \1 in a list with \2 elements.)"},
    {Code::kInvalidArgument,
     R"(cannot set element (-?\d+) of TensorList\[(\d+)\])",
     R"(Trying to modify element \1 in a list with \2 elements.)"},
    {Code::kInvalidArgument,
     R"(elements of (\w+) are wanted, not of TensorList\[\d+\] of (\w+))",
     R"(Invalid data types; op elements \1 but list elements \2)"},
};

// A rule, compiled.
struct ClientRule {
  explicit ClientRule(const Rule& of) : rule(of), ours(of.ours, RE2::Quiet) {}
  const Rule& rule;
  const RE2 ours;
};

const std::vector<std::unique_ptr<const ClientRule>>& client_rules() {
  static const auto* const all = [] {
    auto* rules = new std::vector<std::unique_ptr<const ClientRule>>();
    for (const Rule& rule : kRules)
      rules->push_back(std::make_unique<const ClientRule>(rule));
    return rules;
  }();
  return *all;
}

}  // namespace

std::string client_words(const Status& status) {
  const re2::StringPiece message(status.message().data(),
                                 status.message().size());
  std::string words;
  for (const auto& each : client_rules())
    if (each->rule.code == status.code() &&
        RE2::Extract(message, each->ours, each->rule.theirs, &words))
      return words;
  return {};
}

}  // namespace tagflow::net
