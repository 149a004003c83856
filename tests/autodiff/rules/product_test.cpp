// Products: MatMul, BatchMatMul, Einsum.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;

namespace {

Function matmul(bool transpose_a, bool transpose_b) {
  return op_of("MatMul",
               {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Function batch_matmul(const char* op, bool adj_x, bool adj_y) {
  return op_of(op, {{"adj_x", adj_x}, {"adj_y", adj_y}});
}

Function einsum(const char* equation) {
  return op_of("Einsum", {{"equation", equation}});
}

}  // namespace

TEST_CASE("MatMul has gradients with either factor transposed or not") {
  check_gradients(matmul(false, false), {values({2, 3}), values({3, 4})});
  check_gradients(matmul(true, false), {values({3, 2}), values({3, 4})});
  check_gradients(matmul(false, true), {values({2, 3}), values({4, 3})});
  check_gradients(matmul(true, true), {values({3, 2}), values({4, 3})});
}

TEST_CASE("MatMul of complex matrices has gradients") {
  check_gradients(matmul(false, false),
                  {complex_values({2, 3}), complex_values({3, 2})});
  check_gradients(matmul(true, false),
                  {complex_values({3, 2}), complex_values({3, 2})});
  check_gradients(matmul(false, true),
                  {complex_values({2, 3}), complex_values({2, 3})});
  check_gradients(matmul(true, true),
                  {complex_values({3, 2}), complex_values({2, 3})});
}

TEST_CASE("BatchMatMul has gradients with either factor adjoint or not") {
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"}) {
    check_gradients(batch_matmul(op, false, false),
                    {values({2, 2, 3}), values({2, 3, 2})});
    check_gradients(batch_matmul(op, true, false),
                    {complex_values({2, 3, 2}), complex_values({2, 3, 2})});
    check_gradients(batch_matmul(op, false, true),
                    {complex_values({2, 2, 3}), complex_values({2, 2, 3})});
    check_gradients(batch_matmul(op, true, true),
                    {complex_values({2, 3, 2}), complex_values({2, 2, 3})});
  }
}

TEST_CASE("BatchMatMulV3 says the type of its gradients") {
  const Function f =
      op_of("BatchMatMulV3", {{"Tout", DataType::kDouble}, {"adj_y", true}});
  check_gradients(f, {values({2, 2, 3}), values({2, 3})});
}

TEST_CASE("gradients of products are summed over repeated batches") {
  const Function f = batch_matmul("BatchMatMulV2", false, false);
  check_gradients(f, {values({2, 3, 2, 2}), values({3, 2, 2})});
  check_gradients(f, {values({2, 2}), values({3, 2, 2})});
  check_gradients(f, {values({2, 1, 2, 3}), values({1, 3, 3, 1})});
  check_gradients(f, {values({1, 2, 2}), values({1, 2, 2})});
}

TEST_CASE("Einsum of two operands has gradients") {
  check_gradients(einsum("ij,jk->ik"), {values({2, 3}), values({3, 2})});
  check_gradients(einsum("ij,kj->ki"), {values({2, 3}), values({2, 3})});
  check_gradients(einsum("bi,bj->bij"), {values({2, 3}), values({2, 2})});
  check_gradients(einsum("ij,ij->"), {values({2, 3}), values({2, 3})});
  check_gradients(einsum("i,j->ij"), {values({2}), values({3})});
  check_gradients(einsum("ij,jk->ki"),
                  {complex_values({2, 2}), complex_values({2, 3})});
}

TEST_CASE("Einsum of one operand has gradients") {
  check_gradients(einsum("ij->ji"), {values({2, 3})});
  check_gradients(einsum("i...->...i"), {values({2, 3, 2})});
  check_gradients(einsum("ij->ij"), {complex_values({2, 2})});
}

TEST_CASE("Einsum gives gradients to dimensions that it sums over") {
  check_gradients(einsum("ij->i"), {values({2, 3})});
  check_gradients(einsum("ij->"), {values({2, 3})});
  check_gradients(einsum("aijb->ib"), {values({2, 2, 3, 2})});
  check_gradients(einsum("a...b->..."), {values({2, 3, 2, 2})});
  check_gradients(einsum("ij,kl->l"), {values({2, 3}), values({2, 2})});
  check_gradients(einsum("ij,jk->"), {values({2, 3}), values({3, 2})});
}

TEST_CASE("Einsum has gradients if labels repeat") {
  check_gradients(einsum("ii->i"), {values({3, 3})});
  check_gradients(einsum("ii->"), {values({3, 3})});
  check_gradients(einsum("i->ii"), {values({3})});
  check_gradients(einsum("iij->jj"), {values({2, 2, 3})});
  check_gradients(einsum("ii,ij->j"), {values({2, 2}), values({2, 3})});
  check_gradients(einsum("iji,k->jk"), {values({2, 3, 2}), values({2})});
  check_gradients(einsum("ij,ik->ii"), {values({2, 3}), values({2, 2})});
  check_gradients(einsum("...ii->...i"), {values({2, 2, 2})});
}

TEST_CASE("Einsum sums gradients over dimensions that an ellipsis repeats") {
  const Function f = einsum("...ij,...jk->...ik");
  check_gradients(f, {values({2, 2, 3}), values({2, 3, 2})});
  check_gradients(f, {values({2, 3}), values({2, 3, 2})});
  check_gradients(f, {values({2, 1, 1, 3}), values({3, 3, 2})});
  check_gradients(f, {values({2, 3}), values({3, 2})});
  check_gradients(einsum("ij,...jk->...ik"),
                  {values({2, 3}), values({2, 3, 2})});
  check_gradients(einsum("i...j,j...->i..."),
                  {values({2, 1, 3}), values({3, 2})});
  check_gradients(einsum("a...k,b...->...b"),
                  {values({2, 1, 2}), values({2, 3})});
  check_gradients(einsum("ak,b...->...b"), {values({2, 2}), values({2, 3})});
}
