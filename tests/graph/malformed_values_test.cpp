// Malformed constants, attributes and shapes, each with its error message.
#include "tests/graph/pbtxt.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::pbtxt;

TEST_CASE("malformed constants are refused") {
  const auto dim = [](const std::string& size) {
    return "tensor_shape { " + dims(size) + "} ";
  };
  check({
      {constant("c", "DT_FLOAT", dim("-1") + "float_val: 1"), kInvalid,
       "[graphdef] node \"c\": attribute \"value\": a tensor of float has the "
       "shape [?], which is not known"},
      {constant("c", "DT_FLOAT", "tensor_shape { unknown_rank: true }"),
       kInvalid, "a tensor of float has the shape <unknown>"},
      {constant("c", "DT_FLOAT", dim("-2")), kInvalid,
       "negative dimension -2 in [-2]"},
      {constant("c", "DT_FLOAT", dim("2") + "float_val: [1, 2, 3]"), kInvalid,
       "a tensor of float[2] has 3 values for 2 elements"},
      {constant("c", "DT_FLOAT", dim("0") + "float_val: [1, 2]"), kInvalid,
       "a tensor of float[0] has 2 values for 0 elements"},
      {constant("c", "DT_FLOAT", dim("2") + "tensor_content: '1234567'"),
       Code::kDataLoss,
       "[graphdef] node \"c\": attribute \"value\": tensor_content of a tensor "
       "of float[2] has 7 bytes, 8 are wanted"},
      {constant("c", "DT_INT32", dim("0") + "tensor_content: '1234'"),
       Code::kDataLoss, "of int32[0] has 4 bytes, 0 are wanted"},
      {constant("c", "DT_BOOL", dim("2") + "tensor_content: '\\001\\002'"),
       Code::kDataLoss, "of bool[2] has a byte that is not a bool"},
      {constant("c", "DT_STRING", dim("2") + "tensor_content: '\\001\\005ab'"),
       Code::kDataLoss, "of string[2] ends inside a string"},
      {constant("c", "DT_STRING", dim("1") + "tensor_content: '\\001ab'"),
       Code::kDataLoss, "of string[1] has 1 bytes too many"},
      {constant("c", "DT_STRING",
                dim("1") + "tensor_content: '\\377\\377\\377\\377\\377\\001a'"),
       Code::kDataLoss, "of string[1] ends inside a string"},
      {constant("c", "DT_INT8", dim("1") + "int_val: 128"), kInvalid,
       "value 0 of a tensor of int8[1] does not fit the type"},
      {constant("c", "DT_UINT8", dim("2") + "int_val: [7, -1]"), kInvalid,
       "value 1 of a tensor of uint8[2] does not fit the type"},
      {constant("c", "DT_HALF", dim("1") + "half_val: 65536"), kInvalid,
       "value 0 of a tensor of half[1] does not fit the type"},
      {constant("c", "DT_BFLOAT16", dim("1") + "half_val: -1"), kInvalid,
       "value 0 of a tensor of bfloat16[1] does not fit the type"},
      {constant("c", "DT_COMPLEX64", dim("1") + "scomplex_val: 1"), kInvalid,
       "a tensor of complex64[1] has half a complex value"},
      {constant("c", "DT_RESOURCE", dim("1")), Code::kUnimplemented,
       "a tensor of resource cannot be read: its handles mean nothing outside "
       "the process that wrote it"},
      {constant("c", "DT_FLOAT_REF", dim("1")), Code::kUnimplemented,
       "a tensor of float_ref is not supported"},
      {constant("c", "DT_INVALID", dim("1")), Code::kUnimplemented,
       "a tensor of invalid(0) is not supported"},
      {constant("c", "DT_FLOAT", dim("4294967296 4294967296 16")), kInvalid,
       "[graphdef] node \"c\": attribute \"value\": [shape]"},
      {constant("c", "DT_FLOAT", dim("4611686018427387904") + "float_val: 1"),
       kTooMuch,
       "4611686018427387904 elements of 4 bytes, 2147483648 bytes "
       "are left for constants"},
      {constant(
           "c", "DT_STRING",
           dim("1000000") + "string_val: '" + std::string(3000, 'a') + "'"),
       kTooMuch, "a tensor of string[1000000] is too large"},
      {constant("c", "DT_FLOAT", dim("100000000") + "float_val: 1"), kTooMuch,
       "[graphdef] node \"c\": attribute \"value\": a tensor of "
       "float[100000000] is too large: it repeats a value in 399999996 bytes, "
       "268435456 are left for such elements of constants"},
      // Together over the limit.
      {constant("c", "DT_FLOAT", dim("20") + "float_val: 1") +
           constant("d", "DT_FLOAT", dim("20") + "float_val: 1"),
       kTooMuch,
       "[graphdef] node \"d\": attribute \"value\": a tensor of float[20] is "
       "too large: 20 elements of 4 bytes, 20 bytes are left",
       {.max_tensor_bytes = 100}},
      {constant(
           "c", "DT_FLOAT",
           "tensor_shape { " +
               [] {
                 std::string text;
                 for (int i = 0; i < 255; ++i) text += "dim { size: 1 } ";
                 return text;
               }() +
               "}"),
       kInvalid, "rank 255 is over the limit of 254"},
      {constant("c", "DT_FLOAT",
                "tensor_shape { unknown_rank: true dim { size: 1 } }"),
       kInvalid, "a shape of unknown rank has 1 dimensions"},
      {node("c", "Const", type("dtype", "DT_FLOAT") + attr("value", "i: 3")),
       kInvalid,
       "[Const] node \"c\": attribute \"value\" is of type int, tensor is "
       "wanted"},
  });
}

TEST_CASE("attributes out of their range are refused") {
  const std::string image = placeholder("x", "DT_FLOAT", "1 8 8 1");
  const std::string filter = placeholder("f", "DT_FLOAT", "3 3 1 1");
  const std::string strides = attr("strides", "list { i: [1, 1, 1, 1] }");
  check({
      {image + filter +
           node("y", "Conv2D",
                in("x f") + strides + attr("padding", "s: 'MIDDLE'")),
       kInvalid,
       "[Conv2D] node \"y\": attribute \"padding\" is \"MIDDLE\", allowed are "
       "\"SAME\", \"VALID\""},
      {image + filter + node("y", "Conv2D", in("x f") + strides), kInvalid,
       "[Conv2D] node \"y\": attribute \"padding\" (string) is missing"},
      {image + filter +
           node("y", "Conv2D",
                in("x f") + attr("padding", "s: 'SAME'") +
                    attr("strides", "list { f: 1 }")),
       kInvalid,
       "attribute \"strides\" is of type list(float), list(int) is wanted"},
      {image + filter +
           node("y", "Conv2D",
                in("x f") + attr("padding", "s: 'SAME'") +
                    attr("strides", "list { i: [1, 0, 1, 1] }")),
       kInvalid,
       "[Conv2D] node \"y\": strides contains 0, which must be "
       "positive"},
      {kX + node("y", "Split", in("i x") + attr("num_split", "i: 0")) + kI,
       kInvalid,
       "[Split] node \"y\": attribute \"num_split\" is 0, at least 1 is "
       "wanted"},
      {node("y", "IdentityN", attr("T", "list { }")), kInvalid,
       "the length of attribute \"T\" is 0, at least 1 is wanted"},
      {kX + node("y", "IdentityN",
                 in("x") + attr("T", "list { type: DT_INVALID }")),
       kInvalid,
       "[IdentityN] node \"y\": input 0 (\"x:0\") is float, "
       "invalid(0) is wanted as input"},
      {kX + node("y", "Cast", in("x")), kInvalid,
       "[Cast] node \"y\": attribute \"DstT\" (type) is missing"},
      {kX + node("y", "Cast",
                 in("x") + type("DstT", "DT_INT32") + type("SrcT", "DT_INT8")),
       kInvalid,
       "[Cast] node \"y\": input 0 (\"x:0\") is float, int8 is wanted as x"},
      {kX + kI +
           node("y", "ArgMax", in("x i") + type("output_type", "DT_FLOAT")),
       kInvalid,
       "[ArgMax] node \"y\": attribute \"output_type\" is float, allowed are"},
      {kX + node("y", "Shape", in("x") + type("out_type", "DT_STRING")),
       kInvalid, "attribute \"out_type\" is string, allowed are int32, int64"},
      {kX + node("y", "Reshape", in("x x")), kInvalid,
       "[Reshape] node \"y\": attribute \"Tshape\" is float, allowed are"},
      {kX + node("y", "ConcatV2", in("x x x")), kInvalid,
       "[ConcatV2] node \"y\": attribute \"Tidx\" is float, allowed are"},
      {kS + node("y", "Neg", in("s")), kInvalid,
       "[Neg] node \"y\": attribute \"T\" is string, allowed are"},
      {kS + node("y", "LogicalNot", in("s")), kInvalid,
       "[LogicalNot] node \"y\": input 0 (\"s:0\") is string, bool is wanted"},
      {kX + node("y", "Squeeze", in("x") + attr("squeeze_dims", "i: 0")),
       kInvalid,
       "attribute \"squeeze_dims\" is of type int, list(int) is "
       "wanted"},
      {kX + node("y", "Identity", in("x") + attr("T", "placeholder: 'U'")),
       kInvalid, "[Identity] node \"y\": attribute \"T\" is of type "},
      {kX + node("y", "Identity", in("x") + attr("T", "func { name: 'f' }")),
       kInvalid, "[Identity] node \"y\": attribute \"T\" is of type func"},
      {kX + node("y", "Enter", in("x") + attr("frame_name", "i: 3")), kInvalid,
       "attribute \"frame_name\" is of type int, string is wanted"},
      {kX + node("y", "Enter",
                 in("x") + kFrame + attr("parallel_iterations", "f: 2")),
       kInvalid,
       "attribute \"parallel_iterations\" is of type float, int is "
       "wanted"},
      {node("y", "Placeholder",
            type("dtype", "DT_FLOAT") +
                attr("shape", "shape { unknown_rank: true dim { size: 2 } }")),
       kInvalid,
       "[graphdef] node \"y\": attribute \"shape\": a shape of "
       "unknown rank has 1 dimensions"},
      {node("y", "NoOp", attr("", "i: 1")), kInvalid,
       "[NoOp] node \"y\": an attribute has no name"},
      {node("y", "NoOp", attr(std::string(5000, 'a'), "i: 1")), kTooMuch,
       "has 5000 bytes, the limit is 4096"},
      {node("y", std::string(5000, 'A')), kTooMuch,
       "[graphdef] node \"y\": the op"},
      {node("y", "NoOp", "device: '" + std::string(5000, 'd') + "'"), kTooMuch,
       "[graphdef] node \"y\": the device"},
      {node("y", "NoOp", attr("shape", "i: 1")), kInvalid,
       "[NoOp] node \"y\": the op has no attribute \"shape\""},
      {kX + node("y", "Neg", in("x") + attr("t", "type: DT_FLOAT")), kInvalid,
       "[Neg] node \"y\": the op has no attribute \"t\", did you mean \"T\"?"},
      {node("y", "NoOp", attr("_anything", "i: 1")), Code::kOk, ""},
      {kX + node("y", "MatMul", in("x x") + attr("transposed_b", "b: true")),
       kInvalid,
       "[MatMul] node \"y\": the op has no attribute \"transposed_b\", did you "
       "mean \"transpose_b\"?"},
      {kX + node("y", "Identity",
                 in("x") + type("T", "DT_FLOAT") + type("T", "DT_FLOAT")),
       kInvalid, "[graphdef] node \"y\": \"T\" is given twice"},
  });
}

TEST_CASE("shapes that contradict each other are refused") {
  const auto f = [](const std::string& name, const std::string& sizes) {
    return placeholder(name, "DT_FLOAT", sizes);
  };
  const auto ints = [](const std::string& name, const std::string& values,
                       const std::string& count) {
    return constant(name, "DT_INT32",
                    "tensor_shape { " + dims(count) + "} int_val: " + values);
  };
  const std::string ab = f("a", "2 3") + f("b", "4 5");
  check({
      {ab + node("y", "AddV2", in("a b")), kInvalid,
       "[AddV2] node \"y\": shapes [2,3] and [4,5] cannot be "
       "broadcast: 2 against 4"},
      {ab + node("y", "MatMul", in("a b")), kInvalid,
       "[MatMul] node \"y\": the inner dimensions of [2,3] and "
       "[4,5] differ"},
      {f("a", "2") + f("b", "2 2") + node("y", "MatMul", in("a b")), kInvalid,
       "[MatMul] node \"y\": input 0 (\"a:0\") has shape [2], of rank "
       "1; rank 2 is wanted"},
      {ab + node("y", "Pack", in("a b")), kInvalid,
       "[Pack] node \"y\": shapes of inputs differ: [2,3] and [4,5]"},
      {ab + ints("k", "0", "") + node("y", "ConcatV2", in("a b k")), kInvalid,
       "[ConcatV2] node \"y\": cannot join [4,5] to [?,3] along 0"},
      {ab + ints("k", "7", "") + node("y", "ConcatV2", in("a b k")), kInvalid,
       "[ConcatV2] node \"y\": axis 7 is outside [-2, 2)"},
      {f("a", "2 3") + ints("k", "[4, 2]", "2") +
           node("y", "Reshape", in("a k")),
       kInvalid,
       "[Reshape] node \"y\": cannot reshape 6 elements of [2,3] to "
       "[4,2]"},
      {f("a", "2 3") + ints("k", "[-2, 3]", "2") +
           node("y", "Reshape", in("a k")),
       kInvalid,
       "[Reshape] node \"y\": input 1 (\"k:0\"): [shape] negative "
       "dimension -2 in [-2,3]"},
      {f("a", "2 3") + ints("k", "3", "") + node("y", "Sum", in("a k")),
       kInvalid, "[Sum] node \"y\": axis 3 is not a dimension of [2,3]"},
      {f("a", "2 3") + node("y", "Squeeze",
                            in("a") + attr("squeeze_dims", "list { i: 0 }")),
       kInvalid, "[Squeeze] node \"y\": cannot squeeze dimension 0 of [2,3]"},
      {f("a", "2 3") + node("y", "Unpack", in("a") + attr("num", "i: 3")),
       kInvalid,
       "[Unpack] node \"y\": cannot unpack dimension 0 of [2,3] "
       "into 3"},
      {f("a", "2 3") +
           node("y", "Unpack",
                in("a") + attr("num", "i: 2") + attr("axis", "i: 2")),
       kInvalid, "[Unpack] node \"y\": axis 2 is outside [-2, 2)"},
      {f("a", "2 3") + ints("k", "1", "") +
           node("y", "Split", in("k a") + attr("num_split", "i: 2")),
       kInvalid,
       "[Split] node \"y\": cannot split dimension 1 of [2,3] into 2"},
      {kX + ints("k", "-3", "1") + node("y", "Fill", in("k x")), kInvalid,
       "[Fill] node \"y\": input 0 (\"k:0\"): [shape] negative "
       "dimension -3 in [-3]"},
      {f("a", "2 3") + ints("b", "[0]", "1") +
           node("y", "StridedSlice", in("a b b b")),
       kInvalid, "[StridedSlice] node \"y\": strides[0] is zero"},
      {f("a", "2 3") + ints("k", "[1, 1, 1]", "3") +
           node("y", "Tile", in("a k")),
       kInvalid, "[Tile] node \"y\": 3 multiples for the shape [2,3]"},
      {f("a", "2 3") + ints("k", "[3, 3]", "2") +
           node("y", "BroadcastTo", in("a k")),
       kInvalid,
       "[BroadcastTo] node \"y\": [2,3] cannot be broadcast to [3,3]"},
      {f("a", "2 3") + placeholder("p", "DT_BOOL", "2") +
           node("y", "Switch", in("a p")),
       kInvalid,
       "[Switch] node \"y\": input 1 (\"p:0\") has shape [2], of rank "
       "1; rank 0 is wanted"},
      {placeholder("p", "DT_BOOL", "2") + node("y", "LoopCond", in("p")),
       kInvalid,
       "[LoopCond] node \"y\": input 0 (\"p:0\") has shape [2], of "
       "rank 1; rank 0 is wanted"},
      {f("a", "2 3") +
           node("y", "EnsureShape",
                in("a") + attr("shape", "shape { " + dims("2 4") + "}")),
       kInvalid,
       "[EnsureShape] node \"y\": the input has shape [2,3], which is not "
       "[2,4]"},
      {f("a", "2 3") +
           node("y", "PlaceholderWithDefault",
                in("a") + attr("shape", "shape { " + dims("3") + "}")),
       kInvalid,
       "[PlaceholderWithDefault] node \"y\": the default has shape [2,3], the "
       "attribute says [3]"},
      {f("a", "2 3") + f("b", "3") + node("y", "BiasAdd", in("b a")), kInvalid,
       "[BiasAdd] node \"y\": input 0 (\"b:0\") has shape [3], of "
       "rank 1; at least rank 2 is wanted"},
      {f("a", "2 3") + ints("k", "9", "") + node("y", "ExpandDims", in("a k")),
       kInvalid, "[ExpandDims] node \"y\": axis 9 is outside [-3, 3)"},
      {f("a", "2 3") + ints("k", "[1, 1]", "2") + node("y", "Pad", in("a k")),
       kInvalid,
       "[Pad] node \"y\": input 1 (\"k:0\") has shape [2], of rank 1; "
       "rank 2 is wanted"},
      {f("a", "2 3") + ints("k", "[-1, 1, 0, 0]", "2 2") +
           node("y", "Pad", in("a k")),
       kInvalid, "[Pad] node \"y\": a padding is negative"},
      {f("a", "2 3") + f("b", "2") + ints("k", "0", "") +
           node("y", "GatherV2", in("a b k")),
       kInvalid, "[GatherV2] node \"y\": attribute \"Tindices\" is float"},
  });
}
