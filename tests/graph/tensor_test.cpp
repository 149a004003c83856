#include "graph/tensor.h"

#include <doctest/doctest.h>

#include <limits>
#include <thread>
#include <vector>

#include "graph/handle.h"

using namespace tagflow;

namespace {

struct Named : Resource {
  std::string describe() const override { return "thing"; }
};

}  // namespace

TEST_CASE("a tensor is 32 bytes, and empty until it is given a value") {
  const Tensor tensor;
  CHECK(sizeof(Tensor) == 32);
  CHECK_FALSE(tensor.valid());
  CHECK(tensor.dtype() == DataType::kInvalid);
  CHECK(tensor.num_elements() == 0);
  CHECK(tensor.describe() == "<no tensor>");
}

TEST_CASE("plain scalars and short vectors live inline") {
  CHECK(Tensor::scalar(1.5F).buffer() == nullptr);
  CHECK(Tensor::scalar(Complex128(1, 2)).buffer() == nullptr);
  CHECK(Tensor::vector<int32_t>({1, 2, 3, 4, 5, 6}).buffer() == nullptr);
  CHECK(Tensor::vector<int32_t>({1, 2, 3, 4, 5, 6, 7}).buffer() != nullptr);
  CHECK(Tensor::of<float>({1, 1}, {1.0F}).buffer() != nullptr);
  CHECK(Tensor::scalar("text").buffer() != nullptr);
}

TEST_CASE("a copy shares the elements, a clone does not") {
  Tensor first = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  CHECK(first.unique());
  const Tensor copy = first;
  CHECK_FALSE(first.unique());
  CHECK(copy.raw() == first.raw());
  Tensor clone = first.clone();
  CHECK(clone.unique());
  clone.mutable_data<float>()[0] = 9;
  CHECK(first.data<float>()[0] == 1);
  CHECK_FALSE(identical(clone, first));
  CHECK(identical(copy, first));
}

TEST_CASE("a moved-from tensor is empty") {
  Tensor first = Tensor::scalar("a string of more than a few characters");
  const Tensor second = std::move(first);
  CHECK_FALSE(first.valid());  // NOLINT(bugprone-use-after-move)
  CHECK(second.unique());
  Tensor& same = const_cast<Tensor&>(second);
  same = static_cast<const Tensor&>(same);
  CHECK(second.scalar_value<std::string>().starts_with("a string"));
}

TEST_CASE("a tensor takes another's place, and can be let go of") {
  Tensor large = Tensor::make(DataType::kFloat, {100});
  const Buffer* buffer = large.buffer();
  Tensor place = Tensor::make(DataType::kFloat, {200});
  place.take(large);
  CHECK_FALSE(large.valid());
  CHECK(place.buffer() == buffer);
  CHECK(place.unique());
  Tensor small = Tensor::scalar<int32_t>(7);
  place.take(small);
  CHECK(place.scalar_value<int32_t>() == 7);
  place.reset();
  CHECK_FALSE(place.valid());
  const Tensor copy = (place = Tensor::make(DataType::kInt8, {64}));
  place.reset();
  CHECK(copy.unique());
}

TEST_CASE("an inline scalar is told by its type") {
  const Tensor yes = Tensor::scalar(true);
  CHECK(yes.is_inline_scalar(DataType::kBool));
  CHECK_FALSE(yes.is_inline_scalar(DataType::kUInt8));
  CHECK_FALSE(Tensor::vector<bool>({true}).is_inline_scalar(DataType::kBool));
  CHECK_FALSE(Tensor().is_inline_scalar(DataType::kInvalid));
  CHECK_FALSE(Tensor::scalar("x").is_inline_scalar(DataType::kString));
}

TEST_CASE("dimensions of every rank are kept") {
  Shape shape;
  for (int rank = 0; rank <= 8; ++rank) {
    const Tensor tensor = Tensor::make(DataType::kInt64, shape);
    CAPTURE(rank);
    CHECK(tensor.rank() == rank);
    CHECK(tensor.shape() == shape);
    CHECK(tensor.num_elements() == shape.num_elements());
    const Tensor copy = tensor;
    CHECK(copy.shape() == shape);
    shape.add_dim(rank % 3 + 1);
  }
}

TEST_CASE("an allocation that cannot be is refused, not tried") {
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(Tensor::allocate(DataType::kFloat, {most}).status().to_string() ==
        "ResourceExhausted: [tensor] the bytes of float[9223372036854775807] "
        "overflow");
  CHECK(Tensor::allocate(DataType::kInt8, {most}).status().code() ==
        Code::kResourceExhausted);
  CHECK(Tensor::allocate(DataType::kInvalid, {}).status().message() ==
        "[tensor] cannot allocate elements of type invalid(0)");
  CHECK(Tensor::allocate(make_ref(DataType::kFloat), {}).status().message() ==
        "[tensor] cannot allocate elements of type float_ref");
}

TEST_CASE("no tensor has fewer elements than its shape says") {
  const auto refusal = [](const Shape& shape) {
    return std::string(
        Tensor::allocate(DataType::kFloat, shape).status().message());
  };
  const int64_t many = int64_t{1} << 32;
  CHECK(refusal({many, many}) ==
        "[shape] the number of elements of [4294967296,4294967296] overflows");
  CHECK(refusal({-1, -1}) == "[shape] negative dimension -1 in [-1,-1]");
  CHECK(refusal({-1, 0}) == "[shape] negative dimension -1 in [-1,0]");
  const std::vector<int64_t> ones(size_t(kMaxRank) + 1, 1);
  CHECK(refusal(Shape(std::span(ones))) ==
        "[shape] rank 255 is over the limit of 254");
}

TEST_CASE("an empty tensor may have huge other dimensions") {
  const int64_t huge = int64_t(1) << 40;
  const Result<Tensor> tensor =
      Tensor::allocate(DataType::kFloat, {huge, huge, 0});
  REQUIRE(tensor.ok());
  CHECK(tensor->num_elements() == 0);
  CHECK(tensor->bytes() == 0);
  CHECK(tensor->flat<float>().empty());
  CHECK(tensor->to_string() == "float[1099511627776,1099511627776,0] {}");
}

TEST_CASE("reshaping keeps the elements and checks their number") {
  const Tensor matrix = Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Result<Tensor> cube = matrix.reshaped({1, 3, 2});
  REQUIRE(cube.ok());
  CHECK(cube->raw() == matrix.raw());
  CHECK(cube->shape() == Shape({1, 3, 2}));
  CHECK(matrix.reshaped({4}).status().message() ==
        "[reshape] int32[2,3] has 6 elements, the shape [4] 4");
  // Inline elements move to the heap if the rank needs it, and back.
  const Result<Tensor> square = Tensor::scalar(7).reshaped({1, 1});
  REQUIRE(square.ok());
  CHECK(square->scalar_value<int32_t>() == 7);
  CHECK(square->reshaped({})->scalar_value<int32_t>() == 7);
}

TEST_CASE("the same bytes can be seen as another type of that size") {
  const Tensor bits = Tensor::scalar(1.0F).with_dtype(DataType::kInt32);
  CHECK(bits.scalar_value<int32_t>() == 0x3f800000);
}

TEST_CASE("tensors of strings compare by value, of handles by identity") {
  CHECK(identical(Tensor::scalar("a"), Tensor::scalar("a")));
  CHECK_FALSE(identical(Tensor::scalar("a"), Tensor::scalar("b")));
  CHECK_FALSE(identical(Tensor::scalar(1), Tensor::scalar(1.0F)));
  CHECK_FALSE(identical(Tensor::scalar(1), Tensor::vector<int32_t>({1})));
  CHECK(identical(Tensor(), Tensor()));
  const Ref<Resource> thing(new Named);
  Tensor first = Tensor::make(DataType::kResource, {});
  *first.mutable_data<ResourceHandle>() = ResourceHandle(thing);
  const Tensor second = first.clone();
  Tensor third = Tensor::make(DataType::kResource, {});
  CHECK(identical(first, second));
  CHECK_FALSE(identical(first, third));
  CHECK(first.to_string() == "resource[] thing");
  CHECK(third.to_string() == "resource[] <empty>");
}

TEST_CASE("a result is read by type, or says why it cannot be") {
  CHECK(Tensor::scalar(7).item<int32_t>().value() == 7);
  CHECK(Tensor::of<double>({1, 1}, {2.5}).item<double>().value() == 2.5);
  CHECK(Tensor::scalar("text").item<std::string>().value() == "text");
  CHECK(Tensor::scalar(7).item<float>().status().message() ==
        "[tensor] int32[] cannot be read as float");
  const Tensor pair = Tensor::vector({1, 2});
  CHECK(pair.item<int32_t>().status().message() ==
        "[tensor] int32[2] has not exactly one element");
  const auto elements = pair.elements<int32_t>();
  REQUIRE(elements.ok());
  CHECK(std::vector<int32_t>(elements->begin(), elements->end()) ==
        std::vector<int32_t>{1, 2});
  CHECK_FALSE(pair.elements<int64_t>().ok());
  CHECK_FALSE(Tensor().item<int32_t>().ok());
}

TEST_CASE("a tensor shows its first elements") {
  CHECK(Tensor::scalar(2.5F).to_string() == "float[] 2.5");
  CHECK(Tensor::vector<int64_t>({1, 2, 3}).to_string(2) ==
        "int64[3] {1 2 ...}");
  CHECK(Tensor::scalar(true).to_string() == "bool[] true");
  CHECK(Tensor::scalar(Complex64(1, -1)).to_string() == "complex64[] (1,-1)");
  CHECK(Tensor::scalar("a\n").to_string() == "string[] \"a\\n\"");
}

TEST_CASE("threads may share and drop copies of one tensor") {
  const Tensor shared = Tensor::of<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const Tensor copy = shared;
        const Tensor again = copy;
        CHECK(again.dim(2) == 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(shared.unique());
}
