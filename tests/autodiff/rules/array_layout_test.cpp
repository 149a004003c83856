// Rules of array ops that pad, rearrange blocks, or work on diagonals.
#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

Tensor paddings(std::vector<int32_t> pairs) {
  return Tensor::of<int32_t>({int64_t(pairs.size() / 2), 2}, pairs);
}

}  // namespace

TEST_CASE("Pad, PadV2 and MirrorPad have gradients by all float inputs") {
  const Tensor x = values({2, 3});
  check_squares(op_with("Pad", {paddings({1, 0, 2, 1})}), {x});
  check_squares(op_with_unknown("Pad", {paddings({1, 0, 2, 1})}), {x});
  check_squares(op_with("Pad", {paddings({})}), {values({})});
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& xs) {
        return s.op("PadV2", {xs[0], paddings({1, 0, 2, 1}), xs[1]});
      },
      {x, values({})});
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    check_squares(
        op_with("MirrorPad", {paddings({1, 1, 2, 0})}, {{"mode", mode}}),
        {values({3, 3})});
    check_squares(
        op_with("MirrorPadGrad", {paddings({1, 1, 2, 0})}, {{"mode", mode}}),
        {values({5, 6})});
  }
}

TEST_CASE("blocks in space, batch and depth have gradients") {
  const Tensor x = values({1, 3, 4, 1});
  check_squares(op_with("SpaceToBatchND", {{2, 2}, paddings({1, 0, 0, 2})}),
                {x});
  check_squares(op_with("BatchToSpaceND", {{2, 2}, paddings({1, 0, 0, 2})}),
                {values({4, 2, 2, 1})});
  check_squares(
      op_with("SpaceToBatch", {paddings({0, 1, 1, 1})}, {{"block_size", 2}}),
      {x});
  check_squares(
      op_with("BatchToSpace", {paddings({0, 1, 1, 1})}, {{"block_size", 2}}),
      {values({4, 2, 2, 1})});
  for (const char* format : {"NHWC", "NCHW"}) {
    check_squares(
        op_of("SpaceToDepth", {{"block_size", 2}, {"data_format", format}}),
        {values({1, 2, 4, 2})});
    check_squares(
        op_of("DepthToSpace", {{"block_size", 2}, {"data_format", format}}),
        {values({1, 4, 2, 4})});
  }
}

TEST_CASE("diagonals have gradients") {
  check_squares(op_of("Diag"), {values({2, 2})});
  check_squares(op_of("DiagPart"), {values({2, 3, 2, 3})});
  for (const char* op : {"MatrixDiag", "BatchMatrixDiag"})
    check_squares(op_of(op), {values({2, 3})});
  for (const char* op : {"MatrixDiagPart", "BatchMatrixDiagPart"}) {
    check_squares(op_of(op), {values({2, 3, 4})});
    check_squares(op_of(op), {values({4, 3})});
  }
  for (const char* op : {"MatrixSetDiag", "BatchMatrixSetDiag"})
    check_squares(op_of(op), {values({2, 3, 4}), values({2, 3})});
  for (const char* op : {"MatrixBandPart", "BatchMatrixBandPart"})
    check_squares(
        op_with(op, {Tensor::scalar<int64_t>(1), Tensor::scalar<int64_t>(-1)}),
        {values({2, 4, 3})});
}

TEST_CASE("bands of diagonals have gradients, and so has their padding") {
  for (const char* align :
       {"", "LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"}) {
    const bool is_v2 = *align == '\0';
    const std::string version = is_v2 ? "V2" : "V3";
    const AttrMap attrs = is_v2 ? AttrMap{} : AttrMap{{"align", align}};
    check_squares(
        [=](const graph::Scope& s, const graph::Outputs& x) {
          return s.op("MatrixDiag" + version, {x[0], {-1, 1}, 4, 3, x[1]},
                      attrs);
        },
        {values({2, 3, 3}), values({})});
    check_squares(
        [=](const graph::Scope& s, const graph::Outputs& x) {
          return s.op("MatrixDiagPart" + version, {x[0], {-2, 1}, x[1]}, attrs);
        },
        {values({2, 3, 4}), values({})});
    check_squares(
        [=](const graph::Scope& s, const graph::Outputs& x) {
          return s.op("MatrixSetDiag" + version, {x[0], x[1], {-1, 1}}, attrs);
        },
        {values({2, 3, 4}), values({2, 3, 3})});
  }
}

TEST_CASE("single diagonals beside the main one have gradients") {
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("MatrixDiagV3", {x[0], 1, -1, -1, x[1]});
      },
      {values({2, 3}), values({})});
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("MatrixDiagPartV3", {x[0], -1, x[1]});
      },
      {values({3, 4}), values({})});
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("MatrixSetDiagV3", {x[0], x[1], {2, 2}});
      },
      {values({3, 4}), values({2})});
}
