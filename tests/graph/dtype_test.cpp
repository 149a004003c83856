#include "graph/dtype.h"

#include <doctest/doctest.h>

#include "graph/dtype_visit.h"
#include "graph/handle.h"

using namespace tagflow;

namespace {

constexpr int kLastType = 23;

}  // namespace

TEST_CASE("every type has a name that leads back to it") {
  for (int number = 1; number <= kLastType; ++number) {
    const DataType type = DataType(number);
    CAPTURE(number);
    CHECK(is_known(type));
    CHECK(*dtype_from_name(dtype_name(type)) == type);
    const DataType ref = make_ref(type);
    CHECK(is_known(ref));
    CHECK(*dtype_from_name(dtype_name(ref)) == ref);
    CHECK(dtype_name(ref) == dtype_name(type) + "_ref");
    CHECK(dtype_size(type) > 0);
  }
}

TEST_CASE("a type's name may be spelt in other ways") {
  CHECK(*dtype_from_name("float32") == DataType::kFloat);
  CHECK(*dtype_from_name("float64") == DataType::kDouble);
  CHECK(*dtype_from_name("float16") == DataType::kHalf);
  CHECK(*dtype_from_name("DT_INT64") == DataType::kInt64);
  CHECK(*dtype_from_name("DT_BFLOAT16") == DataType::kBFloat16);
  CHECK(*dtype_from_name("DT_STRING_REF") == make_ref(DataType::kString));
}

TEST_CASE("an unknown type's name is refused and shown") {
  for (const char* name : {"", "int33", "DT_", "_ref", "Float", "resource "}) {
    CAPTURE(name);
    const auto type = dtype_from_name(name);
    REQUIRE_FALSE(type.ok());
    CHECK(type.status().message() ==
          fmt::format("[dtype] unknown data type \"{}\"", name));
  }
}

TEST_CASE("a number that is not a type has no size, and a name in messages") {
  for (int number : {0, 24, 99, 100, 124, 255}) {
    CAPTURE(number);
    CHECK_FALSE(is_known(DataType(number)));
    CHECK(dtype_size(DataType(number)) == 0);
    CHECK(dtype_name(DataType(number)) == fmt::format("invalid({})", number));
  }
}

TEST_CASE("making a reference twice is making it once") {
  const DataType ref = make_ref(DataType::kInt8);
  CHECK(is_ref(ref));
  CHECK(make_ref(ref) == ref);
  CHECK(remove_ref(ref) == DataType::kInt8);
  CHECK(remove_ref(DataType::kInt8) == DataType::kInt8);
}

TEST_CASE("the size of a type is that of its C++ type") {
  int visited = 0;
  for (int number = 1; number <= kLastType; ++number) {
    const DataType type = DataType(number);
    visited += visit_dtype(type, [&]<class T>(TypeTag<T>) {
      CHECK(dtype_size(type) == sizeof(T));
      CHECK(kDataTypeOf<T> == type);
    });
  }
  CHECK(visited == 16);
  CHECK(dtype_size(DataType::kResource) == sizeof(ResourceHandle));
  CHECK(dtype_size(DataType::kVariant) == sizeof(Variant));
}

TEST_CASE("each type is floating, integer, complex, or no number") {
  int floating = 0;
  int integer = 0;
  int complex = 0;
  for (int number = 1; number <= kLastType; ++number) {
    const DataType t = DataType(number);
    floating += is_floating(t);
    integer += is_integer(t);
    complex += is_complex(t);
    CHECK(is_numeric(t) == (is_floating(t) || is_integer(t) || is_complex(t)));
    auto ignore = [](auto) {};
    CHECK(visit_floating(t, ignore) == is_floating(t));
    CHECK(visit_integer(t, ignore) == is_integer(t));
    CHECK(visit_complex(t, ignore) == is_complex(t));
  }
  CHECK(floating == 4);
  CHECK(integer == 8);
  CHECK(complex == 2);
}

TEST_CASE("moving elements by size covers every plain type") {
  for (int number = 1; number <= kLastType; ++number) {
    const DataType t = DataType(number);
    CAPTURE(dtype_name(t));
    size_t size = 0;
    const bool visited =
        visit_size(t, [&]<class U>(TypeTag<U>) { size = sizeof(U); });
    CHECK(visited == is_plain(t));
    if (visited) CHECK(size == dtype_size(t));
  }
}
