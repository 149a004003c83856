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
    {Code::kInvalidArgument, R"(does not specify the shapes of its components)",
     "the components need specified shapes"},
    {Code::kInvalidArgument, R"(exists with components? of any shapes?)",
     "The component shapes differ"},
    {Code::kInvalidArgument, R"(exists with components? of shapes?)",
     "The component shapes differ"},
    {Code::kInvalidArgument, R"(exists with components? of (types?|\w+))",
     "The component types differ"},
    // Tensor arrays and lists.
    {Code::kInvalidArgument,
     R"re(tensor array "([^"]*)": cannot write to index (\d+) a second time)re",
     R"(TensorArray \1_: Could not write to TensorArray index \2 because )"
     R"(it has already been written to.)"},
    {Code::kInvalidArgument,
     R"(\[TensorArrayConcat\w*\] elements differ beyond their first dimension)",
     "The elements have inconsistent shapes"},
    {Code::kInvalidArgument,
     R"(\[TensorListConcat\w*\] element \d+ is .* beyond the first dimension)",
     "Incompatible ranks"},
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
