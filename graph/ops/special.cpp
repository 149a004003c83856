// Special functions: of errors, gamma, Bessel, zeta.
#include "graph/op_registry.h"
#include "graph/ops/type_sets.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

namespace {

OpDefBuilder special_unary(const char* name) {
  return OpDefBuilder(name)
      .input("x: T")
      .output("y: T")
      .attr(type_set(kFloating))
      .shape(unchanged_shape);
}

// The ports have the names that the op's formula has.
OpDefBuilder special_binary(const char* name, const char* x, const char* y,
                            const char* z) {
  return OpDefBuilder(name)
      .inputs({x, y})
      .output(z)
      .attr("T: {float, double}")
      .shape(broadcast_shape);
}

}  // namespace

void register_special_ops(OpRegistry& registry) {
  for (const char* name :
       {"Erf", "Erfc", "Erfinv", "Ndtri", "Lgamma", "Digamma"})
    registry.add(special_unary(name).work(Work::kTranscendental));
  for (const char* name : {"BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
                           "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e",
                           "BesselK1", "BesselK1e", "BesselY0", "BesselY1"})
    registry.add(special_unary(name));
  // _GammaDensity is the derivative of Igamma by x.
  for (const char* name : {"Igamma", "Igammac", "IgammaGradA", "_GammaDensity"})
    registry.add(special_binary(name, "a: T", "x: T", "z: T"));
  registry.add(
      special_binary("RandomGammaGrad", "alpha: T", "sample: T", "output: T"));
  registry.add(special_binary("Zeta", "x: T", "q: T", "z: T"));
  registry.add(special_binary("Polygamma", "a: T", "x: T", "z: T"));
}

}  // namespace tagflow::graph
