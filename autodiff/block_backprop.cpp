// The gradient of a block that is computed again.
#include "autodiff/differentiate.h"
#include "autodiff/recomputation.h"

namespace tagflow::autodiff {

void Backprop::visit_block(const Block& block) {
  Recomputation again(all_, block.frame, block.members);
  Differentiand what;
  std::vector<Endpoint> ys;
  std::vector<std::pair<Output, Output>> grads;  // inside, and outside
  for (const Endpoint& output : block.outputs) {
    const Gradient grad = total(output);
    if (!grad.valid()) continue;
    ys.push_back(output);
    const Output outside = dense(output, grad);
    grads.emplace_back(again.add_argument(output, outside.dtype()), outside);
  }
  if (ys.empty() || !scope().ok()) return;
  analysis().set_user(ys.front().node);
  const auto fail = [&](Status status) {
    scope().fail(std::move(status).with_prefix(
        fmt::format("[recompute] \"{}\": ", block.name)));
  };
  if (Status status = again.copy(ys); !status.ok()) return fail(status);
  for (const Endpoint& y : ys) what.ys.push_back(again.twin(y));
  std::vector<Endpoint> xs;
  for (const Endpoint& input : block.inputs)
    if (const Endpoint x = again.twin(input); x.node != nullptr) {
      xs.push_back(input);
      what.xs.push_back(x);
    }
  if (xs.empty()) return;
  what.stops = again.stops();
  what.is_in_loop =
      block.frame != graph::FrameId::kRoot || analysis().is_in_loop();
  what.grad_of = [&](size_t i) { return Gradient{grads[i].first}; };
  auto made = differentiate(again.scope(), what);
  if (!made.ok()) return fail(std::move(made).status());
  std::vector<Output> results;
  for (const Gradient& gradient : *made)
    for (const Output& output : {gradient.values, gradient.indices})
      if (output.valid()) results.push_back(output);
  if (results.empty()) return;
  if (Status status = again.finish(results); !status.ok())
    return fail(std::move(status));
  auto call = again.call(scope(), region_, grads);
  if (!call.ok()) return fail(std::move(call).status());
  int next = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    const Gradient& inside = (*made)[i];
    if (!inside.valid()) continue;
    Gradient gradient{(*call)[next++]};
    if (inside.is_sparse()) gradient.indices = (*call)[next++];
    add(xs[i], block.live, gradient);
  }
}

}  // namespace tagflow::autodiff
