// The interface of the .cu files: functions that enqueue kernels on a stream.
//
// Plain C++ on both sides, since the CUDA compiler rejects much of what our
// headers include. All pointers are to the GPU's memory. A call returns the
// error of the launch; errors of its execution come later.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tagflow::devices::cuda {

// The element types that kernels compute with.
enum class Element : uint8_t {
  kFloat,
  kDouble,
  kHalf,
  kBFloat16,
  kInt32,
  kInt64,
  kBool,
  kInt8,
  kUInt8,
};

// The maximum number of nested loops in a kernel.
inline constexpr int kMaxLoops = 8;

// An array, or a few elements that are sent with the launch.
struct Operand {
  static constexpr size_t kValueBytes = 24;
  const void* data = nullptr;                         // null: value
  alignas(16) unsigned char value[kValueBytes] = {};  // of any type
};

// --- copy.cu ----------------------------------------------------------------

// to[k] = from[f(k)] for all k of nested loops, outermost first, by strides in
// elements.
struct CopyArgs {
  int loops = 0;
  int64_t total = 1;  // the product of the counts
  int64_t counts[kMaxLoops] = {};
  int64_t from_strides[kMaxLoops] = {};
  int64_t to_strides[kMaxLoops] = {};
  Operand from;
  int64_t from_offset = 0;  // of the first element read
  void* to = nullptr;       // the first element written
};
// `size` is the size of an element: 1, 2, 4, 8 or 16. REQUIRES: total > 0
cudaError_t copy_strided(const CopyArgs& args, size_t size,
                         cudaStream_t stream);

// The output as [outer, count, slice]: slice c of part o is slice indices[...]
// of part o of params, [outer, limit, slice]. Batch o / repeat of the indices,
// `count` of them, serves part o. An index out of range gives zeros.
struct GatherArgs {
  int64_t outer = 1, count = 0, slice = 1;
  int64_t repeat = 1, limit = 0;
  Operand params;
  Operand indices;
  bool wide_indices = false;  // int64, not int32
  void* out = nullptr;
};
// REQUIRES: the output has elements, and so have params.
cudaError_t gather(const GatherArgs& args, size_t size, cudaStream_t stream);

// --- elementwise_*.cu -------------------------------------------------------

// out[i] = f(in[0][..], ...), for the elements of nested loops, outermost
// first; the output is dense in that order. Without loops, operands are read in
// order, or at their first element only if their single stride is 0.
struct ElementwiseArgs {
  int loops = 0;
  int64_t total = 0;  // elements of the output
  int64_t counts[kMaxLoops] = {};
  int64_t strides[3][kMaxLoops] = {};
  Operand in[3];
  void* out = nullptr;
  double parameter = 0;  // of ops that have one
};

enum class Unary : uint8_t {
  kNegate,
  kAbsolute,
  kSign,
  kSquare,
  kReciprocal,
  kRoot,
  kReciprocalRoot,
  kFloor,
  kCeil,
  kRound,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kTanh,
  kSigmoid,
  kSin,
  kCos,
  kErf,
  kRelu,
  kRelu6,
  kElu,
  kSelu,
  kSoftplus,
  kSoftsign,
  kIsNan,  // to bool, as the two below
  kIsInf,
  kIsFinite,
  kNot,  // of bool
};

enum class Binary : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kFloorModulo,
  kTruncateModulo,
  kDivideNoNan,
  kMultiplyNoNan,
  kSquaredDifference,
  kMaximum,
  kMinimum,
  kPower,
  kSigmoidGradient,  // (y, dy), as the next three
  kTanhGradient,
  kRootGradient,
  kReciprocalRootGradient,
  kReciprocalGradient,
  kReluGradient,  // (dy, x), as the next six, of which Elu and Selu have y
  kRelu6Gradient,
  kEluGradient,
  kSeluGradient,
  kSoftplusGradient,
  kSoftsignGradient,
  kLeakyRelu,  // (value, x): value if x > 0, else value * parameter
  kLess,       // to bool, as all below
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,  // of bool
  kOr,
};

// Whether this function exists for elements of the type.
bool has_unary(Unary op, Element type);
bool has_binary(Binary op, Element type);

// REQUIRES for all: total > 0, and the function exists.
cudaError_t unary(Unary op, Element type, const ElementwiseArgs& args,
                  cudaStream_t stream);
cudaError_t binary(Binary op, Element type, const ElementwiseArgs& args,
                   cudaStream_t stream);
// in[0], a bool, chooses in[1] or in[2], elements of `size` bytes.
cudaError_t select(size_t size, const ElementwiseArgs& args,
                   cudaStream_t stream);
// From any type to any other; see core_cast_row() and truncate_row() in
// elementwise/cast.h.
cudaError_t cast(Element from, Element to, bool truncates,
                 const ElementwiseArgs& args, cudaStream_t stream);

// out[i] = the sum of terms[..][i]; 16-bit floats are summed in float. If there
// are too many terms for one launch, several launches pass on partial sums.
struct SumArgs {
  static constexpr int kMaxTerms = 32;
  int count = 0;
  int64_t total = 0;
  Operand terms[kMaxTerms];
  void* out = nullptr;     // in the last launch
  bool continues = false;  // so_far has sums already
  bool ends = true;
  void* so_far = nullptr;  // float for 16-bit floats; else may be out
};
// REQUIRES: total > 0; numbers.
cudaError_t sum_terms(Element type, const SumArgs& args, cudaStream_t stream);

// --- reduction.cu -----------------------------------------------------------

enum class Reduction : uint8_t {
  kSum,
  kMean,
  kProduct,
  kMax,
  kMin,
  kAll,  // of bool
  kAny,
  kHalfSquares,  // half the sum of the squares
};

// Runs of dimensions, outermost first, as in ReductionPlan.
struct Runs {
  int count = 0;
  int64_t sizes[kMaxLoops] = {};
  int64_t steps[kMaxLoops] = {};
};

struct ReductionArgs {
  Runs kept, reduced;
  int64_t kept_count = 1;
  int64_t reduced_count = 1;
  bool ends_reduced = false;
  const void* in = nullptr;
  void* out = nullptr;
  // Each result is combined from so many parts, for which memory is allocated.
  int64_t parts = 1;
  void* partial = nullptr;
};

bool has_reduction(Reduction op, Element type);
// The number of parts that keep the GPU busy; 1: they need no memory.
int64_t reduction_parts(const ReductionArgs& args);
// Bytes of memory for the parts of a result.
inline constexpr size_t kPartialBytes = 8;
// REQUIRES: kept_count > 0
cudaError_t reduce(Reduction op, Element type, const ReductionArgs& args,
                   cudaStream_t stream);

// The first position of the greatest, or smallest, of `count` elements each
// `inner` apart, for each of [outer, inner]; NaN is never chosen.
struct ArgArgs {
  int64_t outer = 1, count = 1, inner = 1;
  const void* in = nullptr;
  void* out = nullptr;
  bool least = false;
  bool wide_result = true;  // int64, not int32
};
// REQUIRES: all three are positive.
cudaError_t arg_extreme(Element type, const ArgArgs& args, cudaStream_t stream);

// Softmax, or its logarithm, of each of `rows` rows. in may be out.
struct SoftmaxArgs {
  int64_t rows = 0, classes = 0;
  bool logarithm = false;
  const void* in = nullptr;
  void* out = nullptr;
};
// REQUIRES: both are positive; floating types.
cudaError_t softmax(Element type, const SoftmaxArgs& args, cudaStream_t stream);

// The cross entropy of each of `rows` rows, and its gradient by the logits. The
// labels are a matrix of the logits' type, or the class of each row. A row
// whose class does not exist becomes NaN.
struct CrossEntropyArgs {
  int64_t rows = 0, classes = 0;
  const void* logits = nullptr;
  int64_t logits_row = 0, logits_column = 0;  // element distances
  Operand labels;
  int64_t labels_row = 0, labels_column = 0;
  bool sparse = false;
  bool wide_labels = false;  // int64, not int32
  void* loss = nullptr;
  void* gradient = nullptr;
};
// REQUIRES: rows and classes are positive; floating types.
cudaError_t cross_entropy(Element type, const CrossEntropyArgs& args,
                          cudaStream_t stream);

// --- training.cu ------------------------------------------------------------

// A step of an optimizer: element i of the variable and of each slot by element
// i of the gradient. `after` may be equal to `before`.
struct TrainingArgs {
  static constexpr int kMostStates = 4;
  int64_t total = 0;
  const double* scalars = nullptr;  // in host memory; used at launch
  bool option = false;
  Operand gradient;
  Operand before[kMostStates];
  void* after[kMostStates] = {};
};
// REQUIRES: total > 0; floating types.
using TrainingStep = cudaError_t (*)(Element type, const TrainingArgs& args,
                                     cudaStream_t stream);
// By the name of a rule of devices/training_rules.h; null if it is unknown.
TrainingStep find_training_step(std::string_view rule);

}  // namespace tagflow::devices::cuda
